//! Changes with retries: run the action, commit it, and run it again after a conflict; and the
//! methods of [`Store`] that return them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::commit::Pending;
use crate::error::Error;
use crate::id::Id;
use crate::schema::Table;
use crate::store::Store;
use crate::transaction::Transaction;

/// A change that runs when a thread [waits](Change::wait) for it or a task awaits it.
#[must_use = "nothing is changed before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Change<A, T, E> {
    store: Store,
    action: A,
    retries: u32,
    /// How often the action may run again because of conflicts that this node finds by itself, before
    /// it sends the transaction to the stream of several nodes.
    unsent_retries: u32,
    /// The commit that waits for its acknowledgment, with the action's result.
    in_progress: Option<(Pending, Result<T, E>)>,
}

/// Retries after a conflict.
const RETRIES: u32 = 3;
/// Retries of a transaction that is not sent yet. A node that has just started, or that has little CPU
/// time, applies many commits of other nodes while an action runs. Each is a conflict that costs no
/// message, so it does not count as one of the retries.
const UNSENT_RETRIES: u32 = 32;

impl Store {
    /// Changes tables in a transaction. `action` sees a snapshot of all tables and its own writes.
    /// The snapshot includes earlier commits that are not durable yet, because this one follows
    /// them; if it read them, the result waits until they are durable, also that of an action that
    /// wrote nothing or failed.
    ///
    /// After a conflict with a concurrent commit it runs again, up to three times, so side effects
    /// belong in [`Transaction::after_commit`], which runs once.
    ///
    /// # Errors
    ///
    /// Those of [`Change::wait`].
    pub fn change<A, T, E>(&self, action: A) -> Change<A, T, E>
    where
        A: FnMut(&mut Transaction) -> Result<T, E>,
        E: From<Error>,
    {
        Change::new(self.clone(), RETRIES, action)
    }

    /// Changes tables as [`Store::change`] does, but without a retry: a conflict is an error.
    ///
    /// # Errors
    ///
    /// Those of [`Change::wait`].
    pub fn change_once<A, T, E>(
        &self,
        action: A,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<T, E> + use<A, T, E>, T, E>
    where
        A: FnOnce(&mut Transaction) -> Result<T, E>,
        E: From<Error>,
    {
        let mut action = Some(action);
        let once = move |change: &mut Transaction| match action.take() {
            Some(action) => action(change),
            // This change has no retries.
            None => Err(Error::Conflict.into()),
        };
        Change::new(self.clone(), 0, once)
    }

    /// Inserts one row and assigns its id.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::insert`] and [`Change::wait`].
    #[expect(
        clippy::type_complexity,
        reason = "a closure has no name, and the rest is one word each"
    )]
    pub fn insert<T: Table>(
        &self,
        mut row: T,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<Id<T>, Error> + use<T>, Id<T>, Error> {
        self.change(move |change| change.add(&mut row))
    }

    /// Updates one row.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::update`] and [`Change::wait`].
    pub fn update<T: Table, F: FnMut(&mut T)>(
        &self,
        id: Id<T>,
        mut change_row: F,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<(), Error> + use<T, F>, (), Error> {
        self.change(move |change| change.update(id, &mut change_row))
    }

    /// Removes one row. Returns false if the row does not exist.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::remove`] and [`Change::wait`].
    pub fn remove<T: Table>(
        &self,
        id: Id<T>,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<T>, bool, Error> {
        self.change(move |change| change.remove(id))
    }
}

impl<A, T, E> Change<A, T, E>
where
    A: FnMut(&mut Transaction) -> Result<T, E>,
    E: From<Error>,
{
    fn new(store: Store, retries: u32, action: A) -> Self {
        let may_repeat = retries > 0 && store.is_shared();
        let unsent_retries = if may_repeat { UNSENT_RETRIES } else { 0 };
        Self { store, action, retries, unsent_retries, in_progress: None }
    }

    /// Takes the action back before it has run, to run it in a transaction of the caller.
    pub fn into_action(self) -> A {
        self.action
    }

    /// Runs the change and blocks until the store acknowledges it. In an async function, await the
    /// change instead: blocking would stop every task of the thread.
    ///
    ///
    /// # Errors
    ///
    /// The action's error, after which the tables are unchanged; [`Error::Conflict`]; or the error
    /// of the write.
    pub fn wait(mut self) -> Result<T, E> {
        self.begin(Store::begin_change)?;
        loop {
            let (pending, outcome) = self.in_progress.take().expect("it has begun");
            match pending.wait() {
                Err(Error::Conflict) if self.retries > 0 => self.begin_again()?,
                acknowledged => return acknowledged.map_err(E::from).and(outcome),
            }
        }
    }

    /// Runs the action again after a conflict that the stream of several nodes has reported.
    fn begin_again(&mut self) -> Result<(), E> {
        self.retries -= 1;
        self.begin(Store::begin_at_head)
    }

    /// Runs the action and commits its writes.
    fn begin(&mut self, mut begin: fn(&Store) -> Transaction) -> Result<(), E> {
        loop {
            let mut transaction = begin(&self.store);
            let outcome = (self.action)(&mut transaction);
            if outcome.is_err() {
                // The action may have failed because of reads that are not durable yet: commit the
                // reads alone, and return the error once they are.
                transaction.forget_writes();
            }
            let epoch = transaction.base.epoch;
            match self.store.commit(transaction) {
                Ok(pending) => {
                    self.in_progress = Some((pending, outcome));
                    return Ok(());
                }
                Err(Error::Conflict)
                    if let Some(failure) = self.store.committer().failure_since(epoch) =>
                {
                    // The transaction began with commits that could not be written.
                    if self.retries == 0 {
                        return Err(failure.into());
                    }
                    self.retries -= 1;
                    begin = Store::begin;
                }
                Err(Error::Conflict) if self.unsent_retries > 0 => {
                    self.unsent_retries -= 1;
                    begin = Store::begin_at_head;
                }
                Err(Error::Conflict) if self.retries > 0 => {
                    self.retries -= 1;
                    begin = Store::begin_at_head;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Polling pins no field.
impl<A, T, E> Unpin for Change<A, T, E> {}

/// Resolves when the store acknowledges the change. The first poll runs the action.
impl<A, T, E> Future for Change<A, T, E>
where
    A: FnMut(&mut Transaction) -> Result<T, E>,
    E: From<Error>,
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.in_progress.is_none() {
            this.begin(Store::begin_change)?;
        }
        loop {
            let (pending, _) = this.in_progress.as_mut().expect("it has begun");
            let acknowledged = ready!(Pin::new(pending).poll(context));
            let (_, outcome) = this.in_progress.take().expect("it has begun");
            match acknowledged {
                Err(Error::Conflict) if this.retries > 0 => this.begin_again()?,
                acknowledged => return Poll::Ready(acknowledged.map_err(E::from).and(outcome)),
            }
        }
    }
}

impl<A, T, E> fmt::Debug for Change<A, T, E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_progress = self.in_progress.is_some();
        to.debug_struct("Change").field("is_under_way", &is_in_progress).finish_non_exhaustive()
    }
}
