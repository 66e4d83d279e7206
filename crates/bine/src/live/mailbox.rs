//! Decides how those who change something tell the thread that keeps pages up to date: they put it down and go on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::signal_core::SignalListener;
use crate::store::Changes;

/// What has changed and was not looked at yet.
#[derive(Default)]
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    bell: Condvar,
}

#[derive(Default)]
struct Letters {
    all: Vec<News>,
    /// Bytes of what they tell of commits.
    bytes: usize,
    /// There were more than can be kept.
    too_many: bool,
    is_over: bool,
}

/// What has changed.
pub(super) enum News {
    /// Rows.
    Commit(Arc<Changes>),
    /// The value of the signal that has this number.
    Signal(u64),
    /// A page was made, or there is something to make: the thread looks what is due.
    Look,
    /// More than can be told.
    Everything,
}

/// Letters that are kept.
const MOST: usize = 4096;
/// Bytes of them.
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

    /// Waits so long for something, and takes all there is. `None`: it is over.
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
