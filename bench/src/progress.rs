//! Progress of a benchmark whose samples take about equally long.

use std::fmt;
use std::time::{Duration, Instant};

/// The number of samples so far, and of all.
pub(crate) struct Progress {
    begun: Instant,
    taken: usize,
    /// Samples of an earlier run.
    skipped: usize,
    all: usize,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        Self { begun: Instant::now(), taken: 0, skipped: 0, all }
    }

    /// Counts a sample that an earlier run has taken.
    pub(crate) const fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Counts and reports a new sample, and the time left.
    pub(crate) fn report(&mut self, sample: fmt::Arguments<'_>) {
        self.taken += 1;
        eprintln!("{}: {sample}", self.line(self.begun.elapsed()));
    }

    fn line(&self, spent: Duration) -> String {
        let done = self.taken + self.skipped;
        let left = self.all.saturating_sub(done);
        let seconds = spent.as_secs_f64() / self.taken as f64 * left as f64;
        if seconds < 90.0 {
            format!("{done} of {}, {seconds:.0} s left", self.all)
        } else {
            format!("{done} of {}, {:.0} min left", self.all, seconds / 60.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expects_later_samples_to_take_as_long_as_those_of_this_run() {
        let of = |taken, skipped, seconds| {
            let progress = Progress { begun: Instant::now(), taken, skipped, all: 25 };
            progress.line(Duration::from_secs(seconds))
        };
        assert_eq!(of(1, 0, 10), "1 of 25, 4 min left");
        assert_eq!(of(10, 10, 100), "20 of 25, 50 s left");
        assert_eq!(of(25, 0, 125), "25 of 25, 0 s left");
    }
}
