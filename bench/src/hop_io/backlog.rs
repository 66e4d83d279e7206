//! Connections that wait in the kernel: how many attempts to connect a full backlog drops, and how
//! long clients wait for a response then.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Bench, SHORT_PAGE, shown};
use crate::bursts::Bursts;
use crate::samples::figures;
use crate::servers::Running;

/// Hop's is 128; Bine's default is 1024.
const BACKLOGS: [u64; 4] = [16, 128, 1024, 4096];
/// Clients per second, each on a new connection; about half of what the server can do. They arrive
/// at random.
const RATE: f64 = 15_000.0;
/// Longer than three attempts to connect, which are one and two seconds apart.
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Milliseconds until the end of the response, with all attempts to connect.
    p50: f64,
    p99: f64,
    p999: f64,
    /// Attempts that the kernel dropped because the backlog was full, in percent of the clients.
    dropped: f64,
}

figures!(Sample { p50: "p50_ms", p99: "p99_ms", p999: "p999_ms", dropped: "dropped_percent" });

/// Measures each backlog by turns, and prints the table.
pub(super) fn measure(bench: &Bench<'_>) -> Result<()> {
    let mut samples = bench.samples("hop-io-backlog", "backlog", BACKLOGS.len())?;
    let mut all: Vec<Vec<Sample>> = BACKLOGS.iter().map(|_| Vec::new()).collect();
    for round in 1..=bench.rounds {
        for (backlog, own) in BACKLOGS.iter().zip(&mut all) {
            let case = backlog.to_string();
            own.push(samples.take(&[&case], round, || sample(bench, *backlog))?);
        }
    }
    let mut lines = vec![
        format!(
            "{RATE} clients a second that arrive at random, each with a request on a connection of its own. An attempt to \
             connect that the kernel *drops* is repeated after a second.\n"
        ),
        "| backlog | dropped attempts, % | p50, ms | p99, ms | p99.9, ms |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (backlog, samples) in BACKLOGS.iter().zip(&all) {
        let of = |figure| shown(samples, figure);
        lines.push(format!(
            "| {backlog} | {} | {} | {} | {} |",
            of(|sample| sample.dropped),
            of(|sample| sample.p50),
            of(|sample| sample.p99),
            of(|sample| sample.p999)
        ));
    }
    println!("{}\n", lines.join("\n"));
    samples.finish()
}

fn sample(bench: &Bench<'_>, backlog: u64) -> Result<Sample> {
    let running = [bench.start(&format!(",backlog={backlog}"), &["--admission", "off"])?];
    let load = Bursts {
        running: &running,
        port: running[0].port,
        path: SHORT_PAGE,
        requests: 1,
        patience: PATIENCE,
        rate: RATE,
        seconds: bench.seconds,
        drain: PATIENCE,
    };
    let before = dropped()?;
    let costs = load.measure()?;
    let dropped = (dropped()? - before) as f64;
    running.into_iter().try_for_each(Running::stop)?;
    let clients = RATE * bench.seconds as f64;
    let at = |part: f64| costs.tally.pages.quantile(part) / 1e3;
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(at);
    Ok(Sample { p50, p99, p999, dropped: 100.0 * dropped / clients })
}

/// The attempts to connect that listeners of this namespace have dropped so far.
fn dropped() -> Result<u64> {
    counter(&fs::read_to_string("/proc/self/net/netstat")?, "TcpExt:", "ListenDrops")
}

/// A counter of the kernel's table, which has a line of names before each line of numbers.
fn counter(table: &str, group: &str, name: &str) -> Result<u64> {
    let mut lines = table.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next(), lines.next());
    let mut pairs = names
        .unwrap_or_default()
        .split_whitespace()
        .zip(numbers.unwrap_or_default().split_whitespace());
    let number = pairs.find_map(|(known, number)| (known == name).then_some(number));
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no counter {name}"))
}

#[cfg(test)]
mod tests {
    //! The table of the kernel.

    use super::*;

    #[test]
    fn reads_a_counter_of_the_kernel() {
        let table = "TcpExt: A ListenDrops B\nTcpExt: 1 22 3\nIpExt: ListenDrops\nIpExt: 4\n";
        assert_eq!(counter(table, "TcpExt:", "ListenDrops").unwrap(), 22);
        assert!(counter(table, "TcpExt:", "C").is_err());
        assert!(counter("", "TcpExt:", "A").is_err());
    }
}
