//! Wakers of asynchronous host functions: which of them can make progress, and who polls them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// The operations of one instance that can make progress, and the task that drives the instance.
#[derive(Default)]
pub(crate) struct WakeQueue {
    inner: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    ready: VecDeque<usize>,
    driver: Option<Waker>,
    /// The task that drives the instance while no call waits.
    background: Option<Waker>,
}

/// The waker of one operation.
struct OperationWaker {
    key: usize,
    queue: Arc<WakeQueue>,
}

impl WakeQueue {
    /// The waker of the operation with this key.
    pub(crate) fn waker(self: &Arc<Self>, key: usize) -> Waker {
        Waker::from(Arc::new(OperationWaker { key, queue: Arc::clone(self) }))
    }

    /// Marks an operation as ready and wakes the driver.
    pub(crate) fn wake(&self, key: usize) {
        let (driver, background) = {
            let mut inner = self.lock();
            // The queue is as long as the number of operations at most.
            if !inner.ready.contains(&key) {
                inner.ready.push_back(key);
            }
            (inner.driver.take(), inner.background.take())
        };
        driver.into_iter().chain(background).for_each(Waker::wake);
    }

    /// Takes the next operation that can make progress.
    pub(crate) fn pop(&self) -> Option<usize> {
        self.lock().ready.pop_front()
    }

    /// Sets the task that is woken by the next operation. It is woken at once if one is ready.
    pub(crate) fn set_driver(&self, waker: &Waker) {
        let is_ready = {
            let mut inner = self.lock();
            let is_ready = !inner.ready.is_empty();
            inner.driver = if is_ready { None } else { Some(waker.clone()) };
            is_ready
        };
        if is_ready {
            waker.wake_by_ref();
        }
    }

    /// Sets the task that is woken as well. It is woken at once if an operation is ready.
    pub(crate) fn set_background(&self, waker: &Waker) {
        let is_ready = {
            let mut inner = self.lock();
            inner.background = Some(waker.clone());
            !inner.ready.is_empty()
        };
        if is_ready {
            waker.wake_by_ref();
        }
    }

    /// Forgets all operations and wakes both tasks, which then end.
    pub(crate) fn clear(&self) {
        let (driver, background) = {
            let mut inner = self.lock();
            inner.ready.clear();
            (inner.driver.take(), inner.background.take())
        };
        driver.into_iter().chain(background).for_each(Waker::wake);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tasks> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for OperationWaker {
    fn wake(self: Arc<Self>) {
        self.queue.wake(self.key);
    }
}
