//! Tests of a server without free descriptors: it serves its open connections, uses next to no CPU
//! time, and accepts again when a descriptor is free.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_server::{Address, Guards, Server, Settings};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::house::settings;
use crate::peer::{Peer, get};
use crate::program::{Parts, Program};

/// Set in the child process that runs the server, because limits apply to whole processes.
const CHILD: &str = "BINE_TEST_FEW_DESCRIPTORS";

#[test]
fn waits_without_spinning_for_a_free_descriptor() {
    if std::env::var_os(CHILD).is_some() {
        // The guard would close the waiting connections.
        return serve(Guards { descriptors: None, ..Guards::default() }, 30);
    }
    let (mut child, address, _written) =
        launch("exhaustion::waits_without_spinning_for_a_free_descriptor");
    let mut peers: Vec<Peer> = (0..40).map(|_| Peer::connect(&address).unwrap()).collect();
    let mut complaints = BufReader::new(child.stderr.take().unwrap()).lines();
    let complaint = complaints.find(|line| line.as_ref().unwrap().contains("cannot accept"));
    assert!(complaint.is_some(), "descriptors have not run out");

    // Open connections are served, immediately or later.
    assert_eq!(peers[0].ask("/"), "200 hello");
    let used = |peer: &mut Peer| -> u64 {
        peer.send(get("/cpu"));
        String::from_utf8(peer.reply().content).unwrap().parse().unwrap()
    };
    let before = used(&mut peers[0]);
    let began = Instant::now();
    assert_eq!(peers[0].ask("/sleep/600"), "200 later");
    assert!(began.elapsed() >= Duration::from_millis(600));
    // A spinning loop would use 600 ms of CPU time here.
    let spent = used(&mut peers[0]) - before;
    assert!(spent < 200, "{spent} ms of processor time");

    // The server accepts waiting clients when accepted clients disconnect.
    peers.drain(..20);
    for peer in &mut peers {
        assert_eq!(peer.ask("/"), "200 hello");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Symptom: idle connections kept their places for 75 seconds, and the server accepted no new
/// connection.
#[test]
fn closes_only_idle_unknown_clients_when_descriptors_run_short() {
    if std::env::var_os(CHILD).is_some() {
        return serve(Guards::default(), 0);
    }
    let (mut child, address, _written) =
        launch("exhaustion::closes_only_idle_unknown_clients_when_descriptors_run_short");
    let connect = || Peer::connect(&address).unwrap();
    let mut known: Vec<Peer> = (0..10).map(|_| connect()).collect();
    for peer in &mut known {
        peer.send("GET / HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
        assert_eq!(peer.reply().to_string(), "200 hello");
    }
    // The server has room for 32.
    let mut strangers: Vec<Peer> = Vec::new();
    for _ in 0..60 {
        let mut peer = connect();
        assert_eq!(peer.ask("/"), "200 hello");
        strangers.push(peer);
    }
    for peer in &mut known {
        assert_eq!(peer.ask("/"), "200 hello");
    }
    // The server closes the connections that were idle for the longest time.
    strangers[0].expect_closed();
    assert_eq!(strangers[59].ask("/"), "200 hello");
    let complaints = BufReader::new(child.stderr.take().unwrap()).lines();
    drop(child.stdin.take());
    let told = complaints.map(Result::unwrap).filter(|line| line.contains("of descriptors"));
    assert!(told.count() > 0);
    assert!(child.wait().unwrap().success());
}

/// Symptom: clients that sent half a head or half a body, or read nothing, kept their places until
/// their timeouts, and the server accepted no new connection. Cause: the server evicted only idle
/// connections.
#[test]
fn evicts_slow_heads_bodies_and_readers_when_descriptors_run_short() {
    if std::env::var_os(CHILD).is_some() {
        return serve(Guards::default(), 0);
    }
    let (mut child, address, _written) =
        launch("exhaustion::evicts_slow_heads_bodies_and_readers_when_descriptors_run_short");
    let slow = [
        "GET / HTTP/1.1\r\nHost: a\r\nHalf-A-He".to_owned(),
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf".to_owned(),
        get("/long/9000000"),
    ];
    for request in slow {
        let _slow: Vec<Peer> = (0..40)
            .map(|_| {
                let mut peer = Peer::connect(&address).unwrap();
                peer.send(&request);
                peer
            })
            .collect();
        for _ in 0..3 {
            assert_eq!(Peer::connect(&address).unwrap().ask("/"), "200 hello", "{request}");
        }
    }
    let mut inside = Peer::connect(&address).unwrap();
    assert_eq!(inside.ask("/"), "200 hello");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Runs `test` in a child process. Returns the child, the address that it serves, and its remaining
/// output.
fn launch(test: &str) -> (Child, Address, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines.find_map(|line| Some(line.unwrap().split_once("serves at ")?.1.to_owned()));
    (child, address.unwrap().parse().unwrap(), lines)
}

/// Serves until standard input ends, with 61 descriptors more than this process inherited, and
/// keeps `others` of the 61 open itself.
///
/// The limit used to be 64 in total. A test runner that leaked two descriptors to its children left
/// too few for the clients that a test waits for.
fn serve(guards: Guards, others: usize) {
    // One of the entries is the open folder itself.
    let inherited = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    let most = Some(inherited + 61);
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let parts = Arc::new(Parts(Arc::new(Program::default())));
    let mut settings = Settings { guards, ..settings("hybrid") };
    // No timeout closes a connection.
    let never = Duration::from_hours(1);
    (settings.timeouts.head, settings.timeouts.body) = (never, never);
    settings.timeouts.write = never;
    let server = Arc::new(Server::open(settings, parts, None).unwrap());
    let _held: Vec<File> = (0..others).map(|_| File::open("/dev/null").unwrap()).collect();
    let Some(Address::Tcp(address)) = server.addresses().next() else { unreachable!() };
    // The test harness prints a partial line before its test runs.
    println!("serves at {address}");
    std::io::stdout().flush().unwrap();
    let stopper = Arc::clone(&server);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopper.stop();
        stopper.stop();
    });
    // The server cuts the remaining connections and returns an error.
    assert_eq!(server.run().unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}
