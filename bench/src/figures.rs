//! Summarizes samples as figures.

use std::fmt;
use std::time::Duration;

use crate::plot::thousands;

/// The median and the extremes of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` without samples.
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, least, most })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2} ({:.2}-{:.2})", self.median, self.least, self.most)
    }
}

/// Times of requests that were due at a fixed interval.
#[derive(Default)]
pub(crate) struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    /// Sorts the measured times. A request that outlasted the interval delayed later ones; this
    /// adds them with the time that they would have waited, or a long stall would be hidden by the
    /// samples that it prevented.
    pub(crate) fn of(measured: Vec<Duration>, interval: Duration) -> Self {
        let mut sorted = measured;
        for index in 0..sorted.len() {
            let mut unsent = sorted[index].saturating_sub(interval);
            while unsent >= interval {
                sorted.push(unsent);
                unsent -= interval;
            }
        }
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The requests of several windows.
    pub(crate) fn joined<'l>(windows: impl IntoIterator<Item = &'l Self>) -> Self {
        let mut sorted: Vec<_> = windows.into_iter().flat_map(|own| &own.sorted).copied().collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The time that `percent` of the requests did not exceed; zero without requests.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.sorted.len() * percent).div_ceil(100);
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Milliseconds with two decimals, for tables.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Three significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 999.5 => thousands(value),
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Never rounded up to 100, so that one missed message is visible.
pub(crate) fn percent(value: f64) -> String {
    if value >= 100.0 { String::from("100") } else { format!("{:.3}", (value * 1e3).floor() / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_median_of_an_even_count_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.5, least: 1.0, most: 4.0 });
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn takes_the_second_longest_of_a_hundred_as_99th_percentile() {
        let times = (1..=100).map(Duration::from_micros).collect();
        let latencies = Latencies::of(times, Duration::from_secs(1));
        assert_eq!(latencies.percentile(99), Duration::from_micros(99));
        assert_eq!(latencies.percentile(50), Duration::from_micros(50));
        assert_eq!(Latencies::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn counts_a_stall_for_the_requests_that_it_delayed() {
        let mut times = vec![Duration::from_micros(50); 100];
        times.push(Duration::from_millis(100));
        let latencies = Latencies::of(times, Duration::from_millis(5));
        assert!(latencies.percentile(90) > Duration::from_millis(5));
        assert_eq!(latencies.percentile(100), Duration::from_millis(100));
    }

    #[test]
    fn does_not_round_a_missed_message_away() {
        assert_eq!(percent(100.0 * 999_999.0 / 1e6), "99.999");
        assert_eq!(percent(99.999_99), "99.999");
        assert_eq!(percent(100.0), "100");
    }

    #[test]
    fn prints_three_significant_digits() {
        assert_eq!(
            [0.123, 9.999, 12.34, 123.4, 12_345.6].map(short),
            ["0.12", "10.0", "12.3", "123", "12 346"]
        );
    }
}
