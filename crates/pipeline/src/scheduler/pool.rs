//! Decides as Hop's thread pool does: each thread accepts a connection and keeps it, through every
//! stage and every request, until it closes (document 000 section 2.4, figure 4). When all of them
//! have one, a newcomer takes the thread of a connection that is idle.
//!
//! ```text
//! each thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::conversation::Conversations;
use crate::scheduler::{Place, Scheduler};
use crate::server::{Server, State};
use crate::stages::Next;
use crate::workers::Task;

/// How soon a second wish to stop is seen while the threads finish what they have begun.
const LOOK: Duration = Duration::from_millis(50);

/// Threads that block.
pub struct Pool {
    size: usize,
    talking: AtomicUsize,
    /// Threads lent to replies that wait for something to happen.
    held: AtomicUsize,
}

impl Pool {
    /// A pool of `size` threads, which is also the most connections it serves at one time.
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), talking: AtomicUsize::new(0), held: AtomicUsize::new(0) }
    }

    /// What each thread does until the server stops.
    fn talk(&self, server: &Arc<Server>) -> io::Result<()> {
        let mut conversations = Conversations::new(server, self);
        while let Some(connection) = conversations.accept()? {
            self.talking.fetch_add(1, Ordering::Relaxed);
            conversations.hold(connection);
            self.talking.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Scheduler for Pool {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (end, ends) = channel();
        for index in 0..self.size {
            let (own, shared, end) = (Arc::clone(&self), Arc::clone(server), end.clone());
            let thread = Builder::new().name(format!("bine pool {index}")).spawn(move || {
                let ended = own.talk(&shared);
                if ended.is_err() {
                    shared.stop();
                }
                // Nobody listens any more to a thread that was cut.
                let _ = end.send(ended);
            });
            if let Err(error) = thread {
                server.stop();
                return Err(error);
            }
        }
        drop(end);
        outlast(server, &ends)
    }

    fn stage(&self, _next: Next) -> Place {
        Place::Here
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn begin_hold(&self) -> bool {
        let lend = |held: usize| (held + 1 < self.size).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lend).is_ok()
    }

    fn end_hold(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }

    fn load(&self) -> f32 {
        self.talking.load(Ordering::Relaxed) as f32 / self.size as f32
    }
}

/// Waits until every thread has ended, or until what is left is to be cut. A thread that blocks
/// cannot be told anything: it goes with the process.
fn outlast(server: &Server, ends: &Receiver<io::Result<()>>) -> io::Result<()> {
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
