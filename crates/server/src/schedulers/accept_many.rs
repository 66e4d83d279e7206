//! The `accept-many` scheduler (Serrano, "Hop", 2009, section 2.4): one acceptor thread empties the
//! kernel's accept queue at each wake-up, and each thread of a pool serves one connection until it
//! closes.
//!
//! ```text
//! acceptor:    accept, accept, accept ... -> queue
//! each thread: queue -> request -> response -> reply -> request -> ... -> queue
//! ```
//!
//! A burst of clients does not overflow the kernel's queue, whose overflow makes a client retry
//! after a second. The price is one hand-over per connection, which `pool` does not need. When
//! every thread has a connection, a connection in the queue takes the thread of an idle one. After
//! `queue-timeout` in the queue the server answers it with 503.

use std::io;
use std::sync::Arc;

use crate::arrival::{Acceptor, ArrivalQueue};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::schedulers::row::SingleThreadScheduler;
use crate::schedulers::threads::{ConnectionThreads, serve_threads};
use crate::server::Server;

/// The `accept-many` scheduler: an acceptor thread and a pool of blocking threads.
pub struct AcceptMany {
    threads: ConnectionThreads,
    queue: ArrivalQueue,
}

impl AcceptMany {
    /// Creates the scheduler with `size` threads and room for `queue` waiting connections.
    ///
    /// # Errors
    ///
    /// Fails when the process has no free file descriptor.
    pub fn new(size: usize, queue: usize) -> io::Result<Self> {
        Ok(Self { threads: ConnectionThreads::new(size), queue: ArrivalQueue::new(queue)? })
    }

    /// Accepts connections into the queue and refuses those whose wait there exceeds the limit.
    fn admit(&self, server: &Arc<Server>) -> io::Result<()> {
        let queue = &self.queue;
        let mut acceptor = Acceptor::new(server);
        while server.state() == State::Serving {
            let wait = queue.turn_away(server.generation().settings.timeouts.queue);
            queue.fill(&mut acceptor, wait)?;
        }
        Ok(())
    }
}

impl SingleThreadScheduler for AcceptMany {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.threads.size(), Arc::clone(server));
        serve_threads(server, "accept-many", size.saturating_add(1), move |index| {
            if index == 0 {
                let ended = self.admit(&shared);
                self.queue.close();
                return ended;
            }
            self.threads.serve(&mut Conversations::from_queue(&self.queue, &shared, &*self))
        })
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
        format!("{}; {} connections wait for a thread", self.threads.status(), self.queue.len())
    }
}
