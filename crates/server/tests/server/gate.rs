//! A gate at which handlers wait until the test opens it.

use std::future::poll_fn;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::PATIENCE;

/// A gate at which handlers wait, either blocked or suspended.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_open: bool,
    arrived: usize,
    wakers: Vec<Waker>,
}

impl Gate {
    pub(crate) fn open(&self) {
        let mut state = self.lock();
        state.is_open = true;
        for waker in state.wakers.drain(..) {
            waker.wake();
        }
        self.changed.notify_all();
    }

    /// Waits until `count` handlers have arrived.
    #[track_caller]
    pub(crate) fn await_arrivals(&self, count: usize) {
        let waited =
            self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| state.arrived < count);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.arrived >= count, "{} of {count} handlers came", state.arrived);
    }

    /// Returns the number of arrivals.
    pub(crate) fn arrivals(&self) -> usize {
        self.lock().arrived
    }

    /// Counts an arrival and blocks until the gate is open.
    pub(crate) fn pass(&self) {
        self.arrive();
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !state.is_open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts an arrival and waits asynchronously until the gate is open.
    pub(crate) async fn passed(&self) {
        self.arrive();
        poll_fn(|task| {
            let mut state = self.lock();
            if state.is_open {
                return Poll::Ready(());
            }
            state.wakers.push(task.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Counts an arrival that does not wait.
    pub(crate) fn arrive(&self) {
        self.lock().arrived += 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
