//! Tests of the handshake and of its error responses.

use bine_http::websocket::{Upgrade, UpgradeError};
use bine_http::{Date, Event, Limits, RequestParser};

const UPGRADE_FIELDS: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Returns the response to a request with these lines, without its date.
fn response(line: &str, fields: &str, supported: &[&str]) -> String {
    let request = format!("{line}\r\nHost: example.org\r\n{fields}\r\n");
    let step = RequestParser::new().receive(request.as_bytes(), &Limits::default());
    let Event::Head(head) = step.event else { panic!("{:?}", step.event) };
    let mut out = Vec::new();
    match Upgrade::parse(&head) {
        Ok(upgrade) => upgrade.accept(&mut out, &Date::at(0), supported).empty(),
        Err(error) => error.reply(&mut out, head.exchange(), &Date::at(0)),
    }
    let response = String::from_utf8(out).expect("responses are ASCII");
    response.replace("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "")
}

#[track_caller]
fn check_rejected(line: &str, fields: &str, expected: UpgradeError) {
    let response = response(line, fields, &[]);
    let status = format!("HTTP/1.1 {} ", expected.status().code());
    assert!(
        response.starts_with(&status) && response.ends_with(expected.client_message()),
        "{response}"
    );
}

#[test]
fn answers_handshake_of_rfc() {
    assert_eq!(
        response("GET /chat HTTP/1.1", UPGRADE_FIELDS, &[]),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    );
}

#[test]
fn reads_field_names_and_lists_like_http() {
    let fields = "connection: keep-alive, UPGRADE\r\nupgrade: h2c\r\nupgrade: x, WebSocket\r\n\
        sec-websocket-version: 13\r\nSEC-WEBSOCKET-KEY:dGhlIHNhbXBsZSBub25jZQ== \r\n";
    assert!(response("GET / HTTP/1.1", fields, &[]).starts_with("HTTP/1.1 101 "));
}

#[test]
fn selects_first_supported_subprotocol_of_client() {
    let fields =
        format!("{UPGRADE_FIELDS}Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n");
    let selected = |supported: &[&str]| {
        let response = response("GET / HTTP/1.1", &fields, supported);
        response.split_once("Sec-WebSocket-Protocol: ").map(|(_, rest)| rest[..1].to_owned())
    };
    assert_eq!(selected(&["c", "b"]).as_deref(), Some("b"));
    assert_eq!(selected(&["c"]).as_deref(), Some("c"));
    assert_eq!(selected(&["A"]), None);
    assert_eq!(selected(&[]), None);
}

#[test]
fn ignores_offer_of_compression() {
    let fields = format!("{UPGRADE_FIELDS}Sec-WebSocket-Extensions: permessage-deflate\r\n");
    assert!(!response("GET / HTTP/1.1", &fields, &[]).contains("Extensions"));
}

#[test]
fn answers_plain_request_with_426() {
    assert_eq!(
        response("GET / HTTP/1.1", "", &[]),
        "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 45\r\n\r\nThis URL accepts only WebSocket connections.\n"
    );
    let without_connection = UPGRADE_FIELDS.replace("Connection: Upgrade\r\n", "");
    check_rejected("GET / HTTP/1.1", &without_connection, UpgradeError::NotRequested);
    check_rejected(
        "GET / HTTP/1.1",
        &UPGRADE_FIELDS.replace("websocket", "h2c"),
        UpgradeError::NotRequested,
    );
    check_rejected("GET / HTTP/1.0", UPGRADE_FIELDS, UpgradeError::NotRequested);
}

#[test]
fn answers_other_versions_with_426() {
    for version in ["8", "0", "13, 8", "013", ""] {
        let fields = UPGRADE_FIELDS.replace("Version: 13", &format!("Version: {version}"));
        check_rejected("GET / HTTP/1.1", &fields, UpgradeError::Version);
    }
    check_rejected(
        "GET / HTTP/1.1",
        &format!("{UPGRADE_FIELDS}Sec-WebSocket-Version: 8\r\n"),
        UpgradeError::Version,
    );
}

#[test]
fn rejects_malformed_handshakes() {
    check_rejected("POST / HTTP/1.1", UPGRADE_FIELDS, UpgradeError::Method);
    check_rejected(
        "GET / HTTP/1.1",
        &format!("{UPGRADE_FIELDS}Content-Length: 1\r\n"),
        UpgradeError::Content,
    );
    check_rejected("GET / HTTP/1.1", &UPGRADE_FIELDS.replace("dGhl", ""), UpgradeError::Key);
    let repeated = format!("{UPGRADE_FIELDS}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    check_rejected("GET / HTTP/1.1", &repeated, UpgradeError::Key);
    for protocol in ["a b", "a,,b", "", "\"a\""] {
        let fields = format!("{UPGRADE_FIELDS}Sec-WebSocket-Protocol: {protocol}\r\n");
        check_rejected("GET / HTTP/1.1", &fields, UpgradeError::Protocol);
    }
}

#[test]
fn names_the_reason_in_the_log() {
    for (error, text) in [
        (UpgradeError::NotRequested, "request does not ask for a WebSocket"),
        (UpgradeError::Version, "WebSocket version other than 13"),
        (UpgradeError::Method, "WebSocket request with a method other than GET"),
        (UpgradeError::Content, "WebSocket request with content"),
        (UpgradeError::Key, "malformed Sec-WebSocket-Key"),
        (UpgradeError::Protocol, "malformed Sec-WebSocket-Protocol"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
