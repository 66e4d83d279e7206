//! Measures figures 6 and 7 of Serrano, "Hop, a fast server for the diffuse web": sessions of five
//! requests on one connection, at a rising rate, for a file and for a page of the same 984 bytes, and
//! for a file of 64 KiB.
//!
//! Each server has a part of core 0, so that the load generator on core 1 exceeds every server.

mod plan;
mod record;
mod report;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};

use crate::arguments::Arguments;
use crate::bursts::{Bursts, processes};
use crate::emulator::End;
use crate::floor;
use crate::limiter::CoreLimiter;
use crate::machine::{self, Machine};
use crate::origin::Version;
use crate::results::Results;
use crate::schedulers::counts;
use crate::servers::Running;
use crate::tools::{Workspace, move_to_core_1, require};
use plan::{Batch, HopPart, HopPoint, HopSelection, RATES};
use record::{HopMeasure, HopRecord};
use site::{Asked, HopServer};

pub(crate) const OPTIONS: [&str; 7] =
    ["--only", "--contents", "--rates", "--rounds", "--seconds", "--share", "--into"];

/// Requests of a session, in section 3.2 of the paper.
const REQUESTS: u64 = 5;
/// The time limit for a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time after a load in which its connections end.
const DRAIN: Duration = Duration::from_secs(1);
/// Sessions per second of a warm-up.
const WARM_UP_RATE: f64 = 100.0;

/// Measures the points that the folder lacks, and writes tables and figures of all points.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for (tool, package) in [("perf", "linux-perf"), ("taskset", "util-linux")] {
        require(tool, package)?;
    }
    let workspace = Workspace::open()?;
    let share = arguments.number("--share", 25)?;
    let selection = selection(arguments, share, &workspace.root)?;
    for server in &selection.servers {
        server.prepare(&workspace)?;
    }
    let files = site::write_files(&workspace)?;
    let folder =
        arguments.word("--into").map_or_else(|| workspace.target.join("bench/hop"), PathBuf::from);
    let mut results = Results::<HopRecord>::open(&folder)?;
    fs::write(folder.join("machine.txt"), facts(&selection))?;

    let (batches, points) = missing(&selection, &results);
    let mut left: u64 = batches.iter().map(|batch| selection.seconds_of(batch)).sum();
    let count: usize = batches.iter().map(|batch| batch.points.len()).sum();
    eprintln!(
        "{points} points, {} of them already measured; about {} minutes; results are in {}",
        points - count,
        left.div_ceil(60),
        folder.display()
    );
    move_to_core_1()?;
    let trial = Trial { workspace: &workspace, files: &files, share };
    let mut failed = 0;
    for batch in &batches {
        if let Some(first) = batch.points.first() {
            eprintln!("{left} s left: {first}");
        }
        left = left.saturating_sub(selection.seconds_of(batch));
        if let Err(error) = trial.measure(batch, selection.seconds, &mut results) {
            failed += 1;
            eprintln!("not all points were measured: {error:#}");
        }
    }

    let records: Vec<HopRecord> =
        results.rows.into_iter().filter(|row| row.point.origin == selection.origin).collect();
    println!("{}", report::write(&records, &selection, &folder)?);
    ensure!(failed == 0, "{failed} servers were not measured; run the same command to retry");
    Ok(())
}

fn selection(arguments: &Arguments, share: u64, root: &Path) -> Result<HopSelection> {
    let servers = arguments.choices("--only", HopServer::all())?;
    let asked = arguments.choices("--contents", Asked::ALL.to_vec())?;
    let seconds = arguments.number("--seconds", 4)?;
    let mut rates = arguments.numbers("--rates", &RATES)?;
    rates.sort_unstable();
    rates.dedup();
    let origin = format!("{}; {}; {share} %; {seconds} s", Version::of(root), Machine::this());
    Ok(HopSelection {
        servers,
        asked,
        rates,
        rounds: arguments.number("--rounds", 2)?,
        seconds,
        origin: origin.replace(',', ";"),
    })
}

/// The points of the selection that have no result, and the number of all points.
fn missing(selection: &HopSelection, results: &Results<HopRecord>) -> (Vec<Batch>, usize) {
    let mut batches = selection.batches();
    let points = batches.iter().map(|batch| batch.points.len()).sum();
    for batch in &mut batches {
        batch.points.retain(|point| !results.has(point));
    }
    batches.retain(|batch| !batch.points.is_empty());
    (batches, points)
}

/// The machine and the versions of all servers.
fn facts(selection: &HopSelection) -> String {
    let versions: Vec<String> = selection
        .servers
        .iter()
        .filter(|server| !server.is_bine())
        .map(|server| format!("{}: {}", server.name(), server.version()))
        .collect();
    machine::facts_with(&versions.join("; "))
}

/// The state that all measurements of a run share.
struct Trial<'run> {
    workspace: &'run Workspace,
    files: &'run Path,
    /// The percentage of core 0 that a server gets.
    share: u64,
}

impl Trial<'_> {
    /// Measures the points of one server in order, and stores each.
    fn measure(&self, batch: &Batch, seconds: u64, results: &mut Results<HopRecord>) -> Result<()> {
        let Some(first) = batch.points.first() else { return Ok(()) };
        let (running, path) = self.start(first)?;
        let port = running.last().context("no server")?.port;
        // The floor needs a whole core: it shows how much the generator can do.
        let share = if first.server.is_some() { self.share } else { 100 };
        let warm_up = first.server.map_or(1, HopServer::warm_up);
        bursts(&running, port, path, WARM_UP_RATE, warm_up).measure()?;
        if let Some(server) = first.server {
            site::check(server, first.asked, port, self.files)?;
        }
        let limiter = CoreLimiter::leaving(share)?;
        for point in &batch.points {
            results.add(measure(point, &running, port, path, seconds)?)?;
        }
        drop(limiter);
        running.into_iter().rev().try_for_each(Running::stop)
    }

    fn start(&self, point: &HopPoint) -> Result<(Vec<Running>, &'static str)> {
        if let Some(server) = point.server {
            return Ok((server.start(self.workspace, self.files)?, server.path(point.asked)));
        }
        let bine = HopServer::Bine("hybrid");
        let path = bine.path(point.asked);
        let example = bine.start(self.workspace, self.files)?;
        Ok((vec![floor::start(self.workspace, example, path)?], path))
    }
}

fn measure(
    point: &HopPoint,
    running: &[Running],
    port: u16,
    path: &'static str,
    seconds: u64,
) -> Result<HopRecord> {
    let events = match point.part {
        HopPart::Events => Some(Events::count(running, seconds)?),
        HopPart::Load | HopPart::Generator => None,
    };
    let costs = bursts(running, port, path, point.rate as f64, seconds).measure()?;
    let tally = &costs.tally;
    let mut figures = vec![
        (HopMeasure::Replies, tally.pages.count() as f64 / costs.seconds()),
        (HopMeasure::Sessions, (tally.begun + tally.turned_away) as f64),
        (HopMeasure::Completed, tally.ends[End::Completed as usize] as f64),
        (HopMeasure::P50, tally.page_waits.quantile(0.5)),
        (HopMeasure::P99, tally.page_waits.quantile(0.99)),
        (HopMeasure::Cpu, 1e6 * costs.cpu / costs.replies.max(1.0)),
        (HopMeasure::Before, costs.before as f64),
        (HopMeasure::Peak, costs.peak as f64),
        (HopMeasure::Errors, tally.wrong as f64),
    ];
    if let Some(events) = events {
        let [calls, switches] = events.finish()?;
        figures.push((HopMeasure::Calls, calls / costs.replies.max(1.0)));
        figures.push((HopMeasure::Switches, switches / costs.replies.max(1.0)));
    }
    if tally.wrong > 0 {
        eprintln!("{} responses are no 200: {}", tally.wrong, tally.errors.join("; "));
    }
    let rate = point.rate;
    ensure!(
        tally.pages.count() > 0,
        "no response with the status 200 at {rate} sessions per second"
    );
    Ok(HopRecord::new(point.clone(), &figures))
}

/// A load of `rate` sessions per second.
fn bursts<'run>(
    running: &'run [Running],
    port: u16,
    path: &'static str,
    rate: f64,
    seconds: u64,
) -> Bursts<'run> {
    let (requests, patience, drain) = (REQUESTS, PATIENCE, DRAIN);
    Bursts { running, port, path, requests, patience, rate, seconds, drain }
}

/// perf, which counts while the load runs.
struct Events(Child);

impl Events {
    /// Counts for `seconds`.
    fn count(running: &[Running], seconds: u64) -> Result<Self> {
        let ids: Vec<String> = processes(running)?.iter().map(ToString::to_string).collect();
        let length = (Duration::from_secs(seconds) + DRAIN).as_secs().to_string();
        let mut command = Command::new("perf");
        command.args(["stat", "-x,", "-e", "raw_syscalls:sys_enter,context-switches"]);
        command.args(["-p", &ids.join(","), "--", "sleep", &length]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Self(command.spawn().context("cannot run perf")?))
    }

    /// The system calls and the context switches.
    fn finish(self) -> Result<[f64; 2]> {
        let done = self.0.wait_with_output()?;
        let text = String::from_utf8_lossy(&done.stderr);
        let all: Vec<f64> = counts(&text).collect();
        <[f64; 2]>::try_from(all).map_err(|_| Error::msg(format!("perf printed {text}")))
    }
}
