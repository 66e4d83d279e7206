//! Requests and connections of trusted proxies: their client, scheme and host everywhere in a program.

use std::net::SocketAddr;

use bine::prelude::*;
use bine::{Body, Sessions};

use crate::app::{options, program};
use crate::harness::{Folder, Peer, Program, Reply};

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

pub(crate) fn start(options: &[&str]) -> Program {
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
    let options = ["--trusted-proxies", "127.0.0.1", "--hosts", "any", "--loops", "1"];
    let program = start(&options);
    let (mut peer, mut other) = (program.connect(), program.connect());
    peer.send(format!(
        "POST /post HTTP/1.1\r\nHost: inner\r\n{FIELDS}Expect: 100-continue\r\nContent-Length: 15\r\n\r\n"
    ));
    // The server has read the head.
    assert_eq!(peer.await_text("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    peer.send("12345");
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

/// Starts the program with a second address, for proxies on this machine that send the header of the
/// PROXY protocol. Returns that address.
pub(crate) fn start_with_preface(options: &[&str]) -> (Program, SocketAddr) {
    let usual = ["--trusted-proxies", "127.0.0.1", "--listen", "127.0.0.1:0,tls=off,proxy=on"];
    let mut program = start(&[&usual, options].concat());
    let address = program.await_address();
    let address = address.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    (program, address)
}

/// Requests `path` as a client at `client`, whom a proxy names at `address`.
fn get_as(address: SocketAddr, client: &str, path: &str, fields: &str) -> Reply {
    let mut peer = Peer::tcp(address);
    peer.send(format!("PROXY TCP4 {client} 198.51.100.1 50000 443\r\n"));
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n{fields}\r\n"));
    peer.reply()
}

/// The header of version 2 for a client at 192.0.2.7 that is connected to the proxy with TLS or
/// without.
fn binary(is_secure: bool) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x14".to_vec();
    bytes.extend([192, 0, 2, 7, 198, 51, 100, 1, 0xc3, 0x50, 1, 0xbb]);
    bytes.extend([0x20, 0, 5, is_secure.into(), 0, 0, 0, 0]);
    bytes
}

fn get_binary(address: SocketAddr, is_secure: bool, path: &str) -> Reply {
    let mut peer = Peer::tcp(address);
    peer.send(binary(is_secure));
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n\r\n"));
    peer.reply()
}

#[test]
fn names_the_client_of_a_connection_to_handlers_and_in_the_access_log() {
    let folder = Folder::new();
    let log = folder.join("access.log");
    let (program, address) = start_with_preface(&["--access-log", log.to_str().unwrap()]);
    let reply = get_as(address, "192.0.2.7", "/client", "");
    assert_eq!(reply.text(), "192.0.2.7 http example.org");
    // The client itself has sent these fields.
    let reply = get_as(address, "192.0.2.8", "/client", FIELDS);
    assert_eq!(reply.text(), "192.0.2.8 http example.org");
    assert_eq!(get_as(address, "192.0.2.9", "/blocked", "").text(), "192.0.2.9 example.org");
    assert_eq!(get_as(address, "127.0.0.1", "/client", "").text(), "127.0.0.1 http example.org");
    // The other address has fields in place of headers.
    assert_eq!(get(&program, "/client", FIELDS).text(), "192.0.2.7 https example.org");
    program.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let mut clients: Vec<_> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    clients.sort_unstable();
    let expected = ["127.0.0.1", "192.0.2.7", "192.0.2.7", "192.0.2.8", "192.0.2.9"];
    assert_eq!(clients, expected, "{lines}");
}

#[test]
fn counts_connections_by_the_client_that_their_header_names() {
    let (_program, address) = start_with_preface(&["--connections-per-address", "1"]);
    let mut first = Peer::tcp(address);
    let line = |client: &str| format!("PROXY TCP4 {client} 198.51.100.1 50000 443\r\n");
    first.send(line("192.0.2.7"));
    assert_eq!(first.get("/client").text(), "192.0.2.7 http a");
    assert_eq!(get_as(address, "192.0.2.7", "/client", "").status(), 503);
    assert_eq!(get_as(address, "192.0.2.8", "/client", "").status(), 200);
    assert_eq!(first.get("/client").text(), "192.0.2.7 http a");
}

#[test]
fn sets_secure_cookies_for_a_client_with_tls_at_its_proxy() {
    let (_program, address) = start_with_preface(&["--hsts", "1d"]);
    let reply = get_binary(address, true, "/log_in");
    let cookie = reply.header("Set-Cookie").unwrap();
    assert!(cookie.starts_with("__Host-session=") && cookie.contains("; Secure"), "{cookie}");
    assert_eq!(reply.header("Strict-Transport-Security"), Some("max-age=86400"));
    for reply in
        [get_binary(address, false, "/log_in"), get_as(address, "192.0.2.7", "/log_in", "")]
    {
        let cookie = reply.header("Set-Cookie").unwrap();
        assert!(cookie.starts_with("session=") && !cookie.contains("Secure"), "{cookie}");
        assert_eq!(reply.header("Strict-Transport-Security"), None);
    }
}

/// Symptom: behind a proxy with TLS, `https-redirect` required an own address with TLS.
#[test]
fn redirects_clients_that_a_proxy_reports_without_tls() {
    let (program, address) = start_with_preface(&["--https-redirect", "on"]);
    let reply = get_binary(address, false, "/client?a=b");
    assert_eq!(
        (reply.status(), reply.header("Location")),
        (308, Some("https://example.org/client?a=b"))
    );
    assert_eq!(get_binary(address, true, "/client").text(), "192.0.2.7 https example.org");
    // A redirect would repeat for ever if the proxy has TLS and does not report it.
    assert_eq!(get_as(address, "192.0.2.7", "/client", "").status(), 200);
    let plain = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: example.org:8080\r\n";
    let reply = get(&program, "/client", &format!("{plain}X-Forwarded-Proto: http\r\n"));
    assert_eq!(
        (reply.status(), reply.header("Location")),
        (308, Some("https://example.org/client"))
    );
    assert_eq!(get(&program, "/client", FIELDS).status(), 200);
    assert_eq!(get(&program, "/client", plain).status(), 200);
    assert_eq!(get(&program, "/client", "").status(), 200);
}

#[test]
fn logs_why_it_closes_a_connection_without_a_header() {
    let (program, address) = start_with_preface(&[]);
    let mut peer = Peer::tcp(address);
    peer.send("GET /client HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.expect_closed();
    let errors = program.stop().errors;
    let expected = "closed a connection of 127.0.0.1 to an address with `proxy=on`: it does not begin \
                    with a PROXY header; make the proxy send one";
    assert!(errors.contains(expected), "{errors}");
}
