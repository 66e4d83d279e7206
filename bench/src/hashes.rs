//! Measures the latency of pages while other clients log in, whose passwords the server hashes.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::{Latencies, milliseconds};
use crate::machine;
use crate::peer::{Peer, address};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, move_to_core_1, pause, require, take_priority, yield_priority};
use crate::windows::{Pairs, paced};

/// The path of the measured page.
const PAGE: &str = "/";
const SIGN_UP: &str = "/accounts/sign-up";
const LOG_IN: &str = "/accounts/log-in";
/// The kinds of hashes. Hashes that take microseconds show the share of the log-in requests.
const KINDS: [&str; 2] = ["owasp", "cheap"];
/// The highest accepted ratio of the p99 with hashes to the calm one.
const TOLERANCE: f64 = 2.0;
/// The last log-ins of a window end before the next window begins.
const SETTLE: Duration = Duration::from_millis(500);

/// The setting of all windows.
struct Plan {
    rounds: u64,
    time: Duration,
    interval: Duration,
    loops: u64,
    cores: &'static str,
}

/// The latencies of the page by turns, and the log-ins meanwhile.
#[derive(Default)]
struct HashResults {
    pairs: Pairs,
    failed: usize,
    log_ins: u64,
    /// Seconds in which clients logged in.
    seconds: f64,
}

/// Measures the page without and with clients that log in, by turns.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let clients = arguments.numbers("--clients", &[1, 2, 8])?;
    let most = clients.iter().copied().max().unwrap_or_default();
    let kinds = arguments.names("--kinds").unwrap_or_else(|| KINDS.to_vec());
    for kind in &kinds {
        ensure!(KINDS.contains(kind), "unknown kind `{kind}`; see --help");
    }
    let both = arguments.number("--cores", 1)? > 1;
    let plan = Plan {
        rounds: arguments.number("--rounds", 9)?,
        time: Duration::from_secs(arguments.number("--seconds", 4)?),
        interval: Duration::from_millis(arguments.number("--interval", 2)?),
        loops: if both { 2 } else { 1 },
        cores: if both { "0,1" } else { "0" },
    };
    require("chrt", "util-linux")?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "log-ins"].map(OsStr::new))?;
    move_to_core_1()?;
    let first = thread::spawn(|| take_priority().is_ok()).join().unwrap_or(false);
    let policy = if first { "under SCHED_FIFO" } else { "not under SCHED_FIFO, which needs root" };
    println!(
        "{facts} The server had core {}, the clients core 1; the measuring client ran {policy}, those that log in \
         under SCHED_IDLE.\n",
        plan.cores
    );
    println!(
        "| hash | clients | p50, ms: calm, with log-ins | x calm | p90 | x calm | p99 | x calm | all windows together, \
         p99: calm, with | log-ins/s | failed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    for kind in kinds {
        let running = start(&workspace, kind, most, &plan)?;
        // The first requests fill caches and pools.
        page_use(running.port, &plan, plan.time.min(Duration::from_secs(1)));
        for &count in &clients {
            let results = measure(running.port, count, &plan)?;
            results.print(kind, count);
            let ratio = results.pairs.times_calm(99).median;
            worst = if kind == KINDS[0] { worst.max(ratio) } else { worst };
            ensure!(results.failed == 0, "{} requests failed", results.failed);
        }
        running.stop()?;
    }
    println!(
        "\nMedians of {} pairs of windows of {} s, one calm and one with clients that log in without a pause; a page \
         every {} ms; x calm is the median (least-most) of the ratios of the pairs.",
        plan.rounds,
        plan.time.as_secs(),
        plan.interval.as_millis()
    );
    ensure!(worst <= TOLERANCE, "hashes raised the p99 of a page to {worst:.2} times the calm one");
    Ok(())
}

/// The account of a client. Concurrent log-ins for one account would be throttled.
fn account(client: u64) -> String {
    format!(r#"{{"name":"user {client}","password":"correct horse battery"}}"#)
}

/// Starts the server and creates the accounts.
fn start(workspace: &Workspace, kind: &str, clients: u64, plan: &Plan) -> Result<Running> {
    let port = free_port()?;
    let (listen, loops) = (address(port).to_string(), plan.loops.to_string());
    let program = workspace.bine("examples").join("log-ins").display().to_string();
    let hashes = format!("BENCH_HASHES={kind}");
    // `Running::start` limits it to core 0.
    let words = ["taskset", "--cpu-list", plan.cores, "env", &hashes, &program];
    let options =
        ["--listen", &listen, "--loops", &loops, "--access-log", "off", "--data", "memory"];
    let command: Vec<String> = words.into_iter().chain(options).map(str::to_owned).collect();
    let log = workspace.work.join(format!("log-ins-{kind}.log"));
    let running = Running::start(&command, port, PAGE, &log).context("no start")?;
    for client in 0..clients {
        Peer::connect(port)?.post(SIGN_UP, &account(client)).context("cannot sign up")?;
    }
    Ok(running)
}

/// Measures pairs of windows. Their order alternates, so that a host that slows down favors neither.
fn measure(port: u16, clients: u64, plan: &Plan) -> Result<HashResults> {
    let mut results = HashResults::default();
    for pair in 0..plan.rounds {
        let mut windows = [Latencies::default(), Latencies::default()];
        for turn in 0..2 {
            let has_log_ins = (pair + turn) % 2;
            let window = if has_log_ins == 1 {
                results.seconds += plan.time.as_secs_f64();
                let (window, log_ins) = with_log_ins(port, clients, plan)?;
                results.log_ins += log_ins;
                window
            } else {
                page_use(port, plan, plan.time)
            };
            windows[has_log_ins as usize] = window.0;
            results.failed += window.1;
        }
        results.pairs.0.push(windows);
    }
    Ok(results)
}

/// Requests pages while clients log in. Returns the latencies, the failures and the number of log-ins.
fn with_log_ins(port: u16, clients: u64, plan: &Plan) -> Result<((Latencies, usize), u64)> {
    let (stop, log_ins) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let found = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || log_in(port, client, stop, log_ins)))
            .collect();
        // The first hash has begun.
        pause(SETTLE);
        let before = log_ins.load(Ordering::Relaxed);
        let window = page_use(port, plan, plan.time);
        let count = log_ins.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")));
            ended.context("a log-in failed")?;
        }
        Ok((window, count))
    });
    pause(SETTLE);
    found
}

/// Logs in again and again, each time on a new connection.
fn log_in(port: u16, client: u64, stop: &AtomicBool, log_ins: &AtomicU64) -> Result<()> {
    yield_priority()?;
    let account = account(client);
    while !stop.load(Ordering::Relaxed) {
        Peer::connect(port)?.post(LOG_IN, &account)?;
        log_ins.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Requests the page on a kept connection.
fn page_use(port: u16, plan: &Plan, time: Duration) -> (Latencies, usize) {
    let page_requests = || {
        let mut peer = None;
        paced(plan.interval, time, || {
            // After a failure the next request opens a new connection.
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            asking.get(PAGE)?;
            peer = Some(asking);
            Ok(())
        })
    };
    // A separate thread, because later servers must not inherit its priority.
    thread::scope(|scope| scope.spawn(page_requests).join()).unwrap_or((Latencies::default(), 1))
}

impl HashResults {
    fn print(&self, kind: &str, clients: u64) {
        let [calm, with] = self.pairs.together().map(|all| milliseconds(all.percentile(99)));
        println!(
            "| {kind} | {clients} | {} | {} | {} | {calm}, {with} | {:.1} | {} |",
            self.pairs.columns(50),
            self.pairs.columns(90),
            self.pairs.columns(99),
            self.log_ins as f64 / self.seconds,
            self.failed,
        );
    }
}
