//! Changes of a session: the handler waits for the commit, and the request sees a change only after
//! it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::visitor_session::{NextState, VisitorSession};
use crate::error::Error;
use crate::store::{Change, Transaction};

/// A change of a [`Session`](crate::Session): await it, or call [`wait`](SessionChange::wait) in a
/// blocking function.
#[must_use = "nothing is changed before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct SessionChange<T> {
    visitor_session: Arc<VisitorSession>,
    change: Change<Action<T>, (NextState, T), Error>,
    /// Set by a login.
    mark: Option<ReplacedMark>,
}

/// It runs again after a conflict.
type Action<T> = Box<dyn FnMut(&mut Transaction) -> Result<(NextState, T), Error> + Send>;

/// Marks a session as [replaced](super::replaced) before its row is removed, so that a request that
/// misses the row finds the mark. Dropping it removes the mark, unless the change was made.
pub(super) struct ReplacedMark {
    visitor_session: Arc<VisitorSession>,
    id: [u8; 16],
    is_permanent: bool,
}

impl ReplacedMark {
    pub(super) fn new(visitor_session: Arc<VisitorSession>, id: [u8; 16]) -> Self {
        visitor_session.opened().replaced.insert(id, visitor_session.now);
        Self { visitor_session, id, is_permanent: false }
    }

    fn make_permanent(mut self) {
        self.is_permanent = true;
    }
}

impl Drop for ReplacedMark {
    fn drop(&mut self) {
        if !self.is_permanent {
            self.visitor_session.opened().replaced.remove(&self.id);
        }
    }
}

impl<T> SessionChange<T> {
    pub(super) fn new(visitor_session: Arc<VisitorSession>, action: Action<T>) -> Self {
        let change = visitor_session.opened().store.change(action);
        Self { visitor_session, change, mark: None }
    }

    /// Marks a session as replaced by this change.
    pub(super) fn ending(self, mark: ReplacedMark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// Commits the change and waits until it is stored. Do not call it in an async function: it
    /// blocks the thread's other requests.
    ///
    /// # Errors
    ///
    /// The error of the change. Nothing has changed then.
    pub fn wait(self) -> Result<T, Error> {
        let (next, value) = self.change.wait()?;
        self.mark.into_iter().for_each(ReplacedMark::make_permanent);
        self.visitor_session.settle(next);
        Ok(value)
    }
}

impl<T: Unpin> Future for SessionChange<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (next, value) = ready!(Pin::new(&mut self.change).poll(context))?;
        self.mark.take().into_iter().for_each(ReplacedMark::make_permanent);
        self.visitor_session.settle(next);
        Poll::Ready(Ok(value))
    }
}

impl<T> fmt::Debug for SessionChange<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SessionChange")
    }
}
