//! Cross-origin requests to channels: every response to a permitted site carries the CORS fields,
//! and no other response does.

use bine::channels::{Access, Settings};
use bine::prelude::*;

use crate::app::{options, program};
use crate::harness::{Peer, Program, Reply};

/// Origin of the permitted site.
const GUEST: &str = "https://guest.example";
const MESSAGE: &str = r#"{"channels":"news","data":"one"}"#;
const TEXT: &str = "Content-Type: text/plain\r\n";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_cors_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .channels(Access::allow_all().origin(GUEST))
        .channel("news", Settings::default())
        .run_with("Usage: guests", options.lines())
}

fn start() -> Program {
    Program::start(&mut program("origins::serve_cors_program", &["--data", "memory"]))
}

/// Sends a request. Each of `fields` includes its line end.
fn ask(peer: &mut Peer, line: &str, origin: &str, fields: &str, body: &str) {
    let length = body.len();
    peer.send(format!(
        "{line} HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\nSec-Fetch-Site: cross-site\r\n\
         {fields}Content-Length: {length}\r\n\r\n{body}"
    ));
}

#[track_caller]
fn expect_cors_fields(reply: &Reply) {
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(GUEST));
    assert_eq!(reply.header("Access-Control-Allow-Credentials"), Some("true"));
    let varies = reply.header("Vary").unwrap();
    assert!(["Origin", "Origin, Authorization, Cookie"].contains(&varies), "{varies}");
    assert!(reply.header("Access-Control-Expose-Headers").unwrap().contains("Cursor"));
}

#[test]
fn permits_site_to_read_all_kinds_of_responses() {
    let program = start();
    let (mut peer, mut other) = (program.connect(), program.connect());
    for (line, fields, body, status) in [
        ("GET /channels?c=news&wait=0", "", "", 204),
        ("POST /channels", "", MESSAGE, 200),
        ("GET /channels?c=news&after=earliest", "", "", 200),
        ("GET /channels?c=nowhere", "", "", 404),
        ("GET /channels?d=news", "", "", 400),
        ("PUT /channels/log", TEXT, "", 201),
        ("GET /channels/log?offset=-1", "", "", 200),
        ("POST /channels/nowhere", TEXT, "x", 404),
    ] {
        ask(&mut peer, line, GUEST, fields, body);
        let reply = peer.reply();
        assert_eq!(reply.status(), status, "{line}: {}", reply.text());
        expect_cors_fields(&reply);
    }
    // Requests that wait for a message.
    for before in ["GET /channels?c=news&after=", "GET /channels/news?live=long-poll&offset="] {
        let now = other.get("/channels?c=news&wait=0");
        let line = format!("{before}{}", now.header("Cursor").unwrap());
        ask(&mut peer, &line, GUEST, "", "");
        ask(&mut other, "POST /channels", GUEST, "", MESSAGE);
        assert_eq!(other.reply().status(), 200);
        let reply = peer.reply();
        assert_eq!(reply.status(), 200, "{line}: {}", reply.text());
        expect_cors_fields(&reply);
    }
    let mut stream = program.connect();
    ask(
        &mut stream,
        "GET /channels?c=news&after=earliest",
        GUEST,
        "Accept: text/event-stream\r\n",
        "",
    );
    let text = stream.await_text("data: one");
    assert_eq!(text.matches("Access-Control-Allow-Origin: https://guest.example\r\n").count(), 1);
}

#[test]
fn answers_preflight_with_permitted_methods_and_fields() {
    let program = start();
    let mut peer = program.connect();
    for target in ["/channels", "/channels/", "/channels/news"] {
        let wish = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
        ask(&mut peer, &format!("OPTIONS {target}"), GUEST, wish, "");
        let reply = peer.reply();
        assert_eq!(reply.status(), 204);
        expect_cors_fields(&reply);
        assert!(reply.header("Access-Control-Allow-Methods").unwrap().contains("POST"));
        assert!(reply.header("Access-Control-Allow-Headers").unwrap().contains("Content-Type"));
        ask(&mut peer, &format!("OPTIONS {target}"), "https://other.example", wish, "");
        assert_eq!(peer.reply().header("Access-Control-Allow-Origin"), None);
    }
}

#[test]
fn cacheable_responses_vary_by_origin() {
    let program = start();
    let mut peer = program.connect();
    ask(&mut peer, "PUT /channels/log", GUEST, TEXT, "one");
    assert_eq!(peer.reply().status(), 201);
    let whole = peer.get("/channels/log?offset=-1");
    let tag = format!("If-None-Match: {}\r\n", whole.header("ETag").unwrap());
    for origin in [GUEST, "https://other.example"] {
        for (fields, status) in [("", 200), (&*tag, 304)] {
            ask(&mut peer, "GET /channels/log?offset=-1", origin, fields, "");
            let reply = peer.reply();
            assert_eq!(reply.status(), status);
            assert_eq!(reply.header("Vary"), Some("Origin, Authorization, Cookie"), "{origin}");
        }
    }
    assert_eq!(whole.header("Vary"), Some("Origin, Authorization, Cookie"));
}

#[test]
fn denies_other_sites_reading_and_writing() {
    let program = start();
    let mut peer = program.connect();
    for origin in
        ["https://other.example", "https://guest.example.org", "http://guest.example", "null"]
    {
        ask(&mut peer, "GET /channels?c=news&wait=0", origin, "", "");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Access-Control-Allow-Origin")), (204, None));
        ask(&mut peer, "POST /channels", origin, "", MESSAGE);
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Access-Control-Allow-Origin")), (403, None));
    }
}

#[test]
fn opens_websockets_only_for_permitted_site() {
    let program = start();
    for (origin, status) in [(GUEST, 101), ("https://other.example", 403)] {
        let mut peer = program.connect();
        peer.send(format!(
            "GET /channels?c=news HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: bine.v1\r\n\r\n"
        ));
        assert_eq!(peer.reply_to_head().status(), status, "{origin}");
    }
}
