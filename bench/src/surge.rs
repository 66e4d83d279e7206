//! The workload SURGE for a site of files (Barford and Crovella 1998), generated before its use.
//!
//! The parameters are those of the published generator. Its unbounded distributions are cut off: at
//! files of 10 MB, 60 s between two pages, 30 s between two files of a page, and 100 files per
//! page.

mod catalog;
pub(crate) mod models;
mod references;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::arguments::Arguments;
use crate::random::Random;
use crate::tools::Workspace;
use catalog::Entry;
use models::{Model, whole};

/// The time between two pages, in seconds. The idle timeout of a server must be longer if it is not
/// to close connections.
const INACTIVE: Model = Model::Pareto { least: 1.0, alpha: 1.5, most: LONGEST_OFF };
/// The time between two files of a page, in seconds.
const ACTIVE: Model = Model::Weibull { scale: 1.46, shape: 0.382, most: 30.0 };
/// The number of embedded files of a page.
const EMBEDDED: Model = Model::Pareto { least: 1.0, alpha: 2.43, most: 100.0 };
/// The longest time between two pages, in seconds.
pub(crate) const LONGEST_OFF: f64 = 60.0;
/// The probability of a further page, chosen so that a session has about six requests.
const GOES_ON: f64 = 0.6;
/// The share of pages whose embedded files are all requested at once, pipelined.
const PIPELINED: f64 = 0.5;

const FILES: u64 = 2000;
const REFERENCES: u64 = 110_000;
/// The number of sessions in a mean.
const MANY: u32 = 10_000;

/// The generator of all requests, in order.
pub(crate) struct Surge {
    entries: Vec<Entry>,
    references: Vec<u32>,
    /// The seed of the catalog.
    seed: u64,
    /// The seed of the sessions.
    visits: u64,
    /// The position of the next session in the references.
    next: usize,
    sessions: u64,
}

/// A page with its embedded files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Visit {
    /// Seconds from the end of the previous page.
    pub(crate) off: f64,
    pub(crate) page: String,
    pub(crate) embedded: VecDeque<Embedded>,
    /// Whether the embedded files are requested without waiting for responses.
    pub(crate) is_pipelined: bool,
}

/// An embedded file of a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Embedded {
    /// Seconds from the end of the previous file, unless pipelined.
    pub(crate) off: f64,
    pub(crate) path: String,
}

impl Surge {
    /// The workload of this seed.
    pub(crate) fn new(seed: u64, files: u64, references: u64) -> Self {
        let mut random = Random::of(seed, 0);
        let entries = catalog::catalog(files as usize, references, &mut random);
        let references = references::references(&entries, &mut random);
        Self { entries, references, seed, visits: seed, next: 0, sessions: 0 }
    }

    /// The workload with default sizes.
    pub(crate) fn usual(seed: u64) -> Self {
        Self::new(seed, FILES, REFERENCES)
    }

    /// Begins the sequence of sessions of this seed. Different seeds begin at different references.
    pub(crate) fn restart(&mut self, visits: u64) {
        self.visits = visits;
        self.next = Random::of(visits, 0).below(self.references.len() as u64) as usize;
        self.sessions = 0;
    }

    /// The mean number of requests per session, over the first sessions.
    pub(crate) fn requests_of_a_session(&mut self) -> f64 {
        self.restart(self.seed);
        let all: usize =
            (0..MANY).flat_map(|_| self.session(0.0)).map(|visit| 1 + visit.embedded.len()).sum();
        self.restart(self.seed);
        all as f64 / f64::from(MANY)
    }

    /// Writes the files below `parent`, and returns their folder.
    pub(crate) fn write(&self, parent: &Path) -> Result<PathBuf> {
        let folder = parent.join(format!("surge-{}-{}", self.seed, self.entries.len()));
        catalog::write(&self.entries, &folder)?;
        Ok(folder)
    }

    /// The pages of the next session; `pace` is a factor for all times between requests.
    pub(crate) fn session(&mut self, pace: f64) -> VecDeque<Visit> {
        self.sessions += 1;
        let mut random = Random::of(self.visits, self.sessions);
        let mut pages = VecDeque::new();
        loop {
            let off = if pages.is_empty() { 0.0 } else { INACTIVE.sample(&mut random) * pace };
            let page = self.reference();
            let count = whole(EMBEDDED.sample(&mut random));
            let is_pipelined = random.fraction() < PIPELINED;
            let embedded = (0..count)
                .map(|_| Embedded {
                    off: ACTIVE.sample(&mut random) * pace,
                    path: self.reference(),
                })
                .collect();
            pages.push_back(Visit { off, page, embedded, is_pipelined });
            if random.fraction() >= GOES_ON {
                return pages;
            }
        }
    }

    fn reference(&mut self) -> String {
        let file = self.references[self.next];
        self.next = (self.next + 1) % self.references.len();
        format!("/{file}.html")
    }
}

/// Writes the files, and prints the distribution of requests next to that of the models.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let workspace = Workspace::open()?;
    let seed = arguments.number("--seed", 1)?;
    let mut surge = Surge::new(
        seed,
        arguments.number("--files", FILES)?,
        arguments.number("--references", REFERENCES)?,
    );
    let parent =
        arguments.word("--into").map_or_else(|| workspace.target.join("bench"), PathBuf::from);
    let folder = surge.write(&parent)?;
    let bytes: u64 = surge.entries.iter().map(|entry| entry.size).sum();
    println!(
        "{} files of {:.0} MB in {}, requested {} times\n",
        surge.entries.len(),
        bytes as f64 / 1e6,
        folder.display(),
        surge.references.len()
    );
    println!("| requests not larger than | share, % | model, % |\n|---|---|---|");
    for size in [2000.0, 5000.0, 10_000.0, 50_000.0, 100_000.0, 1e6] {
        let up_to = surge.entries.iter().filter(|entry| entry.size as f64 <= size);
        let share = up_to.map(|entry| entry.references).sum::<u64>() as f64;
        let model = catalog::REQUESTED.share_up_to(size).unwrap_or(1.0);
        let share = 100.0 * share / surge.references.len() as f64;
        println!("| {size:.0} | {share:.1} | {:.1} |", 100.0 * model);
    }
    println!("\nrequests of a session: {:.2} on average", surge.requests_of_a_session());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Vec<VecDeque<Visit>> {
        let mut surge = Surge::new(3, 200, 4000);
        (0..5000).map(|_| surge.session(1.0)).collect()
    }

    #[test]
    fn generates_about_six_requests_per_session_and_pipelines_some() {
        let sessions = sessions();
        let pages = || sessions.iter().flatten();
        let requests: usize = pages().map(|visit| 1 + visit.embedded.len()).sum();
        let mean = requests as f64 / sessions.len() as f64;
        assert!((5.5..6.5).contains(&mean), "{mean}");
        let pipelined = pages().filter(|visit| visit.is_pipelined).count() as f64;
        let share = pipelined / pages().count() as f64;
        assert!((share - 0.5).abs() < 0.05, "{share}");
    }

    #[test]
    fn cuts_off_the_heavy_tail_of_times_between_pages() {
        let sessions = sessions();
        let mut offs: Vec<f64> = sessions
            .iter()
            .flat_map(|session| session.iter().skip(1))
            .map(|visit| visit.off)
            .collect();
        offs.sort_by(f64::total_cmp);
        // The median of a Pareto distribution is its minimum times the alpha-th root of two.
        let median = offs[offs.len() / 2];
        assert!((median - 2_f64.powf(1.0 / 1.5)).abs() < 0.1, "{median}");
        assert!(offs[offs.len() - 1] <= LONGEST_OFF);
        assert!(offs[offs.len() * 99 / 100] > 10.0);
    }

    #[test]
    fn repeats_the_sessions_of_a_seed() {
        let mut surge = Surge::new(3, 200, 4000);
        let mut sessions = |seed| {
            surge.restart(seed);
            std::array::from_fn::<_, 20, _>(|_| surge.session(1.0))
        };
        let first = sessions(1);
        assert_ne!(sessions(2), first);
        assert_eq!(sessions(1), first);
    }

    #[test]
    fn scales_only_the_times_by_the_pace() {
        let (mut one, mut other) = (Surge::new(3, 50, 500), Surge::new(3, 50, 500));
        for _ in 0..20 {
            let (calm, quick) = (one.session(1.0), other.session(0.5));
            assert_eq!(calm.len(), quick.len());
            for (calm, quick) in calm.iter().zip(&quick) {
                assert_eq!(calm.page, quick.page);
                assert!((calm.off - 2.0 * quick.off).abs() < 1e-9);
            }
        }
    }
}
