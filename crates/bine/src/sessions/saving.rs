//! Decides how a change of a session is waited for, and that the request sees it only when it is kept.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::visit::{Next, Visit};
use crate::error::Error;
use crate::store::{Change, Transaction};

/// A change of a [`Session`](crate::Session) to be made, by a task that awaits it or a thread that
/// [waits](Saving::wait).
#[must_use = "nothing is changed before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Saving<T> {
    visit: Arc<Visit>,
    change: Change<Action<T>, (Next, T), Error>,
    /// Of a login.
    noted: Option<Noted>,
}

/// It may be run several times.
type Action<T> = Box<dyn FnMut(&mut Transaction) -> Result<(Next, T), Error> + Send>;

/// That a session is [ended](super::ended), from before its row is gone: whoever misses the row finds this. It is taken back
/// when the change is not made.
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

    /// The same, which ends a session.
    pub(super) fn ending(self, noted: Noted) -> Self {
        Self { noted: Some(noted), ..self }
    }

    /// Makes it, and returns when it is kept. Not for an async function: the others of its thread would wait too.
    ///
    /// # Errors
    ///
    /// That of the change, after which nothing has changed.
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
