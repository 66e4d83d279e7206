//! Histograms of waiting times, with fixed buckets that can be summed over threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in milliseconds. A wait counts in the first bucket that it does
/// not exceed. Neighboring bounds have a ratio of about two. They range from imperceptible waits to
/// the longest wait that a request may have.
pub const BOUNDS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/// A histogram that several threads update.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    classes: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

/// The values of a histogram of waiting times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitMetrics {
    /// Counts per bucket, by upper [bound](BOUNDS); the last bucket has no bound.
    pub classes: [u64; BOUNDS.len() + 1],
    /// The sum of all waits.
    pub sum: Duration,
}

impl Waits {
    pub(crate) fn count(&self, wait: Duration) {
        let is_within = |bound: &u64| wait <= Duration::from_millis(*bound);
        let class = BOUNDS.iter().position(is_within).unwrap_or(BOUNDS.len());
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self) -> WaitMetrics {
        let sum = Duration::from_micros(self.microseconds.load(Ordering::Relaxed));
        let mut classes = [0; BOUNDS.len() + 1];
        classes
            .iter_mut()
            .zip(&self.classes)
            .for_each(|(count, class)| *count = class.load(Ordering::Relaxed));
        WaitMetrics { classes, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_wait_in_the_first_bucket_that_holds_it() {
        let waits = Waits::default();
        for milliseconds in [0, 1, 2, 3, 5000, 5001, 1_000_000] {
            waits.count(Duration::from_millis(milliseconds));
        }
        waits.count(Duration::from_micros(1001));
        let metrics = waits.metrics();
        assert_eq!((metrics.classes[0], metrics.classes[1], metrics.classes[2]), (2, 2, 1));
        assert_eq!((metrics.classes[BOUNDS.len() - 1], metrics.classes[BOUNDS.len()]), (1, 2));
        assert_eq!(metrics.sum, Duration::from_micros(1_010_008_001));
    }
}
