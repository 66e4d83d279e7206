//! Changes of a session: the handler waits for the commit, and the request sees a change only after
//! it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[cfg(feature = "script")]
use super::visitor_session::SessionState;
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
/// misses the row finds the mark. Dropping it removes the mark, unless the change has succeeded.
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

    /// Runs the change as a part of a transaction that its caller commits. The request sees the
    /// change at once, and not any more once `within` is dropped.
    ///
    /// # Errors
    ///
    /// The error of the change. The session has not changed then.
    #[cfg(feature = "script")]
    pub(crate) fn run_within(
        self,
        transaction: &mut Transaction,
        within: &mut SessionTransaction,
    ) -> Result<T, Error> {
        let (next, value) = self.change.into_action()(transaction)?;
        within.changes.push(self.visitor_session.change_state(next));
        within.marks.extend(self.mark);
        Ok(value)
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

/// The changes of a session within one transaction. Unless they are kept after the commit, the request
/// sees the session again as it was before.
#[cfg(feature = "script")]
pub(crate) struct SessionTransaction {
    visitor_session: Arc<VisitorSession>,
    before: Option<SessionState>,
    changes: Vec<super::visitor_session::StateChange>,
    marks: Vec<ReplacedMark>,
}

#[cfg(feature = "script")]
impl SessionTransaction {
    pub(super) fn new(visitor_session: Arc<VisitorSession>) -> Self {
        let before = Some(visitor_session.copy_state());
        Self { visitor_session, before, changes: Vec::new(), marks: Vec::new() }
    }

    /// Keeps the changes: the transaction is committed.
    pub(crate) fn keep(mut self) {
        self.before = None;
        self.marks.drain(..).for_each(ReplacedMark::make_permanent);
        for change in self.changes.drain(..) {
            self.visitor_session.finish_change(change);
        }
    }
}

#[cfg(feature = "script")]
impl Drop for SessionTransaction {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.visitor_session.restore_state(before);
        }
    }
}
