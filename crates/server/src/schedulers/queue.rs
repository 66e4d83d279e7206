//! Decides that each stage is a task in one queue, which a pool of threads works off in order. A
//! thread that has finished a stage runs the next one of the same request when other threads are
//! free, else it queues it and takes the oldest task (document 000 section 2.4).
//!
//! ```text
//! acceptor:    accept ----------------------------------------.
//! the queue:   [ request | response | request | reply | ... ] <-'- <-.
//! each thread: the oldest task -> its stage -> somebody waits? ------'
//!                                    ^               |
//!                                    '--- next ------' nobody does
//! ```
//!
//! With threads to spare a request runs in a row, as under `pool`. Without, all requests come further
//! in turn, and a hand-over costs some hundreds of bytes copied and a lock. The request stage of a
//! connection that is idle blocks its thread: at full load it has a millisecond, then it gives way to
//! who waits. A request that has waited for longer than `queue-timeout` is told so (503).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::arrival::{Entrance, Lobby};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::next::Next;
use crate::schedulers::threads::{Holders, serve_threads};
use crate::scheduling::{Place, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// The acceptor looks no more often than this for who has waited too long, however short that is.
const LEAST: Duration = Duration::from_millis(1);

/// An acceptor, threads that block, and a queue of stages.
pub struct Queue {
    holders: Holders,
    waiting: Lobby,
}

impl Queue {
    /// A pool of `size` threads, and room for `queue` connections that wait for one.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new(size: usize, queue: usize) -> io::Result<Self> {
        Ok(Self { holders: Holders::new(size), waiting: Lobby::new(queue)? })
    }

    /// Queues everybody who comes, and lets go of who has waited too long.
    fn admit(&self, server: &Arc<Server>) -> io::Result<()> {
        let mut entrance = Entrance::new(server);
        let mut conversations = Conversations::behind(&self.waiting, server, self);
        while server.state() == State::Serving {
            let limit = server.generation().settings.timeouts.queue;
            let wait = loop {
                match self.waiting.take_late(limit) {
                    Ok(late) => conversations.turn_away(late),
                    // Threads queue too, and do not wake this one.
                    Err(wait) => break wait.unwrap_or(limit),
                }
            };
            self.waiting.fill(&mut entrance, Some(wait.max(LEAST)))?;
            conversations.keep_up();
        }
        Ok(())
    }

    /// What each thread does until the server stops: one task after the other.
    fn work(&self, server: &Arc<Server>) -> io::Result<()> {
        let mut conversations = Conversations::behind(&self.waiting, server, self);
        while let Some(task) = conversations.accept()? {
            if let Some(next) = self.holders.go_on(&mut conversations, task) {
                self.waiting.put_back(next);
            }
        }
        Ok(())
    }
}

impl Scheduler for Queue {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.holders.size(), Arc::clone(server));
        serve_threads(server, "queue", size.saturating_add(1), move |index| {
            if index > 0 {
                return self.work(&shared);
            }
            let ended = self.admit(&shared);
            self.waiting.close();
            ended
        })
    }

    fn stage(&self, _next: Next) -> Place {
        if self.waiting.is_pressed() { Place::Elsewhere } else { Place::Here }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn begin_hold(&self) -> bool {
        self.holders.begin_hold()
    }

    fn end_hold(&self) {
        self.holders.end_hold();
    }

    fn load(&self) -> f32 {
        self.holders.load()
    }

    fn status(&self) -> String {
        format!("{}; {} tasks wait for one", self.holders.status(), self.waiting.len())
    }
}
