//! Decides that nothing happens at the same time: one connection from accept to close, then the next
//! (document 000 section 2.4, figure 2). It is the baseline of those that hold connections, and what a
//! device can use whose handlers must never run beside each other.
//!
//! ```text
//! one thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```
//!
//! A newcomer waits in the kernel's queue until the connection at hand closes or is idle. Nothing can be
//! held: a reply that would wait for something to happen is told at once that nothing has.

use std::io;
use std::sync::Arc;

use crate::conversation::Conversations;
use crate::schedulers::row::Row;
use crate::schedulers::threads::{Holders, serve_threads};
use crate::server::Server;

/// One thread for everything.
pub struct NoThread {
    holder: Holders,
}

impl NoThread {
    /// One that nobody has taken yet.
    pub fn new() -> Self {
        Self { holder: Holders::new(1) }
    }
}

impl Default for NoThread {
    fn default() -> Self {
        Self::new()
    }
}

impl Row for NoThread {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let shared = Arc::clone(server);
        // Not on the calling thread: that one cuts off what blocks past the drain.
        serve_threads(server, "nothread", 1, move |_| {
            self.holder.talk(&mut Conversations::new(&shared, &*self))
        })
    }

    fn begin_hold(&self) -> bool {
        self.holder.begin_hold()
    }

    fn end_hold(&self) {
        self.holder.end_hold();
    }

    fn load(&self) -> f32 {
        self.holder.load()
    }

    fn status(&self) -> String {
        self.holder.status()
    }
}
