//! A loop blocked by a handler is reported, and prevents neither exit nor replacement of the
//! process.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use bine::{App, Exit, Page, Path, html, page};
use rustix::process::Signal;

use crate::app;
use crate::harness::{Folder, PATIENCE, Peer, Program};

/// Schedulers that run handlers on event loops.
const LOOPS: [&str; 3] = ["hybrid", "event", "cohort"];
/// Logs to standard output, in order with the program's own lines.
const LOGGED: [&str; 4] = ["--error-log", "/dev/stdout", "--watchdog-report", STUCK_AFTER];
/// The limit of the watchdog. Even a busy machine runs each thread at least once in this time.
const STUCK_AFTER: &str = "2s";

#[test]
fn serve_watchdog_program() -> Exit {
    let Some(options) = app::options() else { return Exit::success() };
    // A supervisor runs the same program again with the same options.
    let is_child = std::env::var_os("BINE_SUPERVISED").is_some();
    let options = options.lines().filter(|option| !(is_child && *option == "--supervise"));
    App::new()
        .page(app::hello)
        .page(spins)
        .page(blocks)
        .page(process)
        .page(thread)
        .page(held_open)
        .on_start(note_start)
        .run_with("Usage: app", options)
}

/// Reports the start to the socket that the test names, if it names one.
fn note_start() {
    if let Some(path) = std::env::var_os("BINE_TEST_MANAGER") {
        UnixDatagram::unbound().unwrap().send_to(b"starting", path).unwrap();
    }
}

/// Never returns to its loop and uses a whole core.
#[page("/spins")]
async fn spins() -> impl Page {
    println!("\nspins has begun");
    spin_for_ever();
    html!()
}

fn spin_for_ever() {
    loop {
        std::hint::spin_loop();
    }
}

/// Blocks its loop until the listener at `port` closes the connection.
#[page("/blocks/{port}")]
async fn blocks(port: Path<u16>) -> impl Page {
    wait_for_end(*port);
    html!(<p>done</p>)
}

fn wait_for_end(port: u16) {
    let _ = TcpStream::connect(("127.0.0.1", port)).unwrap().read(&mut [0]);
}

#[page("/process")]
async fn process() -> impl Page {
    let number = std::process::id();
    html!({ number })
}

#[page("/thread")]
async fn thread() -> impl Page {
    let name = format!("{:?}", std::thread::current().id());
    html!({ name })
}

/// Responds when the listener at `port` closes the connection, without blocking its loop.
#[page("/held-open/{port}")]
async fn held_open(port: Path<u16>) -> impl Page {
    println!("\nheld open");
    bine::blocking(move || wait_for_end(*port)).await;
    html!(<p>done</p>)
}

fn start(options: &[&str]) -> Program {
    start_with(options, &[])
}

fn start_with(options: &[&str], variables: &[(&str, &str)]) -> Program {
    let test = "watchdog::serve_watchdog_program";
    let mut command = app::program(test, options);
    Program::start(command.envs(variables.iter().copied()))
}

/// Waits for a line with `mark`. Returns the text up to the line with `end`.
fn lines_until(program: &mut Program, mark: &str, end: &str) -> String {
    let mut text = program.await_line(mark);
    loop {
        let line = program.await_line("");
        text.push('\n');
        text.push_str(&line);
        if line.contains(end) {
            return text;
        }
    }
}

#[test]
fn reports_blocked_loop_once_with_stack_and_reports_its_recovery() {
    for scheduler in LOOPS {
        let mut program = start(
            &[&LOGGED[..], &["--scheduler", scheduler, "--loops", "1", "--metrics", "127.0.0.1:0"]]
                .concat(),
        );
        let metrics = program.await_line("metrics at http://");
        let metrics = metrics.strip_suffix("/metrics").unwrap().parse().unwrap();
        let waiting = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = program.connect();
        let target = format!("/blocks/{}", waiting.local_addr().unwrap().port());
        peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (held, _) = waiting.accept().unwrap();
        program.await_line("loop 0 has not completed a turn for");
        let figures = Peer::tcp(metrics).get("/metrics").text().to_owned();
        assert!(figures.contains("\nbine_loops_stuck 1\n"), "{figures}");
        assert!(figures.contains("\nbine_loop_stalls_total 1\n"), "{figures}");
        drop(held);
        let text = lines_until(&mut program, "", "loop 0 runs again");
        assert!(text.contains("wait_for_end"), "the stack lacks the function: {text}");
        assert!(text.contains("watchdog.rs:"), "the stack lacks the file: {text}");
        assert!(!text.contains("has not completed a turn"), "reported twice: {text}");
        assert_eq!(peer.reply().text(), "<p>done</p>", "{scheduler}");
        assert_eq!(program.stop().code, Some(0), "{scheduler}");
    }
}

/// Regression: the first signal to a server with its only loop blocked was not logged, nor was the
/// stack.
#[test]
fn second_signal_ends_program_with_spinning_handler() {
    for scheduler in LOOPS {
        let mut program = start(&["--scheduler", scheduler, "--loops", "1"]);
        let mut peer = program.connect();
        peer.send("GET /spins HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("spins has begun");
        // Send different signals, because two pending ones of the same kind merge.
        program.signal(Signal::TERM);
        program.signal(Signal::INT);
        let ended = program.wait();
        assert_eq!(ended.code, Some(1), "{scheduler}");
        assert!(ended.errors.contains("second signal to stop"), "{}", ended.errors);
    }
}

#[test]
fn drain_timeout_ends_program_with_spinning_handler() {
    let errors_of = |scheduler| {
        let mut program =
            start(&["--scheduler", scheduler, "--loops", "1", "--drain-timeout", "50ms"]);
        let mut peer = program.connect();
        peer.send("GET /spins HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("spins has begun");
        program.signal(Signal::TERM);
        let ended = program.wait();
        assert_eq!(ended.code, Some(1), "{scheduler}");
        assert!(ended.errors.contains("did not stop within"), "{}", ended.errors);
        ended.errors
    };
    for scheduler in LOOPS {
        // On a busy machine the thread may not show its stack in the short time that is left.
        let logged = (0..5).map(|_| errors_of(scheduler));
        let has_stack = logged.into_iter().any(|errors| errors.contains("spin_for_ever"));
        assert!(has_stack, "the stack is not logged: {scheduler}");
    }
}

#[test]
fn supervisor_replaces_server_with_blocked_loop() {
    let options = ["--loops", "1", "--supervise", "--watchdog-replace", STUCK_AFTER];
    let mut program = start(&[&LOGGED[..], &options].concat());
    let first = program.connect().get("/process").text().to_owned();
    let mut stuck = program.connect();
    stuck.send("GET /spins HTTP/1.1\r\nHost: a\r\n\r\n");
    program.await_line("spins has begun");
    // The new connection waits in the kernel's queue.
    let mut newcomer = program.connect();
    stuck.expect_closed();
    let second = newcomer.get("/process").text().to_owned();
    assert_ne!(first, second, "the same process still responds");
    let ended = program.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The supervisor started without a configured log.
    assert_eq!(
        ended.errors.matches("had a stuck event loop; starting it again").count(),
        1,
        "{ended:?}"
    );
}

#[test]
fn other_loops_complete_requests_before_replacement() {
    let options = ["--loops", "2", "--supervise", "--watchdog-replace", STUCK_AFTER];
    let mut program = start(&[&LOGGED[..], &options].concat());
    let mut healthy = program.connect();
    let its_loop = healthy.get("/thread").text().to_owned();
    let mut others = std::iter::repeat_with(|| program.connect());
    let mut stuck =
        others.find_map(|mut peer| (peer.get("/thread").text() != its_loop).then_some(peer));
    let stuck = stuck.as_mut().unwrap();
    let waiting = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = waiting.local_addr().unwrap().port();
    healthy.send(format!("GET /held-open/{port} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let (held, _) = waiting.accept().unwrap();
    stuck.send("GET /spins HTTP/1.1\r\nHost: a\r\n\r\n");
    program.await_line("finishes its other requests");
    drop(held);
    assert_eq!(healthy.reply().text(), "<p>done</p>");
    stuck.expect_closed();
    assert_eq!(program.connect().get("/hello?name=a").status(), 200);
    assert_eq!(program.stop().code, Some(0));
}

/// With `WatchdogSec=` in a unit, the service manager restarts a process without heartbeats.
#[test]
fn stops_heartbeats_while_a_loop_is_blocked() {
    for supervise in [&[][..], &["--supervise", "--watchdog-replace", "off"]] {
        let folder = Folder::new();
        let path = folder.join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let options = [&LOGGED[..], &["--loops", "1"], supervise].concat();
        let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
        let mut program = start_with(&options, &variables);
        await_beat(&manager);
        let waiting = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = program.connect();
        let port = waiting.local_addr().unwrap().port();
        peer.send(format!("GET /blocks/{port} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (held, _) = waiting.accept().unwrap();
        program.await_line("loop 0 has not completed a turn for");
        // Longer than the interval of heartbeats. Those of the time before still wait in the socket.
        manager.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let begun = Instant::now();
        while manager.recv(&mut [0; 64]).is_ok() {
            assert!(begun.elapsed() < PATIENCE, "heartbeats continue while a loop is blocked");
        }
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        drop(held);
        await_beat(&manager);
        assert_eq!(peer.reply().status(), 200);
        assert_eq!(program.stop().code, Some(0));
    }
}

/// A supervisor reported readiness when it had created the server's process, which may still read a
/// large journal.
#[test]
fn reports_readiness_when_the_server_is_ready() {
    for supervise in [&[][..], &["--supervise"]] {
        let folder = Folder::new();
        let path = folder.join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = path.to_str().unwrap();
        let variables = [("NOTIFY_SOCKET", path), ("BINE_TEST_MANAGER", path)];
        let program = start_with(supervise, &variables);
        let mut state = [0; 64];
        let mut next = || {
            let length = manager.recv(&mut state).expect("no notice");
            String::from_utf8_lossy(&state[..length]).into_owned()
        };
        assert_eq!([next(), next()], ["starting", "READY=1"], "{supervise:?}");
        program.signal(Signal::HUP);
        assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="), "{supervise:?}");
        assert_eq!(next(), "READY=1", "{supervise:?}");
        assert_eq!(program.stop().code, Some(0));
    }
}

fn await_beat(manager: &UnixDatagram) {
    let mut state = [0; 64];
    loop {
        let length = manager.recv(&mut state).expect("no heartbeat");
        if &state[..length] == b"WATCHDOG=1" {
            return;
        }
    }
}
