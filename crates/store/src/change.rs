//! Decides how a change is made: run on one moment, committed, and run again if another was first.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::commit::Pending;
use crate::error::Error;
use crate::store::Store;
use crate::transaction::Transaction;

/// A change to be made, by a thread that [waits](Change::wait) for it or by a task that awaits it.
#[must_use = "nothing is changed before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Change<A, T, E> {
    store: Store,
    action: A,
    retries: u32,
    /// Committed, and not acknowledged yet.
    under_way: Option<(Pending, Result<T, E>)>,
}

/// How often a change that met another is tried again.
pub(crate) const RETRIES: u32 = 3;

impl<A, T, E> Change<A, T, E>
where
    A: FnMut(&mut Transaction) -> Result<T, E>,
    E: From<Error>,
{
    pub(crate) const fn new(store: Store, retries: u32, action: A) -> Self {
        Self { store, action, retries, under_way: None }
    }

    /// Makes it, and returns when it is acknowledged. Not for an async function: the others of its thread would wait
    /// too.
    ///
    /// # Errors
    ///
    /// That of the action, after which nothing has changed; [`Error::Conflict`], or why it could not be written.
    pub fn wait(mut self) -> Result<T, E> {
        self.begin(Store::begin)?;
        loop {
            let (pending, outcome) = self.under_way.take().expect("it has begun");
            if let Some(settled) = self.settle(pending.wait(), outcome) {
                return settled;
            }
            self.begin(Store::begin_at_head)?;
        }
    }

    /// Runs the action and commits what it did.
    fn begin(&mut self, begin: fn(&Store) -> Transaction) -> Result<(), E> {
        let mut begin = begin;
        loop {
            let mut transaction = begin(&self.store);
            let outcome = (self.action)(&mut transaction);
            if outcome.is_err() {
                // What it has seen may not have happened yet.
                transaction.forget_writes();
            }
            match self.store.commit(transaction) {
                Ok(pending) => {
                    self.under_way = Some((pending, outcome));
                    return Ok(());
                }
                Err(Error::Conflict) if self.retries > 0 => {
                    self.retries -= 1;
                    begin = Store::begin_at_head;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What has become of it; `None`: it is to be tried again.
    fn settle(
        &mut self,
        acknowledged: Result<u64, Error>,
        outcome: Result<T, E>,
    ) -> Option<Result<T, E>> {
        match acknowledged {
            Ok(_) => Some(outcome),
            Err(Error::Conflict) if self.retries > 0 => {
                self.retries -= 1;
                None
            }
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// Nothing in it stays where it is because it was polled.
impl<A, T, E> Unpin for Change<A, T, E> {}

/// Acknowledged as by [`Change::wait`], without a thread that waits. The action runs at the first poll, at once.
impl<A, T, E> Future for Change<A, T, E>
where
    A: FnMut(&mut Transaction) -> Result<T, E>,
    E: From<Error>,
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let own = &mut *self;
        if own.under_way.is_none() {
            own.begin(Store::begin)?;
        }
        loop {
            let (pending, _) = own.under_way.as_mut().expect("it has begun");
            let acknowledged = ready!(Pin::new(pending).poll(context));
            let (_, outcome) = own.under_way.take().expect("it has begun");
            if let Some(settled) = own.settle(acknowledged, outcome) {
                return Poll::Ready(settled);
            }
            own.begin(Store::begin_at_head)?;
        }
    }
}

impl<A, T, E> fmt::Debug for Change<A, T, E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_under_way = self.under_way.is_some();
        to.debug_struct("Change").field("is_under_way", &is_under_way).finish_non_exhaustive()
    }
}
