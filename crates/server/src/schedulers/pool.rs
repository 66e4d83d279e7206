//! The `pool` scheduler (Serrano, "Hop", 2009, section 2.4, figure 4): each thread accepts a
//! connection and runs all stages of all its requests until it closes. When every thread has a
//! connection, a new one takes the thread of an idle connection.
//!
//! ```text
//! each thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```

use std::io;
use std::sync::Arc;

use crate::conversation::Conversations;
use crate::schedulers::row::SingleThreadScheduler;
use crate::schedulers::threads::{ConnectionThreads, serve_threads};
use crate::server::Server;

/// The `pool` scheduler: threads that accept, and block.
pub struct Pool {
    threads: ConnectionThreads,
}

impl Pool {
    /// Creates a pool of `size` threads, which also limits the connections served at one time.
    pub fn new(size: usize) -> Self {
        Self { threads: ConnectionThreads::new(size) }
    }
}

impl SingleThreadScheduler for Pool {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.threads.size(), Arc::clone(server));
        serve_threads(server, "pool", size, move |_| {
            self.threads.serve(&mut Conversations::new(&shared, &*self))
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
        self.threads.status()
    }
}
