//! The mailbox of the thread that keeps pages up to date: senders never wait for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::signal_core::SignalListener;
use crate::store::Changes;

/// Notifications that the thread has not handled yet.
#[derive(Default)]
pub(super) struct Mailbox {
    pending: Mutex<Pending>,
    ready: Condvar,
}

#[derive(Default)]
struct Pending {
    all: Vec<Notification>,
    /// Size of the commits among them.
    bytes: usize,
    /// Whether notifications were dropped because the mailbox was full.
    overflowed: bool,
    is_closed: bool,
}

/// A reason to look for views that must render again.
pub(super) enum Notification {
    /// Rows have changed.
    Commit(Arc<Changes>),
    /// The signal with this number has changed.
    Signal(u64),
    /// A render has ended or a view may be due: the thread checks the schedule.
    Wake,
    /// Any data may have changed: notifications were dropped, or the handler was replaced.
    All,
}

/// Notifications that the mailbox holds.
const MAX_NOTIFICATIONS: usize = 4096;
/// Size of the commits that the mailbox holds.
const MAX_BYTES: usize = 4 << 20;

impl SignalListener for Mailbox {
    fn signal_changed(&self, number: u64) {
        self.put(Notification::Signal(number));
    }
}

impl Mailbox {
    pub(super) fn put(&self, notification: Notification) {
        let mut pending = self.pending();
        let bytes =
            if let Notification::Commit(changes) = &notification { changes.bytes() } else { 0 };
        if pending.all.len() < MAX_NOTIFICATIONS && pending.bytes + bytes <= MAX_BYTES {
            pending.bytes += bytes;
            pending.all.push(notification);
        } else {
            pending.overflowed = true;
        }
        drop(pending);
        self.ready.notify_one();
    }

    /// Waits at most `timeout` and takes all notifications. `None`: the server stops.
    pub(super) fn take(&self, timeout: Duration) -> Option<Vec<Notification>> {
        let pending = self.pending();
        let is_quiet = |pending: &mut Pending| pending.all.is_empty() && !pending.is_closed;
        let waited = self.ready.wait_timeout_while(pending, timeout, is_quiet);
        let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if pending.is_closed {
            return None;
        }
        pending.bytes = 0;
        let mut all = std::mem::take(&mut pending.all);
        if std::mem::take(&mut pending.overflowed) {
            all.push(Notification::All);
        }
        Some(all)
    }

    pub(super) fn end(&self) {
        self.pending().is_closed = true;
        self.ready.notify_one();
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
