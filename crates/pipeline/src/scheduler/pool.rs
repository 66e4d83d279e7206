//! Decides as Hop's thread pool does: each thread accepts a connection and keeps it, through every
//! stage and every request, until it closes (document 000 section 2.4, figure 4).
//!
//! ```text
//! each thread: accept -> request -> response -> reply -> request -> ... -> accept
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::conversation::Conversations;
use crate::scheduler::{Place, Scheduler, run_threads};
use crate::server::Server;
use crate::stages::Next;
use crate::workers::Task;

/// Threads that block.
pub struct Pool {
    size: usize,
    talking: Arc<AtomicUsize>,
}

impl Pool {
    /// A pool of `size` threads, which is also the most connections it serves at one time.
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), talking: Arc::default() }
    }
}

impl Scheduler for Pool {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let shared = Arc::clone(server);
        let own = Arc::clone(&self);
        run_threads(server, "pool", self.size, move |_| {
            let mut conversations = Conversations::new(&shared);
            while let Some(connection) = conversations.accept()? {
                own.talking.fetch_add(1, Ordering::Relaxed);
                conversations.hold(connection);
                own.talking.fetch_sub(1, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn stage(&self, _next: Next) -> Place {
        Place::Here
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        self.talking.load(Ordering::Relaxed) as f32 / self.size as f32
    }
}
