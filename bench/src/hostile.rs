//! Decides what a normal user feels while others misbehave.

mod attack;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::figures::{Latencies, Spread};
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workshop, come_first, leave_core_0, pause, require};

use attack::{Attack, Tally};

const SMALL: Content = Content::File(1024);
const LARGE: Content = Content::File(128 * 1024);

/// The user asks on the kept connection this often, to have enough samples for a 99th percentile.
const KEPT_INTERVAL: Duration = Duration::from_millis(5);
const FRESH_INTERVAL: Duration = Duration::from_millis(10);

/// A user may wait at most this many times the calm p99.
const TOLERANCE: f64 = 2.0;

/// The closing of the attackers' connections costs the server time, which is not the calm user's.
const SETTLE: Duration = Duration::from_millis(200);
/// A server that still holds some of them by then keeps them.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

/// Measures the user alone and beside each kind of misbehavior, by turns: what the host does to both
/// windows of a pair cancels out of their ratio.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let time = Duration::from_secs(arguments.number("--seconds", 4)?);
    let pairs = arguments.number("--rounds", 9)?;
    require("chrt", "util-linux")?;
    let facts = machine::facts();
    let shop = Workshop::open()?;
    shop.make_file(1024)?;
    shop.make_file(128 * 1024)?;
    for server in &servers {
        server.build(&shop, SMALL)?;
    }
    leave_core_0()?;
    // Tried on a thread of its own: servers inherit the policy of the thread that starts them.
    let first = thread::spawn(|| come_first().is_ok()).join().unwrap_or(false);
    let policy = if first { "under SCHED_FIFO" } else { "not under SCHED_FIFO, which was refused" };
    println!("{facts} The user ran {policy}.\n");
    println!(
        "| server | beside | kept p50, ms: calm, beside | x calm | p99 | x calm | fresh p50, ms: calm, \
         beside | x calm | p99 | x calm | failed | anonymous KiB before, after | acts, connections ended \
         by the server |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut faults = Vec::new();
    for server in servers {
        let running = server.start(&shop, SMALL, free_port()?)?;
        // The first requests fill caches and pools, which is not what a calm user waits for.
        normal_use(running.port, time.min(Duration::from_secs(1)));
        pause(SETTLE);
        let trial = Trial { server: &running, at_rest: running.sockets()?, time, pairs };
        for (name, attack) in attacks() {
            let met = trial.by_turns(&attack).with_context(|| name)?;
            met.print(server, name);
            // A peer is there to be read beside Bine; what it does is no fault of ours.
            if server == Server::Bine && (met.worst() > TOLERANCE || met.failed > 0) {
                faults.push(name);
            }
        }
        running.stop()?;
    }
    println!(
        "\nMedians of {pairs} pairs of windows of {} s, a calm one and one beside the others; x calm is the \
         median (least-most) of the pairs' own ratios.",
        time.as_secs()
    );
    ensure!(faults.is_empty(), "Bine's user felt: {}", faults.join("; "));
    Ok(())
}

/// A server, and how long it is watched.
struct Trial<'run> {
    server: &'run Running,
    /// Its sockets when nobody is connected.
    at_rest: usize,
    /// The length of a window.
    time: Duration,
    pairs: u64,
}

/// What came of all pairs of windows beside one kind of misbehavior.
struct Met {
    kept: Pairs,
    fresh: Pairs,
    failed: usize,
    /// Anonymous memory in KiB before the first attack and after the last.
    memory: [u64; 2],
    tally: Tally,
}

/// One kind of use: calm, and beside the others.
#[derive(Default)]
struct Pairs(Vec<[Latencies; 2]>);

impl Trial<'_> {
    fn by_turns(&self, attack: &Attack) -> Result<Met> {
        let before = self.server.memory()?.anonymous;
        let mut met = Met {
            kept: Pairs::default(),
            fresh: Pairs::default(),
            failed: 0,
            memory: [before; 2],
            tally: Tally::default(),
        };
        for pair in 0..self.pairs {
            // Which window comes first changes, so that a host that grows slower favors neither.
            let calm_first = (pair % 2 == 0).then(|| normal_use(self.server.port, self.time));
            let (attacked, done) = self.beside(attack)?;
            met.memory[1] = self.server.memory()?.anonymous;
            self.settle()?;
            let calm = calm_first.unwrap_or_else(|| normal_use(self.server.port, self.time));
            met.failed += calm.failed + attacked.failed;
            met.kept.0.push([calm.kept, attacked.kept]);
            met.fresh.0.push([calm.fresh, attacked.fresh]);
            met.tally.acts += done.acts;
            met.tally.ended += done.ended;
        }
        Ok(met)
    }

    /// Lets the attack begin, measures the user, ends the attack. Also tells what the attack did.
    fn beside(&self, attack: &Attack) -> Result<(Use, Tally)> {
        let port = self.server.port;
        let stop = AtomicBool::new(false);
        let (begun, is_begun) = mpsc::channel();
        thread::scope(|scope| {
            // The thread owns the sender, so that it is dropped if the attack fails to begin.
            let stopped = &stop;
            let attacker = scope.spawn(move || attack.run(port, stopped, &begun));
            let measured = is_begun.recv().map(|()| normal_use(port, self.time));
            stop.store(true, Ordering::Relaxed);
            let tally = attacker.join().map_err(|_| anyhow!("the attack panicked"))??;
            Ok((measured?, tally))
        })
    }

    /// Waits until the server has closed what the attackers left, and then some.
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

impl Met {
    fn worst(&self) -> f64 {
        [&self.kept, &self.fresh]
            .map(|pairs| pairs.times_calm(99).median)
            .into_iter()
            .fold(0.0, f64::max)
    }

    fn print(&self, server: Server, beside: &str) {
        println!(
            "| {} | {beside} | {} | {} | {} | {} | {} | {}, {} | {}, {} |",
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

impl Pairs {
    fn columns(&self, percent: usize) -> String {
        let middle = |side: usize| {
            spread(self.percentiles(percent).map(|pair| pair[side].as_secs_f64() * 1e3)).median
        };
        format!("{:.2}, {:.2} | {}", middle(0), middle(1), self.times_calm(percent))
    }

    fn times_calm(&self, percent: usize) -> Spread {
        let pairs = self.percentiles(percent);
        spread(pairs.map(|[calm, beside]| beside.as_secs_f64() / calm.as_secs_f64()))
    }

    fn percentiles(&self, percent: usize) -> impl Iterator<Item = [Duration; 2]> {
        self.0.iter().map(move |pair| pair.each_ref().map(|window| window.percentile(percent)))
    }
}

/// Of no pairs at all, nothing was harmed and nothing shown: not a number.
fn spread(samples: impl Iterator<Item = f64>) -> Spread {
    Spread::of(samples).unwrap_or(Spread { median: f64::NAN, least: f64::NAN, most: f64::NAN })
}

fn attacks() -> [(&'static str, Attack); 3] {
    [
        ("1000 that send a byte of head each 5 s", attack::drip(&SMALL.path())),
        ("1000 that ask for 128 KiB and never read", attack::hoard(&LARGE.path())),
        ("a flood of malformed requests", Attack::Flood),
    ]
}

/// What the user met.
struct Use {
    kept: Latencies,
    fresh: Latencies,
    failed: usize,
}

/// Asks on a kept connection and, beside it, on a fresh one each time.
fn normal_use(port: u16, time: Duration) -> Use {
    let path = SMALL.path();
    let kept_use = || {
        let mut peer = None;
        paced(KEPT_INTERVAL, time, || {
            // After a failure the next request has a new connection.
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            asking.get(&path)?;
            peer = Some(asking);
            Ok(())
        })
    };
    let fresh_use = || paced(FRESH_INTERVAL, time, || Peer::connect(port)?.get(&path).map(drop));
    let (kept, fresh) = thread::scope(|scope| {
        let threads = (scope.spawn(kept_use), scope.spawn(fresh_use));
        let ended = |met: thread::Result<_>| met.unwrap_or((Latencies::default(), 1));
        (ended(threads.0.join()), ended(threads.1.join()))
    });
    Use { kept: kept.0, fresh: fresh.0, failed: kept.1 + fresh.1 }
}

/// Acts once in every interval, on a thread of its own; returns the times and how many acts failed.
fn paced(
    interval: Duration,
    time: Duration,
    mut act: impl FnMut() -> Result<()>,
) -> (Latencies, usize) {
    // `run` has told whether this is granted. Without it the user still comes before the attackers.
    let _ = come_first();
    let mut times = Vec::new();
    let mut failed = 0;
    let end = Instant::now() + time;
    let mut due = Instant::now();
    while due < end {
        pause(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        failed += usize::from(act().is_err());
        times.push(begun.elapsed());
        // What was missed meanwhile is not made up for in a burst: `Latencies` accounts for it.
        due = (due + interval).max(Instant::now());
    }
    (Latencies::of(times, interval), failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(milliseconds: u64) -> Latencies {
        Latencies::of(vec![Duration::from_millis(milliseconds)], Duration::from_secs(1))
    }

    fn pairs(windows: &[[u64; 2]]) -> Pairs {
        Pairs(windows.iter().map(|pair| pair.map(window)).collect())
    }

    /// The host was ten times slower in the second pair, which says nothing about the attack.
    #[test]
    fn a_slow_minute_of_the_host_does_not_move_the_ratio() {
        let pairs = pairs(&[[2, 3], [20, 30], [2, 3]]);
        assert_eq!(pairs.columns(99), "2.00, 3.00 | 1.50 (1.50-1.50)");
    }

    #[test]
    fn the_worse_kind_of_use_decides() {
        let met = Met {
            kept: pairs(&[[1, 1], [1, 2], [1, 9]]),
            fresh: pairs(&[[1, 1], [1, 3], [1, 4]]),
            failed: 0,
            memory: [0; 2],
            tally: Tally::default(),
        };
        assert!((met.worst() - 3.0).abs() < 1e-9);
    }
}
