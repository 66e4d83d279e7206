//! Tests of a supervised server, which its parent restarts when it dies.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::bine;
use crate::harness::{Folder, PATIENCE, Program};

/// Waits until a process other than `last` serves.
fn await_another(control: &str, last: Option<Pid>) -> Pid {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match serving(control) {
            Some(child) if Some(child) != last => return child,
            _ => assert!(Instant::now() < deadline, "no other server begins"),
        }
    }
}

/// Returns the process that serves, as `bine status` reports it; `None` before the first answer.
fn serving(control: &str) -> Option<Pid> {
    let status = Program::run(&mut bine(&["status", "--control", control])).output;
    let number = status.lines().next()?.strip_prefix("process ")?.parse().ok()?;
    Pid::from_raw(number)
}

#[test]
fn accepts_connections_while_server_is_restarted() {
    let folder = Folder::new();
    folder.write("www/index.html", b"home");
    let (root, control) = (folder.join("www"), folder.join("control"));
    let (root, control) = (root.to_str().unwrap(), control.to_str().unwrap());
    let options = ["serve", root, "--listen", "127.0.0.1:0", "--supervise", "--control", control];
    let program = Program::start(&mut bine(&options));
    let mut last = None;
    for _ in 0..5 {
        let child = await_another(control, last);
        assert_eq!(program.connect().get("/").text(), "home");
        kill_process(child, Signal::KILL).unwrap();
        last = Some(child);
        // The kernel accepts connections on the listening socket, whichever process serves them
        // later.
        for _ in 0..20 {
            drop(program.connect());
        }
    }
    await_another(control, last);
    let ended = program.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.errors.matches("signal 9").count(), 5, "{}", ended.errors);
}

#[test]
fn does_not_restart_server_that_fails_to_start() {
    let folder = Folder::new();
    let absent = folder.join("absent");
    let options = ["serve", absent.to_str().unwrap(), "--listen", "127.0.0.1:0", "--supervise"];
    assert_eq!(Program::run(&mut bine(&options)).code, Some(1));
}
