//! Limits a message that clients can cause at will to one line a second.

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds between two lines.
const PAUSE: u64 = 1000;

/// When a message was logged last, and how many were left out since.
#[derive(Default, Debug)]
pub struct LogLimit {
    /// In milliseconds of the monotonic clock; 0: never.
    logged: AtomicU64,
    left_out: AtomicU64,
}

impl LogLimit {
    /// Whether the message may be logged at `now` milliseconds; then how many were left out before.
    pub fn allows(&self, now: u64) -> Option<u64> {
        let (last, order) = (self.logged.load(Ordering::Relaxed), Ordering::Relaxed);
        let is_due = last == 0 || now.saturating_sub(last) >= PAUSE;
        if is_due && self.logged.compare_exchange(last, now.max(1), order, order).is_ok() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_one_line_a_second_and_counts_the_others() {
        let limit = LogLimit::default();
        let asked = [5000, 5000, 5999, 6000, 6001, 9000].map(|now| limit.allows(now));
        assert_eq!(asked, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
