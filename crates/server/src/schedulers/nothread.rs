//! The `nothread` scheduler (Serrano, "Hop", 2009, section 2.4, figure 2): one thread serves one
//! connection from accept to close, then the next. This policy is the baseline for the schedulers
//! that give each connection a thread, and fits a device whose handlers must never run
//! concurrently.
//!
//! ```text
//! one thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```
//!
//! A new connection waits in the kernel's accept queue until the current one closes or becomes
//! idle. The thread cannot be lent to a waiting reply: a reply that would wait for an event returns
//! at once without one.

use std::io;
use std::sync::Arc;

use crate::conversation::Conversations;
use crate::schedulers::row::SingleThreadScheduler;
use crate::schedulers::threads::{ConnectionThreads, serve_threads};
use crate::server::Server;

/// The `nothread` scheduler: a single thread.
pub struct NoThread {
    thread: ConnectionThreads,
}

impl NoThread {
    /// Creates the scheduler; its thread starts with [`accept`](SingleThreadScheduler::accept).
    pub fn new() -> Self {
        Self { thread: ConnectionThreads::new(1) }
    }
}

impl Default for NoThread {
    fn default() -> Self {
        Self::new()
    }
}

impl SingleThreadScheduler for NoThread {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let shared = Arc::clone(server);
        // Not on the calling thread, which must stay free to end the server when a handler blocks
        // past the drain.
        serve_threads(server, "nothread", 1, move |_| {
            self.thread.serve(&mut Conversations::new(&shared, &*self))
        })
    }

    /// Its only thread serves the other connections.
    fn begin_hold(&self) -> bool {
        false
    }

    fn load(&self) -> f32 {
        self.thread.load()
    }

    fn status(&self) -> String {
        self.thread.status()
    }
}
