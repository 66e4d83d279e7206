//! The part of a signal that does not depend on the type of its value: its version and its
//! listeners.

use std::ptr::addr_eq;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A signal without its value.
pub(crate) struct SignalCore {
    number: u64,
    /// The number of changes so far.
    version: AtomicU64,
    listeners: Mutex<Vec<Weak<dyn SignalListener>>>,
}

/// A subscriber that keeps pages up to date when signals change.
pub(crate) trait SignalListener: Send + Sync {
    /// The signal with this number has changed.
    fn signal_changed(&self, number: u64);
}

/// A read of a signal by a render.
pub(crate) struct SignalRead {
    core: Arc<SignalCore>,
    version: u64,
}

impl SignalCore {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, version: AtomicU64::new(0), listeners: Mutex::default() }
    }

    /// Records a read that follows this call, and subscribes `listener` to changes from now on. A
    /// change between this call and the read causes one unnecessary render, but no change is
    /// missed.
    pub(crate) fn read(self: &Arc<Self>, listener: &Arc<dyn SignalListener>) -> SignalRead {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if !listeners.iter().any(|known| addr_eq(known.as_ptr(), Arc::as_ptr(listener))) {
            listeners.push(Arc::downgrade(listener));
        }
        drop(listeners);
        SignalRead { core: Arc::clone(self), version: self.version.load(Ordering::Acquire) }
    }

    /// Notifies all listeners that the signal has changed.
    pub(crate) fn notify(&self) {
        self.version.fetch_add(1, Ordering::Release);
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| match listener.upgrade() {
            Some(listener) => {
                listener.signal_changed(self.number);
                true
            }
            None => false,
        });
    }
}

impl SignalRead {
    pub(crate) fn number(&self) -> u64 {
        self.core.number
    }

    /// Whether the signal has not changed since it was read.
    pub(crate) fn is_current(&self) -> bool {
        self.core.version.load(Ordering::Acquire) == self.version
    }

    /// Whether both have read the same version of the same signal.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core) && self.version == other.version
    }
}
