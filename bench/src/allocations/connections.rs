//! Counts the allocations of connections with one request for a small file, with their accept and
//! their close: the measurement of section 3.1 of Serrano, "Hop, a fast server for the diffuse web".

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Counted, ratio};
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, Setting, free_port};
use crate::tools::{Workspace, output, pause};

/// The file of the paper.
pub(super) const FILE: Content = Content::File(512);
/// The bytes of a request in the paper.
const REQUEST: usize = 93;
/// Bytes per request that the paper found in Hop 1.10.
const PAPER: u64 = 457;
/// The time for the close of the last connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// The time for the search for names of functions before the profile is written.
const WRITE_LIMIT: Duration = Duration::from_mins(2);

/// Builds the servers of files, and writes the file.
pub(super) fn prepare(workspace: &Workspace, servers: &[Server]) -> Result<()> {
    workspace.make_file(FILE.len())?;
    servers.iter().try_for_each(|server| server.build(workspace, FILE))
}

/// Prints the allocations of each server in total, and those of Bine by stage.
pub(super) fn run(
    workspace: &Workspace,
    servers: &[Server],
    library: &Path,
    connections: u64,
) -> Result<()> {
    println!(
        "{connections} connections in sequence, each with one request of {REQUEST} bytes for a file of {} bytes, \
         after {connections} others to warm up. All allocations of the processes count, from the accept to the \
         close. Hop 1.10: {PAPER} bytes.\n",
        FILE.len()
    );
    println!("| server | allocations | a connection | bytes a connection |\n|---|---|---|---|");
    for server in servers {
        eprintln!("{}: {connections} connections, counted from outside", server.name());
        let [calls, bytes] = count_all(workspace, *server, library, connections)?;
        println!(
            "| {} | {calls} | {:.3} | {:.1} |",
            server.name(),
            ratio(calls, connections),
            ratio(bytes, connections)
        );
    }
    if servers.contains(&Server::Bine) {
        eprintln!("bine: {connections} connections, recorded by its profiler");
        println!("\n{}", stages(workspace, connections)?);
    }
    Ok(())
}

/// The calls and bytes during the connections, after the warm-up.
fn count_all(
    workspace: &Workspace,
    server: Server,
    library: &Path,
    connections: u64,
) -> Result<[u64; 2]> {
    let counted = Counted::start(workspace, server, FILE, library)?;
    let running = &counted.running;
    // The connection of the start may still be open.
    connect_times(running.port, 1)?;
    pause(Duration::from_millis(200));
    let at_rest = running.sockets()?;
    connect_times(running.port, connections)?;
    await_closes(running, at_rest)?;
    let before = counted.read()?;
    connect_times(running.port, connections)?;
    await_closes(running, at_rest)?;
    let after = counted.read()?;
    counted.running.stop()?;
    Ok([after[0] - before[0], after[1] - before[1]])
}

/// Opens connections in sequence, and sends one request on each.
fn connect_times(port: u16, times: u64) -> Result<()> {
    let fields = fields();
    (0..times).try_for_each(|_| Peer::connect(port)?.get_with(&FILE.path(), &fields).map(drop))
}

/// The field that gives a request the length of the paper's.
fn fields() -> String {
    let rest =
        ["GET ", &FILE.path(), " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: \r\n\r\n"].concat();
    format!("User-Agent: {}\r\n", "x".repeat(REQUEST - rest.len()))
}

/// Waits until the number of the server's sockets is `at_rest` again.
fn await_closes(running: &Running, at_rest: usize) -> Result<()> {
    let begun = Instant::now();
    loop {
        let left = running.sockets()?.saturating_sub(at_rest);
        if left == 0 {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < CLOSE_LIMIT,
            "{left} connections are still open {CLOSE_LIMIT:?} after their clients closed them"
        );
        pause(Duration::from_millis(5));
    }
}

/// The table of the profiler of Bine.
fn stages(workspace: &Workspace, connections: u64) -> Result<String> {
    let profile = workspace.work.join("connections.profile");
    let setting = Setting { content: FILE, port: free_port()?, loops: 1, canned: None };
    let mut command = Server::Bine.command(workspace, &setting)?;
    let (file, number) = (profile.display().to_string(), connections.to_string());
    let options = ["--profile-allocations", &file, "--profile-after", &number];
    command.extend(options.map(str::to_owned));
    command.extend(["--profile-requests", &number].map(str::to_owned));
    let log = workspace.work.join("connections.log");
    let running = Running::start(&command, setting.port, &FILE.path(), &log)?;
    // With the request of the start: those of the warm-up and those recorded.
    connect_times(running.port, 2 * connections - 1)?;
    // The profile is written when one more arrives. It may be answered late, or not at all.
    let _ = connect_times(running.port, 1);
    let begun = Instant::now();
    while !profile.exists() {
        ensure!(
            begun.elapsed() < WRITE_LIMIT,
            "bine has written no profile within {WRITE_LIMIT:?}; its log: {}",
            fs::read_to_string(&log).unwrap_or_default().trim()
        );
        pause(Duration::from_millis(20));
    }
    running.stop()?;
    let show = |options: &[&str]| -> Result<Value> {
        let mut command = Command::new(workspace.bine("bine"));
        command.args(["profile", &file, "--json"]).args(options);
        serde_json::from_str(&output(&mut command)?).context("`bine profile --json`")
    };
    stage_table(&show(&[])?, &show(&["--outside"])?, connections)
}

/// Formats what `bine profile --json` prints about requests, and about the rest with `--outside`.
fn stage_table(inside: &Value, outside: &Value, connections: u64) -> Result<String> {
    let recorded = inside["requests"].as_u64().context("a profile without a number of requests")?;
    ensure!(recorded == connections, "{recorded} requests are recorded, and not {connections}");
    let mut text = format!(
        "The same of Bine by stage, recorded by `--profile-allocations` in a run of its own; `outside` has timers, \
         logs and other threads. Stages without a row allocate nothing. {} allocations had no room.\n\n\
         | stage | allocations | a connection | bytes a connection |\n|---|---|---|---|",
        inside["leftOut"]["number"]
    );
    let [mut calls, mut bytes] = [0; 2];
    let mut add = |name: &str, count: &Value| -> Result<()> {
        let of = |key: &str| count[key].as_u64().with_context(|| format!("no {key} of {name}"));
        let (number, size) = (of("number")?, of("bytes")?);
        calls += number;
        bytes += size;
        text += &row(name, number, size, connections);
        Ok(())
    };
    for stage in inside["stages"].as_array().context("a profile without stages")? {
        add(stage["name"].as_str().context("a stage without a name")?, &stage["allocations"])?;
    }
    add("outside", &outside["outside"])?;
    text += &row("all", calls, bytes, connections);
    Ok(text)
}

fn row(name: &str, calls: u64, bytes: u64, connections: u64) -> String {
    let (mean, mean_bytes) = (ratio(calls, connections), ratio(bytes, connections));
    format!("\n| {name} | {calls} | {mean:.3} | {mean_bytes:.1} |")
}

#[cfg(test)]
mod tests {
    //! The request, and the table of a profile.

    use serde_json::json;

    use super::*;

    #[test]
    fn sends_a_request_of_the_length_of_the_paper() {
        let request =
            ["GET ", &FILE.path(), " HTTP/1.1\r\nHost: 127.0.0.1\r\n", &fields(), "\r\n"].concat();
        assert_eq!(request.len(), REQUEST);
    }

    #[test]
    fn adds_up_stages_and_the_work_outside_of_requests() {
        let count = |number: u64, bytes: u64| json!({ "number": number, "bytes": bytes });
        let inside = json!({
            "requests": 10,
            "leftOut": count(0, 0),
            "stages": [
                { "name": "accept", "allocations": count(10, 1000) },
                { "name": "write", "allocations": count(5, 50) },
            ],
        });
        let outside = json!({ "outside": count(1, 20) });
        let text = stage_table(&inside, &outside, 10).unwrap();
        for row in [
            "| accept | 10 | 1.000 | 100.0 |",
            "| write | 5 | 0.500 | 5.0 |",
            "| outside | 1 | 0.100 | 2.0 |",
            "| all | 16 | 1.600 | 107.0 |",
        ] {
            assert!(text.contains(row), "{row} in {text}");
        }
        assert!(stage_table(&inside, &outside, 11).is_err(), "another number of requests");
    }
}
