//! Measures figures 6 and 7 of Serrano, "Hop, a fast server for the diffuse web": sessions of five
//! requests on one connection, at a rising rate, for a file and for a page of the same 984 bytes, and
//! for a file of 64 KiB.
//!
//! Each server has a part of core 0, so that the load generator on core 1 exceeds all of them.

mod plan;
mod record;
mod report;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};

use crate::arguments::Arguments;
use crate::emulator::script::{Page, Parts, Request, Script};
use crate::emulator::{End, Run, Stretch, Tally};
use crate::limiter::CoreLimiter;
use crate::machine::{self, Machine};
use crate::origin::Version;
use crate::peer::Peer;
use crate::results::Results;
use crate::schedulers::counts;
use crate::servers::{Content, Running, Server, Setting, free_port};
use crate::tools::{Workspace, move_to_core_1, pause, require};
use plan::{Batch, HopPart, HopPoint, HopSelection, QUICK_RATES, RATES};
use record::{HopMeasure, HopRecord};
use site::{Asked, HopServer};

pub(crate) const OPTIONS: [&str; 7] =
    ["--only", "--contents", "--rates", "--rounds", "--seconds", "--share", "--into"];

/// Requests of a session, in section 3.2 of the paper.
const REQUESTS: u64 = 5;
/// A visitor waits as long for a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Sockets of the load generator.
const SOCKETS: usize = 15_000;
/// The time between two samples of memory.
const SAMPLE: Duration = Duration::from_millis(200);
/// The time after a load in which its connections end.
const DRAIN: Duration = Duration::from_secs(1);
/// Sessions per second of a warm-up.
const WARM_UP_RATE: f64 = 100.0;
const SEED: u64 = 1;

/// Measures the points that the folder lacks, and writes tables and figures of all points.
pub(crate) fn run(arguments: &Arguments, is_quick: bool) -> Result<()> {
    for (tool, package) in [("perf", "linux-perf"), ("taskset", "util-linux")] {
        require(tool, package)?;
    }
    let workspace = Workspace::open()?;
    let share = arguments.number("--share", 25)?;
    let selection = selection(arguments, is_quick, share, &workspace.root)?;
    for server in &selection.servers {
        server.prepare(&workspace)?;
    }
    let files = site::write_files(&workspace)?;
    let limit = workspace.compile("limit", &["-pthread"])?;
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
    let trial = Trial { workspace: &workspace, files: &files, limit: &limit, share };
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

fn selection(
    arguments: &Arguments,
    is_quick: bool,
    share: u64,
    root: &Path,
) -> Result<HopSelection> {
    let servers = match arguments.names("--only") {
        Some(names) => names.into_iter().map(str::parse).collect::<Result<_, Error>>()?,
        None => HopServer::all(),
    };
    let asked = match arguments.names("--contents") {
        Some(names) => names.into_iter().map(str::parse).collect::<Result<_, Error>>()?,
        None => Asked::ALL.to_vec(),
    };
    let seconds = arguments.number("--seconds", if is_quick { 2 } else { 5 })?;
    let mut rates = arguments.numbers("--rates", if is_quick { &QUICK_RATES } else { &RATES })?;
    rates.sort_unstable();
    rates.dedup();
    let origin = format!("{}; {}; {share} %; {seconds} s", Version::of(root), Machine::this());
    Ok(HopSelection {
        servers,
        asked,
        rates,
        rounds: arguments.number("--rounds", if is_quick { 1 } else { 3 })?,
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

/// A session of five requests without a pause.
struct Burst {
    path: &'static str,
    left: u64,
}

impl Script for Burst {
    fn next(&mut self) -> Option<Page> {
        self.left = self.left.checked_sub(1)?;
        Some(Page { wait: 0.0, request: Request::get(self.path) })
    }

    fn parts(&mut self, _: &[u8]) -> Parts {
        Parts::default()
    }

    fn reads(&self) -> bool {
        false
    }

    fn length(&self) -> u64 {
        REQUESTS
    }
}

/// What all measurements of a run share.
struct Trial<'run> {
    workspace: &'run Workspace,
    files: &'run Path,
    limit: &'run Path,
    /// The percentage of core 0 that a server gets.
    share: u64,
}

/// A load and what it cost.
struct Window {
    tally: Tally,
    /// Responses of the whole load.
    replies: f64,
    /// In seconds.
    cpu: f64,
    before: u64,
    peak: u64,
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
        window(&running, port, path, WARM_UP_RATE, warm_up)?;
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
        // The bytes that Bine sends, without any work.
        let bine = HopServer::Bine("hybrid");
        let path = bine.path(point.asked);
        let running = bine.start(self.workspace, self.files)?;
        let port = running.first().context("Bine has not started")?.port;
        let canned = self.workspace.work.join("floor.answer");
        fs::write(&canned, Peer::connect(port)?.get(path)?)?;
        running.into_iter().try_for_each(Running::stop)?;
        let (content, port) = (Content::Values, free_port()?);
        let setting = Setting { content, port, loops: 1, canned: Some(&canned) };
        let mut words = Server::Limit.command(self.workspace, &setting)?;
        words[0] = self.limit.display().to_string();
        let log = self.workspace.work.join("floor.log");
        Ok((vec![Running::start(&words, port, path, &log)?], path))
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
    let window = window(running, port, path, point.rate as f64, seconds)?;
    let tally = &window.tally;
    let length = tally.window.end.saturating_sub(tally.window.start).as_secs_f64();
    let mut figures = vec![
        (HopMeasure::Replies, tally.pages.count() as f64 / length),
        (HopMeasure::Sessions, (tally.begun + tally.turned_away) as f64),
        (HopMeasure::Completed, tally.ends[End::Completed as usize] as f64),
        (HopMeasure::P50, tally.page_waits.quantile(0.5)),
        (HopMeasure::P99, tally.page_waits.quantile(0.99)),
        (HopMeasure::Cpu, 1e6 * window.cpu / window.replies.max(1.0)),
        (HopMeasure::Before, window.before as f64),
        (HopMeasure::Peak, window.peak as f64),
    ];
    if let Some(events) = events {
        let [calls, switches] = events.finish()?;
        figures.push((HopMeasure::Calls, calls / window.replies.max(1.0)));
        figures.push((HopMeasure::Switches, switches / window.replies.max(1.0)));
    }
    ensure!(tally.wrong == 0, "a response was no 200: {}", tally.errors.join("; "));
    ensure!(tally.pages.count() > 0, "no response at {} sessions per second", point.rate);
    Ok(HopRecord::new(point.clone(), &figures))
}

/// Loads the server with so many sessions per second, while another thread samples its memory.
fn window(
    running: &[Running],
    port: u16,
    path: &'static str,
    rate: f64,
    seconds: u64,
) -> Result<Window> {
    let length = Duration::from_secs(seconds);
    let load = Run {
        port,
        load: vec![Stretch { length, rate }, Stretch { length: DRAIN, rate: 0.0 }],
        // The first part is the way up.
        window: length / 5..length,
        patience: PATIENCE,
        sockets: SOCKETS,
        seed: SEED,
        is_secure: false,
        bounds: &[],
    };
    let before = memory(running)?;
    let (peak, is_over) = (AtomicU64::new(before), AtomicBool::new(false));
    let begun = cpu(running)?;
    let tally = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // A process may end meanwhile.
                peak.fetch_max(memory(running).unwrap_or(0), Ordering::Relaxed);
                pause(SAMPLE);
            }
        });
        let tally = load.emulate(&mut |_| Box::new(Burst { path, left: REQUESTS }));
        is_over.store(true, Ordering::Relaxed);
        tally
    })?;
    let replies = tally.slots.iter().map(|slot| slot.replies).sum::<u64>() as f64;
    let cpu = cpu(running)? - begun;
    Ok(Window { tally, replies, cpu, before, peak: peak.into_inner() })
}

fn cpu(running: &[Running]) -> Result<f64> {
    running.iter().map(Running::cpu).sum()
}

/// The proportional memory of all processes, in KiB: pages that several share count once.
fn memory(running: &[Running]) -> Result<u64> {
    let mut sum = 0;
    for process in processes(running)? {
        let path = format!("/proc/{process}/smaps_rollup");
        // The process may have ended.
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let word = line.and_then(|line| line.split_whitespace().next());
        sum += word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

fn processes(running: &[Running]) -> Result<Vec<u32>> {
    let all: Vec<Vec<u32>> = running.iter().map(Running::processes).collect::<Result<_>>()?;
    Ok(all.concat())
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
