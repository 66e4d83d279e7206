//! Measures cases of `HttpArena`, a public benchmark of HTTP servers. Compares Bine with axum and,
//! for files, with nginx.

mod cases;
mod check;
mod files;
mod site;

use std::time::Instant;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::plot::thousands;
use crate::samples::{Run, Samples, figures};
use crate::servers::Running;
use crate::tools::{Workspace, move_to_core_1, require};
use crate::wrk::Load;
use cases::ArenaCase;
use site::ArenaServer;

pub(crate) const OPTIONS: [&str; 6] =
    ["--only", "--cases", "--connections", "--rounds", "--seconds", "--into"];

/// The length of the load before the first sample of a server.
const WARM_UP: u64 = 1;

/// The samples of one server and case, one per round.
struct Cell {
    server: ArenaServer,
    case: ArenaCase,
    /// The mean length of a response's content, as it is sent.
    bytes: f64,
    samples: Vec<Sample>,
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Responses per second.
    rate: f64,
    p50: f64,
    p99: f64,
    /// CPU time of the server per response.
    cpu: f64,
    /// The part of the core that the server used, in percent.
    core: f64,
}

/// Checks all responses, samples each server once per round, and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for (tool, package) in [("wrk", "wrk"), ("curl", "curl"), ("brotli", "brotli")] {
        require(tool, package)?;
    }
    let (rounds, seconds) = (arguments.number("--rounds", 3)?, arguments.number("--seconds", 5)?);
    let connections = arguments.number("--connections", 512)?;
    let servers: Vec<ArenaServer> = arguments.choices("--only", ArenaServer::ALL.to_vec())?;
    let cases: Vec<ArenaCase> = arguments.choices("--cases", ArenaCase::ALL.to_vec())?;
    let workspace = Workspace::open()?;
    for server in &servers {
        server.prepare(&workspace)?;
    }
    let folder = files::write(&workspace)?;
    let versions: Vec<String> =
        servers.iter().filter_map(|server| server.version(&workspace)).collect();
    let facts = machine::facts_with(&versions.join("; "));
    move_to_core_1()?;
    let mut cells = Vec::new();
    for &server in &servers {
        eprintln!("checking {}", server.name());
        let running = server.start(&workspace, &folder)?;
        for &case in cases.iter().filter(|case| server.serves(**case)) {
            let bytes = check::check(server, case, running.port, &folder)
                .with_context(|| format!("{}, {}", server.name(), case.name()))?;
            cells.push(Cell { server, case, bytes, samples: Vec::new() });
        }
        running.stop()?;
    }
    cells.sort_by_key(|cell| cell.case as usize);
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("arena", "case,server", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let sample = samples.take(&[cell.case.name(), cell.server.name()], round, || {
                let running = cell.server.start(&workspace, &folder)?;
                let sample = cell.sample(&workspace, &running, connections, seconds)?;
                running.stop()?;
                Ok(sample)
            })?;
            cell.samples.push(sample);
        }
    }
    println!("{facts}\n\n{}", table(&cells));
    println!(
        "Medians (least-most) of {rounds} rounds of {seconds} s: {connections} connections of wrk on core 1, the server on \
         core 0 with one thread for requests. `x Bine` is the median of the ratios of the CPU times of one round. Where \
         `core` is below 95 %, the load generator limits the rate: compare CPU times there."
    );
    samples.finish()
}

figures!(Sample {
    rate: "rate",
    p50: "p50_us",
    p99: "p99_us",
    cpu: "cpu_us",
    core: "core_percent",
});

impl Cell {
    fn sample(
        &self,
        workspace: &Workspace,
        running: &Running,
        connections: u64,
        seconds: u64,
    ) -> Result<Sample> {
        let load = |seconds: u64| {
            let (port, folder) = (running.port, &*workspace.work);
            let script = Some(self.case.script());
            Load { port, connections, seconds, path: "/", script, folder }.send()
        };
        load(WARM_UP)?;
        let (begun, before) = (Instant::now(), running.cpu()?);
        let report = load(seconds)?;
        let (cpu, passed) = (running.cpu()? - before, begun.elapsed().as_secs_f64());
        Ok(Sample {
            rate: report.rate,
            p50: report.p50,
            p99: report.p99,
            cpu: 1e6 * cpu / report.requests,
            core: 100.0 * cpu / passed,
        })
    }
}

fn table(cells: &[Cell]) -> String {
    let mut lines = vec![
        String::from(
            "| case | server | CPU, us | x Bine | responses/s | p50, ms | p99, ms | core, % | bytes |",
        ),
        String::from("|---|---|---|---|---|---|---|---|---|"),
    ];
    for cell in cells {
        let own =
            cells.iter().find(|other| other.server == ArenaServer::Bine && other.case == cell.case);
        let ratio = own.and_then(|own| {
            let pairs = cell.samples.iter().zip(&own.samples);
            Spread::of(pairs.map(|(sample, own)| sample.cpu / own.cpu))
        });
        let of = |figure: fn(&Sample) -> f64| Spread::of(cell.samples.iter().map(figure));
        let shown = |spread: Option<Spread>| {
            spread.map_or_else(|| String::from("-"), |spread| spread.to_string())
        };
        let median = |figure| of(figure).map_or(0.0, |spread| spread.median);
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {:.2} | {:.2} | {:.0} | {} |",
            cell.case.title(),
            cell.server.title(),
            shown(of(|sample| sample.cpu)),
            shown(ratio),
            thousands(median(|sample| sample.rate)),
            median(|sample| sample.p50) / 1e3,
            median(|sample| sample.p99) / 1e3,
            median(|sample| sample.core),
            thousands(cell.bytes),
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_cpu_times_of_the_same_round() {
        let cell = |server, cpu: [f64; 2]| Cell {
            server,
            case: ArenaCase::Json,
            bytes: 1234.0,
            samples: cpu
                .map(|cpu| Sample { rate: 10.0, p50: 500.0, p99: 1000.0, cpu, core: 99.0 })
                .to_vec(),
        };
        let cells = [cell(ArenaServer::Bine, [2.0, 4.0]), cell(ArenaServer::Axum, [6.0, 8.0])];
        let text = table(&cells);
        let last = text.lines().last().unwrap();
        assert!(
            last.ends_with(
                "| axum | 7.00 (6.00-8.00) | 2.50 (2.00-3.00) | 10 | 0.50 | 1.00 | 99 | 1 234 |"
            ),
            "{last}"
        );
    }
}
