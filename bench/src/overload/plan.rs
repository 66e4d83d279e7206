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
    /// The same with its tables in `PostgreSQL`, whose driver blocks the threads of the server.
    Database,
}

/// The server configuration, and its reaction to overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// A thread per connection, with 500 threads and an idle timeout that shrinks as connections
    /// grow.
    Pool,
    /// Connections in an event loop, and ten workers.
    Hybrid,
    /// The hybrid with session admission.
    Admission,
    /// Tomcat with the NIO connector and its default of 200 threads.
    Tomcat200,
    /// The same with 500 threads, like the pool.
    Tomcat500,
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
    /// The seed of the visitors.
    pub(crate) seed: u64,
}

/// The calm load, in percent of saturation.
pub(crate) const CALM: u64 = 50;
const SURGE: u64 = 400;
/// Calm, surge, and calm again.
pub(crate) const SURGE_TIMES: [Duration; 3] =
    [Duration::from_secs(40), Duration::from_secs(20), Duration::from_secs(40)];
/// The longest margin, in seconds, around the window of a steady point, by workload.
const LONGEST_MARGINS: [u64; 3] = [30, 60, 60];
/// The length of a margin in halves of the window, by workload.
const MARGINS: [u64; 3] = [1, 3, 3];
/// Time for a server's start and end, and for writing results.
const AROUND: Duration = Duration::from_secs(2);
/// The same for Tomcat, without its warm-up.
const AROUND_TOMCAT: Duration = Duration::from_secs(7);

impl Workload {
    pub(crate) const ALL: [Self; 3] = [Self::Static, Self::Dynamic, Self::Database];
    /// Those of a run without a choice.
    #[cfg(test)]
    pub(crate) const USUAL: [Self; 2] = [Self::Static, Self::Dynamic];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Database => "postgres",
        }
    }

    /// The heading in reports.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Static => "Static content",
            Self::Dynamic => "Dynamic content",
            Self::Database => "Dynamic content on PostgreSQL",
        }
    }
}

impl Variant {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pool, Self::Hybrid, Self::Admission, Self::Tomcat200, Self::Tomcat500];
    /// The default variants for files. `Admission` is missing because files are never refused, and
    /// `Tomcat500` because Tomcat with NIO gives idle connections no thread.
    pub(crate) const OF_FILES: [Self; 3] = [Self::Pool, Self::Hybrid, Self::Tomcat200];
    /// The variants of a trial.
    pub(crate) const QUICK: [Self; 4] =
        [Self::Pool, Self::Hybrid, Self::Admission, Self::Tomcat200];

    /// The name in options and raw data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Hybrid => "hybrid",
            Self::Admission => "admission",
            Self::Tomcat200 => "tomcat-200",
            Self::Tomcat500 => "tomcat-500",
        }
    }

    /// The threads of Tomcat; `None` for Bine.
    pub(crate) const fn tomcat_threads(self) -> Option<u32> {
        match self {
            Self::Pool | Self::Hybrid | Self::Admission => None,
            Self::Tomcat200 => Some(200),
            Self::Tomcat500 => Some(500),
        }
    }

    /// The name in reports.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pool => "pool, 500 threads",
            Self::Hybrid => "hybrid, 10 workers",
            Self::Admission => "hybrid, admission",
            Self::Tomcat200 => "Tomcat, 200 threads",
            Self::Tomcat500 => "Tomcat, 500 threads",
        }
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|variant| variant.name() == name).with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is not a variant; use {names}")
        })
    }
}

impl fmt::Display for Point {
    /// The file name of the point's results.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, shape, variant, seed } = self;
        write!(out, "{}-{}-{shape}-{seed}", workload.name(), variant.name())
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

    /// The margin in seconds before and after the window. A session of the auction takes eight
    /// seconds on average and a long one half a minute: with a shorter margin, the server would not
    /// be full before, and only short sessions would finish after.
    fn margin(self, seconds: u64) -> u64 {
        let place = self.workload as usize;
        (seconds * MARGINS[place]).div_ceil(2).min(LONGEST_MARGINS[place])
    }

    /// The duration of the point, with a `warm_up` of Tomcat.
    pub(crate) fn time(&self, seconds: u64, warm_up: Duration) -> Duration {
        let load = self.load(seconds, 1.0);
        let around = match self.variant.tomcat_threads() {
            None => AROUND,
            Some(_) => AROUND_TOMCAT + warm_up,
        };
        load.iter().map(|stretch| stretch.length).sum::<Duration>() + around
    }
}

/// The selection of measurements for a run.
pub(crate) struct OverloadSelection {
    pub(crate) workloads: Vec<Workload>,
    /// The chosen variants; `None` for those of each workload.
    pub(crate) variants: Option<Vec<Variant>>,
    /// In percent of the saturation rate.
    pub(crate) loads: Vec<u64>,
    pub(crate) seeds: Vec<u64>,
    /// Whether the auction has points under constant load, and a surge.
    pub(crate) has_steady: bool,
    pub(crate) has_surge: bool,
    /// Whether it is a trial, with fewer variants.
    pub(crate) is_quick: bool,
}

impl OverloadSelection {
    /// The variants of a point. A surge, and `PostgreSQL`, compare the schedulers of Bine only.
    fn variants(&self, workload: Workload, shape: Shape) -> Vec<Variant> {
        if let Some(variants) = &self.variants {
            let mut variants = variants.clone();
            variants.retain(|own| workload != Workload::Database || own.tomcat_threads().is_none());
            return variants;
        }
        match (workload, shape) {
            (Workload::Static, _) => Variant::OF_FILES.to_vec(),
            (Workload::Dynamic, Shape::Steady(_)) if self.is_quick => Variant::QUICK.to_vec(),
            (Workload::Dynamic, Shape::Steady(_)) => Variant::ALL.to_vec(),
            (Workload::Dynamic, Shape::Surge) | (Workload::Database, _) => {
                Variant::ALL.into_iter().filter(|own| own.tomcat_threads().is_none()).collect()
            }
        }
    }

    /// Whether a point needs Tomcat.
    pub(crate) fn has_tomcat(&self) -> bool {
        self.points().iter().any(|point| point.variant.tomcat_threads().is_some())
    }

    /// All points, ordered by load first, and by seed before the variant, so that all variants see
    /// the same drift of the machine. Only the auction has a surge, because files are never refused;
    /// it has one seed.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut all = Vec::new();
        for &workload in &self.workloads {
            let has_steady = workload != Workload::Dynamic || self.has_steady;
            let steady = self.loads.iter().filter(|_| has_steady).map(|load| Shape::Steady(*load));
            for shape in steady {
                for &seed in &self.seeds {
                    all.extend(self.points_of(workload, shape, seed));
                }
            }
            if self.has_surge && workload == Workload::Dynamic {
                let first = self.seeds.iter().take(1);
                all.extend(first.flat_map(|seed| self.points_of(workload, Shape::Surge, *seed)));
            }
        }
        all
    }

    fn points_of(&self, workload: Workload, shape: Shape, seed: u64) -> Vec<Point> {
        let variants = self.variants(workload, shape).into_iter();
        variants.map(|variant| Point { workload, shape, variant, seed }).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! Tests the plan of a whole run, and the windows of the points.

    use super::*;
    use crate::overload::{LOADS, QUICK_LOADS, QUICK_SECONDS, SECONDS, SEEDS, WARM_UP};

    /// Everything, with these loads and seeds.
    pub(in crate::overload) fn everything(loads: &[u64], seeds: &[u64]) -> OverloadSelection {
        OverloadSelection {
            workloads: Workload::USUAL.to_vec(),
            variants: None,
            loads: loads.to_vec(),
            seeds: seeds.to_vec(),
            has_steady: true,
            has_surge: true,
            is_quick: false,
        }
    }

    #[test]
    fn takes_at_most_ninety_minutes_by_default() {
        let points = everything(&LOADS, &SEEDS).points();
        assert_eq!(points.len(), (3 + 5) * 6 * 3 + 3);
        let time: Duration = points.iter().map(|point| point.time(SECONDS, WARM_UP)).sum();
        // The remaining minutes are for the capacity of the hybrid and for the comparison of pages.
        assert!(time < Duration::from_mins(87), "{time:?}");
        let names: std::collections::BTreeSet<String> =
            points.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), points.len(), "each has its own file");
    }

    #[test]
    fn tries_each_architecture_within_two_minutes() {
        let quick = OverloadSelection {
            has_surge: false,
            is_quick: true,
            ..everything(&QUICK_LOADS, &SEEDS[..1])
        };
        let points = quick.points();
        assert_eq!(points.len(), 3 + 4);
        let time: Duration =
            points.iter().map(|point| point.time(QUICK_SECONDS, WARM_UP / 3)).sum();
        // The rest is for the capacity of the hybrid, once for each workload.
        assert!(time < Duration::from_secs(105), "{time:?}");
    }

    #[test]
    fn measures_chosen_variants_and_parts_only() {
        let own = OverloadSelection {
            variants: Some(vec![Variant::Hybrid]),
            has_steady: false,
            ..everything(&[50], &[7])
        };
        let names: Vec<String> = own.points().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["static-hybrid-50-7", "dynamic-hybrid-surge-7"]);
        assert!(!own.has_tomcat());
    }

    #[test]
    fn compares_schedulers_on_postgresql_only() {
        let own = OverloadSelection {
            workloads: vec![Workload::Database],
            variants: Some(vec![Variant::Hybrid, Variant::Tomcat200]),
            ..everything(&[50], &[7])
        };
        let names: Vec<String> = own.points().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["postgres-hybrid-50-7"]);
        let all = OverloadSelection { variants: None, ..own };
        let names: Vec<String> = all.points().iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            ["postgres-pool-50-7", "postgres-hybrid-50-7", "postgres-admission-50-7"]
        );
    }

    #[test]
    fn keeps_the_window_of_a_steady_point_within_a_constant_load() {
        let point = Point {
            workload: Workload::Static,
            shape: Shape::Steady(200),
            variant: Variant::Pool,
            seed: 1,
        };
        let load = point.load(60, 10.0);
        assert_eq!(load.len(), 1);
        assert_eq!((load[0].rate, load[0].length), (20.0, Duration::from_mins(2)));
        assert_eq!(point.window(60), Duration::from_secs(30)..Duration::from_secs(90));
        assert_eq!(point.window(10), Duration::from_secs(5)..Duration::from_secs(15));
        let auction = Point { workload: Workload::Dynamic, ..point };
        assert_eq!(auction.window(60), Duration::from_mins(1)..Duration::from_mins(2));
        assert_eq!(auction.load(8, 10.0)[0].length, Duration::from_secs(8 + 2 * 12));
    }
}
