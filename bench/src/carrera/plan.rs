//! Decides which points are measured, in which order, and how long each takes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use crate::emulator::Stretch;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Files, as SURGE asks for them.
    Static,
    /// The auction, as the visitors of `RUBiS` walk through it.
    Dynamic,
}

/// Who answers, and how it deals with more than it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// A thread for each connection, 500 of them, and less patience with idle connections the more are there.
    Pool,
    /// Connections on a loop, and ten workers.
    Hybrid,
    /// The same, and sessions are admitted or refused.
    Admission,
}

/// How many come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// Always as many: so many percent of what saturates the server.
    Steady(u64),
    /// Calm, then four times what saturates it, then calm.
    Surge,
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) workload: Workload,
    pub(crate) shape: Shape,
    pub(crate) way: Way,
}

/// Of saturation, in percent, where it is calm.
pub(crate) const CALM: u64 = 50;
const SURGE: u64 = 400;
/// Calm, surge and calm again.
pub(crate) const SURGE_TIMES: [Duration; 3] =
    [Duration::from_mins(1), Duration::from_secs(30), Duration::from_mins(1)];
/// Before and behind the window of a steady point of files, at the most.
const LONGEST_MARGIN: u64 = 30;
/// A server's start and end, and what is written.
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

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Pool, Self::Hybrid, Self::Admission];

    /// As flags and raw data have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Hybrid => "hybrid",
            Self::Admission => "admission",
        }
    }

    /// As readers have it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pool => "pool, 500 threads",
            Self::Hybrid => "hybrid, 10 workers",
            Self::Admission => "hybrid, admission",
        }
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|way| way.name() == name)
            .with_context(|| format!("`{name}` is not measured here, only pool, hybrid, admission"))
    }
}

impl fmt::Display for Point {
    /// The name of its file.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.workload.name(), self.way.name(), self.shape)
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
    /// Who comes: `seconds` is the window of a steady point, `rate` the sessions per second that saturate.
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

    /// What counts. Those who come before fill the server; while those who came in it finish, others go on coming.
    pub(crate) fn window(&self, seconds: u64) -> std::ops::Range<Duration> {
        match self.shape {
            Shape::Steady(_) => {
                let from = Duration::from_secs(self.margin(seconds));
                from..from + Duration::from_secs(seconds)
            }
            Shape::Surge => Duration::ZERO..SURGE_TIMES.iter().sum(),
        }
    }

    /// Seconds before the window and behind it. A session of the auction takes a quarter of a minute in the mean, a long
    /// one a whole: before, there are too few of them, and behind, only the short would finish.
    fn margin(self, seconds: u64) -> u64 {
        match self.workload {
            Workload::Static => seconds.div_ceil(2).min(LONGEST_MARGIN),
            Workload::Dynamic => seconds.min(2 * LONGEST_MARGIN),
        }
    }

    /// How long it takes.
    pub(crate) fn time(&self, seconds: u64) -> Duration {
        let load = self.load(seconds, 1.0);
        load.iter().map(|stretch| stretch.length).sum::<Duration>() + AROUND
    }
}

/// All points: each load on each server before the next load. Only the auction has a surge, for files are not refused.
pub(crate) fn points(
    workloads: &[Workload],
    ways: &[Way],
    loads: &[u64],
    has_surge: bool,
) -> Vec<Point> {
    let mut all = Vec::new();
    for &workload in workloads {
        let surge = (has_surge && workload == Workload::Dynamic).then_some(Shape::Surge);
        for shape in loads.iter().map(|load| Shape::Steady(*load)).chain(surge) {
            all.extend(ways.iter().map(|&way| Point { workload, shape, way }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_run_takes_at_most_a_hundred_minutes() {
        let loads = [50, 75, 100, 150, 200, 400];
        let points = points(&Workload::ALL, &Way::ALL, &loads, true);
        assert_eq!(points.len(), 2 * 6 * 3 + 3);
        let time: Duration = points.iter().map(|point| point.time(60)).sum();
        assert!(time < Duration::from_mins(100), "{time:?}");
        let names: std::collections::BTreeSet<String> =
            points.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), points.len(), "each has a file of its own");
    }

    #[test]
    fn the_window_of_a_steady_point_lies_within_one_even_load() {
        let point = Point { workload: Workload::Static, shape: Shape::Steady(200), way: Way::Pool };
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
