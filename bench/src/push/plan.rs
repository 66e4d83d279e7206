//! The plan: all points, their batches and durations.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// The delivery methods compared in section 4 of Liu and Cui.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    /// The client polls at its own pace and gets a response at once.
    Pull,
    /// Each poll waits in a separate thread.
    Thread,
    /// A poll waits in an event loop.
    Event,
    /// The same on nginx with Nchan.
    Nchan,
    /// The same on a loop that only sends.
    Floor,
}

impl Method {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pull, Self::Thread, Self::Event, Self::Nchan, Self::Floor];

    /// The name in options and raw data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Thread => "thread",
            Self::Event => "event",
            Self::Nchan => "nchan",
            Self::Floor => "floor",
        }
    }

    /// The name in reports.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pull => "client pull",
            Self::Thread => "thread per poll",
            Self::Event => "event-driven",
            Self::Nchan => "nginx with Nchan",
            Self::Floor => "floor (fan.c)",
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|method| method.name() == name).with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is not a method; use {names}")
        })
    }
}

/// The two halves of section 4 of Liu and Cui.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tables 1 and 2, figures 7 and 8: traffic and delivery times by publication interval.
    Tables,
    /// Figures 9 to 11: memory, delivery times and received share by number of peers.
    Figures,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Figures => "figures",
        }
    }
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = [Self::Tables, Self::Figures].into_iter();
        all.find(|part| part.name() == name)
            .with_context(|| format!("`{name}` is not a part; use tables or figures"))
    }
}

/// One measurement. Equal points are measured once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) part: Part,
    pub(crate) method: Method,
    pub(crate) peers: u64,
    /// Milliseconds between publications.
    pub(crate) interval: u64,
    pub(crate) messages: u64,
    /// Milliseconds between the pulls of a peer.
    pub(crate) pull: u64,
    /// The longest wait of a poll, in seconds.
    pub(crate) wait: u64,
    pub(crate) round: u64,
}

impl Point {
    /// The number of words in its text, separated by commas.
    pub(crate) const WORDS: usize = 8;
    /// The names of the words.
    pub(crate) const HEADER: &'static str =
        "part,method,peers,interval_ms,messages,pull_ms,wait_s,round";

    /// The estimated duration: start, settle, publish.
    fn seconds(&self) -> f64 {
        let settled = match self.part {
            Part::Tables => 3.0 + self.pull as f64 / 1e3,
            // First 500 requests for an unrelated page, then all peers connect and settle.
            Part::Figures => 4.5 + self.peers as f64 / 8e3,
        };
        settled + (self.interval * self.messages) as f64 / 1e3
    }
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, method, peers, interval, messages, pull, wait, round } = self;
        let (part, method) = (part.name(), method.name());
        write!(out, "{part},{method},{peers},{interval},{messages},{pull},{wait},{round}")
    }
}

impl FromStr for Point {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split(',').collect();
        ensure!(words.len() == Self::WORDS, "`{line}` needs {} words", Self::WORDS);
        let number = |at: usize| -> Result<u64> {
            words[at].parse().with_context(|| format!("`{}` in `{line}`", words[at]))
        };
        Ok(Self {
            part: words[0].parse()?,
            method: words[1].parse()?,
            peers: number(2)?,
            interval: number(3)?,
            messages: number(4)?,
            pull: number(5)?,
            wait: number(6)?,
            round: number(7)?,
        })
    }
}

/// The options of a run.
pub(crate) struct Selection {
    pub(crate) parts: Vec<Part>,
    /// Replaces the default numbers of peers.
    pub(crate) peers: Option<Vec<u64>>,
    /// Replaces all methods.
    pub(crate) methods: Option<Vec<Method>>,
    /// Seconds between publications, of the tables.
    pub(crate) intervals: Vec<u64>,
    /// The time of publications per point of the tables, in seconds.
    pub(crate) seconds: u64,
    /// The number of rounds of the figures.
    pub(crate) rounds: u64,
    /// Ten times the pace, and fewer points: a trial only.
    pub(crate) is_quick: bool,
}

/// A thread per poll needs two descriptors per poll, and a process has 20 000.
const MOST_THREADS: u64 = 8000;
/// Messages per point of the figures.
const MESSAGES: u64 = 10;

impl Selection {
    /// Points in the order of measurement; those of one batch run in parallel.
    pub(crate) fn batches(&self) -> Vec<Vec<Point>> {
        let mut batches = Vec::new();
        if self.parts.contains(&Part::Tables) {
            // Each is alone, because pulls use both cores a little, and a thousand waking threads
            // delay the rest.
            for method in [Method::Pull, Method::Thread, Method::Event] {
                batches.push(self.tables(method));
            }
        }
        if self.parts.contains(&Part::Figures) {
            for round in 1..=self.rounds {
                batches.extend(self.figures(round).into_iter().map(|point| vec![point]));
            }
        }
        batches.retain(|batch| !batch.is_empty());
        batches
    }

    fn tables(&self, method: Method) -> Vec<Point> {
        if !self.has(method) {
            return Vec::new();
        }
        let pace = if self.is_quick { 10 } else { 1 };
        let mut points = Vec::new();
        for &peers in self.peers.as_deref().unwrap_or(&[10, 100, 1000]) {
            for &interval in &self.intervals {
                points.push(Point {
                    part: Part::Tables,
                    method,
                    peers,
                    interval: interval * 1000 / pace,
                    messages: (self.seconds / interval).max(1),
                    pull: 1000 / pace,
                    wait: 50 / pace,
                    round: 1,
                });
            }
        }
        points
    }

    fn figures(&self, round: u64) -> Vec<Point> {
        let usual: &[u64] =
            if self.is_quick { &[500, 4000] } else { &[500, 1000, 2000, 4000, 8000, 16_000] };
        let mut points = Vec::new();
        for &peers in self.peers.as_deref().unwrap_or(usual) {
            for method in Method::ALL.into_iter().filter(|method| self.has(*method)) {
                if method == Method::Pull || method == Method::Thread && peers > MOST_THREADS {
                    continue;
                }
                points.push(Point {
                    part: Part::Figures,
                    method,
                    peers,
                    // Long enough that all peers have their responses and poll again before the
                    // next message.
                    interval: (peers / 8).max(500),
                    messages: if self.is_quick { 3 } else { MESSAGES },
                    pull: 1000,
                    wait: 50,
                    round,
                });
            }
        }
        points
    }

    fn has(&self, method: Method) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }
}

/// The estimated duration of a batch, in seconds.
pub(crate) fn seconds(batch: &[Point]) -> f64 {
    // Servers start in sequence.
    0.3 * batch.len() as f64 + batch.iter().map(Point::seconds).fold(0.0, f64::max)
}

/// The time of the first publication of each point, in microseconds. No two points of a batch
/// publish at the same time: the intervals are multiples of the shortest, and the start times are
/// spread over it.
pub(crate) fn phases(batch: &[Point]) -> Vec<u64> {
    let shortest = batch.iter().map(|point| point.interval).min().unwrap_or_default();
    (0..batch.len() as u64).map(|at| shortest * 1000 * at / batch.len() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Selection {
        Selection {
            parts: vec![Part::Tables, Part::Figures],
            peers: None,
            methods: None,
            intervals: vec![10, 20, 30, 40, 50],
            seconds: 200,
            rounds: 3,
            is_quick: false,
        }
    }

    #[test]
    fn plans_the_points_of_the_paper_within_35_minutes() {
        let batches = all().batches();
        let points: Vec<&Point> = batches.iter().flatten().collect();
        let of = |part, method| {
            points.iter().filter(|point| point.part == part && point.method == method).count()
        };
        for method in [Method::Pull, Method::Thread, Method::Event] {
            assert_eq!(of(Part::Tables, method), 3 * 5);
        }
        assert_eq!(of(Part::Figures, Method::Thread), 3 * 5);
        for method in [Method::Event, Method::Nchan, Method::Floor] {
            assert_eq!(of(Part::Figures, method), 3 * 6);
        }
        let seconds: f64 = batches.iter().map(|batch| seconds(batch)).sum();
        assert!(seconds < 35.0 * 60.0, "{seconds}");
    }

    #[test]
    fn plans_every_method_of_a_trial_within_three_minutes() {
        let selection = Selection { is_quick: true, rounds: 1, seconds: 100, ..all() };
        let batches = selection.batches();
        for method in Method::ALL {
            assert!(batches.iter().flatten().any(|point| point.method == method));
        }
        let seconds: f64 = batches.iter().map(|batch| seconds(batch)).sum();
        assert!(seconds < 3.0 * 60.0, "{seconds}");
    }

    #[test]
    fn round_trips_a_point() {
        for point in all().batches().into_iter().flatten() {
            assert_eq!(point.to_string().parse::<Point>().unwrap(), point);
        }
        assert!("tables,pull,10".parse::<Point>().is_err());
        assert!("tables,push,10,1,1,1,1,1".parse::<Point>().is_err());
    }

    #[test]
    fn spreads_publications_of_a_batch() {
        for batch in all().batches() {
            let phases = phases(&batch);
            let shortest = batch.iter().map(|point| point.interval).min().unwrap() * 1000;
            assert!(batch.iter().all(|point| point.interval * 1000 % shortest == 0));
            assert!(phases.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(phases.iter().all(|phase| *phase < shortest));
        }
    }

    #[test]
    fn restricts_points_to_chosen_methods_and_peers() {
        let selection = Selection {
            peers: Some(vec![700]),
            methods: Some(vec![Method::Event]),
            rounds: 1,
            ..all()
        };
        let points: Vec<Point> = selection.batches().into_iter().flatten().collect();
        assert_eq!(points.len(), 5 + 1);
        assert!(points.iter().all(|point| point.peers == 700 && point.method == Method::Event));
    }
}
