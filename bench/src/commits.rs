//! Measures transactions of several nodes, with one NATS server and with three that store copies, and
//! compares them with publishes of NATS alone and with a compare-and-set on the last sequence.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::nats::{self, NatsServers, SyncInterval};
use crate::tools::{Workspace, move_to_core_1};

pub(crate) const OPTIONS: [&str; 5] = ["--copies", "--syncs", "--rows", "--commits", nats::OPTION];

/// Measures each number of copies with each interval of syncs.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let copies = arguments.numbers("--copies", &[1, 3])?;
    let supported = copies.iter().all(|copies| matches!(copies, 1 | 3 | 5));
    ensure!(supported, "--copies: NATS stores 1, 3 or 5 copies");
    let names = arguments.names("--syncs").unwrap_or_else(|| vec!["default", "always"]);
    let syncs = names.into_iter().map(str::parse).collect::<Result<Vec<SyncInterval>>>()?;
    let commits = arguments.number("--commits", 20_000)?.to_string();
    let rows = arguments.word("--rows").unwrap_or("0");
    let nats = nats::program(arguments)?;
    let workspace = Workspace::open()?;
    let words = ["-p", "bine-bench", "--example", "replicated-commits"];
    workspace.build_bine(&words.map(OsStr::new))?;
    println!("{}", machine::facts_with(&machine::first_line(&nats, &["--version"])));
    move_to_core_1()?;
    for copies in copies {
        for sync in &syncs {
            let count = usize::try_from(copies)?;
            let servers = NatsServers::start(&workspace, &nats, count, *sync)?;
            let mut command = Command::new(workspace.bine("examples/replicated-commits"));
            command.args([&servers.addresses(), rows, &copies.to_string(), &commits]);
            let plural = if copies == 1 { "copy" } else { "copies" };
            println!("\n{copies} {plural}, `sync_interval` {}:\n", sync.name());
            let status = command.status()?;
            ensure!(status.success(), "replicated-commits failed: {status}");
        }
    }
    Ok(())
}
