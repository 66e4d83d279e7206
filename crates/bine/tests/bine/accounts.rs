//! Accounts that the configuration declares, in a server without a program.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use bine::prelude::*;
use bine::test::{Client, Method};
use serde_json::json;

use crate::app::{options, program};
use crate::harness::{Folder, Program};

/// A server without a program. Ordinary test runs skip it.
#[test]
fn serve_accounts_of_configuration() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    bine::test::keep_hash_priority();
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

/// A name that differed from the account's in case was a user of its own in rules, groups and
/// tokens, so that a command had no effect on the account.
#[test]
fn names_in_other_case_mean_the_account() {
    let folder = Folder::new();
    let socket = folder.path().join("control");
    let page = folder.path().join("www/page");
    std::fs::create_dir_all(page.parent().unwrap()).unwrap();
    for name in ["configured", "grouped", "granted", "member", "other"] {
        std::fs::write(page.with_file_name(name), "text").unwrap();
    }
    let options = [
        "--data",
        "memory",
        "--accounts",
        "on",
        "--api-tokens",
        "on",
        "--control",
        socket.to_str().unwrap(),
        "--root",
        page.parent().unwrap().to_str().unwrap(),
        "--rule",
        "/configured read aNN",
        "--rule",
        "/grouped read group:staff",
        "--group",
        "staff: ANN",
        "--rule",
        "/granted read bob",
        "--rule",
        "/member read group:team",
        "--rule",
        "/other read ann-marie",
    ];
    let server =
        Program::start(&mut program("accounts::serve_accounts_of_configuration", &options));
    let user = |words: &[&str]| ask(&socket, &[&["user"], words].concat());
    assert_eq!(user(&["add", "Ann", "hop vines in May"]), "added Ann\n");
    assert_eq!(user(&["group", "aNn", "+team"]), "ann: staff team\n");
    assert_eq!(user(&["grant", "ANN", "read", "/granted"]), "granted: /granted read ann\n");
    let client = Client::at(server.address());
    let account = json!({ "name": "Ann", "password": "hop vines in May" });
    assert_eq!(client.post_json("/accounts/log-in", &account).status(), 200);
    let token = user(&["token", "ann", "label"]);
    let by_token = |path: &str| {
        let request = Client::at(server.address()).request(Method::Get, path);
        request.header("Authorization", format!("Bearer {}", token.trim())).send()
    };
    for path in ["/configured", "/grouped", "/granted", "/member"] {
        assert_eq!((client.get(path).status(), by_token(path).status()), (200, 200), "{path}");
    }
    assert_eq!((client.get("/other").status(), by_token("/other").status()), (403, 403));
    let me: serde_json::Value = by_token("/accounts/me").json();
    assert_eq!(me["name"], "Ann");
    let explained = user(&["check", "Ann", "/configured"]);
    assert!(explained.contains("may read") && explained.contains("* read aNN"), "{explained}");
    assert_eq!(user(&["revoke", "Ann", "read", "/granted"]), "revoked: /granted read ann\n");
    assert_eq!(client.get("/granted").status(), 403);
    assert_eq!(user(&["group", "Ann", "-team"]), "ann: staff\n");
    assert_eq!(client.get("/member").status(), 403);
    user(&["grant", "ann", "read", "/granted"]);
    assert_eq!(user(&["revoke", "ANN"]), "revoked: 1 stored rights and groups of ann\n");
    user(&["grant", "ann", "read", "/granted"]);
    assert_eq!(user(&["remove", "ANN"]), "removed Ann\n");
    let rules = user(&["rules"]);
    assert!(!rules.contains("/granted read ann"), "{rules}");
}

/// A reader of the access log could use a link that sets a password until its user did.
#[test]
fn access_log_has_no_links_of_accounts() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let test = "accounts::serve_accounts_of_configuration";
    let options = ["--data", "memory", "--accounts", "on", "--access-log", log.to_str().unwrap()];
    let server = Program::start(&mut program(test, &options));
    for path in [
        "/reset-password/s3cret",
        "/reset-password/s3cret/more?a=b",
        "/confirm-email/s3cret",
        "/sign-up?a=b&invitation=s3cret",
        "/log-in?next=%2Freset-password%2Fs3cret",
    ] {
        assert!(Client::at(server.address()).get(path).status() < 500, "{path}");
    }
    let client = Client::at(server.address());
    let reply =
        client.request(Method::Post, "/reset-password/s3cret").body("new_password=x").send();
    assert!(reply.status() < 500, "{}", reply.status());
    assert_eq!(server.stop().code, Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
    assert!(log.contains("GET /sign-up?a=b&invitation=... HTTP"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}
