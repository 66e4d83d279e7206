//! Rate limit for a message that clients can cause: at most one line per second.

use std::sync::atomic::{AtomicU64, Ordering};

/// The shortest time between two lines, in milliseconds.
const INTERVAL: u64 = 1000;

/// The time of the last line of a message, and the number of lines suppressed since then.
#[derive(Default, Debug)]
pub struct LogLimit {
    /// Milliseconds of the monotonic clock; 0 if the message has not been logged yet.
    logged_at: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimit {
    /// Returns whether the message may be logged at `now`, in milliseconds of the monotonic clock.
    ///
    /// `Some` contains the number of lines that were suppressed since the last line.
    pub fn allows(&self, now: u64) -> Option<u64> {
        let order = Ordering::Relaxed;
        let last = self.logged_at.load(order);
        let is_due = last == 0 || now.saturating_sub(last) >= INTERVAL;
        if is_due && self.logged_at.compare_exchange(last, now.max(1), order, order).is_ok() {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_one_line_per_second_and_counts_suppressed_lines() {
        let limit = LogLimit::default();
        let allowed = [5000, 5000, 5999, 6000, 6001, 9000].map(|now| limit.allows(now));
        assert_eq!(allowed, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
