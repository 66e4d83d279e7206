//! Owners of reservations, which a budget notifies to close an evicted connection.

use std::sync::Arc;

use crate::slab::Token;

/// A thread that checks its connections for eviction on request.
pub(crate) trait Evict: Send + Sync {
    /// Makes the thread check the connection with this token, which may have ended already.
    fn evict(&self, token: Token);
}

/// The connection that holds a reservation.
#[derive(Clone, Default)]
pub(crate) struct Owner {
    /// The event loop of the connection. `None` for a thread that serves one connection and checks
    /// for eviction on its own.
    pub(crate) thread: Option<Arc<dyn Evict>>,
    /// The token of the connection in its loop.
    pub(crate) token: Token,
}

impl Owner {
    /// Makes the loop check the connection.
    pub(crate) fn evict(&self) {
        if let Some(thread) = &self.thread {
            thread.evict(self.token);
        }
    }
}
