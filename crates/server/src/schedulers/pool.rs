//! Decides as Hop's thread pool does: each thread accepts a connection and keeps it, through every
//! stage and every request, until it closes (document 000 section 2.4, figure 4). When all of them
//! have one, a newcomer takes the thread of a connection that is idle.
//!
//! ```text
//! each thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```

use std::io;
use std::sync::Arc;

use crate::conversation::Conversations;
use crate::schedulers::row::Row;
use crate::schedulers::threads::{Holders, serve_threads};
use crate::server::Server;

/// Threads that block.
pub struct Pool {
    holders: Holders,
}

impl Pool {
    /// A pool of `size` threads, which is also the most connections it serves at one time.
    pub fn new(size: usize) -> Self {
        Self { holders: Holders::new(size) }
    }
}

impl Row for Pool {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.holders.size(), Arc::clone(server));
        serve_threads(server, "pool", size, move |_| {
            self.holders.talk(&mut Conversations::new(&shared, &*self))
        })
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
        self.holders.status()
    }
}
