//! Accounts that the configuration declares, in a server without a program.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use bine::prelude::*;
use bine::test::Client;
use serde_json::json;

use crate::app::{options, program};
use crate::harness::{Folder, Program};

/// A server without a program. Ordinary test runs skip it.
#[test]
fn serve_accounts_of_configuration() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new().run_with("Usage: accounts", options.lines())
}

fn log_in(program: &Program, name: &str, password: &str) -> u16 {
    let client = Client::at(program.address());
    client.post_json("/accounts/log-in", &json!({ "name": name, "password": password })).status()
}

/// Sends a command to the control socket and returns the answer without its first line.
fn ask(socket: &Path, words: &[&str]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{}\n", json!(words)).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.strip_prefix("ok\n").unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn configuration_without_a_program_declares_accounts() {
    let folder = Folder::new();
    let socket = folder.path().join("control");
    let usual = ["--data", "memory", "--control", socket.to_str().unwrap()];
    let test = "accounts::serve_accounts_of_configuration";
    let start = |options: &[&str]| Program::start(&mut program(test, &[&usual, options].concat()));
    let server = start(&["--accounts", "on"]);
    let hash = ask(&socket, &["user", "hash", "hop vines in May"]);
    assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
    assert_eq!(ask(&socket, &["user", "list"]), "");
    server.stop();
    let account = format!("Ann:{}", hash.trim_end());
    let server = start(&["--account", &account]);
    assert_eq!(log_in(&server, "ann", "hop vines in May"), 200);
    assert_eq!(log_in(&server, "ann", "hop vines in June"), 403);
    let mut tab = Client::at(server.address()).visit("/log-in");
    tab.expect("h1", "Log in");
    tab.visit("/sign-up");
    tab.expect("[role=alert]", "Nobody can sign up here.");
    assert_eq!(ask(&socket, &["user", "list"]), "Ann\t- declared\n");
    assert_eq!(ask(&socket, &["user", "add", "Bob", "hop vines in June"]), "added Bob\n");
    assert_eq!(log_in(&server, "Bob", "hop vines in June"), 200);
}

#[test]
fn rejects_declarations_that_are_no_accounts() {
    let test = "accounts::serve_accounts_of_configuration";
    for (account, reason) in [
        ("Ann", "must be NAME:HASH"),
        ("Ann:secret", "must have a hash like $argon2id$v=19$"),
        ("a@b:$argon2id$", "the name must not contain @"),
    ] {
        let ended = Program::run(&mut program(test, &["--account", account]));
        assert!(ended.errors.contains(reason), "{}", ended.errors);
    }
}
