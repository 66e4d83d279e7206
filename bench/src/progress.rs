//! Progress of a benchmark whose samples take about equally long.

use std::fmt;
use std::time::{Duration, Instant};

/// The number of samples taken so far, and of all.
pub(crate) struct Progress {
    begun: Instant,
    done: usize,
    all: usize,
}

impl Progress {
    /// Starts a measurement of `rounds` rounds with `cases` samples each.
    pub(crate) fn new(rounds: u64, cases: usize) -> Self {
        let all = usize::try_from(rounds).unwrap_or(usize::MAX).saturating_mul(cases);
        Self { begun: Instant::now(), done: 0, all }
    }

    /// Reports a sample, its number and the time left.
    pub(crate) fn report(&mut self, sample: fmt::Arguments<'_>) {
        self.done += 1;
        eprintln!("{}: {sample}", line(self.done, self.all, self.begun.elapsed()));
    }
}

fn line(done: usize, all: usize, spent: Duration) -> String {
    let left = all.saturating_sub(done);
    let seconds = spent.as_secs_f64() / done as f64 * left as f64;
    if seconds < 90.0 {
        format!("{done} of {all}, {seconds:.0} s left")
    } else {
        format!("{done} of {all}, {:.0} min left", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expects_later_samples_to_take_as_long_as_earlier_ones() {
        let of = |done, all, seconds| line(done, all, Duration::from_secs(seconds));
        assert_eq!(of(1, 25, 10), "1 of 25, 4 min left");
        assert_eq!(of(20, 25, 100), "20 of 25, 25 s left");
        assert_eq!(of(25, 25, 125), "25 of 25, 0 s left");
    }
}
