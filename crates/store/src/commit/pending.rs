//! A commit in progress, and the outcome that its caller waits for.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::notifier::Wakeup;
use super::{Committer, run_actions};
use crate::error::Error;

/// The outcome of one commit, shared with the caller that waits for it.
#[derive(Default)]
pub(super) struct Completion {
    status: Mutex<CompletionStatus>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct CompletionStatus {
    pub(super) outcome: Option<Result<u64, Error>>,
    /// Whether a leader has taken the commit and will set its outcome.
    pub(super) is_claimed: bool,
    /// Whether a thread waits.
    pub(super) is_waiting: bool,
    /// Whether the waiting thread is asked to become the leader.
    pub(super) is_asked: bool,
    waker: Option<Waker>,
}

/// A commit in progress. Dropping it does not cancel the commit.
pub struct Pending {
    pub(super) committer: Arc<Committer>,
    pub(super) completion: Arc<Completion>,
}

impl Completion {
    pub(super) fn status(&self) -> MutexGuard<'_, CompletionStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settle(&self, outcome: Result<u64, Error>) {
        let mut status = self.status();
        status.outcome = Some(outcome);
        let waker = status.waker.take();
        drop(status);
        self.changed.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Pending {
    /// Waits for the acknowledgment, and returns the sequence of the commit's record. The calling
    /// thread may write other commits meanwhile.
    ///
    /// # Errors
    ///
    /// The reason why the commit failed.
    pub fn wait(self) -> Result<u64, Error> {
        let committer = &self.committer;
        loop {
            let mut status = self.completion.status();
            if let Some(outcome) = status.outcome.clone() {
                return outcome;
            }
            let journal = if status.is_claimed { None } else { committer.try_journal() };
            let Some(journal) = journal else {
                // The leader that has claimed the commit sets its outcome; the holder of the
                // journal wakes the next leader.
                status.is_waiting = true;
                let is_idle =
                    |status: &mut CompletionStatus| status.outcome.is_none() && !status.is_asked;
                let status = self.completion.changed.wait_while(status, is_idle);
                let mut status = status.unwrap_or_else(PoisonError::into_inner);
                (status.is_waiting, status.is_asked) = (false, false);
                continue;
            };
            drop(status);
            // The actions may commit changes themselves.
            run_actions(committer.write_next_group(journal));
        }
    }
}

/// Resolves as [`Pending::wait`] does, without blocking a thread.
impl Future for Pending {
    type Output = Result<u64, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let committer = &self.committer;
        let mut status = self.completion.status();
        if committer.is_instant
            && status.outcome.is_none()
            && !status.is_claimed
            && let Some(journal) = committer.try_journal()
        {
            drop(status);
            // Handing the write to a thread would take several times longer.
            committer.enqueue_actions(committer.write_next_group(journal));
            status = self.completion.status();
        }
        if let Some(outcome) = &status.outcome {
            return Poll::Ready(outcome.clone());
        }
        status.waker = Some(context.waker().clone());
        drop(status);
        committer.notifier.notify(Wakeup::Work);
        Poll::Pending
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.completion.status().outcome.is_none() {
            self.committer.notifier.notify(Wakeup::Work);
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pending")
            .field("outcome", &self.completion.status().outcome)
            .finish_non_exhaustive()
    }
}
