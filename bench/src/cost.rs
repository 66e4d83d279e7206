//! Samples CPU time per request of all servers in turn, and prints the table.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::peer::Peer;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Content, Server, Setting, free_port};
use crate::tools::{Workspace, output};

/// The options of the command.
pub(crate) const OPTIONS: [&str; 5] = ["--rounds", "--seconds", "--only", "--scenarios", "--into"];

struct Scenario {
    name: &'static str,
    title: &'static str,
    content: Content,
    /// Connections open at once, or new ones per second.
    connections: u32,
    load: Load,
    /// Threads or processes of the server. Two loops, and the one that they are compared with, get
    /// both cores.
    loops: Loops,
}

#[derive(Clone, Copy)]
enum Load {
    Kept,
    Pipelined(u32),
    /// Closed by the client after this number of requests.
    Closing(u32),
    /// Closed by the server after one request; the client opens the next.
    New,
    /// Kept, each with this number of streams of HTTP/2 at a time.
    Streams(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loops {
    OneOnItsCore,
    OneOnBothCores,
    TwoOnBothCores,
}

/// At the rate of new connections, the server's core is partly idle, so that the figure is the cost
/// of a connection, not of a queue.
const SCENARIOS: [Scenario; 18] = [
    page("kept-64", "64 kept connections", 64, Load::Kept, Loops::OneOnItsCore),
    page("kept-4", "4 kept connections", 4, Load::Kept, Loops::OneOnItsCore),
    page("kept-512", "512 kept connections", 512, Load::Kept, Loops::OneOnItsCore),
    page(
        "pipelined-16",
        "16 pipelined, 64 connections",
        64,
        Load::Pipelined(16),
        Loops::OneOnItsCore,
    ),
    page(
        "calls-10",
        "10 requests a connection, 1000 connections/s",
        1000,
        Load::Closing(10),
        Loops::OneOnItsCore,
    ),
    page(
        "calls-1",
        "1 request a connection, 2000 connections/s",
        2000,
        Load::Closing(1),
        Loops::OneOnItsCore,
    ),
    kept("file-984", "984-byte file, 64 kept connections", Content::File(984), 64),
    kept("page-984", "984-byte page, 64 kept connections", Content::LongPage, 64),
    kept("values-984", "984-byte page of 20 values, 64 kept", Content::Values, 64),
    kept("file-64k", "64 KiB file, 64 kept connections", Content::File(64 << 10), 64),
    kept("file-10m", "10 MB file, 8 kept connections", Content::File(10_000_000), 8),
    kept("tls-984", "984-byte file over TLS, 64 kept", Content::SecureFile(984), 64),
    kept("tls-64k", "64 KiB file over TLS, 64 kept", Content::SecureFile(64 << 10), 64),
    Scenario {
        name: "tls-new",
        title: "984-byte file over TLS, a handshake each, 64 at once",
        content: Content::SecureFile(984),
        connections: 64,
        load: Load::New,
        loops: Loops::OneOnItsCore,
    },
    Scenario {
        name: "h2-984",
        title: "984-byte file over HTTP/2 and TLS, 100 streams on each of 4 connections",
        content: Content::SecureFile(984),
        connections: 4,
        load: Load::Streams(100),
        loops: Loops::OneOnItsCore,
    },
    Scenario {
        name: "h2-values",
        title: "984-byte page of 20 values, as `h2-984`",
        content: Content::SecureValues,
        connections: 4,
        load: Load::Streams(100),
        loops: Loops::OneOnItsCore,
    },
    page("loops-1", "one loop, both cores, 512 kept", 512, Load::Kept, Loops::OneOnBothCores),
    page("loops-2", "two loops, both cores, 512 kept", 512, Load::Kept, Loops::TwoOnBothCores),
];

const fn page(
    name: &'static str,
    title: &'static str,
    connections: u32,
    load: Load,
    loops: Loops,
) -> Scenario {
    Scenario { name, title, content: Content::Page, connections, load, loops }
}

const fn kept(
    name: &'static str,
    title: &'static str,
    content: Content,
    connections: u32,
) -> Scenario {
    Scenario { name, title, content, connections, load: Load::Kept, loops: Loops::OneOnItsCore }
}

/// One server in one scenario, with all its samples.
struct Cell {
    scenario: &'static Scenario,
    server: Server,
    command: Vec<String>,
    port: u16,
    /// One per round, so that a ratio compares samples close in time; `None` for a failed sample.
    samples: Vec<Option<Sample>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) total: f64,
    /// Requests answered per second.
    pub(crate) rate: f64,
}

figures!(Sample { user: "user_us", system: "system_us", total: "total_us", rate: "rate" });

/// Samples every chosen server in every chosen scenario once per round: the machine drifts by
/// several percent within an hour, and this spreads the drift evenly.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let every = [
        Server::Limit,
        Server::Bine,
        Server::Nginx,
        Server::Hyper,
        Server::Axum,
        Server::Lighttpd,
        Server::Php,
    ];
    let servers = Server::chosen(arguments, &every, &every)?;
    let scenarios = chosen_scenarios(arguments)?;
    let (rounds, seconds) = (arguments.number("--rounds", 5)?, arguments.number("--seconds", 5)?);
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let mut cells = prepare(&workspace, &scenarios, &servers)?;
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("cost", "scenario,server", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let case = [cell.scenario.name, cell.server.name()];
            let sample = samples.take(&case, round, || cell.measure(&workspace, seconds));
            // A failure in the first round is a fault of the setup; a later one is an accident.
            cell.samples.push(if round == 1 { Some(sample?) } else { sample.ok() });
        }
    }
    print!("{}\n\n{}", facts, table(&scenarios, &cells));
    println!(
        "\nMedians of {rounds} rounds of {seconds} s, in microseconds of server CPU per request."
    );
    let failures =
        cells.iter().flat_map(|cell| &cell.samples).filter(|sample| sample.is_none()).count();
    ensure!(
        failures == 0,
        "{failures} samples failed and are not in the table; the same command takes them again"
    );
    samples.finish()
}

fn chosen_scenarios(arguments: &Arguments) -> Result<Vec<&'static Scenario>> {
    let Some(names) = arguments.names("--scenarios") else { return Ok(SCENARIOS.iter().collect()) };
    names
        .into_iter()
        .map(|name| {
            let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
            scenario.with_context(|| format!("no scenario `{name}`; see --help"))
        })
        .collect()
}

/// Builds every server needed and prepares each cell's command and the canned response of the
/// limit.
fn prepare(
    workspace: &Workspace,
    scenarios: &[&'static Scenario],
    servers: &[Server],
) -> Result<Vec<Cell>> {
    let mut built = HashSet::new();
    let mut cells = Vec::new();
    for &scenario in scenarios {
        if let Content::File(size) | Content::SecureFile(size) = scenario.content {
            workspace.make_file(size)?;
        }
        let serving: Vec<Server> = servers
            .iter()
            .copied()
            .filter(|server| server.serves(scenario.content))
            .filter(|server| server.scales() || scenario.loops != Loops::TwoOnBothCores)
            .collect();
        for &server in &serving {
            let Scenario { content, .. } = scenario;
            if built.insert((server.name(), content.path(), content.is_secure())) {
                server.build(workspace, scenario.content)?;
            }
        }
        let canned = canned_answer(workspace, scenario, &serving)?;
        for &server in &serving {
            let port = free_port()?;
            let setting = Setting {
                content: scenario.content,
                port,
                loops: if scenario.loops == Loops::TwoOnBothCores { 2 } else { 1 },
                canned: canned.as_deref(),
            };
            let command = server.command(workspace, &setting)?;
            cells.push(Cell { scenario, server, command, port, samples: Vec::new() });
        }
    }
    Ok(cells)
}

/// Stores a real response for the limit to repeat: Bine's, or that of the first server. `None` if
/// only the limit itself is measured, which has its own page.
fn canned_answer(
    workspace: &Workspace,
    scenario: &Scenario,
    serving: &[Server],
) -> Result<Option<PathBuf>> {
    let Some(server) = serving.iter().find(|&&server| server != Server::Limit) else {
        return Ok(None);
    };
    if !serving.contains(&Server::Limit) {
        return Ok(None);
    }
    let running = server.start(workspace, scenario.content, free_port()?)?;
    let file = workspace.work.join(format!("{}.answer", scenario.name));
    fs::write(&file, Peer::connect(running.port)?.get(&scenario.content.path())?)?;
    running.stop()?;
    Ok(Some(file))
}

impl Cell {
    fn measure(&self, workspace: &Workspace, seconds: u64) -> Result<Sample> {
        let scenario = self.scenario;
        let scheme = if scenario.content.is_secure() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{}{}", self.port, scenario.content.path());
        let mut command = Command::new(workspace.root.join("bench/cost.sh"));
        command.args([self.server.name(), &url]);
        command.args([scenario.connections.to_string(), seconds.to_string()]);
        match scenario.load {
            Load::Kept => {}
            Load::Pipelined(depth) => drop(command.args(["-p", &depth.to_string()])),
            Load::Closing(calls) => drop(command.args(["-c", &calls.to_string()])),
            Load::New => drop(command.arg("-n")),
            Load::Streams(streams) => drop(command.args(["-m", &streams.to_string()])),
        }
        if scenario.loops != Loops::OneOnItsCore {
            command.arg("-b");
        }
        let line = output(command.arg("--").args(&self.command))?;
        Sample::parse(&line).with_context(|| format!("cost.sh printed `{}`", line.trim()))
    }

    fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().map(figure))
    }

    /// Compares the totals with those of `other`, round by round.
    fn compared(&self, other: &Self, compare: impl Fn(f64, f64) -> f64) -> Option<Spread> {
        let pairs = self.samples.iter().zip(&other.samples);
        Spread::of(pairs.filter_map(|(own, other)| Some(compare((*own)?.total, (*other)?.total))))
    }
}

impl Sample {
    /// Reads the line that cost.sh prints.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let figure = |name: &str| -> Option<f64> {
            line.split_whitespace().find_map(|word| word.strip_prefix(name))?.parse().ok()
        };
        Some(Self {
            user: figure("user=")?,
            system: figure("sys=")?,
            total: figure("total=")?,
            rate: figure("rps=")?,
        })
    }
}

fn table(scenarios: &[&Scenario], cells: &[Cell]) -> String {
    let mut lines = vec![
        String::from(
            "| scenario | server | user | system | total (least-most) | x limit | over limit | requests/s |",
        ),
        String::from("|---|---|---|---|---|---|---|---|"),
    ];
    for scenario in scenarios {
        let row: Vec<&Cell> =
            cells.iter().filter(|cell| cell.scenario.name == scenario.name).collect();
        let limit = row.iter().find(|cell| cell.server == Server::Limit);
        for cell in &row {
            let shown = |spread: Option<Spread>| {
                spread.map_or_else(|| String::from("-"), |spread| format!("{:.2}", spread.median))
            };
            let compared = |compare: fn(f64, f64) -> f64| {
                shown(limit.and_then(|limit| cell.compared(limit, compare)))
            };
            let total = cell.spread(|sample| sample.total);
            lines.push(format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                scenario.title,
                cell.server.name(),
                shown(cell.spread(|sample| sample.user)),
                shown(cell.spread(|sample| sample.system)),
                total.map_or_else(|| String::from("failed"), |total| total.to_string()),
                compared(|own, limit| own / limit),
                compared(|own, limit| own - limit),
                cell.spread(|sample| sample.rate)
                    .map_or_else(|| String::from("-"), |rate| format!("{:.0}", rate.median)),
            ));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_line_of_cost_sh() {
        let line = "bine  rps=1.5  p99=0.9ms  user=0.250 sys=3.750 total=4.000 us/request\n";
        assert_eq!(
            Sample::parse(line),
            Some(Sample { user: 0.25, system: 3.75, total: 4.0, rate: 1.5 })
        );
        assert_eq!(Sample::parse("rps=1 user=x"), None);
    }

    #[test]
    fn compares_samples_of_the_same_round_and_skips_failed_ones() {
        let cell = |server, totals: [Option<f64>; 3]| Cell {
            scenario: &SCENARIOS[0],
            server,
            command: Vec::new(),
            port: 0,
            samples: totals
                .map(|total| {
                    total.map(|total| Sample { user: 1.0, system: total - 1.0, total, rate: 7.0 })
                })
                .to_vec(),
        };
        let cells = [
            cell(Server::Limit, [Some(2.0), Some(4.0), None]),
            cell(Server::Bine, [Some(3.0), Some(6.0), Some(90.0)]),
        ];
        let table = table(&[&SCENARIOS[0]], &cells);
        let last = table.lines().last().unwrap();
        assert_eq!(
            last,
            "| 64 kept connections | bine | 1.00 | 5.00 | 6.00 (3.00-90.00) | 1.50 | 1.50 | 7 |"
        );
    }
}
