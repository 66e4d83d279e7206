//! Decides what the smallest program says, byte for byte.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Program, SCHEDULERS, undated};

/// Cargo builds a package's examples with its tests, in a folder beside theirs.
fn program() -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push("hello");
    assert!(path.exists(), "build it: cargo build --example hello");
    Command::new(path)
}

#[test]
fn hello_says_hello_byte_for_byte() {
    for scheduler in SCHEDULERS {
        let mut command = program();
        command.args(["--listen", "127.0.0.1:0", "--scheduler", scheduler]);
        let program = Program::start(&mut command);
        let reply = program.connect().get("/hello?name=TLUG");
        assert_eq!(
            undated(&reply.head),
            "HTTP/1.1 200 OK\r\nDate: -\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Length:         19\r\n\r\n"
        );
        assert_eq!(reply.text(), "<h1>Hello TLUG</h1>");
        let ended = program.stop();
        assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{scheduler}");
    }
}

#[test]
fn a_name_from_outside_is_only_text() {
    let program = Program::start(program().args(["--listen", "127.0.0.1:0"]));
    let reply = program.connect().get("/hello?name=%3Cscript%3E+%26");
    assert_eq!(reply.text(), "<h1>Hello &lt;script&gt; &amp;</h1>");
}
