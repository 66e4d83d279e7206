//! Measures an idle server: start time, memory at rest, memory per idle connection.

use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, output, pause};

/// The time after a start within which Bine's watchdog looks for the first time, and releases what only
/// the start has used.
const REST: Duration = Duration::from_secs(5);

/// The options of the command.
pub(crate) const OPTIONS: [&str; 5] =
    ["--connections", "--starts", "--protocol", "--only", "--into"];

/// The time from the start of a server to its first response, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Ready {
    after: f64,
}

figures!(Ready { after: "ready_ms" });

/// The memory of a server without and with idle connections.
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// Bytes for each connection.
    connection: f64,
    /// At rest, in KiB.
    resident: f64,
    anonymous: f64,
}

figures!(Idle {
    connection: "connection_bytes",
    resident: "resident_kib",
    anonymous: "anonymous_kib",
});

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
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = servers.len() * starts as usize;
    let mut ready = Samples::<Ready>::open("memory-ready", "server", &run, count)?;
    let mut idle = Samples::<Idle>::open("memory", "server", &run, servers.len())?;
    println!("{facts}\n");
    println!(
        "| server | bytes per idle connection of {} ({connections}) | resident at rest, KiB | of it anonymous, KiB | ready \
         after, ms (least-most of {starts}) |",
        protocol.title()
    );
    println!("|---|---|---|---|---|");
    for server in servers {
        let mut times = Vec::new();
        for start in 1..=starts {
            let sample = ready.take(&[server.name()], start, || {
                let running = protocol.start(server, &workspace)?;
                let after = running.ready_after.as_secs_f64() * 1e3;
                running.stop()?;
                Ok(Ready { after })
            })?;
            times.push(sample.after);
        }
        let Idle { connection, resident, anonymous } = idle.take(&[server.name()], 1, || {
            let running = protocol.start(server, &workspace)?;
            pause(REST);
            let rest = running.memory()?;
            let connection = bytes_per_connection(&park, &running, connections, protocol)
                .context("it did not keep its connections")? as f64;
            running.stop()?;
            let (resident, anonymous) = (rest.resident as f64, rest.anonymous as f64);
            Ok(Idle { connection, resident, anonymous })
        })?;
        println!(
            "| {} | {connection} | {resident} | {anonymous} | {} |",
            server.name(),
            Spread::of(times).context("no start was timed")?
        );
    }
    ready.finish()?;
    idle.finish()
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
