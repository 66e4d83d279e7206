//! Measures pages and log-ins of a server while its data is backed up, idle and under load.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::figures::Latencies;
use crate::log_ins::{self, Crowd};
use crate::machine;
use crate::peer::Peer;
use crate::random::Random;
use crate::tools::{Workspace, move_to_core_1, output, pause, require};
use crate::windows::{Pairs, paced};

/// The loads in addition to the measuring client: no load, half of the server's capacity, all of
/// the capacity.
const LOADS: [&str; 3] = ["none", "half", "full"];
const PAGE: &str = "/";
const PAGE_INTERVAL: Duration = Duration::from_millis(2);
const LOG_IN_INTERVAL: Duration = Duration::from_millis(20);
/// Connections of the load.
const CONNECTIONS: u32 = 256;
/// The highest accepted ratio of the p99 during backups to the calm one.
const TOLERANCE: f64 = 2.0;
const SETTLE: Duration = Duration::from_millis(300);

/// The setting of the windows of one row.
struct Plan<'p> {
    /// The folder of the backup.
    target: &'p Path,
    /// `bine`.
    program: &'p Path,
    crowd: &'p Crowd,
    rounds: u64,
    time: Duration,
    /// The percentage of the time in which a backup works.
    share: &'p str,
}

/// The latencies by turns, and the work of the backups.
#[derive(Default)]
struct BackupResults {
    pages: Pairs,
    log_ins: Pairs,
    failed: usize,
    backups: u64,
}

/// A window: the latencies of pages and of log-ins, and the failures.
struct Window {
    pages: Latencies,
    log_ins: Latencies,
    failed: usize,
}

/// Measures pairs of windows, without and with backups, under each load.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let users = arguments.number("--users", 300_000)?;
    let rounds = arguments.number("--rounds", 9)?;
    let time = Duration::from_secs(arguments.number("--seconds", 4)?);
    let loads = arguments.names("--loads").unwrap_or_else(|| LOADS.to_vec());
    for load in &loads {
        ensure!(LOADS.contains(load), "unknown load `{load}`; see --help");
    }
    let shares = arguments.names("--shares").unwrap_or_else(|| vec!["10", "100"]);
    for (tool, package) in [("wrk", "wrk"), ("chrt", "util-linux")] {
        require(tool, package)?;
    }
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "log-ins"].map(OsStr::new))?;
    let program = match arguments.word("--program") {
        Some(program) => PathBuf::from(program),
        None => {
            workspace.build_bine(&["-p", "bine-cli"].map(OsStr::new))?;
            workspace.bine("bine")
        }
    };
    log_ins::fill(&workspace, users)?;
    move_to_core_1()?;
    let crowd = Crowd::start(&workspace, users, "commit")?;
    let port = crowd.running.port;
    let url = format!("http://127.0.0.1:{port}{PAGE}");
    let capacity = requests_per_second(&url)?;
    println!("{facts} The server answered {capacity:.0} pages/s on one core.\n");
    println!(
        "| load | share, % | request | p50, ms: calm, with backups | x calm | p90 | x calm | p99 | x calm | backups | failed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    let target = workspace.work.join("backup");
    for load in loads {
        let running = Load::start(&workspace, &url, load, capacity)?;
        for share in &shares {
            let plan =
                Plan { target: &target, program: &program, crowd: &crowd, rounds, time, share };
            let results = measure(&plan)?;
            results.print(load, share);
            if *share == shares[0] {
                worst = worst.max(results.pages.times_calm(99).median);
            }
            ensure!(results.failed == 0, "{} requests failed", results.failed);
        }
        drop(running);
    }
    let share = shares[0];
    let bytes = folder_size(Path::new(&crowd.folder))?;
    crowd.running.stop()?;
    println!(
        "\nMedians of {rounds} pairs of windows of {} s, one calm and one with complete backups of {} MB, each into a new \
         folder, one after the other; a page every {} ms and a log-in every {} ms; x calm is the median (least-most) of \
         the ratios of the pairs.",
        time.as_secs(),
        bytes >> 20,
        PAGE_INTERVAL.as_millis(),
        LOG_IN_INTERVAL.as_millis(),
    );
    ensure!(
        worst <= TOLERANCE,
        "backups with {share} % raised the p99 of a page to {worst:.2} times the calm one"
    );
    Ok(())
}

/// Measures pairs of windows. Their order alternates, so that a host that slows down favors neither.
fn measure(plan: &Plan<'_>) -> Result<BackupResults> {
    let Plan { crowd, rounds, time, .. } = *plan;
    let mut results = BackupResults::default();
    let mut random = Random(9);
    for pair in 0..rounds {
        let mut pages = [Latencies::default(), Latencies::default()];
        let mut log_ins = [Latencies::default(), Latencies::default()];
        for turn in 0..2 {
            let side = ((pair + turn) % 2) as usize;
            let window = if side == 1 {
                let (window, backups) = with_backups(plan, &mut random)?;
                results.backups += backups;
                window
            } else {
                window(crowd, time, &mut random)
            };
            (pages[side], log_ins[side]) = (window.pages, window.log_ins);
            results.failed += window.failed;
            pause(SETTLE);
        }
        results.pages.0.push(pages);
        results.log_ins.0.push(log_ins);
    }
    Ok(results)
}

/// A window during which backups run in sequence. Also returns the number of backups.
fn with_backups(plan: &Plan<'_>, random: &mut Random) -> Result<(Window, u64)> {
    let Plan { target, program, crowd, time, share, .. } = *plan;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let backups = scope.spawn(|| -> Result<u64> {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                // Its own session, as if a timer of the system had started it; on both cores.
                let mut command = Command::new("setsid");
                command.args(["--wait", "taskset", "--cpu-list", "0,1"]);
                command.arg(program).args(["data", "backup", &crowd.folder]);
                output(command.arg(target).args(["--share", share]))?;
                fs::remove_dir_all(target)?;
                count += 1;
            }
            Ok(count)
        });
        let window = window(crowd, time, random);
        stop.store(true, Ordering::Relaxed);
        let count = backups.join().unwrap_or_else(|_| Err(anyhow!("a backup panicked")))?;
        Ok((window, count))
    })
}

/// Requests pages and logs users in.
fn window(crowd: &Crowd, time: Duration, random: &mut Random) -> Window {
    let port = crowd.running.port;
    let pages = || {
        let mut peer = None;
        paced(PAGE_INTERVAL, time, || {
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            asking.get(PAGE)?;
            peer = Some(asking);
            Ok(())
        })
    };
    let log_ins = || {
        let mut peer = None;
        paced(LOG_IN_INTERVAL, time, || {
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            crowd.log_in(&mut asking, random)?;
            peer = Some(asking);
            Ok(())
        })
    };
    let (pages, log_ins) = thread::scope(|scope| {
        let threads = (scope.spawn(pages), scope.spawn(log_ins));
        let ended = |results: thread::Result<_>| results.unwrap_or((Latencies::default(), 1));
        (ended(threads.0.join()), ended(threads.1.join()))
    });
    Window { pages: pages.0, log_ins: log_ins.0, failed: pages.1 + log_ins.1 }
}

impl BackupResults {
    fn print(&self, load: &str, share: &str) {
        for (request, pairs) in [("page", &self.pages), ("log-in, durable", &self.log_ins)] {
            println!(
                "| {load} | {share} | {request} | {} | {} | {} | {} | {} |",
                pairs.columns(50),
                pairs.columns(90),
                pairs.columns(99),
                self.backups,
                self.failed,
            );
        }
    }
}

/// The pages per second that the server answers to 64 connections.
fn requests_per_second(url: &str) -> Result<f64> {
    let text = output(Command::new("wrk").args(["-t1", "-c64", "-d3", url]))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    Ok(line.with_context(|| format!("wrk printed {text}"))?.trim().parse()?)
}

/// A running wrk. Killed when dropped.
struct Load(Option<Child>);

impl Load {
    fn start(workspace: &Workspace, url: &str, load: &str, capacity: f64) -> Result<Self> {
        if load == LOADS[0] {
            return Ok(Self(None));
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "wrk", "-t1", "-d3600"]);
        let connections = if load == LOADS[1] { CONNECTIONS.to_string() } else { "64".to_owned() };
        command.args(["-c", &connections]);
        if load == LOADS[1] {
            // A pause before each request; the time of the request itself is short next to it.
            let pause = f64::from(CONNECTIONS) / (capacity / 2.0) * 1e3;
            let script = workspace.work.join("half.lua");
            fs::write(
                &script,
                format!("function delay() return math.random(0, {:.0}) end\n", pause * 2.0),
            )?;
            command.arg("-s").arg(script);
        }
        let child = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        // All connections are open.
        pause(Duration::from_secs(1));
        Ok(Self(Some(child)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Killing fails only if it has already ended, and then waiting succeeds.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn folder_size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() { folder_size(&entry.path())? } else { data.len() };
    }
    Ok(bytes)
}
