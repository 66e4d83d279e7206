//! Decides what the example programs say, the smallest one byte for byte.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Program, SCHEDULERS, undated};

/// Cargo builds a package's examples with its tests, in a folder beside theirs.
fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push(name);
    assert!(path.exists(), "build it: cargo build --example {name}");
    Command::new(path)
}

fn program() -> Command {
    example("hello")
}

fn serve(name: &str) -> Program {
    Program::start(example(name).args(["--listen", "127.0.0.1:0"]))
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

#[test]
fn filters_stand_before_the_pages_in_their_order() {
    let program = serve("filter");
    let mut peer = program.connect();
    assert_eq!(peer.get("/welcome.html").text(), "<h1>Welcome</h1>");
    let moved = peer.get("/drafts/1.html");
    assert_eq!((moved.status(), moved.field("Location")), (308, Some("/drafts/1")));
    assert_eq!(peer.get("/drafts/1").status(), 404);
    assert_eq!(peer.get("/drafts/1?key=hops").text(), "<h1>Draft 1</h1>");
}

#[test]
fn a_step_of_the_program_may_ask_another_server() {
    let other = serve("hello");
    let mut command = example("step");
    command.args(["--listen", "127.0.0.1:0"]).env("OTHER", other.address().to_string());
    let program = Program::start(&mut command);
    assert!(program.connect().get("/").text().contains("Ours."));
    assert_eq!(program.connect().get("/other/hello?name=a").text(), "<h1>Hello a</h1>");
    other.stop();
    assert_eq!(program.connect().get("/other/hello?name=a").status(), 502);
}

#[test]
fn a_clock_ticks_while_somebody_reads() {
    let reply = serve("stream").connect().get("/clock?times=3&every=1").text().to_owned();
    assert_eq!(reply, "tick 1\ntick 2\ntick 3\n");
}
