//! The notifier of the store's thread: wakes it to write, to check deadlines again, or to close.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes the store's thread, which writes for callers that do not block.
#[derive(Default)]
pub(super) struct Notifier {
    wakeup: Mutex<Wakeup>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wakeup {
    #[default]
    Idle,
    Work,
    /// A deadline has changed, and no commit waits.
    Deadline,
    /// The store is closing.
    Close,
}

impl Notifier {
    pub(super) fn notify(&self, wakeup: Wakeup) {
        let mut current = self.wakeup.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = match *current {
            Wakeup::Idle | Wakeup::Deadline => true,
            Wakeup::Work => wakeup == Wakeup::Close,
            Wakeup::Close => false,
        };
        if is_news {
            *current = wakeup;
        }
        self.changed.notify_one();
    }

    /// Waits for a wakeup, at most for this time.
    pub(super) fn wait(&self, time: Duration) -> Wakeup {
        let current = self.wakeup.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.changed.wait_timeout_while(current, time, |wakeup| *wakeup == Wakeup::Idle);
        let mut current = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *current == Wakeup::Close { Wakeup::Close } else { std::mem::take(&mut *current) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(notified: &[Wakeup]) -> [&'static str; 2] {
        let notifier = Notifier::default();
        for wakeup in notified {
            notifier.notify(*wakeup);
        }
        [(); 2].map(|()| match notifier.wait(Duration::ZERO) {
            Wakeup::Idle => "idle",
            Wakeup::Work => "work",
            Wakeup::Deadline => "deadline",
            Wakeup::Close => "close",
        })
    }

    #[test]
    fn keeps_the_most_important_wakeup() {
        use Wakeup::{Close, Deadline, Work};
        assert_eq!(taken(&[]), ["idle"; 2]);
        assert_eq!(taken(&[Work]), ["work", "idle"]);
        assert_eq!(taken(&[Deadline]), ["deadline", "idle"]);
        // A commit that waits is not forgotten for a deadline.
        assert_eq!(taken(&[Deadline, Work]), ["work", "idle"]);
        assert_eq!(taken(&[Work, Deadline]), ["work", "idle"]);
        // The end is final.
        assert_eq!(taken(&[Close]), ["close"; 2]);
        for other in [Work, Deadline] {
            assert_eq!(taken(&[Close, other]), ["close"; 2]);
            assert_eq!(taken(&[other, Close]), ["close"; 2]);
        }
    }
}
