//! A histogram of times with a resolution of three percent.

use std::time::Duration;

use crate::surge::models::whole;

/// Steps within each doubling.
const STEPS: u64 = 32;
/// Doublings; the last has all times longer than a day.
const DOUBLINGS: u64 = 38;

/// Times in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Empty until the first time is added.
    counts: Vec<u32>,
    count: u64,
    sum: u64,
    most: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if self.counts.is_empty() {
            self.counts = vec![0; (STEPS * DOUBLINGS) as usize];
        }
        let last = self.counts.len() - 1;
        self.counts[step(time).min(last)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
        self.most = self.most.max(time);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// In microseconds; 0 without times.
    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The microseconds that `share` of the times did not exceed, at most three percent too high; 0
    /// without times.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = whole((self.count as f64 * share).ceil()).max(1);
        let mut so_far = 0;
        for (step, count) in self.counts.iter().enumerate() {
            so_far += u64::from(*count);
            if so_far >= rank {
                return upper(step).min(self.most) as f64;
            }
        }
        self.most as f64
    }
}

fn step(time: u64) -> usize {
    if time < STEPS {
        return time as usize;
    }
    let shift = u64::from(time.ilog2() - STEPS.ilog2());
    (STEPS * shift + (time >> shift)) as usize
}

/// The largest time of a step.
fn upper(step: usize) -> u64 {
    let step = step as u64;
    if step < 2 * STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    let digits = step - STEPS * shift;
    ((digits + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_time_within_three_percent() {
        for time in (0..100_000).chain((0..37).map(|shift| 1 << shift)) {
            let end = upper(step(time));
            assert!(end >= time && (end - time) as f64 <= time as f64 / 31.0, "{time} {end}");
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the expected values are exact")]
    fn computes_quantiles_of_uniform_times() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.99), 0.0);
        (1..=1000).for_each(|ms| histogram.add(Duration::from_millis(ms)));
        for (share, expected) in [(0.5, 5e5), (0.99, 9.9e5), (1.0, 1e6)] {
            let quantile = histogram.quantile(share);
            assert!(quantile >= expected && quantile <= expected * 1.032, "{quantile} {expected}");
        }
        assert_eq!(histogram.mean(), 500_500.0);
        assert_eq!(histogram.quantile(1.0), 1e6, "no more than the longest");
    }
}
