//! CPU time per request of pages in TSX, compared with the same pages in Rust, PHP, Node and Bun.

mod pages;
mod servers;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::cost::Sample;
use crate::figures::Spread;
use crate::machine;
use crate::samples::{Run, Samples};
use crate::servers::free_port;
use crate::tools::{Workspace, output, require};
use pages::{PAGES, ScriptPage};
use servers::{ScriptServer, Started};

/// The options of the command.
pub(crate) const OPTIONS: [&str; 6] =
    ["--rounds", "--seconds", "--only", "--pages", "--programs", "--into"];

/// Connections open at once.
const CONNECTIONS: u32 = 64;

/// One server with one page, with its samples.
struct Cell<'s> {
    page: &'static ScriptPage,
    started: &'s Started,
    /// One per round; `None` for a failed sample.
    samples: Vec<Option<Sample>>,
}

/// Samples every server with every page once per round, so that the drift of the machine affects all
/// alike. Before, all servers must answer a page with the same bytes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (rounds, seconds) = (arguments.number("--rounds", 5)?, arguments.number("--seconds", 3)?);
    let pages = chosen_pages(arguments)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let programs = programs(&workspace, arguments)?;
    let chosen = ScriptServer::chosen(arguments)?;
    let mut started = Vec::new();
    let mut head = String::new();
    if chosen.contains(&ScriptServer::BineTsx) {
        started.push(ScriptServer::BineTsx.prepare(&workspace, &programs, &head)?);
        pages::head(&started[0].bodies(&workspace, &[&PAGES[0]])?[0]).clone_into(&mut head);
    }
    pages::write_rows(&workspace, &head)?;
    for server in chosen.into_iter().filter(|server| *server != ScriptServer::BineTsx) {
        match server.prepare(&workspace, &programs, &head) {
            Ok(server) => started.push(server),
            // Without `--only`, skips a peer that is not installed.
            Err(error) if arguments.word("--only").is_none() && server.is_peer() => {
                eprintln!("{} is left out: {error:#}", server.name());
            }
            Err(error) => return Err(error.context(server.name())),
        }
    }
    let lengths = check_bytes(&workspace, &started, &pages)?;
    let mut cells = Vec::new();
    for &page in &pages {
        cells.extend(started.iter().map(|started| Cell { page, started, samples: Vec::new() }));
    }
    let facts = format!("{facts}\n\n{}", servers::versions(&started));
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("scripts", "page,server", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let case = [cell.page.name, cell.started.server.name()];
            let sample = samples.take(&case, round, || cell.measure(&workspace, seconds));
            // A failure in the first round is a fault of the setup; a later one is an accident.
            cell.samples.push(if round == 1 { Some(sample?) } else { sample.ok() });
        }
    }
    println!("{facts}");
    println!(
        "\n| page | bytes | server | user | system | total (least-most) | x bine-tsx | requests/s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (page, length) in pages.iter().zip(lengths) {
        let row: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.page.name == page.name).collect();
        for cell in &row {
            println!("{}", cell.line(length, &row));
        }
    }
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

/// The folder of `bine` and of `examples/script-pages`: that of `--programs`, or what is built here.
fn programs(workspace: &Workspace, arguments: &Arguments) -> Result<PathBuf> {
    require("taskset", "util-linux")?;
    require("wrk", "wrk")?;
    require("curl", "curl")?;
    if let Some(folder) = arguments.word("--programs") {
        return Ok(std::path::absolute(folder)?);
    }
    workspace.build_bine(&["-p", "bine-cli"].map(OsStr::new))?;
    let example = ["-p", "bine-bench", "--example", "script-pages"];
    workspace.build_bine(&example.map(OsStr::new))?;
    Ok(workspace.target.join("dist"))
}

fn chosen_pages(arguments: &Arguments) -> Result<Vec<&'static ScriptPage>> {
    let Some(names) = arguments.names("--pages") else { return Ok(PAGES.iter().collect()) };
    names
        .into_iter()
        .map(|name| {
            let page = PAGES.iter().find(|page| page.name == name);
            page.with_context(|| format!("no page `{name}`; see --help"))
        })
        .collect()
}

/// Checks that all servers answer each page with the same bytes; returns the length of each page.
fn check_bytes(
    workspace: &Workspace,
    started: &[Started],
    pages: &[&ScriptPage],
) -> Result<Vec<usize>> {
    let mut expected: Vec<Option<(String, &'static str)>> = vec![None; pages.len()];
    for server in started {
        let name = server.server.name();
        let bodies = server.bodies(workspace, pages).with_context(|| name.to_owned())?;
        for ((page, body), expected) in pages.iter().zip(bodies).zip(&mut expected) {
            match expected {
                None => *expected = Some((body, name)),
                Some((other, by)) => ensure!(
                    body == *other,
                    "{name} and {by} answer {} differently:\n{body}\n\n{other}",
                    page.name
                ),
            }
        }
    }
    expected.into_iter().map(|body| Ok(body.context("no server is left")?.0.len())).collect()
}

impl Cell<'_> {
    fn measure(&self, workspace: &Workspace, seconds: u64) -> Result<Sample> {
        let port = free_port()?;
        let path = self.page.path(self.started.server);
        let url = format!("http://127.0.0.1:{port}{path}");
        let mut command = Command::new(workspace.root.join("bench/cost.sh"));
        command.args([self.started.server.name(), &url]);
        command.args([CONNECTIONS.to_string(), seconds.to_string()]);
        let line = output(command.arg("--").args(self.started.command(workspace, port)?))?;
        Sample::parse(&line).with_context(|| format!("cost.sh printed `{}`", line.trim()))
    }

    fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().map(figure))
    }

    /// The row of the table, with a comparison of each sample with that of TSX in the same round.
    fn line(&self, length: usize, row: &[&Self]) -> String {
        let shown = |spread: Option<Spread>| {
            spread.map_or_else(|| String::from("-"), |spread| format!("{:.2}", spread.median))
        };
        let own = row.iter().find(|cell| cell.started.server == ScriptServer::BineTsx);
        let ratios = own.and_then(|own| {
            let pairs = self.samples.iter().zip(&own.samples);
            Spread::of(pairs.filter_map(|(cell, own)| Some((*cell)?.total / (*own)?.total)))
        });
        format!(
            "| {} | {length} | {} | {} | {} | {} | {} | {} |",
            self.page.name,
            self.started.server.name(),
            shown(self.spread(|sample| sample.user)),
            shown(self.spread(|sample| sample.system)),
            self.spread(|sample| sample.total)
                .map_or_else(|| String::from("failed"), |total| total.to_string()),
            shown(ratios),
            self.spread(|sample| sample.rate)
                .map_or_else(|| String::from("-"), |rate| format!("{:.0}", rate.median)),
        )
    }
}
