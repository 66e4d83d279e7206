//! A limit for expensive operations that run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the operations that run.
#[derive(Debug)]
pub(super) struct Limiter {
    running: AtomicUsize,
    most: usize,
}

/// The permission to run, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Limiter>);

impl Limiter {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { running: AtomicUsize::new(0), most })
    }

    /// Permits one operation more; `None` if as many as allowed are running.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Permit> {
        let more = |running| (running < self.most).then_some(running + 1);
        let begun = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        begun.ok().map(|_| Permit(Arc::clone(self)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn permits_as_many_as_allowed_at_a_time() {
        let limiter = Limiter::new(2);
        let (one, two) = (limiter.begin(), limiter.begin());
        assert!(one.is_some() && two.is_some() && limiter.begin().is_none());
        drop(one);
        assert!(limiter.begin().is_some());
    }
}
