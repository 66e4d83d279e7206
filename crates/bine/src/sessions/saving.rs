//! Changes of a session: the handler waits for the commit, and the request sees a change only after
//! it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::visit::{Next, Visit};
use crate::error::Error;
use crate::store::{Change, Transaction};

/// A change of a [`Session`](crate::Session): await it, or call [`wait`](Saving::wait) in a
/// blocking function.
#[must_use = "nothing is changed before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Saving<T> {
    visit: Arc<Visit>,
    change: Change<Action<T>, (Next, T), Error>,
    /// Set by a login.
    noted: Option<Noted>,
}

/// It runs again after a conflict.
type Action<T> = Box<dyn FnMut(&mut Transaction) -> Result<(Next, T), Error> + Send>;

/// Marks a session as [replaced](super::ended) before its row is removed, so that a request that
/// misses the row finds the mark. Dropping it removes the mark, unless the change was made.
pub(super) struct Noted {
    visit: Arc<Visit>,
    id: [u8; 16],
    stays: bool,
}

impl Noted {
    pub(super) fn new(visit: Arc<Visit>, id: [u8; 16]) -> Self {
        visit.opened().ended.note(id, visit.now);
        Self { visit, id, stays: false }
    }

    fn stay(mut self) {
        self.stays = true;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if !self.stays {
            self.visit.opened().ended.take_back(&self.id);
        }
    }
}

impl<T> Saving<T> {
    pub(super) fn new(visit: Arc<Visit>, action: Action<T>) -> Self {
        let change = visit.opened().store.change(action);
        Self { visit, change, noted: None }
    }

    /// Marks a session as replaced by this change.
    pub(super) fn ending(self, noted: Noted) -> Self {
        Self { noted: Some(noted), ..self }
    }

    /// Commits the change and waits until it is stored. Do not call it in an async function: it
    /// blocks the thread's other requests.
    ///
    /// # Errors
    ///
    /// The error of the change. Nothing has changed then.
    pub fn wait(self) -> Result<T, Error> {
        let (next, value) = self.change.wait()?;
        self.noted.into_iter().for_each(Noted::stay);
        self.visit.settle(next);
        Ok(value)
    }
}

impl<T: Unpin> Future for Saving<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (next, value) = ready!(Pin::new(&mut self.change).poll(context))?;
        self.noted.take().into_iter().for_each(Noted::stay);
        self.visit.settle(next);
        Poll::Ready(Ok(value))
    }
}

impl<T> fmt::Debug for Saving<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Saving")
    }
}
