//! The decision of a scheduler about a page that waits.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The decision about a waiting page.
#[derive(Default)]
pub(super) struct PageCell(Mutex<PageState>);

#[derive(Default)]
struct PageState {
    decision: Option<bool>,
    waker: Option<Waker>,
}

impl PageCell {
    /// Lets the page run. Returns its task.
    pub(super) fn grant(&self) -> Option<Waker> {
        self.decide(true)
    }

    /// Rejects the page. Returns its task.
    pub(super) fn refuse(&self) -> Option<Waker> {
        self.decide(false)
    }

    fn decide(&self, decision: bool) -> Option<Waker> {
        let mut state = self.lock();
        state.decision = Some(decision);
        state.waker.take()
    }

    /// Waits for the decision: whether the page may run.
    pub(super) async fn decided(&self) -> bool {
        poll_fn(|task| {
            let mut state = self.lock();
            match state.decision {
                Some(decision) => Poll::Ready(decision),
                None => {
                    state.waker = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Whether it runs or is rejected, if that is decided.
    #[cfg(test)]
    pub(super) fn decision(&self) -> Option<bool> {
        self.lock().decision
    }

    fn lock(&self) -> MutexGuard<'_, PageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
