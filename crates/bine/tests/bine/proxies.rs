//! Requests that come by trusted proxies: their client, scheme and host everywhere in a program.

use bine::prelude::*;
use bine::{Body, Sessions};

use crate::app::{options, program};
use crate::harness::{Folder, Program, Reply};

const FIELDS: &str = "X-Forwarded-For: 198.51.100.9, 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
                      X-Forwarded-Host: example.org\r\n";

/// The client of a request, its scheme and its host.
#[page("/client")]
async fn client(request: Request) -> Response {
    let address = request.client_address();
    let scheme = if address.is_secure() { "https" } else { "http" };
    Response::text(format!("{address} {scheme} {}", request.host().unwrap_or_default()))
}

/// The same, by a handler that blocks.
#[page("/blocked")]
fn blocked(request: Request) -> Response {
    let host = request.host().unwrap_or_default();
    Response::text(format!("{} {host}", request.client_address()))
}

#[page("/log_in")]
async fn log_in(session: Session) -> Result<Response, Error> {
    session.log_in("ann").await?;
    Ok(Response::text("done"))
}

#[page(POST "/post")]
async fn post(request: Request, body: Body) -> Response {
    Response::text(format!("{} bytes of {}", body.len(), request.client_address()))
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_proxied_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .sessions(Sessions::new())
        .page(client)
        .page(blocked)
        .page(log_in)
        .page(post)
        .run_with("Usage: proxied", options.lines())
}

fn start(options: &[&str]) -> Program {
    let options = [&["--data", "memory"], options].concat();
    Program::start(&mut program("proxies::serve_proxied_program", &options))
}

fn get(program: &Program, path: &str, fields: &str) -> Reply {
    let mut peer = program.connect();
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: inner\r\n{fields}\r\n"));
    peer.reply()
}

#[test]
fn names_the_client_of_a_proxy_to_handlers_and_in_the_access_log() {
    let folder = Folder::new();
    let log = folder.join("access.log");
    let log_option = log.to_str().unwrap();
    let program =
        start(&["--trusted-proxies", "127.0.0.0/8", "--access-log", log_option, "--hosts", "any"]);
    assert_eq!(get(&program, "/client", FIELDS).text(), "192.0.2.7 https example.org");
    assert_eq!(get(&program, "/blocked", FIELDS).text(), "192.0.2.7 example.org");
    assert_eq!(get(&program, "/client", "").text(), "127.0.0.1 http inner");
    program.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let mut clients: Vec<_> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    // Each connection is on a loop of its own, and each loop writes its lines in its turns.
    clients.sort_unstable();
    assert_eq!(clients, ["127.0.0.1", "192.0.2.7", "192.0.2.7"], "{lines}");
}

#[test]
fn keeps_the_client_of_a_request_whose_body_comes_later() {
    let program = start(&["--trusted-proxies", "127.0.0.1", "--hosts", "any"]);
    let (mut peer, mut other) = (program.connect(), program.connect());
    peer.send(format!(
        "POST /post HTTP/1.1\r\nHost: inner\r\n{FIELDS}Content-Length: 15\r\n\r\n12345"
    ));
    // A request of another client on the same thread.
    let fields = "X-Forwarded-For: 192.0.2.8\r\n";
    other.send(format!("GET /blocked HTTP/1.1\r\nHost: inner\r\n{fields}\r\n"));
    assert_eq!(other.reply().text(), "192.0.2.8 inner");
    peer.send("1234567890");
    assert_eq!(peer.reply().text(), "15 bytes of 192.0.2.7");
}

#[test]
fn ignores_the_fields_of_other_clients() {
    let program = start(&["--trusted-proxies", "10.0.0.0/8", "--hosts", "any"]);
    assert_eq!(get(&program, "/client", FIELDS).text(), "127.0.0.1 http inner");
}

#[test]
fn reads_the_standard_field_where_the_configuration_says_so() {
    let options =
        ["--trusted-proxies", "127.0.0.1", "--proxy-fields", "forwarded", "--hosts", "any"];
    let program = start(&options);
    let fields = format!("{FIELDS}Forwarded: for=192.0.2.1;proto=http;host=example.net\r\n");
    assert_eq!(get(&program, "/client", &fields).text(), "192.0.2.1 http example.net");
}

#[test]
fn sets_secure_cookies_and_hsts_behind_a_proxy_with_tls() {
    let program = start(&["--trusted-proxies", "127.0.0.1", "--hosts", "any", "--hsts", "1d"]);
    let post = |fields: &str| {
        let mut peer = program.connect();
        peer.send(format!("GET /log_in HTTP/1.1\r\nHost: inner\r\n{fields}\r\n"));
        peer.reply()
    };
    let reply = post(FIELDS);
    let cookie = reply.header("Set-Cookie").unwrap();
    assert!(cookie.starts_with("__Host-session=") && cookie.contains("; Secure"), "{cookie}");
    assert_eq!(reply.header("Strict-Transport-Security"), Some("max-age=86400"));
    let reply = post("X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n");
    let cookie = reply.header("Set-Cookie").unwrap();
    assert!(cookie.starts_with("session=") && !cookie.contains("Secure"), "{cookie}");
    assert_eq!(reply.header("Strict-Transport-Security"), None);
}

#[test]
fn compares_origins_with_the_host_that_the_proxy_reports() {
    let program = start(&["--trusted-proxies", "127.0.0.1", "--hosts", "any"]);
    let status = |origin: &str, fields: &str| {
        let mut peer = program.connect();
        peer.send(format!(
            "POST /post HTTP/1.1\r\nHost: inner\r\nOrigin: {origin}\r\n{fields}\
             Content-Length: 1\r\n\r\na"
        ));
        peer.reply().status()
    };
    assert_eq!(status("https://example.org", FIELDS), 200);
    assert_eq!(status("https://inner", FIELDS), 403);
    assert_eq!(status("https://example.org", ""), 403);
}

#[test]
fn answers_for_the_hosts_of_the_configuration_only() {
    let program = start(&["--trusted-proxies", "127.0.0.1", "--hosts", "example.org"]);
    assert_eq!(get(&program, "/client", FIELDS).status(), 200);
    let other = FIELDS.replace("example.org", "example.net");
    assert_eq!(get(&program, "/client", &other).status(), 421);
}
