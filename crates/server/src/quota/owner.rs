//! Owners of reservations: whom a budget tells to close a connection when others need its bytes.

use std::sync::Arc;

use crate::slab::Token;

/// A thread that closes connections when it is told to.
pub(crate) trait Evict: Send + Sync {
    /// Has the connection with this token looked at, which may have ended.
    fn evict(&self, token: Token);
}

/// The connection that holds a reservation.
#[derive(Clone, Default)]
pub(crate) struct Owner {
    /// The loop that has the connection among others; `None` for a thread that has one connection, and looks by itself.
    pub(crate) thread: Option<Arc<dyn Evict>>,
    /// The connection's place there.
    pub(crate) token: Token,
}

impl Owner {
    /// Has the connection looked at.
    pub(crate) fn evict(&self) {
        if let Some(thread) = &self.thread {
            thread.evict(self.token);
        }
    }
}
