//! Decides what is measured, with what beside it, and how long that takes.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// How news reaches a peer, as document 004 section 4 compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    /// The peer asks at a pace of its own, and is answered at once.
    Pull,
    /// A poll waits on a thread of its own.
    Thread,
    /// A poll waits on a loop.
    Event,
    /// The same on nginx with Nchan.
    Nchan,
    /// The same on a loop that only sends.
    Floor,
}

impl Method {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pull, Self::Thread, Self::Event, Self::Nchan, Self::Floor];

    /// As flags and raw data have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Thread => "thread",
            Self::Event => "event",
            Self::Nchan => "nchan",
            Self::Floor => "floor",
        }
    }

    /// As readers have it.
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
            format!("`{name}` is no way to follow; there are {names}")
        })
    }
}

/// The two halves of document 004 section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tables 1 and 2, figures 7 and 8: traffic and trips by the time between publications.
    Tables,
    /// Figures 9 to 11: memory, trips and received share by the number of peers.
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
            .with_context(|| format!("`{name}` is no part; there are tables, figures"))
    }
}

/// One thing to measure. Two that are equal are measured once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) part: Part,
    pub(crate) method: Method,
    pub(crate) peers: u64,
    /// Milliseconds from a publication to the next.
    pub(crate) interval: u64,
    pub(crate) messages: u64,
    /// Milliseconds from a pull to the next of the same peer.
    pub(crate) pull: u64,
    /// Seconds that a poll waits at most.
    pub(crate) wait: u64,
    pub(crate) round: u64,
}

impl Point {
    /// How many words its text has, separated by commas.
    pub(crate) const WORDS: usize = 8;
    /// What they are.
    pub(crate) const HEADER: &'static str =
        "part,method,peers,interval_ms,messages,pull_ms,wait_s,round";

    /// About how long it takes: starts, settles, publishes.
    fn seconds(&self) -> f64 {
        let settled = match self.part {
            Part::Tables => 3.0 + self.pull as f64 / 1e3,
            // The other page is asked 500 times first; then all come and have their time.
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
        ensure!(words.len() == Self::WORDS, "`{line}` has not {} words", Self::WORDS);
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

/// What a run is asked for.
pub(crate) struct Wanted {
    pub(crate) parts: Vec<Part>,
    /// Instead of the usual ones.
    pub(crate) peers: Option<Vec<u64>>,
    /// Instead of all.
    pub(crate) methods: Option<Vec<Method>>,
    /// Seconds between publications, of the tables.
    pub(crate) intervals: Vec<u64>,
    /// Seconds that a point of the tables publishes for.
    pub(crate) seconds: u64,
    /// Of the figures.
    pub(crate) rounds: u64,
    /// Ten times the pace, and fewer points: proves that everything works, and no more.
    pub(crate) is_quick: bool,
}

/// A thread per poll needs two descriptors for each, and a process has 20 000.
const MOST_THREADS: u64 = 8000;
/// Messages of a point of the figures.
const MESSAGES: u64 = 10;

impl Wanted {
    /// Points in the order in which they are measured; those of one batch go side by side.
    pub(crate) fn batches(&self) -> Vec<Vec<Point>> {
        let mut batches = Vec::new();
        if self.parts.contains(&Part::Tables) {
            // Pulls keep both cores busy a little, and a thousand threads that wake keep everybody else from their turn.
            // So each is alone.
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
            if self.is_quick { &[500, 2000, 8000] } else { &[500, 1000, 2000, 4000, 8000, 16_000] };
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
                    // All have their answers and have come back before the next message.
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

/// About how long a batch takes, in seconds.
pub(crate) fn seconds(batch: &[Point]) -> f64 {
    // The starts are one after the other.
    0.3 * batch.len() as f64 + batch.iter().map(Point::seconds).fold(0.0, f64::max)
}

/// When each of a batch first publishes, in microseconds, so that no two do it at one time: the
/// intervals are multiples of the shortest, and the beginnings are spread over that.
pub(crate) fn phases(batch: &[Point]) -> Vec<u64> {
    let shortest = batch.iter().map(|point| point.interval).min().unwrap_or_default();
    (0..batch.len() as u64).map(|at| shortest * 1000 * at / batch.len() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Wanted {
        Wanted {
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
    fn a_full_run_has_the_points_of_document_004_and_ends_within_35_minutes() {
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
    fn a_quick_run_has_every_method_and_ends_within_five_minutes() {
        let wanted = Wanted { is_quick: true, rounds: 1, seconds: 100, ..all() };
        let batches = wanted.batches();
        for method in Method::ALL {
            assert!(batches.iter().flatten().any(|point| point.method == method));
        }
        let seconds: f64 = batches.iter().map(|batch| seconds(batch)).sum();
        assert!(seconds < 5.0 * 60.0, "{seconds}");
    }

    #[test]
    fn a_point_is_read_as_it_was_written() {
        for point in all().batches().into_iter().flatten() {
            assert_eq!(point.to_string().parse::<Point>().unwrap(), point);
        }
        assert!("tables,pull,10".parse::<Point>().is_err());
        assert!("tables,push,10,1,1,1,1,1".parse::<Point>().is_err());
    }

    #[test]
    fn no_two_of_a_batch_publish_at_one_time() {
        for batch in all().batches() {
            let phases = phases(&batch);
            let shortest = batch.iter().map(|point| point.interval).min().unwrap() * 1000;
            assert!(batch.iter().all(|point| point.interval * 1000 % shortest == 0));
            assert!(phases.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(phases.iter().all(|phase| *phase < shortest));
        }
    }

    #[test]
    fn one_method_or_number_of_peers_is_asked_for_by_name() {
        let wanted = Wanted {
            peers: Some(vec![700]),
            methods: Some(vec![Method::Event]),
            rounds: 1,
            ..all()
        };
        let points: Vec<Point> = wanted.batches().into_iter().flatten().collect();
        assert_eq!(points.len(), 5 + 1);
        assert!(points.iter().all(|point| point.peers == 700 && point.method == Method::Event));
    }
}
