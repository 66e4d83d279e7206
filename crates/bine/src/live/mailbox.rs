//! The mailbox of the thread that keeps pages up to date: senders never wait for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::signal_core::SignalListener;
use crate::store::Changes;

/// Notifications that the thread has not handled yet.
#[derive(Default)]
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    bell: Condvar,
}

#[derive(Default)]
struct Letters {
    all: Vec<News>,
    /// Size of the commits among them.
    bytes: usize,
    /// Whether notifications were dropped because the mailbox was full.
    too_many: bool,
    is_over: bool,
}

/// A reason to look for views that must render again.
pub(super) enum News {
    /// Rows have changed.
    Commit(Arc<Changes>),
    /// The signal with this number has changed.
    Signal(u64),
    /// A render has ended or a view may be due: the thread checks the schedule.
    Look,
    /// Any data may have changed: notifications were dropped, or the handler was replaced.
    Everything,
}

/// Notifications that the mailbox holds.
const MOST: usize = 4096;
/// Size of the commits that the mailbox holds.
const MOST_BYTES: usize = 4 << 20;

impl SignalListener for Mailbox {
    fn signal_changed(&self, number: u64) {
        self.put(News::Signal(number));
    }
}

impl Mailbox {
    pub(super) fn put(&self, news: News) {
        let mut letters = self.letters();
        let bytes = if let News::Commit(changes) = &news { changes.bytes() } else { 0 };
        if letters.all.len() < MOST && letters.bytes + bytes <= MOST_BYTES {
            letters.bytes += bytes;
            letters.all.push(news);
        } else {
            letters.too_many = true;
        }
        drop(letters);
        self.bell.notify_one();
    }

    /// Waits at most `timeout` and takes all notifications. `None`: the server stops.
    pub(super) fn take(&self, patience: Duration) -> Option<Vec<News>> {
        let letters = self.letters();
        let is_quiet = |letters: &mut Letters| letters.all.is_empty() && !letters.is_over;
        let waited = self.bell.wait_timeout_while(letters, patience, is_quiet);
        let (mut letters, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if letters.is_over {
            return None;
        }
        letters.bytes = 0;
        let mut all = std::mem::take(&mut letters.all);
        if std::mem::take(&mut letters.too_many) {
            all.push(News::Everything);
        }
        Some(all)
    }

    pub(super) fn end(&self) {
        self.letters().is_over = true;
        self.bell.notify_one();
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
