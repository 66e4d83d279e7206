//! Tests of a whole server process: signals, the supervisor, the watchdog and the service manager.
//!
//! Each test starts the test program again, which then plays a part of the test: a server, or a
//! supervisor that starts the server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bine_log::test_support::ScratchFolder;
use bine_server::{
    Address, Listen, Server, Settings, User, end_with_parent, inherited, notify, on_hangup,
    stop_on_signals, supervise,
};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::house::{House, settings};
use crate::peer::{Peer, get};
use crate::program::{Parts, Program};

/// Set in a process that a test has started: the part of the process.
const PART: &str = "BINE_TEST_PROCESS_PART";
/// The time limit for each awaited event. To resolve the symbols of a stack for the first time takes
/// seconds of CPU time in a build without optimization.
const PATIENCE: Duration = Duration::from_mins(1);
/// The limit of a watchdog. Even a busy machine runs each thread at least once in this time.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// The command of a supervisor that starts a script in place of a server.
const SCRIPT: &str = "BINE_TEST_PROCESS_SCRIPT";

#[test]
fn finishes_requests_after_a_signal_to_stop() {
    play(|_| ());
    for signal in [Signal::TERM, Signal::INT] {
        let mut process =
            Process::start("process::finishes_requests_after_a_signal_to_stop", "server", &[]);
        let mut idle = process.connect();
        assert_eq!(idle.ask("/"), "200 hello");
        let mut running = process.connect();
        running.send(get("/wait/gate"));
        process.await_line("a request waits");
        process.signal(signal);
        idle.expect_closed();
        process.open_gate();
        assert_eq!(running.reply().status, 200);
        assert_eq!(process.end().0, Some(0));
    }
}

#[test]
fn second_signal_ends_a_process_with_a_blocked_loop() {
    play(|_| ());
    let test = "process::second_signal_ends_a_process_with_a_blocked_loop";
    for part in ["server", "supervisor"] {
        let mut process = Process::start(test, part, &[]);
        let mut blocked = process.connect();
        blocked.send(get("/hold/gate"));
        process.await_line("a request waits");
        // A supervisor forwards each of these signals.
        process.signal(Signal::HUP);
        process.await_line("hangup");
        process.signal(Signal::TERM);
        process.signal(Signal::INT);
        let (status, text) = process.end();
        assert_eq!(status, Some(1), "{part}: {text}");
        assert!(text.contains("second signal to stop"), "{part}: {text}");
        assert!(!text.contains("starting it again"), "{part}: {text}");
    }
}

#[test]
fn drain_timeout_ends_a_process_with_a_blocked_loop() {
    play(|settings| settings.timeouts.drain = Duration::from_millis(50));
    let test = "process::drain_timeout_ends_a_process_with_a_blocked_loop";
    let mut process = Process::start(test, "server", &[]);
    let mut blocked = process.connect();
    blocked.send(get("/hold/gate"));
    process.await_line("a request waits");
    process.signal(Signal::TERM);
    let (status, text) = process.end();
    assert_eq!(status, Some(1), "{text}");
    for part in [
        "the server did not stop within 1.05s of the signal",
        "loop 0 still runs: thread ",
        " (sleeping",
        "gate::Gate::pass",
        "work in the background still runs: a sweep",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn runs_an_action_after_each_hangup() {
    play(|_| ());
    let mut process = Process::start("process::runs_an_action_after_each_hangup", "server", &[]);
    for _ in 0..3 {
        process.signal(Signal::HUP);
        process.await_line("hangup");
    }
    process.signal(Signal::TERM);
    let (status, text) = process.end();
    assert_eq!((status, text.matches("hangup").count()), (Some(0), 3), "{text}");
}

#[test]
fn supervisor_restarts_a_killed_server_at_the_same_address() {
    play(|_| ());
    let test = "process::supervisor_restarts_a_killed_server_at_the_same_address";
    let mut process = Process::start(test, "supervisor", &[]);
    let first = process.server;
    kill_process(first, Signal::KILL).unwrap();
    process.await_line("the server crashed (signal 9); starting it again");
    process.await_server();
    assert_ne!(process.server, first);
    assert_eq!(process.connect().ask("/"), "200 hello");
    process.signal(Signal::TERM);
    assert_eq!(process.end().0, Some(0));
}

#[test]
fn supervisor_restarts_a_crashed_server_and_no_other() {
    play(|_| ());
    let test = "process::supervisor_restarts_a_crashed_server_and_no_other";
    let crashed = |what: &str| format!("the server crashed ({what}); starting it again");
    let stuck = "the server had a stuck event loop; starting it again".to_owned();
    // Exits with the status of each start in turn; 9 means a signal.
    for (statuses, expected, log) in [
        ("0", 0, vec![]),
        // A usage error, and a server that cannot start.
        ("2", 2, vec![]),
        ("3", 3, vec![]),
        ("70 0", 0, vec![stuck]),
        ("9 2", 2, vec![crashed("signal 9")]),
        // A server that has run once may fail for a reason that passes.
        ("9 3 0", 0, vec![crashed("signal 9"), crashed("exit status 3")]),
    ] {
        let folder = ScratchFolder::new();
        let script = format!(
            "cd {}; echo >> starts; set -- {statuses}; shift $(($(wc -l < starts) - 1)); \
             test $1 = 9 && kill -9 $$; exit $1",
            folder.path("").display()
        );
        let process = Process::start_script(test, &script);
        let (status, text) = process.end();
        assert_eq!(status, Some(expected), "{statuses}: {text}");
        let restarts = text.lines().filter(|line| line.contains("starting it again"));
        let restarts: Vec<&str> =
            restarts.map(|line| &line[line.find("the server").unwrap()..]).collect();
        assert_eq!(restarts, log, "{statuses}: {text}");
    }
}

#[test]
fn stops_a_supervisor_that_waits_before_a_restart() {
    play(|_| ());
    let test = "process::stops_a_supervisor_that_waits_before_a_restart";
    let mut process = Process::start_script(test, "kill -9 $$");
    for _ in 0..6 {
        process.await_line("starting it again");
    }
    // Now it waits for 1.6 s.
    process.signal(Signal::TERM);
    let (status, text) = process.end();
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn server_ends_with_its_supervisor() {
    play(|_| ());
    let process = Process::start("process::server_ends_with_its_supervisor", "supervisor", &[]);
    let mut idle = process.connect();
    assert_eq!(idle.ask("/"), "200 hello");
    process.signal(Signal::KILL);
    idle.expect_closed();
    assert_eq!(process.end().0, None);
}

#[test]
fn reports_a_blocked_loop_once_with_its_stack() {
    play(|settings| settings.watchdog.report = Some(STUCK_AFTER));
    let test = "process::reports_a_blocked_loop_once_with_its_stack";
    let mut process = Process::start(test, "server", &[]);
    let mut blocked = process.connect();
    blocked.send(get("/hold/gate"));
    process.await_line("loop 0 has not completed a turn for ");
    process.open_gate();
    process.await_line("loop 0 runs again, after ");
    assert_eq!(blocked.reply().to_string(), "200 held");
    process.signal(Signal::TERM);
    let (status, text) = process.end();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(text.matches("has not completed a turn").count(), 1, "{text}");
    assert!(text.contains("gate::Gate::pass") && text.contains("(sleeping"), "{text}");
}

#[test]
fn counts_loops_that_are_stuck_now_and_all_reports() {
    let mut settings = settings("event");
    settings.watchdog.report = Some(STUCK_AFTER);
    let house = House::with(settings);
    for reports in 1..3 {
        let mut blocked = house.connect();
        let gate = format!("gate {reports}");
        let gate = house.program.gate(&gate.replace(' ', ""));
        blocked.send(get(&format!("/hold/gate{reports}")));
        await_true("a stuck loop", || house.server.metrics().stuck == 1);
        assert_eq!(house.server.metrics().stalls, reports);
        gate.open();
        assert_eq!(blocked.reply().to_string(), "200 held");
        await_true("no stuck loop", || house.server.metrics().stuck == 0);
        assert_eq!(house.server.metrics().stalls, reports);
    }
    house.stop();
    house.await_end();
}

#[test]
fn supervisor_replaces_a_server_with_a_blocked_loop() {
    play(|settings| {
        settings.loops = 2;
        settings.watchdog.replace = Some(STUCK_AFTER);
    });
    let test = "process::supervisor_replaces_a_server_with_a_blocked_loop";
    let mut process = Process::start(test, "supervisor", &[]);
    let first = process.server;
    let mut blocked = process.connect();
    let blocked_loop = blocked.ask("/thread");
    // A connection of the other loop.
    let mut others = std::iter::repeat_with(|| process.connect());
    let mut other =
        others.find_map(|mut peer| (peer.ask("/thread") != blocked_loop).then_some(peer));
    let other = other.as_mut().unwrap();
    other.send(get("/wait/other"));
    process.await_line("another request waits");
    blocked.send(get("/hold/gate"));
    process.await_line("the process finishes its other requests within 30s and is then replaced");
    // The process waits for this request.
    process.send("open other");
    assert_eq!(other.reply().status, 200);
    process.await_line("the server had a stuck event loop; starting it again");
    blocked.expect_closed();
    process.await_server();
    assert_ne!(process.server, first);
    assert_eq!(process.connect().ask("/"), "200 hello");
    process.signal(Signal::TERM);
    assert_eq!(process.end().0, Some(0));
}

/// With `WatchdogSec=` in a unit, the service manager restarts a process without heartbeats.
#[test]
fn sends_readiness_and_heartbeats_to_the_service_manager() {
    play(|_| ());
    let test = "process::sends_readiness_and_heartbeats_to_the_service_manager";
    let folder = ScratchFolder::new();
    let path = folder.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut notice = [0; 64];
    let mut next = || {
        let length = manager.recv(&mut notice).expect("a notice");
        String::from_utf8_lossy(&notice[..length]).into_owned()
    };
    for (part, own) in [("server", vec!["STATUS=busy", "READY=1"]), ("supervisor", vec!["READY=1"])]
    {
        let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "80000")];
        let process = Process::start(test, part, &variables);
        let (mut notices, mut beats) = (Vec::new(), 0);
        while notices.len() < own.len() || beats < 3 {
            match next() {
                beat if beat == "WATCHDOG=1" => beats += 1,
                notice => notices.push(notice),
            }
        }
        assert_eq!(notices, own, "{part}");
        process.signal(Signal::TERM);
        assert_eq!(process.end().0, Some(0));
        manager.set_nonblocking(true).unwrap();
        while manager.recv(&mut [0; 64]).is_ok() {}
        manager.set_nonblocking(false).unwrap();
    }
    // The interval is meant for another process, or there is none.
    for variable in [("WATCHDOG_PID", "1"), ("WATCHDOG_USEC", "0")] {
        let path = path.to_str().unwrap();
        let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "80000"), variable];
        let process = Process::start(test, "server", &variables);
        // Longer than two intervals of heartbeats.
        assert_eq!(process.connect().ask("/sleep/100"), "200 later");
        process.signal(Signal::TERM);
        assert_eq!(process.end().0, Some(0));
        manager.set_nonblocking(true).unwrap();
        let mut count = 0;
        let mut notice = [0; 64];
        while let Ok(length) = manager.recv(&mut notice) {
            count += usize::from(&notice[..length] == b"WATCHDOG=1");
        }
        assert_eq!(count, 0, "{variable:?}");
        manager.set_nonblocking(false).unwrap();
    }
}

#[test]
fn serves_on_a_socket_of_the_service_manager() {
    play(|settings| settings.listeners = inherited().into_iter().map(Listen::on).collect());
    let test = "process::serves_on_a_socket_of_the_service_manager";
    for part in ["server", "supervisor"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        // The first descriptor that a service manager passes is 3.
        let passes = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", passes]).arg(std::env::current_exe().unwrap());
        command.stdin(Stdio::from(OwnedFd::from(listener))).env("BINE_TEST_NO_INPUT", "1");
        let mut process = Process::of(&mut command, test, part);
        process.await_server();
        assert_eq!(Peer::connect(&address).unwrap().ask("/"), "200 hello", "{part}");
        process.signal(Signal::TERM);
        assert_eq!(process.end().0, Some(0), "{part}");
    }
}

#[test]
fn ignores_sockets_of_a_service_manager_for_another_process() {
    if std::env::var_os("LISTEN_FDS").is_some() {
        assert_eq!(inherited(), []);
        return;
    }
    let test = "process::ignores_sockets_of_a_service_manager_for_another_process";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).envs([("LISTEN_FDS", "2"), ("LISTEN_PID", "1")]);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

/// The C library switches each thread; the system calls switch only their own.
#[test]
fn switches_all_threads_to_another_user() {
    let Some(folder) = std::env::var_os(PART) else {
        let folder = ScratchFolder::new();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::switches_all_threads_to_another_user"]);
        let status = command.env(PART, folder.path("")).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
        return;
    };
    let user = User::find("12345:23456").unwrap();
    let file = Path::new(&folder).join("file");
    std::fs::write(&file, "").unwrap();
    if !geteuid().is_root() {
        assert_eq!(user.give(&file).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(user.become_it().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        return;
    }
    user.give(&file).unwrap();
    let owner = std::fs::metadata(&file).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (12345, 23456));
    user.become_it().unwrap();
    let mut threads = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(field("Uid:"), "12345 12345 12345 12345");
        assert_eq!(field("Gid:"), "23456 23456 23456 23456");
        assert_eq!(field("Groups:"), "23456");
        threads += 1;
    }
    assert!(threads >= 2, "the test has a thread of its own");
}

/// Waits until a condition holds.
#[track_caller]
fn await_true(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "there is not {what}");
        thread::yield_now();
    }
}

/// In a process that a test has started, plays its part and ends the process.
fn play(change: impl FnOnce(&mut Settings)) {
    let Some(part) = std::env::var_os(PART) else { return };
    let mut settings = settings("event");
    change(&mut settings);
    let status = if part == "supervisor" { run_supervisor(&settings) } else { serve(settings) };
    bine_log::finish();
    #[expect(clippy::disallowed_methods, reason = "the status of the process is tested")]
    std::process::exit(status)
}

fn run_supervisor(settings: &Settings) -> i32 {
    let mut command = match std::env::var_os(SCRIPT) {
        Some(script) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(script);
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(std::env::args_os().skip(1)).env(PART, "server");
            command
        }
    };
    supervise(&settings.listeners, &mut command).unwrap()
}

/// Serves until a signal, and reports events on standard output.
fn serve(settings: Settings) -> i32 {
    end_with_parent();
    let program = Arc::new(Program::default());
    let parts = Arc::new(Parts(Arc::clone(&program)));
    let server = Arc::new(Server::open(settings, parts, None).unwrap());
    server.set_work_report(Arc::new(|tell| tell("a sweep".to_owned())));
    stop_on_signals(&server).unwrap();
    on_hangup(|| say("hangup")).unwrap();
    for (gate, event) in [("gate", "a request waits"), ("other", "another request waits")] {
        let gate = program.gate(gate);
        thread::spawn(move || {
            gate.await_arrivals(1);
            say(event);
        });
    }
    if std::env::var_os("BINE_TEST_NO_INPUT").is_none() {
        thread::spawn(move || {
            for line in io::stdin().lines() {
                let Some(gate) = line.unwrap().strip_prefix("open ").map(str::to_owned) else {
                    continue;
                };
                program.gate(&gate).open();
            }
            // The test has ended.
            #[expect(clippy::disallowed_methods, reason = "other threads may hang")]
            std::process::exit(0);
        });
    }
    let address = match server.addresses().next() {
        Some(Address::Tcp(address)) => address.to_string(),
        other => format!("{other:?}"),
    };
    say(&format!("process {} serves at {address}", std::process::id()));
    notify("STATUS=busy");
    notify("READY=1");
    match server.run() {
        Ok(()) => 0,
        Err(error) => {
            say(&format!("the run has failed: {error}"));
            1
        }
    }
}

fn say(line: &str) {
    // The test harness prints a partial line before its test runs.
    println!("\n{line}");
    io::stdout().flush().unwrap();
}

/// A process that plays a part, and what it has printed.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    text: String,
    /// The process of the server, which may be another one than `child`.
    server: Pid,
    address: Option<Address>,
}

impl Process {
    /// Starts a process that plays `part` of `test`, and waits until it serves.
    fn start(test: &str, part: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.envs(variables.iter().copied()).stdin(Stdio::piped());
        let mut process = Self::of(&mut command, test, part);
        process.await_server();
        process
    }

    /// Starts a supervisor of a script.
    fn start_script(test: &str, script: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::of(command.env(SCRIPT, script).stdin(Stdio::piped()), test, "supervisor")
    }

    fn of(command: &mut Command, test: &str, part: &str) -> Self {
        command.args(["--exact", test, "--nocapture"]).env(PART, part);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        let (input, server) = (child.stdin.take(), Pid::from_child(&child));
        Self { child, input, lines, text: String::new(), server, address: None }
    }

    /// Waits for a line that contains `mark`, and returns the line.
    #[track_caller]
    fn await_line(&mut self, mark: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no {mark:?} after {}", self.text)
            };
            self.text += &line;
            self.text.push('\n');
            if line.contains(mark) {
                return line;
            }
        }
    }

    /// Waits until a server serves.
    #[track_caller]
    fn await_server(&mut self) {
        let line = self.await_line(" serves at ");
        let (process, address) = line.split_once(" serves at ").unwrap();
        let process = process.strip_prefix("process ").unwrap();
        self.server = Pid::from_raw(process.parse().unwrap()).unwrap();
        self.address = address.parse().ok();
    }

    fn connect(&self) -> Peer {
        Peer::connect(self.address.as_ref().unwrap()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn open_gate(&mut self) {
        self.send("open gate");
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for the end of the process and of its children. Returns the exit status and all text.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.text += &(line + "\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it has not ended: {}", self.text),
            }
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.text))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on the lines of an output.
fn forward(output: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
}
