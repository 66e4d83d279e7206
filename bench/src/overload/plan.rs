//! The plan: all points, their order and durations.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use crate::emulator::Stretch;

/// The requested content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Files, requested as by SURGE.
    Static,
    /// The auction, visited as by the clients of `RUBiS`.
    Dynamic,
}

/// The server configuration, and its reaction to overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// A thread per connection, 500 of them, with an idle timeout that shrinks as connections grow.
    Pool,
    /// Connections in an event loop, and ten workers.
    Hybrid,
    /// The hybrid with session admission.
    Admission,
}

/// The load over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// A constant rate, in percent of the saturation rate.
    Steady(u64),
    /// Calm, then four times the saturation rate, then calm.
    Surge,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) workload: Workload,
    pub(crate) shape: Shape,
    pub(crate) variant: Variant,
}

/// The calm load, in percent of saturation.
pub(crate) const CALM: u64 = 50;
const SURGE: u64 = 400;
/// Calm, surge, and calm again.
pub(crate) const SURGE_TIMES: [Duration; 3] =
    [Duration::from_mins(1), Duration::from_secs(30), Duration::from_mins(1)];
/// The longest margin, in seconds, around the window of a steady point of files.
const LONGEST_MARGIN: u64 = 30;
/// Time for a server's start and end, and for writing results.
const AROUND: Duration = Duration::from_secs(2);

impl Workload {
    pub(crate) const ALL: [Self; 2] = [Self::Static, Self::Dynamic];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Pool, Self::Hybrid, Self::Admission];

    /// The name in options and raw data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Hybrid => "hybrid",
            Self::Admission => "admission",
        }
    }

    /// The name in reports.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pool => "pool, 500 threads",
            Self::Hybrid => "hybrid, 10 workers",
            Self::Admission => "hybrid, admission",
        }
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|variant| variant.name() == name)
            .with_context(|| format!("`{name}` is not a variant; use pool, hybrid or admission"))
    }
}

impl fmt::Display for Point {
    /// The name of its file.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.workload.name(), self.variant.name(), self.shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady(percent) => write!(out, "{percent}"),
            Self::Surge => out.write_str("surge"),
        }
    }
}

impl Point {
    /// The arrivals: `seconds` is the window of a steady point, `rate` the sessions per second that
    /// saturate.
    pub(crate) fn load(&self, seconds: u64, rate: f64) -> Vec<Stretch> {
        let of = |length: Duration, percent: u64| Stretch {
            length,
            rate: rate * percent as f64 / 100.0,
        };
        match self.shape {
            Shape::Steady(percent) => {
                let around = 2 * self.margin(seconds);
                vec![of(Duration::from_secs(seconds + around), percent)]
            }
            Shape::Surge => SURGE_TIMES
                .into_iter()
                .zip([CALM, SURGE, CALM])
                .map(|(time, percent)| of(time, percent))
                .collect(),
        }
    }

    /// The counted window. Earlier visitors fill the server; visitors keep arriving while those of
    /// the window finish.
    pub(crate) fn window(&self, seconds: u64) -> std::ops::Range<Duration> {
        match self.shape {
            Shape::Steady(_) => {
                let from = Duration::from_secs(self.margin(seconds));
                from..from + Duration::from_secs(seconds)
            }
            Shape::Surge => Duration::ZERO..SURGE_TIMES.iter().sum(),
        }
    }

    /// The margin in seconds before and after the window. A session of the auction takes a quarter
    /// of a minute on average and a long one a whole minute: with a shorter margin, the server
    /// would not be full before, and only short sessions would finish after.
    fn margin(self, seconds: u64) -> u64 {
        match self.workload {
            Workload::Static => seconds.div_ceil(2).min(LONGEST_MARGIN),
            Workload::Dynamic => seconds.min(2 * LONGEST_MARGIN),
        }
    }

    /// The duration of the point.
    pub(crate) fn time(&self, seconds: u64) -> Duration {
        let load = self.load(seconds, 1.0);
        load.iter().map(|stretch| stretch.length).sum::<Duration>() + AROUND
    }
}

/// All points, ordered by load first. Only the auction has a surge, because files are never
/// refused.
pub(crate) fn points(
    workloads: &[Workload],
    variants: &[Variant],
    loads: &[u64],
    has_surge: bool,
) -> Vec<Point> {
    let mut all = Vec::new();
    for &workload in workloads {
        let surge = (has_surge && workload == Workload::Dynamic).then_some(Shape::Surge);
        for shape in loads.iter().map(|load| Shape::Steady(*load)).chain(surge) {
            all.extend(variants.iter().map(|&variant| Point { workload, shape, variant }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_at_most_a_hundred_minutes_by_default() {
        let loads = [50, 75, 100, 150, 200, 400];
        let points = points(&Workload::ALL, &Variant::ALL, &loads, true);
        assert_eq!(points.len(), 2 * 6 * 3 + 3);
        let time: Duration = points.iter().map(|point| point.time(60)).sum();
        assert!(time < Duration::from_mins(100), "{time:?}");
        let names: std::collections::BTreeSet<String> =
            points.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), points.len(), "each has its own file");
    }

    #[test]
    fn keeps_the_window_of_a_steady_point_within_a_constant_load() {
        let point =
            Point { workload: Workload::Static, shape: Shape::Steady(200), variant: Variant::Pool };
        let load = point.load(60, 10.0);
        assert_eq!(load.len(), 1);
        assert_eq!((load[0].rate, load[0].length), (20.0, Duration::from_mins(2)));
        assert_eq!(point.window(60), Duration::from_secs(30)..Duration::from_secs(90));
        assert_eq!(point.window(10), Duration::from_secs(5)..Duration::from_secs(15));
        let auction = Point { workload: Workload::Dynamic, ..point };
        assert_eq!(auction.window(60), Duration::from_mins(1)..Duration::from_mins(2));
        assert_eq!(auction.load(60, 10.0)[0].length, Duration::from_mins(3));
    }
}
