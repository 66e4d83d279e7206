//! Measures the latency of a normal client while other clients misbehave.

mod attack;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::figures::Latencies;
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, pause, require, take_priority};
use crate::windows::{Pairs, paced};

use attack::{Attack, Tally};

const SMALL: Content = Content::File(1024);
const LARGE: Content = Content::File(128 * 1024);

/// The interval on the kept connection, short enough for a 99th percentile.
const KEPT_INTERVAL: Duration = Duration::from_millis(5);
const FRESH_INTERVAL: Duration = Duration::from_millis(10);

/// The highest accepted ratio of attacked to calm p99.
const TOLERANCE: f64 = 2.0;

/// Closing the attackers' connections costs the server time, which must not count for the calm
/// window.
const SETTLE: Duration = Duration::from_millis(200);
/// A server that has not closed the attackers' connections after this time leaks them.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

/// Measures the client alone and during each kind of misbehavior, in turns: influences of the host
/// on both windows of a pair cancel out in their ratio.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let time = Duration::from_secs(arguments.number("--seconds", 4)?);
    let pairs = arguments.number("--rounds", 9)?;
    require("chrt", "util-linux")?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.make_file(1024)?;
    workspace.make_file(128 * 1024)?;
    for server in &servers {
        server.build(&workspace, SMALL)?;
    }
    move_to_core_1()?;
    // Tested on a separate thread, because servers inherit the policy of the thread that starts
    // them.
    let first = thread::spawn(|| take_priority().is_ok()).join().unwrap_or(false);
    let policy = if first { "under SCHED_FIFO" } else { "not under SCHED_FIFO, which needs root" };
    println!("{facts} The client ran {policy}.\n");
    println!(
        "| server | misbehavior | kept p50, ms: calm, attacked | x calm | p99 | x calm | fresh p50, ms: calm, \
         attacked | x calm | p99 | x calm | failed | anonymous KiB before, after | actions, connections closed \
         by the server |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut faults = Vec::new();
    for server in servers {
        let running = server.start(&workspace, SMALL, free_port()?)?;
        // The first requests fill caches and pools; they are not part of the calm window.
        normal_use(running.port, time.min(Duration::from_secs(1)));
        pause(SETTLE);
        let trial = Trial { server: &running, at_rest: running.sockets()?, time, pairs };
        for (name, attack) in attacks() {
            let result = trial.measure_pairs(&attack).with_context(|| name)?;
            result.print(server, name);
            // Other servers are measured for comparison; only Bine's results are failures.
            if server == Server::Bine && (result.worst() > TOLERANCE || result.failed > 0) {
                faults.push(name);
            }
        }
        running.stop()?;
    }
    println!(
        "\nMedians of {pairs} pairs of windows of {} s, one calm and one attacked; x calm is the \
         median (least-most) of the ratios of the pairs.",
        time.as_secs()
    );
    ensure!(faults.is_empty(), "misbehavior slowed normal clients of Bine: {}", faults.join("; "));
    Ok(())
}

/// The parameters of a trial.
struct Trial<'run> {
    server: &'run Running,
    /// The number of the server's sockets without clients.
    at_rest: usize,
    /// The length of a window.
    time: Duration,
    pairs: u64,
}

/// The results of all pairs of windows for one kind of misbehavior.
struct PairResults {
    kept: Pairs,
    fresh: Pairs,
    failed: usize,
    /// Anonymous memory in KiB before the first attack and after the last.
    memory: [u64; 2],
    tally: Tally,
}

impl Trial<'_> {
    fn measure_pairs(&self, attack: &Attack) -> Result<PairResults> {
        let before = self.server.memory()?.anonymous;
        let mut results = PairResults {
            kept: Pairs::default(),
            fresh: Pairs::default(),
            failed: 0,
            memory: [before; 2],
            tally: Tally::default(),
        };
        for pair in 0..self.pairs {
            // The order of the windows alternates, so that a host that slows down favors neither.
            let calm_first = (pair % 2 == 0).then(|| normal_use(self.server.port, self.time));
            let (attacked, done) = self.attacked(attack)?;
            results.memory[1] = self.server.memory()?.anonymous;
            self.settle()?;
            let calm = calm_first.unwrap_or_else(|| normal_use(self.server.port, self.time));
            results.failed += calm.failed + attacked.failed;
            results.kept.0.push([calm.kept, attacked.kept]);
            results.fresh.0.push([calm.fresh, attacked.fresh]);
            results.tally.acts += done.acts;
            results.tally.ended += done.ended;
        }
        Ok(results)
    }

    /// Measures the client during the attack. Also returns the counts of the attack.
    fn attacked(&self, attack: &Attack) -> Result<(Use, Tally)> {
        let port = self.server.port;
        let stop = AtomicBool::new(false);
        let (begun, is_begun) = mpsc::channel();
        thread::scope(|scope| {
            // The thread owns the sender, which is dropped if the attack fails to begin.
            let stopped = &stop;
            let attacker = scope.spawn(move || attack.run(port, stopped, &begun));
            let measured = is_begun.recv().map(|()| normal_use(port, self.time));
            stop.store(true, Ordering::Relaxed);
            let tally = attacker.join().map_err(|_| anyhow!("the attack panicked"))??;
            Ok((measured?, tally))
        })
    }

    /// Waits until the server has closed the attackers' connections, and a little longer.
    fn settle(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let left = self.server.sockets()?.saturating_sub(self.at_rest);
            if left == 0 {
                break;
            }
            ensure!(
                begun.elapsed() < SETTLE_LIMIT,
                "{left} connections still open {SETTLE_LIMIT:?} after the attackers left"
            );
            pause(Duration::from_millis(20));
        }
        pause(SETTLE);
        Ok(())
    }
}

impl PairResults {
    fn worst(&self) -> f64 {
        [&self.kept, &self.fresh]
            .map(|pairs| pairs.times_calm(99).median)
            .into_iter()
            .fold(0.0, f64::max)
    }

    fn print(&self, server: Server, misbehavior: &str) {
        println!(
            "| {} | {misbehavior} | {} | {} | {} | {} | {} | {}, {} | {}, {} |",
            server.name(),
            self.kept.columns(50),
            self.kept.columns(99),
            self.fresh.columns(50),
            self.fresh.columns(99),
            self.failed,
            self.memory[0],
            self.memory[1],
            self.tally.acts,
            self.tally.ended,
        );
    }
}

fn attacks() -> [(&'static str, Attack); 3] {
    [
        ("1000 that send a byte of head each 5 s", attack::drip(&SMALL.path())),
        ("1000 that request 128 KiB and never read", attack::hoard(&LARGE.path())),
        ("a flood of malformed requests", Attack::Flood),
    ]
}

/// The latencies of normal clients.
struct Use {
    kept: Latencies,
    fresh: Latencies,
    failed: usize,
}

/// Sends requests on a kept connection and, in parallel, on a fresh connection each time.
fn normal_use(port: u16, time: Duration) -> Use {
    let path = SMALL.path();
    let kept_use = || {
        let mut peer = None;
        paced(KEPT_INTERVAL, time, || {
            // After a failure the next request opens a new connection.
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            asking.get(&path)?;
            peer = Some(asking);
            Ok(())
        })
    };
    let fresh_use = || paced(FRESH_INTERVAL, time, || Peer::connect(port)?.get(&path).map(drop));
    let (kept, fresh) = thread::scope(|scope| {
        let threads = (scope.spawn(kept_use), scope.spawn(fresh_use));
        let ended = |results: thread::Result<_>| results.unwrap_or((Latencies::default(), 1));
        (ended(threads.0.join()), ended(threads.1.join()))
    });
    Use { kept: kept.0, fresh: fresh.0, failed: kept.1 + fresh.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::testing::pairs;

    #[test]
    fn reports_the_worse_kind_of_use() {
        let results = PairResults {
            kept: pairs(&[[1, 1], [1, 2], [1, 9]]),
            fresh: pairs(&[[1, 1], [1, 3], [1, 4]]),
            failed: 0,
            memory: [0; 2],
            tally: Tally::default(),
        };
        assert!((results.worst() - 3.0).abs() < 1e-9);
    }
}
