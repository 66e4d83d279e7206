//! The `queue` scheduler (Serrano, "Hop", 2009, section 2.4): each stage is a task in one queue,
//! which a pool of threads processes in order. After a stage, a thread runs the next stage of the
//! same request when other threads are free. Otherwise the thread queues that stage and takes the
//! oldest task.
//!
//! ```text
//! acceptor:    accept ----------------------------------------.
//! the queue:   [ request | response | request | reply | ... ] <-'- <-.
//! each thread: the oldest task -> its stage -> tasks waiting? -- yes '
//!                                    ^               |
//!                                    '--- next ------' no
//! ```
//!
//! With threads to spare, the stages of a request run on one thread, as under `pool`. Without, all
//! requests progress in turn; a hand-over copies some hundreds of bytes and takes a lock. The
//! request stage of an idle connection blocks its thread: at full load the thread waits one
//! millisecond for the next request, then serves a waiting connection. A request that waits longer
//! than `queue-timeout` gets a 503.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::arrival::{Acceptor, ArrivalQueue};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::next::Next;
use crate::schedulers::threads::{ConnectionThreads, serve_threads};
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// Shortest time between two checks of the acceptor for expired waits, however short the limit is.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The `queue` scheduler: an acceptor, blocking threads, and a queue of stages.
pub struct Queue {
    threads: ConnectionThreads,
    waiting: ArrivalQueue,
}

impl Queue {
    /// Creates the scheduler with `size` threads and room for `queue` waiting connections.
    ///
    /// # Errors
    ///
    /// Fails when the process has no free file descriptor.
    pub fn new(size: usize, queue: usize) -> io::Result<Self> {
        Ok(Self { threads: ConnectionThreads::new(size), waiting: ArrivalQueue::new(queue)? })
    }

    /// Queues accepted connections and refuses those whose wait exceeds the limit.
    fn admit(&self, server: &Arc<Server>) -> io::Result<()> {
        let mut acceptor = Acceptor::new(server);
        let mut conversations = Conversations::from_queue(&self.waiting, server, self);
        while server.state() == State::Serving {
            let limit = server.generation().settings.timeouts.queue;
            let wait = loop {
                match self.waiting.take_late(limit) {
                    Ok(late) => conversations.turn_away(late),
                    // Worker threads queue connections without waking the acceptor, so it must wake
                    // by itself even when the queue was empty.
                    Err(wait) => break wait.unwrap_or(limit),
                }
            };
            self.waiting.fill(&mut acceptor, Some(wait.max(MIN_CHECK_INTERVAL)))?;
            conversations.keep_up();
        }
        Ok(())
    }

    /// Runs tasks in sequence until the server stops.
    fn work(&self, server: &Arc<Server>) -> io::Result<()> {
        let mut conversations = Conversations::from_queue(&self.waiting, server, self);
        while let Some(task) = conversations.accept()? {
            if let Some(next) = self.threads.run_stages(&mut conversations, task) {
                self.waiting.put_back(next);
            }
        }
        Ok(())
    }
}

impl Scheduler for Queue {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.threads.size(), Arc::clone(server));
        serve_threads(server, "queue", size.saturating_add(1), move |index| {
            if index > 0 {
                return self.work(&shared);
            }
            let ended = self.admit(&shared);
            self.waiting.close();
            ended
        })
    }

    fn stage(&self, _next: Next) -> Placement {
        if self.waiting.is_pressed() { Placement::Spawn } else { Placement::SameThread }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn begin_hold(&self) -> bool {
        self.threads.begin_hold()
    }

    fn end_hold(&self) {
        self.threads.end_hold();
    }

    fn load(&self) -> f32 {
        self.threads.load()
    }

    fn status(&self) -> String {
        format!("{}; {} tasks wait for a thread", self.threads.status(), self.waiting.len())
    }
}
