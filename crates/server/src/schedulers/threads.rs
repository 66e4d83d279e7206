//! Starts the threads of a scheduler, waits for their end, and counts those that serve connections.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{PollFd, PollFlags, poll};

use crate::arrival::Arrival;
use crate::conversation::Conversations;
use crate::event_loop::EventLoop;
use crate::lifecycle::State;
use crate::scheduling::Scheduler;
use crate::server::Server;

/// Interval at which the server checks for a second stop request while its threads drain.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs each event loop of the server on its own thread, with stages placed by `scheduler`. Returns
/// when the last loop has ended.
///
/// # Errors
///
/// Fails when threads or file descriptors are not available, or when the end of the drain closes
/// connections that are still in use.
pub fn serve_loops(server: &Arc<Server>, scheduler: &Arc<dyn Scheduler>) -> io::Result<()> {
    let (server_clone, scheduler) = (Arc::clone(server), Arc::clone(scheduler));
    server.admission().begin_loops();
    run_threads(server, "loop", server.loops.len(), move |index| {
        EventLoop::run(Arc::clone(&server_clone), Arc::clone(&scheduler), index)
    })
}

/// Runs `body` on `count` threads that may block, and passes each its index. Returns when the last
/// thread or the drain has ended. A thread that still blocks then ends with the process.
///
/// # Errors
///
/// Returns the error of a body, which also stops the server. Fails too when threads are not
/// available, or when the end of the drain closes connections that are still in use.
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
    await_end_of_drain(server, &ends)
}

/// Starts a thread that sends its result to `end`.
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
        // Drop the server before the result is sent. After the drain the receiver may be gone.
        drop(server);
        let _ = end.send(ended);
    });
    thread.map(|_| ())
}

/// Waits until every thread or the drain has ended.
pub(super) fn await_end_of_drain(
    server: &Server,
    ends: &Receiver<io::Result<()>>,
) -> io::Result<()> {
    let bell = server.stop_bell();
    while server.state() == State::Serving {
        // The result is not needed: the loop checks the state.
        let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], None);
    }
    let deadline = Instant::now() + server.generation().settings.timeouts.drain;
    let mut outcome = Ok(());
    while server.state() == State::Draining && Instant::now() < deadline {
        match ends
            .recv_timeout(CHECK_INTERVAL.min(deadline.saturating_duration_since(Instant::now())))
        {
            Ok(ended) => outcome = outcome.and(ended),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return outcome,
        }
    }
    if server.state() == State::Draining {
        server.is_drain_over.store(true, Ordering::Release);
        let status = server.scheduler.get().map(|metrics| metrics().status).unwrap_or_default();
        log::warn(format_args!(
            "the time to drain (`drain-timeout`) is over, and the connections that are left are cut: {status}"
        ));
    }
    let message = "connections were cut at the end of the drain";
    outcome.and(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
}

/// Runs `body` and stops the server when it fails: a server with missing threads would hide the
/// cause.
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

/// Starts `count` threads and waits until all have ended. When a thread cannot be started, the
/// server stops.
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
        let (body, server_clone) = (Arc::clone(&body), Arc::clone(server));
        let thread = std::thread::Builder::new()
            .name(format!("bine {name} {index}"))
            .spawn(move || run_one(&server_clone, &*body, index));
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

/// Counts the threads of a pool that serve one connection each.
pub(super) struct ConnectionThreads {
    size: usize,
    serving: AtomicUsize,
    /// Threads lent to replies that wait for an event.
    waiting: AtomicUsize,
}

impl ConnectionThreads {
    /// Creates the counters for `size` threads, at least one.
    pub(super) fn new(size: usize) -> Self {
        Self { size: size.max(1), serving: AtomicUsize::new(0), waiting: AtomicUsize::new(0) }
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Serves connections in sequence until the server stops.
    pub(super) fn serve(&self, conversations: &mut Conversations<'_>) -> io::Result<()> {
        while let Some(arrival) = conversations.accept()? {
            self.serve_one(conversations, arrival);
        }
        Ok(())
    }

    /// Runs stages of a connection with [`Conversations::go_on`] and counts the thread as busy.
    pub(super) fn run_stages(
        &self,
        conversations: &mut Conversations<'_>,
        arrival: Arrival,
    ) -> Option<Arrival> {
        self.serving.fetch_add(1, Ordering::Relaxed);
        let again = conversations.serve_stages(arrival);
        self.serving.fetch_sub(1, Ordering::Relaxed);
        again
    }

    fn serve_one(&self, conversations: &mut Conversations<'_>, arrival: Arrival) {
        self.serving.fetch_add(1, Ordering::Relaxed);
        conversations.hold(arrival);
        self.serving.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lends a thread to a waiting reply, unless it is the last free one.
    pub(super) fn begin_hold(&self) -> bool {
        let lend = |waiting: usize| (waiting + 1 < self.size).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lend).is_ok()
    }

    pub(super) fn end_hold(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> f32 {
        (self.serving.load(Ordering::Relaxed) as f32 / self.size as f32).min(1.0)
    }

    pub(super) fn status(&self) -> String {
        let (serving, waiting) =
            (self.serving.load(Ordering::Relaxed), self.waiting.load(Ordering::Relaxed));
        format!(
            "{serving} of {} threads serve a connection, {waiting} of them a suspended response",
            self.size
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::settings::{Settings, Timeouts};
    use crate::test_support::server;

    #[test]
    fn lends_every_thread_but_one_to_suspended_responses() {
        let threads = ConnectionThreads::new(3);
        assert_eq!([(); 3].map(|()| threads.begin_hold()), [true, true, false]);
        assert!(threads.status().ends_with(", 2 of them a suspended response"));
        threads.end_hold();
        assert_eq!([(); 2].map(|()| threads.begin_hold()), [true, false]);
        assert!(!ConnectionThreads::new(1).begin_hold(), "no thread would serve others");
    }

    #[test]
    fn counts_at_least_one_thread() {
        assert_eq!([0, 1, 2].map(|size| ConnectionThreads::new(size).size()), [1, 1, 2]);
    }

    fn stopped(drain: Duration) -> Arc<Server> {
        let timeouts = Timeouts { drain, ..Timeouts::default() };
        let server = server(Settings { timeouts, ..Settings::default() });
        server.stop();
        server
    }

    #[test]
    fn cuts_connections_at_the_end_of_the_drain() {
        let messages = log::test_support::capture();
        let server = stopped(Duration::ZERO);
        let (_end, ends) = channel();
        let error = await_end_of_drain(&server, &ends).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(server.is_drain_over.load(Ordering::Acquire));
        let messages = messages.end();
        assert_eq!(messages.len(), 1);
        assert!(
            messages[0].contains("the time to drain (`drain-timeout`) is over"),
            "{messages:?}"
        );
    }

    /// The second stop request is intended, so it needs no warning.
    #[test]
    fn cuts_connections_at_a_second_stop_without_a_message() {
        let messages = log::test_support::capture();
        let server = stopped(Duration::from_mins(1));
        server.stop();
        assert_eq!(server.state(), State::Over);
        let (_end, ends) = channel();
        let error = await_end_of_drain(&server, &ends).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(messages.end(), [""; 0]);
    }

    #[test]
    fn returns_the_first_error_when_all_threads_have_ended() {
        let server = stopped(Duration::from_mins(1));
        let (end, ends) = channel();
        for result in [Ok(()), Err("first"), Err("second"), Ok(())] {
            end.send(result.map_err(io::Error::other)).unwrap();
        }
        drop(end);
        let error = await_end_of_drain(&server, &ends).unwrap_err();
        assert_eq!(error.to_string(), "first");
        assert_eq!(server.state(), State::Draining);
        let (end, ends) = channel();
        end.send(Ok(())).unwrap();
        drop(end);
        assert!(await_end_of_drain(&server, &ends).is_ok());
    }

    #[test]
    fn stops_the_server_when_a_thread_fails() {
        let messages = log::test_support::capture();
        for (fails, panics) in [(false, false), (true, false), (true, true)] {
            let server = server(Settings::default());
            let (end, ends) = channel();
            let body = move || {
                assert!(!panics, "a panic of the test");
                if fails { Err(io::Error::other("failed")) } else { Ok(()) }
            };
            start(&server, "bine test".to_owned(), &end, body).unwrap();
            drop(end);
            let ended = ends.recv().unwrap();
            assert_eq!(ended.is_err(), fails);
            assert_eq!(server.state() == State::Serving, !fails);
        }
        drop(messages);
    }

    #[test]
    fn runs_each_body_once_and_returns_the_first_error() {
        for (count, wrong, expected) in [
            (0, None, [0].as_slice()),
            (1, None, &[0]),
            (3, None, &[0, 1, 2]),
            (3, Some(1), &[0, 1, 2]),
        ] {
            let (server, run) = (server(Settings::default()), Arc::new(Mutex::new(Vec::new())));
            let record = Arc::clone(&run);
            let outcome = run_threads(&server, "test", count, move |index| {
                record.lock().unwrap().push(index);
                if Some(index) == wrong { Err(io::Error::other("failed")) } else { Ok(()) }
            });
            let mut run = run.lock().unwrap().clone();
            run.sort_unstable();
            assert_eq!((run.as_slice(), outcome.is_err()), (expected, wrong.is_some()));
            assert_eq!(server.state() == State::Serving, wrong.is_none());
        }
    }
}
