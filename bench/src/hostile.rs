//! Decides what a normal user feels while others misbehave.

mod attack;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::figures::{Latencies, milliseconds};
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workshop, leave_core_0, pause, require};

use attack::Attack;

const SMALL: Content = Content::File(1024);
const LARGE: Content = Content::File(128 * 1024);

/// The user asks on the kept connection this often, to have enough samples for a 99th percentile.
const KEPT_INTERVAL: Duration = Duration::from_millis(5);
const FRESH_INTERVAL: Duration = Duration::from_millis(50);

/// A user may wait at most this many times the calm p99.
const TOLERANCE: f64 = 2.0;

/// Measures the user alone, then beside each kind of misbehavior in turn.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let time = Duration::from_secs(arguments.number("--seconds", 15)?);
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
        "| server | beside | kept p50, ms | p99 | x calm | fresh p50, ms | p99 | x calm | failed | \
         anonymous KiB before, after | acts, connections ended by the server |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut faults = Vec::new();
    for server in servers {
        let running = server.start(&shop, SMALL, free_port()?)?;
        // The first requests fill caches and pools, which is not what a calm user waits for.
        normal_use(running.port, time.min(Duration::from_secs(1)));
        let calm = normal_use(running.port, time);
        print_row(server, "nobody", &calm, &calm, "-", "-");
        for (name, attack) in attacks() {
            let before = running.memory()?.anonymous;
            let (met, done) = beside(&running, &attack, time).with_context(|| name)?;
            let after = running.memory()?.anonymous;
            print_row(server, name, &met, &calm, &format!("{before}, {after}"), &done);
            let worst = times_calm(&met.kept, &calm.kept).max(times_calm(&met.fresh, &calm.fresh));
            if worst > TOLERANCE || met.failed > 0 {
                faults.push(format!("{} beside {name}", server.name()));
            }
        }
        running.stop()?;
    }
    ensure!(faults.is_empty(), "the user felt it: {}", faults.join("; "));
    Ok(())
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
fn beside(server: &Running, attack: &Attack, time: Duration) -> Result<(Use, String)> {
    let stop = AtomicBool::new(false);
    let (begun, is_begun) = mpsc::channel();
    thread::scope(|scope| {
        // The thread owns the sender, so that it is dropped if the attack fails to begin.
        let stopped = &stop;
        let attacker = scope.spawn(move || attack.run(server.port, stopped, &begun));
        let measured = is_begun.recv().map(|()| normal_use(server.port, time));
        stop.store(true, Ordering::Relaxed);
        let tally = attacker.join().map_err(|_| anyhow!("the attack panicked"))??;
        Ok((measured?, format!("{}, {}", tally.acts, tally.ended)))
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

fn print_row(server: Server, beside: &str, met: &Use, calm: &Use, memory: &str, done: &str) {
    let columns = |now: &Latencies, calm: &Latencies| {
        let [median, high] = [50, 99].map(|percent| milliseconds(now.percentile(percent)));
        format!("{median} | {high} | {:.2}", times_calm(now, calm))
    };
    println!(
        "| {} | {beside} | {} | {} | {} | {memory} | {done} |",
        server.name(),
        columns(&met.kept, &calm.kept),
        columns(&met.fresh, &calm.fresh),
        met.failed,
    );
}

fn times_calm(now: &Latencies, calm: &Latencies) -> f64 {
    now.percentile(99).as_secs_f64() / calm.percentile(99).as_secs_f64()
}
