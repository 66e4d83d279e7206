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
use crate::tools::{Workshop, leave_core_0, pause, require};

use attack::{Attack, Tally};

const SMALL: Content = Content::File(1024);
const LARGE: Content = Content::File(128 * 1024);

/// The user asks on the kept connection this often, to have enough samples for a 99th percentile.
const KEPT_INTERVAL: Duration = Duration::from_millis(5);
const FRESH_INTERVAL: Duration = Duration::from_millis(10);

/// A user may wait at most this many times the calm p99.
const TOLERANCE: f64 = 2.0;

/// Between an attack and the next calm: the server closes what the attackers left.
const SETTLE: Duration = Duration::from_millis(300);

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
    println!("{facts}\n");
    println!(
        "| server | beside | kept p99, ms: calm | beside | x calm | fresh p99, ms: calm | beside | \
         x calm | failed | anonymous KiB before, after | acts, connections ended by the server |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut faults = Vec::new();
    for server in servers {
        let running = server.start(&shop, SMALL, free_port()?)?;
        // The first requests fill caches and pools, which is not what a calm user waits for.
        normal_use(running.port, time.min(Duration::from_secs(1)));
        for (name, attack) in attacks() {
            let met = by_turns(&running, &attack, time, pairs).with_context(|| name)?;
            met.print(server, name);
            if met.worst() > TOLERANCE || met.failed > 0 {
                faults.push(format!("{} beside {name}", server.name()));
            }
        }
        running.stop()?;
    }
    println!(
        "\nMedians of {pairs} pairs of windows of {} s, a calm one and one beside the others; x calm is the \
         median (least-most) of the pairs' own ratios.",
        time.as_secs()
    );
    ensure!(faults.is_empty(), "the user felt it: {}", faults.join("; "));
    Ok(())
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

/// The p99 of one kind of use: calm, and beside the others.
#[derive(Default)]
struct Pairs(Vec<[Duration; 2]>);

fn by_turns(server: &Running, attack: &Attack, time: Duration, pairs: u64) -> Result<Met> {
    let before = server.memory()?.anonymous;
    let mut met = Met {
        kept: Pairs::default(),
        fresh: Pairs::default(),
        failed: 0,
        memory: [before; 2],
        tally: Tally::default(),
    };
    for pair in 0..pairs {
        // Which window comes first changes, so that a host that grows slower favors neither.
        let calm_first = (pair % 2 == 0).then(|| normal_use(server.port, time));
        let (attacked, done) = beside(server, attack, time)?;
        met.memory[1] = server.memory()?.anonymous;
        pause(SETTLE);
        let calm = calm_first.unwrap_or_else(|| normal_use(server.port, time));
        met.kept.0.push([&calm, &attacked].map(|found| found.kept.percentile(99)));
        met.fresh.0.push([&calm, &attacked].map(|found| found.fresh.percentile(99)));
        met.failed += calm.failed + attacked.failed;
        met.tally.acts += done.acts;
        met.tally.ended += done.ended;
    }
    Ok(met)
}

impl Met {
    fn worst(&self) -> f64 {
        [&self.kept, &self.fresh]
            .map(|pairs| pairs.times_calm().median)
            .into_iter()
            .fold(0.0, f64::max)
    }

    fn print(&self, server: Server, beside: &str) {
        println!(
            "| {} | {beside} | {} | {} | {} | {}, {} | {}, {} |",
            server.name(),
            self.kept.columns(),
            self.fresh.columns(),
            self.failed,
            self.memory[0],
            self.memory[1],
            self.tally.acts,
            self.tally.ended,
        );
    }
}

impl Pairs {
    fn columns(&self) -> String {
        let middle =
            |side: usize| spread(self.0.iter().map(|pair| pair[side].as_secs_f64() * 1e3)).median;
        format!("{:.2} | {:.2} | {}", middle(0), middle(1), self.times_calm())
    }

    fn times_calm(&self) -> Spread {
        spread(self.0.iter().map(|[calm, beside]| beside.as_secs_f64() / calm.as_secs_f64()))
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

/// Lets the attack begin, measures the user, ends the attack. Also tells what the attack did.
fn beside(server: &Running, attack: &Attack, time: Duration) -> Result<(Use, Tally)> {
    let stop = AtomicBool::new(false);
    let (begun, is_begun) = mpsc::channel();
    thread::scope(|scope| {
        // The thread owns the sender, so that it is dropped if the attack fails to begin.
        let stopped = &stop;
        let attacker = scope.spawn(move || attack.run(server.port, stopped, &begun));
        let measured = is_begun.recv().map(|()| normal_use(server.port, time));
        stop.store(true, Ordering::Relaxed);
        let tally = attacker.join().map_err(|_| anyhow!("the attack panicked"))??;
        Ok((measured?, tally))
    })
}

/// Asks on a kept connection and, beside it, on a fresh one each time.
fn normal_use(port: u16, time: Duration) -> Use {
    let path = SMALL.path();
    let (fresh, kept) = thread::scope(|scope| {
        let fresh = scope
            .spawn(|| paced(FRESH_INTERVAL, time, || Peer::connect(port)?.get(&path).map(drop)));
        let mut peer = None;
        let kept = paced(KEPT_INTERVAL, time, || {
            // After a failure the next request has a new connection.
            let mut asking = peer.take().map_or_else(|| Peer::connect(port), Ok)?;
            asking.get(&path)?;
            peer = Some(asking);
            Ok(())
        });
        (fresh.join().unwrap_or((Latencies::default(), 1)), kept)
    });
    Use { kept: kept.0, fresh: fresh.0, failed: kept.1 + fresh.1 }
}

/// Acts once in every interval; returns the times and how many acts failed.
fn paced(
    interval: Duration,
    time: Duration,
    mut act: impl FnMut() -> Result<()>,
) -> (Latencies, usize) {
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
