//! Counts the allocations of a request in steady state, and of a connection with one request.

mod connections;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::origin::Version;
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
    let connections = arguments.number("--connections", 10_000)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let library = workspace.compile("allocations", &["-shared", "-fPIC"])?;
    let file_servers: Vec<Server> =
        servers.iter().copied().filter(|server| server.serves(connections::FILE)).collect();
    for server in &servers {
        server.build(&workspace, Content::Page)?;
    }
    connections::prepare(&workspace, &file_servers)?;
    move_to_core_1()?;
    println!("{facts} Bine {}.\n", Version::of(&workspace.root));
    connections::run(&workspace, &file_servers, &library, connections)?;
    println!("\n| server | requests | allocations | a request | bytes a request |");
    println!("|---|---|---|---|---|");
    let mut allocating = false;
    for server in servers {
        let [calls, bytes] = count(&workspace, server, &library, requests)?;
        println!(
            "| {} | {requests} | {calls} | {:.3} | {:.1} |",
            server.name(),
            ratio(calls, requests),
            ratio(bytes, requests)
        );
        allocating |= server == Server::Bine && calls > 0;
    }
    ensure!(!allocating, "Bine allocated in steady state");
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(total: u64, of: u64) -> f64 {
    total as f64 / of as f64
}

/// A server whose allocations are counted from outside.
struct Counted {
    running: Running,
    counts: PathBuf,
}

impl Counted {
    fn start(
        workspace: &Workspace,
        server: Server,
        content: Content,
        library: &Path,
    ) -> Result<Self> {
        let counts = workspace.work.join("allocations");
        fs::write(&counts, [0; 16])?;
        let setting = Setting { content, port: free_port()?, loops: 1, canned: None };
        let mut command = vec![
            String::from("env"),
            format!("LD_PRELOAD={}", library.display()),
            format!("ALLOCATIONS={}", counts.display()),
        ];
        command.extend(server.command(workspace, &setting)?);
        let log = workspace.work.join("allocations.log");
        let running = Running::start(&command, setting.port, &content.path(), &log)?;
        let counted = Self { running, counts };
        ensure!(counted.read()?[0] > 0, "{} does not use glibc's allocator", server.name());
        Ok(counted)
    }

    /// The calls and bytes so far.
    fn read(&self) -> Result<[u64; 2]> {
        let bytes = fs::read(&self.counts)?;
        let (&[calls, bytes], []) = bytes.as_chunks::<8>() else {
            bail!("the file of counts has a wrong length")
        };
        Ok([u64::from_ne_bytes(calls), u64::from_ne_bytes(bytes)])
    }
}

/// The calls and bytes during `requests`, after the warm-up.
fn count(workspace: &Workspace, server: Server, library: &Path, requests: u64) -> Result<[u64; 2]> {
    let counted = Counted::start(workspace, server, Content::Page, library)?;
    let path = Content::Page.path();
    let connect = |_| Peer::connect(counted.running.port);
    let mut peers: Vec<Peer> = (0..CONNECTIONS).map(connect).collect::<Result<_>>()?;
    let mut ask = |times: u64| -> Result<()> {
        let turns = (0..CONNECTIONS).cycle();
        (0..times).zip(turns).try_for_each(|(_, turn)| peers[turn].get(&path).map(drop))
    };
    ask(WARM_UP)?;
    let before = counted.read()?;
    ask(requests)?;
    let after = counted.read()?;
    counted.running.stop()?;
    Ok([after[0] - before[0], after[1] - before[1]])
}
