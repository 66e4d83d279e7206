//! Checks connections that begin with a header of the PROXY protocol.

use std::sync::Arc;

use super::fake::{ScriptStep, pause, sends};
use super::play::{Placement, get, play_from, post, seconds};
use crate::address::ClientAddress;
use crate::proxies::TrustedProxies;
use crate::settings::Settings;

const LINE: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A connection of a proxy to an address that expects the header.
fn proxy() -> ClientAddress {
    ClientAddress::tcp("10.0.0.1:9".parse().unwrap()).with_trust(true).with_preface(true)
}

fn settings() -> Settings {
    let mut proxies = TrustedProxies::default();
    proxies.add("10.0.0.0/8").unwrap();
    Settings { proxies: Arc::new(proxies), ..Settings::default() }
}

/// Runs `script` for a connection of `sender`, with and without blocking, and compares the output
/// and then the client of the connection with `expected`.
#[track_caller]
fn check_from(sender: ClientAddress, script: &[ScriptStep], expected: &str) {
    fn ended<const BLOCKS: bool>(sender: ClientAddress, script: &[ScriptStep]) -> String {
        let connection = play_from::<BLOCKS>(sender, script, Placement::SameThread, settings());
        // Whether two replies are sent together depends on the splits of the input.
        let text = connection.transport.transcript.text().replace(" + ", "; ");
        format!("{text}; {}", connection.peer)
    }
    assert_eq!(ended::<false>(sender, script), expected, "without blocking");
    assert_eq!(ended::<true>(sender, script), expected, "blocking");
}

#[track_caller]
fn check(script: &[ScriptStep], expected: &str) {
    check_from(proxy(), script, expected);
}

/// A header of version 2 for a client at 192.0.2.8:50000, with `values` after the addresses.
fn binary(values: &[u8]) -> Vec<u8> {
    let length = u16::try_from(12 + values.len()).unwrap().to_be_bytes();
    let addresses = [192, 0, 2, 8, 198, 51, 100, 1, 0xc3, 0x50, 1, 0xbb];
    [SIGNATURE, &[0x21, 0x11], &length, &addresses, values].concat()
}

#[test]
fn serves_the_client_that_the_header_names() {
    let request = get("/client");
    check(&[sends(LINE.to_owned() + &request)], "200 http 192.0.2.7; 75s: closed; 192.0.2.7");
    check(&[sends(LINE), sends(&request)], "200 http 192.0.2.7; 75s: closed; 192.0.2.7");
    let whole = [binary(&[]), request.clone().into_bytes(), request.into_bytes()].concat();
    let expected = "200 http 192.0.2.8; 200 http 192.0.2.8; 75s: closed; 192.0.2.8";
    check(&[sends(whole)], expected);
}

#[test]
fn accepts_a_header_split_at_any_byte() {
    let request = get("/client") + &post("/echo/9", 3) + "abc";
    let expected = |client| format!("200 http {client}; 200 abc; 75s: closed; {client}");
    for (header, client) in [(LINE.as_bytes(), "192.0.2.7"), (&*binary(&[]), "192.0.2.8")] {
        let stream = [header, request.as_bytes()].concat();
        for place in 0..=stream.len() {
            let script = [sends(&stream[..place]), sends(&stream[place..])];
            check(&script, &expected(client));
        }
        let bytes: Vec<_> = stream.chunks(1).map(sends).collect();
        check(&bytes, &expected(client));
    }
}

#[test]
fn takes_the_scheme_from_the_value_about_tls() {
    let request = get("/client");
    for (value, scheme) in [(1, "https"), (0, "http")] {
        let stream = [&*binary(&[0x20, 0, 5, value, 0, 0, 0, 0]), request.as_bytes()].concat();
        let expected = format!("200 {scheme} 192.0.2.8; 75s: closed; 192.0.2.8");
        check(&[sends(stream)], &expected);
    }
}

#[test]
fn keeps_the_address_of_a_proxy_that_names_no_client() {
    let request = get("/client");
    let local = [SIGNATURE, &[0x20, 0, 0, 0], request.as_bytes()].concat();
    check(&[sends(local)], "200 http 10.0.0.1; 75s: closed; 10.0.0.1");
    for header in
        ["PROXY UNKNOWN\r\n", "PROXY TCP4 127.0.0.1 10.0.0.2 1 2\r\n", "PROXY TCP6 ::1 ::2 1 2\r\n"]
    {
        let stream = header.to_owned() + &request;
        check(&[sends(stream)], "200 http 10.0.0.1; 75s: closed; 10.0.0.1");
    }
}

/// The client of such a connection has written them.
#[test]
fn ignores_fields_that_name_a_client_unless_a_proxy_has_sent_them() {
    let request = "GET /client HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\
                   X-Forwarded-Proto: https\r\n\r\n";
    check(&[sends(LINE.to_owned() + request)], "200 http 192.0.2.7; 75s: closed; 192.0.2.7");
    let unnamed = "PROXY UNKNOWN\r\n".to_owned() + request;
    check(&[sends(unnamed)], "200 http 10.0.0.1; 75s: closed; 10.0.0.1");
    let of_proxy = "PROXY TCP4 10.0.0.5 10.0.0.2 1 2\r\n".to_owned() + request;
    check(&[sends(of_proxy)], "200 https 203.0.113.9; 75s: closed; 10.0.0.5");
}

#[test]
fn closes_a_connection_without_a_header() {
    let messages = bine_log::test_support::capture();
    for bytes in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"\x16\x03\x01", b"PROXY TCP4 x\r\n"] {
        check(&[sends(bytes)], "closed; 10.0.0.1");
    }
    let messages = messages.end().join("\n");
    assert!(messages.contains("it does not begin with a PROXY header; make the proxy send one"));
    assert!(messages.contains("its PROXY line is malformed; make the proxy send version 1 or 2"));
}

#[test]
fn closes_a_connection_of_another_sender() {
    let messages = bine_log::test_support::capture();
    let other = ClientAddress::tcp("192.0.2.1:9".parse().unwrap()).with_preface(true);
    check_from(other, &[sends(LINE.to_owned() + &get("/client"))], "closed; 192.0.2.1");
    let messages = messages.end().join("\n");
    assert!(
        messages.contains("of 192.0.2.1 to an address with `proxy=on`: it is no trusted proxy")
    );
    assert!(messages.contains("add it to `trusted-proxies`"), "{messages}");
}

#[test]
fn gives_a_slow_header_no_extra_time() {
    let bytes = LINE.as_bytes().chunks(1).flat_map(|byte| [sends(byte), pause(900)]);
    check(&bytes.collect::<Vec<_>>(), "10s: closed; 10.0.0.1");
    check(&[], "10s: closed; 10.0.0.1");
    // The time for the first byte includes the header.
    check(&[seconds(9), sends(LINE)], "10s: closed; 192.0.2.7");
}

#[test]
fn closes_a_connection_that_ends_within_its_header() {
    for end in [0, 1, 20] {
        check(&[ScriptStep::Last(LINE.as_bytes()[..end].to_vec())], "closed; 10.0.0.1");
        check(&[sends(&LINE[..end]), ScriptStep::Leave], "closed; 10.0.0.1");
    }
}
