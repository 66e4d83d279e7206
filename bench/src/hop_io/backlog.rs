//! Connections that wait in the kernel: how many clients connect at once without a repeated attempt.

use std::fs;

use anyhow::{Context, Result};

use super::{Bench, SHORT_PAGE};
use crate::ab::Load;
use crate::figures::Spread;

/// Hop's is 128; Bine's default is 1024.
const BACKLOGS: [u64; 4] = [16, 128, 1024, 4096];
/// Clients that connect at once, as `ab` does.
const CLIENTS: u64 = 1000;
const REQUESTS: u64 = 20_000;

struct Sample {
    /// Requests per second, each on a connection of its own.
    rate: f64,
    /// Milliseconds.
    p99: f64,
    longest: f64,
    /// Attempts that the kernel dropped because the backlog was full.
    dropped: f64,
}

/// Measures each backlog by turns, and returns the table.
pub(super) fn measure(bench: &Bench) -> Result<String> {
    let mut all: Vec<Vec<Sample>> = BACKLOGS.iter().map(|_| Vec::new()).collect();
    for round in 1..=bench.rounds {
        for (backlog, samples) in BACKLOGS.iter().zip(&mut all) {
            eprintln!("backlog, round {round}/{}: {backlog}", bench.rounds);
            let running = bench.start(&format!(",backlog={backlog}"), &["--admission", "off"])?;
            let (port, path) = (running.port, SHORT_PAGE);
            let load = Load { port, path, requests: REQUESTS, clients: CLIENTS, is_kept: false };
            let before = dropped()?;
            let report = load.send().with_context(|| format!("with a backlog of {backlog}"))?;
            let dropped = (dropped()? - before) as f64;
            running.stop()?;
            let (rate, p99, longest) = (report.rate, report.p99, report.longest);
            samples.push(Sample { rate, p99, longest, dropped });
        }
    }
    let mut lines = vec![
        format!(
            "`ab -n {REQUESTS} -c {CLIENTS}`, a connection for each request. An attempt that the kernel *drops* is repeated \
             after a second.\n"
        ),
        "| backlog | requests/s | p99, ms | longest, ms | dropped attempts |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (backlog, samples) in BACKLOGS.iter().zip(&all) {
        let of = |figure: fn(&Sample) -> f64| {
            let spread = Spread::of(samples.iter().map(figure));
            spread.map_or_else(String::new, |Spread { median, least, most }| {
                format!("{median:.0} ({least:.0}-{most:.0})")
            })
        };
        lines.push(format!(
            "| {backlog} | {} | {} | {} | {} |",
            of(|sample| sample.rate),
            of(|sample| sample.p99),
            of(|sample| sample.longest),
            of(|sample| sample.dropped)
        ));
    }
    Ok(lines.join("\n") + "\n")
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
