//! Measures an idle server: start time, memory at rest, memory per idle connection.

use std::process::Command;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, output};

/// Starts each server several times to time the start, and once more to measure memory at rest and
/// with idle connections.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx, Server::Hyper];
    let servers = Server::chosen(arguments, &offered, &offered[..2])?;
    let connections = arguments.number("--connections", 15_000)?;
    let starts = arguments.number("--starts", 20)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let park = workspace.compile("park", &[])?;
    for server in &servers {
        server.build(&workspace, Content::Page)?;
    }
    move_to_core_1()?;
    println!("{facts}\n");
    println!(
        "| server | bytes per idle connection ({connections}) | resident at rest, KiB | of it anonymous, KiB | ready \
         after, ms (least-most of {starts}) |"
    );
    println!("|---|---|---|---|---|");
    for server in servers {
        let mut ready = Vec::new();
        for _ in 0..starts {
            let running = server.start(&workspace, Content::Page, free_port()?)?;
            ready.push(running.ready_after.as_secs_f64() * 1e3);
            running.stop()?;
        }
        let running = server.start(&workspace, Content::Page, free_port()?)?;
        let rest = running.memory()?;
        let bytes = bytes_per_connection(&park, &running, connections)
            .with_context(|| format!("{} did not keep its connections", server.name()))?;
        running.stop()?;
        println!(
            "| {} | {bytes} | {} | {} | {} |",
            server.name(),
            rest.resident,
            rest.anonymous,
            Spread::of(ready).context("no start was timed")?
        );
    }
    Ok(())
}

fn bytes_per_connection(park: &std::path::Path, server: &Running, count: u64) -> Result<i64> {
    let processes: Vec<String> = server.processes()?.iter().map(ToString::to_string).collect();
    let mut command = Command::new(park);
    command.args([server.port.to_string(), count.to_string(), processes.join(",")]);
    let line = output(command.args([&Content::Page.path(), "answered"]))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "bytes").context("park printed no figure")?;
    words[..at].last().context("park printed no figure")?.parse().context("park's figure")
}
