//! Decides in which classes waits are counted, so that shares of them can be told and added up later.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A wait is counted in the first class that it is not longer than: milliseconds. About two to one, from what nobody
/// notices to what a request may wait at all.
pub const BOUNDS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/// Waits of all threads that count here.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    classes: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

/// How long something has waited, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitMetrics {
    /// Waits by the first of the [bounds](BOUNDS) that they are not above, and those above all.
    pub classes: [u64; BOUNDS.len() + 1],
    /// All waits together.
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
            .for_each(|(own, class)| *own = class.load(Ordering::Relaxed));
        WaitMetrics { classes, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_in_the_first_class_that_has_room_for_it() {
        let waits = Waits::default();
        for milliseconds in [0, 1, 2, 3, 5000, 5001, 1_000_000] {
            waits.count(Duration::from_millis(milliseconds));
        }
        waits.count(Duration::from_micros(1001));
        let told = waits.metrics();
        assert_eq!((told.classes[0], told.classes[1], told.classes[2]), (2, 2, 1));
        assert_eq!((told.classes[BOUNDS.len() - 1], told.classes[BOUNDS.len()]), (1, 2));
        assert_eq!(told.sum, Duration::from_micros(1_010_008_001));
    }
}
