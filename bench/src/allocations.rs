//! Counts the allocations of a request in steady state.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, Setting, free_port};
use crate::tools::{Workspace, move_to_core_1};

/// Enough requests to fill every pool and cache that fills on first use.
const WARM_UP: u64 = 10_000;

const CONNECTIONS: usize = 4;

/// Counts the server's allocations from outside, with a preloaded library: the shipped program is
/// measured, and allocations of the benchmark do not count.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx, Server::Hyper];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let requests = arguments.number("--requests", 100_000)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let library = workspace.compile("allocations", &["-shared", "-fPIC"])?;
    for server in &servers {
        server.build(&workspace, Content::Page)?;
    }
    move_to_core_1()?;
    println!("{facts}\n\n| server | requests | allocations | a request | bytes a request |");
    println!("|---|---|---|---|---|");
    let mut allocating = false;
    for server in servers {
        let [calls, bytes] = count(&workspace, server, &library, requests)?;
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let a_request = |total: u64| total as f64 / requests as f64;
        println!(
            "| {} | {requests} | {calls} | {:.3} | {:.1} |",
            server.name(),
            a_request(calls),
            a_request(bytes)
        );
        allocating |= server == Server::Bine && calls > 0;
    }
    ensure!(!allocating, "Bine allocated in steady state");
    Ok(())
}

/// The calls and bytes during `requests`, after the warm-up.
fn count(workspace: &Workspace, server: Server, library: &Path, requests: u64) -> Result<[u64; 2]> {
    let counts = workspace.work.join("allocations");
    fs::write(&counts, [0; 16])?;
    let setting = Setting { content: Content::Page, port: free_port()?, loops: 1, canned: None };
    let mut command = vec![
        String::from("env"),
        format!("LD_PRELOAD={}", library.display()),
        format!("ALLOCATIONS={}", counts.display()),
    ];
    command.extend(server.command(workspace, &setting)?);
    let log = workspace.work.join("allocations.log");
    let path = setting.content.path();
    let running = Running::start(&command, setting.port, &path, &log)?;
    ensure!(read(&counts)?[0] > 0, "{} does not use glibc's allocator", server.name());

    let peers: Result<Vec<Peer>> = (0..CONNECTIONS).map(|_| Peer::connect(running.port)).collect();
    let mut peers = peers?;
    let mut ask = |times: u64| -> Result<()> {
        let turns = (0..CONNECTIONS).cycle();
        (0..times).zip(turns).try_for_each(|(_, turn)| peers[turn].get(&path).map(drop))
    };
    ask(WARM_UP)?;
    let before = read(&counts)?;
    ask(requests)?;
    let after = read(&counts)?;
    running.stop()?;
    Ok([after[0] - before[0], after[1] - before[1]])
}

fn read(counts: &Path) -> Result<[u64; 2]> {
    let bytes = fs::read(counts)?;
    let (&[calls, bytes], []) = bytes.as_chunks::<8>() else {
        bail!("the file of counts has a wrong length")
    };
    Ok([u64::from_ne_bytes(calls), u64::from_ne_bytes(bytes)])
}
