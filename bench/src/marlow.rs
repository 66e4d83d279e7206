//! Measures figure 1 of Marlow, "Developing a high-performance web server in Concurrent Haskell": a
//! new connection for each request of a file of 1 KB, clients that wait for one second, and a rate
//! that rises past three times the capacity of the server. Also measures the flood of bogus
//! requests in section 1 of the paper.
//!
//! Each server has a part of core 0, so that the load generator on core 1 exceeds every server.

mod flood;
mod plan;
mod point;
mod record;
mod report;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::bursts::{Bursts, busy_of_core_1, cpu};
use crate::emulator::{Close, End};
use crate::floor;
use crate::limiter::CoreLimiter;
use crate::machine::{self, Machine};
use crate::origin::Version;
use crate::results::Results;
use crate::servers::Running;
use crate::tools::{Workspace, move_to_core_1, pause, require};
use flood::Flood;
use plan::{FLOOD_RATES, MarlowSelection, RATES, Series, is_end};
use point::{MarlowPart, MarlowPoint};
use record::{MarlowMeasure, MarlowRecord};
use site::{MarlowContent, MarlowServer};

pub(crate) const OPTIONS: [&str; 10] = [
    "--only",
    "--contents",
    "--parts",
    "--rates",
    "--flood-rates",
    "--legal",
    "--rounds",
    "--seconds",
    "--share",
    "--into",
];

/// The time limit for a response, in section 7.2 of the paper.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time after a load in which its last clients get a response or give up.
const DRAIN: Duration = Duration::from_millis(1200);
/// Connections per second of a warm-up.
const WARM_UP_RATE: f64 = 200.0;
/// A server is idle if it uses at most `REST_CPU` seconds of CPU time in this time.
const REST: Duration = Duration::from_millis(200);
const REST_CPU: f64 = 0.011;
/// If a server is still busy after this time, with clients that have given up, the next point is
/// measured anyway: the server is responsible for its backlog.
const REST_LIMIT: Duration = Duration::from_secs(5);

/// Measures the points that the folder lacks, and writes tables and figures of all points.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    require("taskset", "util-linux")?;
    let workspace = Workspace::open()?;
    let share = arguments.number("--share", 12)?;
    let selection = selection(arguments, share, &workspace.root)?;
    for server in &selection.servers {
        server.prepare(&workspace)?;
    }
    // The floor sends the bytes of Bine.
    MarlowServer::Bine.prepare(&workspace)?;
    site::write_files(&workspace)?;
    let folder = arguments
        .word("--into")
        .map_or_else(|| workspace.target.join("bench/marlow"), PathBuf::from);
    let mut results = Results::<MarlowRecord>::open(&folder)?;
    fs::write(folder.join("machine.txt"), facts(&selection))?;

    let all = selection.series();
    let mut left: u64 = expected(&selection, &all, &results);
    eprintln!(
        "{} series of rising rates; at most {} minutes; results are in {}",
        all.len(),
        left.div_ceil(60),
        folder.display()
    );
    move_to_core_1()?;
    let trial = Trial { workspace: &workspace, selection: &selection, share };
    let mut failed = 0;
    for (place, series) in all.iter().enumerate() {
        let missing = selection.missing(series, &results);
        let Some(&first) = missing.first() else { continue };
        eprintln!("at most {left} s left: {}", selection.point(series, first));
        if let Err(error) = trial.measure(series, &missing, &mut results) {
            failed += 1;
            eprintln!("not all points were measured: {error:#}");
        }
        left = expected(&selection, &all[place + 1..], &results);
    }

    let records: Vec<MarlowRecord> =
        results.rows.into_iter().filter(|row| row.point.origin == selection.origin).collect();
    println!("{}", report::write(&records, &selection, &folder)?);
    ensure!(failed == 0, "{failed} series were not measured; run the same command to retry");
    Ok(())
}

fn selection(arguments: &Arguments, share: u64, root: &Path) -> Result<MarlowSelection> {
    let servers = arguments.choices("--only", MarlowServer::ALL.to_vec())?;
    let contents = arguments.choices("--contents", MarlowContent::ALL.to_vec())?;
    let parts = vec![MarlowPart::Load, MarlowPart::Garbage, MarlowPart::Heads];
    let parts = arguments.choices("--parts", parts)?;
    ensure!(
        !parts.contains(&MarlowPart::Generator),
        "--parts: the generator is always measured; use load, garbage, heads"
    );
    let seconds = arguments.number("--seconds", 5)?;
    let legal = arguments.number("--legal", 400)?;
    let mut rates = arguments.numbers("--rates", &RATES)?;
    rates.sort_unstable();
    rates.dedup();
    let mut flood_rates = arguments.numbers("--flood-rates", &FLOOD_RATES)?;
    // Legal clients without a flood are the baseline.
    flood_rates.push(0);
    flood_rates.sort_unstable();
    flood_rates.dedup();
    let options = format!("{share} %; {seconds} s; {legal} legal");
    let origin = format!("{}; {}; {options}", Version::of(root), Machine::this());
    Ok(MarlowSelection {
        servers,
        contents,
        parts,
        rates,
        flood_rates,
        legal,
        rounds: arguments.number("--rounds", 3)?,
        seconds,
        origin: origin.replace(',', ";"),
    })
}

/// The most seconds that these series take.
fn expected(selection: &MarlowSelection, all: &[Series], results: &Results<MarlowRecord>) -> u64 {
    let seconds = |series| selection.seconds_of(selection.missing(series, results).len());
    all.iter().map(seconds).sum()
}

/// The machine and the versions of all servers.
fn facts(selection: &MarlowSelection) -> String {
    let versions = selection.servers.iter().map(|server| server.version());
    let versions: Vec<String> = versions.filter(|version| !version.is_empty()).collect();
    machine::facts_with(&versions.join("; "))
}

/// The state that all measurements of a run share.
struct Trial<'run> {
    workspace: &'run Workspace,
    selection: &'run MarlowSelection,
    /// The percentage of core 0 that a server gets.
    share: u64,
}

impl Trial<'_> {
    /// Measures a series from the first missing rate to its end, and stores each point.
    fn measure(
        &self,
        series: &Series,
        missing: &[u64],
        results: &mut Results<MarlowRecord>,
    ) -> Result<()> {
        let running = [self.start(series)?];
        let path = series.content.path();
        load(&running, path, WARM_UP_RATE, 1).measure()?;
        if let Some(server) = series.server {
            site::check(server, series.content, running[0].port)?;
        }
        // The floor needs a whole core: it shows how much the generator can do.
        let share = if series.server.is_some() { self.share } else { 100 };
        let limiter = CoreLimiter::leaving(share)?;
        let mut best = self.best_so_far(series, results);
        for &rate in missing {
            let point = self.selection.point(series, rate);
            let record = self.measure_point(&point, &running)?;
            eprintln!(
                "  {rate} a second: {:.0} responses, {:.1} % late, p99 {:.1} ms",
                record.figure(MarlowMeasure::Replies),
                record.figure(MarlowMeasure::Late),
                record.figure(MarlowMeasure::P99) / 1e3
            );
            let is_last = is_end(&record, &mut best);
            results.add(record)?;
            if is_last {
                break;
            }
            rest(&running)?;
        }
        drop(limiter);
        running.into_iter().try_for_each(Running::stop)
    }

    fn measure_point(&self, point: &MarlowPoint, running: &[Running; 1]) -> Result<MarlowRecord> {
        let rate = match point.part {
            MarlowPart::Garbage | MarlowPart::Heads => self.selection.legal,
            MarlowPart::Generator | MarlowPart::Load => point.rate,
        };
        let load = load(running, point.content.path(), rate as f64, self.selection.seconds);
        let flood = Flood { part: point.part, rate: point.rate, port: running[0].port };
        let ((costs, busy), flooded) = flood.during(|| {
            let (begun, busy) = (Instant::now(), busy_of_core_1()?);
            let costs = load.measure()?;
            // Clients arrive late if the generator cannot keep up, and the load takes longer.
            let took = begun.elapsed().saturating_sub(DRAIN).as_secs_f64();
            let busy = (busy_of_core_1()? - busy) as f64 / 100.0;
            Ok((costs, (100.0 * busy / took).min(100.0)))
        })?;
        let tally = &costs.tally;
        let clients = (tally.begun + tally.turned_away) as f64;
        let share = |count: u64| 100.0 * count as f64 / clients.max(1.0);
        let ended = |end: End| tally.ends[end as usize];
        let late = [End::Late, End::Unreachable, End::Dropped, End::Faulty].map(ended);
        let figures = [
            (MarlowMeasure::Offered, clients / costs.seconds()),
            (MarlowMeasure::Replies, tally.pages.count() as f64 / costs.seconds()),
            (MarlowMeasure::Late, share(late.iter().sum::<u64>() + tally.open)),
            (MarlowMeasure::Refused, share(ended(End::Refused))),
            (MarlowMeasure::Closed, tally.closed[Close::Asked as usize] as f64 / costs.seconds()),
            (MarlowMeasure::P50, tally.pages.quantile(0.5)),
            (MarlowMeasure::P99, tally.pages.quantile(0.99)),
            (MarlowMeasure::Cpu, 1e6 * costs.cpu / costs.replies.max(1.0)),
            (MarlowMeasure::Peak, costs.peak as f64),
            (MarlowMeasure::Generator, busy),
            (MarlowMeasure::Lag, tally.lags.quantile(0.99)),
            (MarlowMeasure::Unsent, share(tally.turned_away)),
            (MarlowMeasure::Bogus, flooded.begun),
            (MarlowMeasure::BogusClosed, flooded.closed),
        ];
        // Under overload, it is acceptable that no client gets a response in time. A wrong response
        // is a fault at any load.
        ensure!(tally.wrong == 0, "a response was no 200: {}", tally.errors.join("; "));
        Ok(MarlowRecord::new(point.clone(), &figures))
    }

    fn start(&self, series: &Series) -> Result<Running> {
        match series.server {
            Some(server) => server.start(self.workspace),
            None => {
                let example = vec![MarlowServer::Bine.start(self.workspace)?];
                floor::start(self.workspace, example, series.content.path())
            }
        }
    }

    /// The highest rate of responses among the stored points of a series.
    fn best_so_far(&self, series: &Series, results: &Results<MarlowRecord>) -> f64 {
        let rates = self.selection.rates_of(series.part).iter();
        let records = rates.filter_map(|rate| results.find(&self.selection.point(series, *rate)));
        records.map(|record| record.figure(MarlowMeasure::Replies)).fold(0.0, f64::max)
    }
}

fn load<'run>(
    running: &'run [Running; 1],
    path: &'static str,
    rate: f64,
    seconds: u64,
) -> Bursts<'run> {
    let (port, requests, patience, drain) = (running[0].port, 1, PATIENCE, DRAIN);
    Bursts { running, port, path, requests, patience, rate, seconds, drain }
}

/// Waits until the server has finished its work for clients that have given up.
fn rest(running: &[Running]) -> Result<()> {
    let begun = Instant::now();
    loop {
        let before = cpu(running)?;
        pause(REST);
        if cpu(running)? - before <= REST_CPU || begun.elapsed() > REST_LIMIT {
            return Ok(());
        }
    }
}
