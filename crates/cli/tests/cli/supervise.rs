//! Claims about a server whose parent starts it again when it dies.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::bine;
use crate::harness::{Folder, PATIENCE, Program};

/// The process that serves when it is no longer `last`.
fn await_another(control: &str, last: Option<Pid>) -> Pid {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match serving(control) {
            Some(child) if Some(child) != last => return child,
            _ => assert!(Instant::now() < deadline, "no other server begins"),
        }
    }
}

/// The process that serves, as it says itself. It may not be there yet.
fn serving(control: &str) -> Option<Pid> {
    let told = Program::run(&mut bine(&["status", "--control", control])).output;
    let number = told.lines().next()?.strip_prefix("process ")?.parse().ok()?;
    Pid::from_raw(number)
}

#[test]
fn no_newcomer_is_refused_while_the_server_dies_again_and_again() {
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
        // The kernel takes them in, whoever serves them later.
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
fn a_server_that_cannot_even_begin_is_not_started_again() {
    let folder = Folder::new();
    let absent = folder.join("absent");
    let options = ["serve", absent.to_str().unwrap(), "--listen", "127.0.0.1:0", "--supervise"];
    assert_eq!(Program::run(&mut bine(&options)).code, Some(1));
}
