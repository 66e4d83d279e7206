//! Measures an idle server: start time, memory at rest, memory per idle connection.

use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::samples::Samples;
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, output, pause};

/// The time after a start within which Bine's watchdog looks for the first time, and releases what only
/// the start has used.
const REST: Duration = Duration::from_secs(5);

/// The options of the command.
pub(crate) const OPTIONS: [&str; 5] =
    ["--connections", "--starts", "--protocol", "--only", "--into"];

/// Starts each server several times to time the start, and once more to measure memory at rest and
/// with idle connections.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx, Server::Hyper];
    let servers = Server::chosen(arguments, &offered, &offered[..2])?;
    let connections = arguments.number("--connections", 15_000)?;
    let protocol: Protocol = arguments.word("--protocol").unwrap_or("http1").parse()?;
    let starts = arguments.number("--starts", 20)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let park = workspace.compile("park", &[])?;
    for server in &servers {
        server.build(&workspace, Content::Page)?;
    }
    move_to_core_1()?;
    let mut kept = Samples::new("memory", "server,figure");
    println!("{facts}\n");
    println!(
        "| server | bytes per idle connection of {} ({connections}) | resident at rest, KiB | of it anonymous, KiB | ready \
         after, ms (least-most of {starts}) |",
        protocol.title()
    );
    println!("|---|---|---|---|---|");
    for server in servers {
        let mut ready = Vec::new();
        for start in 1..=starts {
            let running = protocol.start(server, &workspace)?;
            let milliseconds = running.ready_after.as_secs_f64() * 1e3;
            kept.add(&[server.name(), "ready, ms"], start, &[("value", milliseconds)]);
            ready.push(milliseconds);
            running.stop()?;
        }
        let running = protocol.start(server, &workspace)?;
        pause(REST);
        let rest = running.memory()?;
        let bytes = bytes_per_connection(&park, &running, connections, protocol)
            .with_context(|| format!("{} did not keep its connections", server.name()))?;
        running.stop()?;
        for (figure, value) in [
            ("idle connection, bytes", bytes as f64),
            ("resident at rest, KiB", rest.resident as f64),
            ("anonymous at rest, KiB", rest.anonymous as f64),
        ] {
            kept.add(&[server.name(), figure], 1, &[("value", value)]);
        }
        println!(
            "| {} | {bytes} | {} | {} | {} |",
            server.name(),
            rest.resident,
            rest.anonymous,
            Spread::of(ready).context("no start was timed")?
        );
    }
    kept.write(arguments, &workspace, &facts)
}

/// The protocol of idle connections, each after one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    /// By prior knowledge.
    Http2,
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "http1" => Ok(Self::Http1),
            "http2" => Ok(Self::Http2),
            _ => bail!("--protocol {name}: http1 or http2"),
        }
    }
}

impl Protocol {
    const fn title(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }

    fn start(self, server: Server, workspace: &Workspace) -> Result<Running> {
        let port = free_port()?;
        match (self, server) {
            // Bine takes both on each listener.
            (Self::Http1, _) | (Self::Http2, Server::Bine) => {
                server.start(workspace, Content::Page, port)
            }
            (Self::Http2, _) => server.start_http2(workspace, port),
        }
    }
}

fn bytes_per_connection(
    park: &Path,
    server: &Running,
    count: u64,
    protocol: Protocol,
) -> Result<i64> {
    let processes: Vec<String> = server.processes()?.iter().map(ToString::to_string).collect();
    let mode = if protocol == Protocol::Http2 { "http2" } else { "answered" };
    let mut command = Command::new(park);
    command.args([server.port.to_string(), count.to_string(), processes.join(",")]);
    let line = output(command.args([&Content::Page.path(), mode]))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "bytes").context("park printed no figure")?;
    words[..at].last().context("park printed no figure")?.parse().context("park's figure")
}
