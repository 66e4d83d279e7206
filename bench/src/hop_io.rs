//! Sections 3.2 and 3.3 of Serrano, "Hop, a fast server for the diffuse web", measured again: chunks
//! without an auxiliary buffer, the algorithm of Nagle, the send buffer and the backlog.
//!
//! The benchmark runs in a separate network namespace, whose loopback has the packets of Ethernet:
//! with the 64 KiB of a usual loopback, the algorithm of Nagle would have no effect.

mod backlog;
mod chunks;
mod delays;

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::namespace;
use crate::samples::{Figures, Run, Samples};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, move_to_core_1, output, require};

pub(crate) const OPTIONS: [&str; 4] = ["--rounds", "--requests", "--seconds", "--into"];
/// The command that runs in the new network namespace.
pub(crate) const INSIDE: &str = "hop-io-inside";

/// The largest packet, in bytes: that of Ethernet.
const PACKET: &str = "1500";
/// Files of this many bytes: those of Hop's figure 6.
const FILES: [usize; 2] = [984, 65536];
/// A page of a megabyte, which is sent in chunks, and a short one.
const LONG_PAGE: &str = "/rows?count=35000";
const SHORT_PAGE: &str = "/rows?count=10";

/// The state that all measurements share.
struct Bench<'run> {
    arguments: &'run Arguments,
    workspace: Workspace,
    /// The machine and the versions.
    facts: String,
    rounds: u64,
    /// Requests of one sample of delays.
    requests: u64,
    /// The length of a sample of CPU time.
    seconds: u64,
}

/// Builds the program, then runs this one again in a network namespace.
pub(crate) fn run(words: &[String]) -> Result<()> {
    require("wrk", "wrk")?;
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "long-page"].map(OsStr::new))?;
    drop(workspace);
    namespace::enter(INSIDE, words)
}

/// Measures, and prints all tables.
pub(crate) fn run_inside(arguments: &Arguments) -> Result<()> {
    namespace::ensure_own()?;
    output(Command::new("ip").args(["link", "set", "lo", "mtu", PACKET, "up"]))?;
    let bench = Bench {
        arguments,
        workspace: Workspace::open()?,
        facts: machine::facts_with(&machine::first_line("wrk", &["-v"])),
        rounds: arguments.number("--rounds", 5)?,
        requests: arguments.number("--requests", 300)?,
        seconds: arguments.number("--seconds", 3)?,
    };
    for size in FILES {
        bench.workspace.make_file(size)?;
    }
    move_to_core_1()?;
    println!("{}\n", bench.facts);
    for measure in [delays::measure, chunks::measure, backlog::measure] {
        measure(&bench)?;
    }
    Ok(())
}

impl Bench<'_> {
    /// Opens the samples of one table, with `cases` in each round.
    fn samples<S: Figures>(&self, name: &str, columns: &str, cases: usize) -> Result<Samples<S>> {
        let Self { arguments, workspace, facts, rounds, .. } = self;
        Samples::open(name, columns, &Run { arguments, workspace, facts }, cases * *rounds as usize)
    }

    /// Starts the program on core 0. `listen` follows the address, `options` the command.
    fn start(&self, listen: &str, options: &[&str]) -> Result<Running> {
        let port = free_port()?;
        let program = self.workspace.bine("examples/long-page").display().to_string();
        let files = self.workspace.files().display().to_string();
        let listen = format!("127.0.0.1:{port}{listen}");
        let own = ["--root", &files, "--listen", &listen, "--loops", "1", "--access-log", "off"];
        let words = [&[&*program][..], &own, options].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        Running::start(&words, port, SHORT_PAGE, &self.workspace.work.join("long-page.log"))
            .context("the program did not start")
    }
}

/// The median and the extremes of a figure, for a cell of a table.
fn shown<S>(samples: &[S], figure: fn(&S) -> f64) -> String {
    Spread::of(samples.iter().map(figure)).map_or_else(String::new, |spread| spread.to_string())
}
