//! Decides how a scheduler's threads start and end, and how many of those that hold connections are in use.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::arrival::Arrival;
use crate::conversation::Conversations;
use crate::event_loop::EventLoop;
use crate::lifecycle::State;
use crate::scheduling::Scheduler;
use crate::server::Server;

/// How soon a second wish to stop is seen while the threads finish what they have begun.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the server's event loops, each on a thread of its own, with every stage placed as
/// `scheduler` says; returns when the last has ended.
///
/// # Errors
///
/// Threads or descriptors that could not be had; connections that the end of the drain has cut.
pub fn serve_loops(server: &Arc<Server>, scheduler: &Arc<dyn Scheduler>) -> io::Result<()> {
    let (shared, own) = (Arc::clone(server), Arc::clone(scheduler));
    server.admission().begin_loops();
    run_threads(server, "loop", server.loops.len(), move |index| {
        EventLoop::run(Arc::clone(&shared), Arc::clone(&own), index)
    })
}

/// Runs `body` on `count` threads that may block, told its number; returns when the last has ended, or the
/// drain has. What blocks then cannot be told anything: it goes with the process.
///
/// # Errors
///
/// What a body returns, which stops the server too; threads that could not be had; connections that the end of
/// the drain has cut.
pub fn serve_threads(
    server: &Arc<Server>,
    name: &str,
    count: usize,
    body: impl Fn(usize) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let body = Arc::new(body);
    let (end, ends) = channel();
    for index in 0..count {
        let body = Arc::clone(&body);
        let name = format!("bine {name} {index}");
        if let Err(error) = start(server, name, &end, move || body(index)) {
            server.stop();
            return Err(error);
        }
    }
    drop(end);
    outlast(server, &ends)
}

/// Starts a thread whose end is told to `end`.
pub(super) fn start(
    server: &Arc<Server>,
    name: String,
    end: &Sender<io::Result<()>>,
    body: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let (server, end) = (Arc::clone(server), end.clone());
    let thread = Builder::new().name(name).spawn(move || {
        let panicked = |_| Err(io::Error::other("a thread panicked"));
        let ended = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(panicked);
        if ended.is_err() {
            server.stop();
        }
        // The server goes before its end is told; nobody listens any more to a thread that was cut.
        drop(server);
        let _ = end.send(ended);
    });
    thread.map(|_| ())
}

/// Waits until every thread has ended, or until what is left is to be cut.
pub(super) fn outlast(server: &Server, ends: &Receiver<io::Result<()>>) -> io::Result<()> {
    let bell = server.stop_bell();
    while server.state() == State::Serving {
        // Interrupted or not, the state says it all.
        let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], None);
    }
    let last_call = Instant::now() + server.generation().settings.timeouts.drain;
    let mut outcome = Ok(());
    while server.state() == State::Draining && Instant::now() < last_call {
        match ends.recv_timeout(LOOK.min(last_call.saturating_duration_since(Instant::now()))) {
            Ok(ended) => outcome = outcome.and(ended),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return outcome,
        }
    }
    let message = "connections were cut at the end of the drain";
    outcome.and(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
}

/// A thread that fails takes the server down with it: half a server helps nobody to find out why.
fn run_one(
    server: &Server,
    body: &dyn Fn(usize) -> io::Result<()>,
    index: usize,
) -> io::Result<()> {
    let outcome = body(index);
    if outcome.is_err() {
        server.stop();
    }
    outcome
}

/// Starts `count` threads and waits for all of them. When one cannot be started, those that run
/// are told to stop.
fn run_threads(
    server: &Arc<Server>,
    name: &str,
    count: usize,
    body: impl Fn(usize) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let body = Arc::new(body);
    let mut outcome = Ok(());
    let mut threads = Vec::new();
    // The first body runs on the calling thread: one loop needs one thread.
    for index in 1..count.max(1) {
        let (body, own) = (Arc::clone(&body), Arc::clone(server));
        let thread = std::thread::Builder::new()
            .name(format!("bine {name} {index}"))
            .spawn(move || run_one(&own, &*body, index));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                outcome = Err(error);
                server.stop();
                break;
            }
        }
    }
    let first = run_one(server, &*body, 0);
    for thread in threads {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        outcome = outcome.and(ended);
    }
    outcome.and(first)
}

/// Threads that hold a connection each.
pub(super) struct Holders {
    size: usize,
    talking: AtomicUsize,
    /// Lent to replies that wait for something to happen.
    waiting: AtomicUsize,
}

impl Holders {
    /// At most `size` of them, and at least one.
    pub(super) fn new(size: usize) -> Self {
        Self { size: size.max(1), talking: AtomicUsize::new(0), waiting: AtomicUsize::new(0) }
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// What each thread does until the server stops: one connection after the other.
    pub(super) fn talk(&self, conversations: &mut Conversations<'_>) -> io::Result<()> {
        while let Some(arrival) = conversations.accept()? {
            self.hold(conversations, arrival);
        }
        Ok(())
    }

    /// Runs stages of a connection, as [`Conversations::go_on`].
    pub(super) fn go_on(
        &self,
        conversations: &mut Conversations<'_>,
        arrival: Arrival,
    ) -> Option<Arrival> {
        self.talking.fetch_add(1, Ordering::Relaxed);
        let again = conversations.go_on(arrival);
        self.talking.fetch_sub(1, Ordering::Relaxed);
        again
    }

    fn hold(&self, conversations: &mut Conversations<'_>, arrival: Arrival) {
        self.talking.fetch_add(1, Ordering::Relaxed);
        conversations.hold(arrival);
        self.talking.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lends one, unless it is the last.
    pub(super) fn begin_hold(&self) -> bool {
        let lend = |waiting: usize| (waiting + 1 < self.size).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lend).is_ok()
    }

    pub(super) fn end_hold(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> f32 {
        (self.talking.load(Ordering::Relaxed) as f32 / self.size as f32).min(1.0)
    }

    pub(super) fn status(&self) -> String {
        let (talking, waiting) =
            (self.talking.load(Ordering::Relaxed), self.waiting.load(Ordering::Relaxed));
        format!(
            "{talking} of {} threads have a connection, {waiting} of these wait for news",
            self.size
        )
    }
}
