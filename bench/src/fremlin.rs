//! Measures the benchmark of Fremlin, "Serving dynamic webpages in less than a millisecond", again:
//! `ab`, ten thousand requests of the hello page by a hundred clients at a time, on one core.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::ab::{Load, Report, require_ab};
use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, output, require};

pub(crate) const OPTIONS: [&str; 5] = ["--only", "--rounds", "--requests", "--clients", "--into"];

/// A measured server of the hello page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    /// A server that other benchmarks use, too.
    Known(Server),
    /// A cache, which has the page of nginx.
    Varnish,
    Puma,
    Node,
    Go,
}

const MEASURED: [Measured; 9] = [
    Measured::Known(Server::Bine),
    Measured::Known(Server::Nginx),
    Measured::Varnish,
    Measured::Known(Server::Hyper),
    Measured::Known(Server::Axum),
    Measured::Known(Server::Php),
    Measured::Go,
    Measured::Node,
    Measured::Puma,
];
/// The server whose rate is 1 in the paper.
const REFERENCE: Measured = Measured::Varnish;

/// Whether each request has a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    New,
    Kept,
}

/// One run of `ab`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Requests per second.
    rate: f64,
    /// Milliseconds in which half, and 99 %, of the requests were answered.
    p50: f64,
    p99: f64,
    /// CPU time of the server in microseconds, per request.
    cpu: f64,
}

figures!(Sample { rate: "rate", p50: "p50_ms", p99: "p99_ms", cpu: "cpu_us" });

/// The samples of one server, one per round.
struct Cell {
    server: Measured,
    connections: Connections,
    samples: Vec<Sample>,
}

/// Samples each server once per round, and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    require_ab()?;
    let (rounds, requests) =
        (arguments.number("--rounds", 5)?, arguments.number("--requests", 10_000)?);
    let clients = arguments.number("--clients", 100)?;
    let servers = chosen(arguments)?;
    let workspace = Workspace::open()?;
    for server in &servers {
        server.build(&workspace)?;
    }
    let facts = machine::facts_with(&versions(&servers));
    move_to_core_1()?;
    let mut cells: Vec<Cell> = [Connections::New, Connections::Kept]
        .into_iter()
        .flat_map(|connections| servers.iter().map(move |server| (*server, connections)))
        .map(|(server, connections)| Cell { server, connections, samples: Vec::new() })
        .collect();
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("fremlin", "connections,server", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let case = [cell.connections.title(), cell.server.name()];
            let sample = samples.take(&case, round, || {
                let running = cell.server.start(&workspace)?;
                let sample = cell.connections.sample(&running, requests, clients)?;
                running.into_iter().rev().try_for_each(Running::stop)?;
                Ok(sample)
            })?;
            cell.samples.push(sample);
        }
    }
    println!("{facts}\n\n{}", table(&cells));
    println!(
        "Medians (least-most) of {rounds} rounds: `ab -n {requests} -c {clients}` on core 1, the server on core 0. `x \
         varnish` is the median of the ratios of the rates of one round; in the paper teepeedee2 has 0.61. ab has one \
         thread, so the rates of fast servers are its own: compare their CPU time."
    );
    samples.finish()
}

fn chosen(arguments: &Arguments) -> Result<Vec<Measured>> {
    let Some(names) = arguments.names("--only") else { return Ok(MEASURED.to_vec()) };
    let named = |name| MEASURED.into_iter().find(|server| server.name() == name);
    let all = MEASURED.map(Measured::name).join(", ");
    names
        .into_iter()
        .map(|name| named(name).with_context(|| format!("`{name}` is none of {all}")))
        .collect()
}

fn versions(servers: &[Measured]) -> String {
    let version = |server: &Measured| match server {
        Measured::Known(Server::Nginx) => Some(machine::first_line("nginx", &["-v"])),
        Measured::Known(_) => None,
        Measured::Varnish => Some(machine::first_line("varnishd", &["-V"])),
        Measured::Puma => Some(machine::first_line("puma", &["--version"])),
        Measured::Node => Some(format!("node {}", machine::first_line("node", &["--version"]))),
        Measured::Go => Some(machine::first_line("go", &["version"])),
    };
    servers.iter().filter_map(version).collect::<Vec<_>>().join("; ")
}

impl Measured {
    fn name(self) -> &'static str {
        match self {
            Self::Known(server) => server.name(),
            Self::Varnish => "varnish",
            Self::Puma => "puma",
            Self::Node => "node",
            Self::Go => "go",
        }
    }

    fn build(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Known(server) => server.build(workspace, Content::Page),
            Self::Varnish => {
                require("varnishd", "varnish")?;
                Server::Nginx.build(workspace, Content::Page)
            }
            Self::Puma => require("puma", "puma"),
            Self::Node => require("node", "nodejs"),
            Self::Go => {
                require("go", "golang-go")?;
                let source = workspace.root.join("bench/peers/fremlin/hello.go");
                let mut command = Command::new("go");
                command.arg("build").arg("-o").arg(go_program(workspace)).arg(source);
                output(&mut command).map(drop)
            }
        }
    }

    /// Starts it on core 0.
    fn start(self, workspace: &Workspace) -> Result<Vec<Running>> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let source = |name: &str| {
            workspace.root.join("bench/peers/fremlin").join(name).display().to_string()
        };
        let words = match self {
            Self::Known(server) => {
                return Ok(vec![server.start(workspace, Content::Page, port)?]);
            }
            Self::Varnish => return start_varnish(workspace, &listen, port),
            Self::Puma => {
                let bind = format!("tcp://{listen}");
                let own = ["puma", "--quiet", "--threads", "5:5", "--environment", "production"];
                let own = own.map(str::to_owned).into_iter();
                own.chain(["--bind".to_owned(), bind, source("hello.ru")]).collect()
            }
            Self::Node => vec!["node".to_owned(), source("hello.mjs"), listen],
            Self::Go => vec![
                "env".to_owned(),
                "GOMAXPROCS=1".to_owned(),
                go_program(workspace).display().to_string(),
                listen,
            ],
        };
        Ok(vec![self.run(workspace, &words, port)?])
    }

    fn run(self, workspace: &Workspace, words: &[String], port: u16) -> Result<Running> {
        let log = workspace.work.join(format!("{}.log", self.name()));
        Running::start(words, port, &Content::Page.path(), &log)
            .with_context(|| format!("{} did not start", self.name()))
    }
}

fn go_program(workspace: &Workspace) -> std::path::PathBuf {
    workspace.target.join("bench/hello-go")
}

fn start_varnish(workspace: &Workspace, listen: &str, port: u16) -> Result<Vec<Running>> {
    let backend = Server::Nginx.start(workspace, Content::Page, free_port()?)?;
    let template = workspace.root.join("bench/peers/hop/varnish.vcl");
    let text = fs::read_to_string(template)?.replace("@BACKEND@", &backend.port.to_string());
    let file = workspace.work.join("varnish.vcl");
    fs::write(&file, text)?;
    let (file, name) = (file.display().to_string(), workspace.work.join("varnish"));
    let name = name.display().to_string();
    let own = ["varnishd", "-F", "-a", listen, "-f", &file, "-n", &name, "-s", "malloc,64m"];
    let words = own.map(str::to_owned);
    Ok(vec![backend, Measured::Varnish.run(workspace, &words, port)?])
}

impl Connections {
    const fn title(self) -> &'static str {
        match self {
            Self::New => "one for each request",
            Self::Kept => "kept",
        }
    }

    fn sample(self, running: &[Running], requests: u64, clients: u64) -> Result<Sample> {
        let cpu = || running.iter().map(Running::cpu).sum::<Result<f64>>();
        let port = running.last().context("no server")?.port;
        let path = Content::Page.path();
        let load = Load { port, path: &path, requests, clients, is_kept: self == Self::Kept };
        let begun = cpu()?;
        let Report { rate, p50, p99 } = load.send()?;
        let used = cpu()? - begun;
        Ok(Sample { rate, p50, p99, cpu: 1e6 * used / requests as f64 })
    }
}

fn table(cells: &[Cell]) -> String {
    let mut lines = vec![
        String::from(
            "| connections | server | requests/s | x varnish | p50, ms | p99, ms | CPU, us |",
        ),
        String::from("|---|---|---|---|---|---|---|"),
    ];
    for cell in cells {
        let reference = cells
            .iter()
            .find(|other| other.server == REFERENCE && other.connections == cell.connections);
        let of = |figure: fn(&Sample) -> f64| Spread::of(cell.samples.iter().map(figure));
        let ratio = reference.and_then(|reference| {
            let pairs = cell.samples.iter().zip(&reference.samples);
            Spread::of(pairs.map(|(own, other)| own.rate / other.rate))
        });
        let shown = |spread: Option<Spread>, places: usize| {
            spread.map_or_else(
                || String::from("-"),
                |Spread { median, least, most }| {
                    format!("{median:.places$} ({least:.places$}-{most:.places$})")
                },
            )
        };
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell.connections.title(),
            cell.server.name(),
            shown(of(|sample| sample.rate), 0),
            shown(ratio, 2),
            shown(of(|sample| sample.p50), 0),
            shown(of(|sample| sample.p99), 0),
            shown(of(|sample| sample.cpu), 1),
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_rates_of_the_same_round_with_varnish() {
        let cell = |server, rates: [f64; 2]| Cell {
            server,
            connections: Connections::New,
            samples: rates.map(|rate| Sample { rate, p50: 1.0, p99: 2.0, cpu: 3.0 }).to_vec(),
        };
        let cells = [cell(Measured::Go, [200.0, 100.0]), cell(Measured::Varnish, [100.0, 100.0])];
        let text = table(&cells);
        let row = "| one for each request | go | 150 (100-200) | 1.50 (1.00-2.00) | 1 (1-1) | 2 (2-2) | 3.0 (3.0-3.0) |";
        assert!(text.contains(row), "{text}");
        let alone = table(&cells[..1]);
        assert!(alone.contains("| go | 150 (100-200) | - |"), "{alone}");
    }
}
