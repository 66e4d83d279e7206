//! Claims about pages of other sites: those that may reach channels are told so in every reply, and no others.

use bine::channels::{Access, Settings};
use bine::prelude::*;

use crate::app::{options, program};
use crate::harness::{Peer, Program, Reply};

/// Whose pages may.
const GUEST: &str = "https://guest.example";
const MESSAGE: &str = r#"{"channels":"news","data":"one"}"#;
const TEXT: &str = "Content-Type: text/plain\r\n";

/// The program itself. As a test among the others it has nothing to do.
#[test]
fn the_program_with_a_guest_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .channels(Access::everything().origin(GUEST))
        .channel("news", Settings::default())
        .run_with("Usage: guests", options.lines())
}

fn start() -> Program {
    Program::start(&mut program("origins::the_program_with_a_guest_serves", &["--data", "memory"]))
}

/// `fields` each have their end of line.
fn ask(peer: &mut Peer, line: &str, origin: &str, fields: &str, body: &str) {
    let length = body.len();
    peer.send(format!(
        "{line} HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\nSec-Fetch-Site: cross-site\r\n\
         {fields}Content-Length: {length}\r\n\r\n{body}"
    ));
}

#[track_caller]
fn is_told(reply: &Reply) {
    assert_eq!(reply.field("Access-Control-Allow-Origin"), Some(GUEST));
    assert_eq!(reply.field("Access-Control-Allow-Credentials"), Some("true"));
    let varies = reply.field("Vary").unwrap();
    assert!(["Origin", "Origin, Authorization, Cookie"].contains(&varies), "{varies}");
    assert!(reply.field("Access-Control-Expose-Headers").unwrap().contains("Cursor"));
}

#[test]
fn a_page_of_a_site_that_may_reads_every_kind_of_reply() {
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
        is_told(&reply);
    }
    // Held until something comes.
    for before in ["GET /channels?c=news&after=", "GET /channels/news?live=long-poll&offset="] {
        let now = other.get("/channels?c=news&wait=0");
        let line = format!("{before}{}", now.field("Cursor").unwrap());
        ask(&mut peer, &line, GUEST, "", "");
        ask(&mut other, "POST /channels", GUEST, "", MESSAGE);
        assert_eq!(other.reply().status(), 200);
        let reply = peer.reply();
        assert_eq!(reply.status(), 200, "{line}: {}", reply.text());
        is_told(&reply);
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
fn a_browser_that_asks_before_is_told_what_may_be_sent() {
    let program = start();
    let mut peer = program.connect();
    for target in ["/channels", "/channels/", "/channels/news"] {
        let wish = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
        ask(&mut peer, &format!("OPTIONS {target}"), GUEST, wish, "");
        let reply = peer.reply();
        assert_eq!(reply.status(), 204);
        is_told(&reply);
        assert!(reply.field("Access-Control-Allow-Methods").unwrap().contains("POST"));
        assert!(reply.field("Access-Control-Allow-Headers").unwrap().contains("Content-Type"));
        ask(&mut peer, &format!("OPTIONS {target}"), "https://other.example", wish, "");
        assert_eq!(peer.reply().field("Access-Control-Allow-Origin"), None);
    }
}

#[test]
fn what_a_cache_may_keep_says_by_what_it_differs() {
    let program = start();
    let mut peer = program.connect();
    ask(&mut peer, "PUT /channels/log", GUEST, TEXT, "one");
    assert_eq!(peer.reply().status(), 201);
    let whole = peer.get("/channels/log?offset=-1");
    let tag = format!("If-None-Match: {}\r\n", whole.field("ETag").unwrap());
    for origin in [GUEST, "https://other.example"] {
        for (fields, status) in [("", 200), (&*tag, 304)] {
            ask(&mut peer, "GET /channels/log?offset=-1", origin, fields, "");
            let reply = peer.reply();
            assert_eq!(reply.status(), status);
            assert_eq!(reply.field("Vary"), Some("Origin, Authorization, Cookie"), "{origin}");
        }
    }
    assert_eq!(whole.field("Vary"), Some("Origin, Authorization, Cookie"));
}

#[test]
fn a_page_of_any_other_site_is_told_nothing_and_writes_nothing() {
    let program = start();
    let mut peer = program.connect();
    for origin in
        ["https://other.example", "https://guest.example.org", "http://guest.example", "null"]
    {
        ask(&mut peer, "GET /channels?c=news&wait=0", origin, "", "");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Access-Control-Allow-Origin")), (204, None));
        ask(&mut peer, "POST /channels", origin, "", MESSAGE);
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Access-Control-Allow-Origin")), (403, None));
    }
}

#[test]
fn a_websocket_is_opened_by_pages_of_a_site_that_may_and_by_no_other() {
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
