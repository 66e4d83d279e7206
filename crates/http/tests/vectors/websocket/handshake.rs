//! Decides which requests become a WebSocket, and what the others are told.

use bine_http::websocket::{Upgrade, UpgradeError};
use bine_http::{Date, Event, Limits, RequestParser};

const ASKED: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// What a request of these lines is answered, without its date.
fn answer(line: &str, fields: &str, spoken: &[&str]) -> String {
    let request = format!("{line}\r\nHost: example.org\r\n{fields}\r\n");
    let step = RequestParser::new().receive(request.as_bytes(), &Limits::default());
    let Event::Head(head) = step.event else { panic!("{:?}", step.event) };
    let mut out = Vec::new();
    match Upgrade::parse(&head) {
        Ok(upgrade) => upgrade.accept(&mut out, &Date::at(0), spoken).empty(),
        Err(refusal) => refusal.reply(&mut out, head.exchange(), &Date::at(0)),
    }
    let answer = String::from_utf8(out).expect("answers are ASCII");
    answer.replace("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "")
}

#[track_caller]
fn refused(line: &str, fields: &str, expected: UpgradeError) {
    let answer = answer(line, fields, &[]);
    let status = format!("HTTP/1.1 {} ", expected.status().code());
    assert!(answer.starts_with(&status) && answer.ends_with(expected.client_message()), "{answer}");
}

#[test]
fn the_handshake_of_the_standard_is_answered() {
    assert_eq!(
        answer("GET /chat HTTP/1.1", ASKED, &[]),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    );
}

#[test]
fn names_and_lists_are_read_as_http_reads_them() {
    let fields = "connection: keep-alive, UPGRADE\r\nupgrade: h2c\r\nupgrade: x, WebSocket\r\n\
        sec-websocket-version: 13\r\nSEC-WEBSOCKET-KEY:dGhlIHNhbXBsZSBub25jZQ== \r\n";
    assert!(answer("GET / HTTP/1.1", fields, &[]).starts_with("HTTP/1.1 101 "));
}

#[test]
fn the_first_subprotocol_of_the_peers_that_is_spoken_is_agreed_on() {
    let fields = format!("{ASKED}Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n");
    let agreed = |spoken: &[&str]| {
        let answer = answer("GET / HTTP/1.1", &fields, spoken);
        answer.split_once("Sec-WebSocket-Protocol: ").map(|(_, rest)| rest[..1].to_owned())
    };
    assert_eq!(agreed(&["c", "b"]).as_deref(), Some("b"));
    assert_eq!(agreed(&["c"]).as_deref(), Some("c"));
    assert_eq!(agreed(&["A"]), None);
    assert_eq!(agreed(&[]), None);
}

#[test]
fn an_offer_of_compression_is_declined_in_silence() {
    let fields = format!("{ASKED}Sec-WebSocket-Extensions: permessage-deflate\r\n");
    assert!(!answer("GET / HTTP/1.1", &fields, &[]).contains("Extensions"));
}

#[test]
fn who_does_not_ask_is_told_what_is_spoken() {
    assert_eq!(
        answer("GET / HTTP/1.1", "", &[]),
        "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 31\r\n\r\nThis address speaks WebSocket.\n"
    );
    let without_connection = ASKED.replace("Connection: Upgrade\r\n", "");
    refused("GET / HTTP/1.1", &without_connection, UpgradeError::NotRequested);
    refused("GET / HTTP/1.1", &ASKED.replace("websocket", "h2c"), UpgradeError::NotRequested);
    refused("GET / HTTP/1.0", ASKED, UpgradeError::NotRequested);
}

#[test]
fn other_versions_are_told_the_one_there_is() {
    for version in ["8", "0", "13, 8", "013", ""] {
        let fields = ASKED.replace("Version: 13", &format!("Version: {version}"));
        refused("GET / HTTP/1.1", &fields, UpgradeError::Version);
    }
    refused(
        "GET / HTTP/1.1",
        &format!("{ASKED}Sec-WebSocket-Version: 8\r\n"),
        UpgradeError::Version,
    );
}

#[test]
fn a_malformed_request_is_refused() {
    refused("POST / HTTP/1.1", ASKED, UpgradeError::Method);
    refused("GET / HTTP/1.1", &format!("{ASKED}Content-Length: 1\r\n"), UpgradeError::Content);
    refused("GET / HTTP/1.1", &ASKED.replace("dGhl", ""), UpgradeError::Key);
    let repeated = format!("{ASKED}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    refused("GET / HTTP/1.1", &repeated, UpgradeError::Key);
    for protocol in ["a b", "a,,b", "", "\"a\""] {
        let fields = format!("{ASKED}Sec-WebSocket-Protocol: {protocol}\r\n");
        refused("GET / HTTP/1.1", &fields, UpgradeError::Protocol);
    }
}
