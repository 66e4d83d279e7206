//! Pairs of windows: latencies of a client without and with a disturbance, by turns.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::figures::{Latencies, Spread};
use crate::tools::{pause, take_priority};

/// Latencies of one kind of use: calm and attacked, by turns.
#[derive(Default)]
pub(crate) struct Pairs(pub(crate) Vec<[Latencies; 2]>);

impl Pairs {
    /// The medians of both windows in milliseconds, and the ratio.
    pub(crate) fn columns(&self, percent: usize) -> String {
        let middle = |side: usize| {
            spread(self.percentiles(percent).map(|pair| pair[side].as_secs_f64() * 1e3)).median
        };
        format!("{:.2}, {:.2} | {}", middle(0), middle(1), self.times_calm(percent))
    }

    /// The ratio of the second window of each pair to its calm one.
    pub(crate) fn times_calm(&self, percent: usize) -> Spread {
        let pairs = self.percentiles(percent);
        spread(pairs.map(|[calm, attacked]| attacked.as_secs_f64() / calm.as_secs_f64()))
    }

    /// The requests of all calm windows, and of all disturbed ones.
    pub(crate) fn together(&self) -> [Latencies; 2] {
        [0, 1].map(|side| Latencies::joined(self.0.iter().map(|pair| &pair[side])))
    }

    fn percentiles(&self, percent: usize) -> impl Iterator<Item = [Duration; 2]> {
        self.0.iter().map(move |pair| pair.each_ref().map(|window| window.percentile(percent)))
    }
}

/// Without pairs there is no result: not a number.
fn spread(samples: impl Iterator<Item = f64>) -> Spread {
    Spread::of(samples).unwrap_or(Spread { median: f64::NAN, least: f64::NAN, most: f64::NAN })
}

/// Calls `act` once per interval; returns the times and the number of failures.
pub(crate) fn paced(
    interval: Duration,
    time: Duration,
    mut act: impl FnMut() -> Result<()>,
) -> (Latencies, usize) {
    // The caller has reported whether this is granted. Without it the client still has priority over the
    // load generators.
    let _ = take_priority();
    let mut times = Vec::new();
    let mut failed = 0;
    let end = Instant::now() + time;
    let mut due = Instant::now();
    while due < end {
        pause(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        failed += usize::from(act().is_err());
        times.push(begun.elapsed());
        // Missed calls are not made up for; `Latencies` accounts for them.
        due = (due + interval).max(Instant::now());
    }
    (Latencies::of(times, interval), failed)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    fn window(milliseconds: u64) -> Latencies {
        Latencies::of(vec![Duration::from_millis(milliseconds)], Duration::from_secs(1))
    }

    pub(crate) fn pairs(windows: &[[u64; 2]]) -> Pairs {
        Pairs(windows.iter().map(|pair| pair.map(window)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::pairs;

    /// In the second pair the host was ten times slower, independently of the attack.
    #[test]
    fn keeps_the_ratio_when_the_host_is_slow() {
        let pairs = pairs(&[[2, 3], [20, 30], [2, 3]]);
        assert_eq!(pairs.columns(99), "2.00, 3.00 | 1.50 (1.50-1.50)");
    }
}
