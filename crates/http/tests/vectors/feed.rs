//! Feeds input to a parser and records its events as text. Consecutive pieces of content are
//! joined.

use bine_http::{
    Event, Framing, Head, KnownField, Limits, PeerFault, Phase, RequestParser, Version,
};

/// The events that a parser returned for some input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// The events, separated by `; `. Ends with ` ...` if a request is incomplete.
    pub(crate) text: String,
    /// The positions at which requests ended.
    pub(crate) ends: Vec<usize>,
    pub(crate) fault: Option<PeerFault>,
    complete: bool,
}

/// Feeds the bytes at once, byte by byte, and followed by two different tails. The events must be
/// the same.
#[track_caller]
pub(crate) fn check(bytes: &[u8], expected: &str) {
    let limits = Limits::default();
    let whole = feed(bytes, std::iter::once(bytes.len()), &limits);
    assert_eq!(whole.text, expected, "whole");
    let single = feed(bytes, std::iter::repeat_n(1, bytes.len()), &limits);
    assert_eq!(single, whole, "byte by byte");
    if !whole.complete && whole.fault.is_none() {
        return;
    }
    for tail in [b"GET /tail HTTP/1.1\r\nHost: t\r\n\r\n".as_slice(), b"\0junk"] {
        let joined = [bytes, tail].concat();
        let tailed = feed(&joined, std::iter::once(joined.len()), &limits);
        if whole.fault.is_some() {
            assert_eq!(tailed, whole, "with a tail");
        } else {
            assert!(tailed.text.starts_with(&whole.text), "with a tail: {}", tailed.text);
            assert!(
                tailed.ends.starts_with(&whole.ends),
                "the tail changed the position of an end"
            );
        }
    }
}

/// Feeds pieces of these lengths like a connection does: unconsumed bytes are fed again.
pub(crate) fn feed(
    bytes: &[u8],
    lengths: impl IntoIterator<Item = usize>,
    limits: &Limits,
) -> Events {
    let mut parser = RequestParser::new();
    let mut events = Events::default();
    let (mut consumed, mut received) = (0, 0);
    let mut in_content = false;
    for length in lengths.into_iter().chain(std::iter::once(bytes.len())) {
        received = bytes.len().min(received + length);
        loop {
            let input = &bytes[consumed..received];
            let step = parser.receive(input, limits);
            assert!(step.consumed <= input.len(), "consumed more bytes than the input has");
            consumed += step.consumed;
            if !in_content && !matches!(step.event, Event::More) && !events.text.is_empty() {
                events.text += "; ";
            }
            match step.event {
                Event::More => break,
                Event::Head(head) => {
                    assert!(input[..step.consumed].ends_with(head.raw()));
                    events.text += &describe(&head);
                    match head.framing() {
                        Framing::None => events.ends.push(consumed),
                        Framing::Length(_) | Framing::Chunked => {
                            in_content = true;
                            events.text += " \"";
                        }
                    }
                }
                Event::Body(piece) => {
                    assert!(in_content && !piece.is_empty());
                    events.text += &piece.escape_ascii().to_string();
                }
                Event::End => {
                    assert!(in_content);
                    in_content = false;
                    events.text += "\"";
                    events.ends.push(consumed);
                }
                Event::Fault(fault) => {
                    if in_content {
                        in_content = false;
                        events.text += "\"; ";
                    }
                    events.text += &format!("{} {fault}", fault.status().code());
                    events.fault = Some(fault);
                    assert_eq!(parser.phase(), Phase::Ended);
                }
            }
        }
        let kept = received - consumed;
        assert!(kept < limits.head as usize, "an incomplete head must not fill its limit");
        if parser.phase() == Phase::Ended {
            assert_eq!(kept, 0, "the parser must discard all input after a fault");
        }
    }
    events.complete = parser.phase() == Phase::Head && consumed == bytes.len();
    if !events.complete && events.fault.is_none() {
        events.text += " ...";
    }
    events
}

/// Formats a head as text: method, path, query, authority, then unusual properties only.
fn describe(head: &Head<'_>) -> String {
    let mut text = format!("{} {}", head.method().as_str(), head.path());
    if let Some(query) = head.query() {
        text += &format!("?{query}");
    }
    if let Some(authority) = head.authority() {
        text += &format!(" @{authority}");
    }
    match (head.version(), head.keep_alive()) {
        (Version::Http11, true) => {}
        (Version::Http11, false) => text += " close",
        (Version::Http10, true) => text += " 1.0 kept",
        (Version::Http10, false) => text += " 1.0",
    }
    if head.expects_continue() {
        text += " continue";
    }
    if let Some(upgrade) = head.upgrade() {
        text += &format!(" upgrade {upgrade}");
    }
    let line = format!("{} {} HTTP/1.", head.method().as_str(), head.target());
    assert!(head.raw().starts_with(line.as_bytes()), "{line}");
    for (known, name) in [
        (KnownField::Host, "host"),
        (KnownField::Expect, "expect"),
        (KnownField::Upgrade, "upgrade"),
        (KnownField::Connection, "connection"),
        (KnownField::ContentLength, "content-length"),
        (KnownField::TransferEncoding, "transfer-encoding"),
    ] {
        let is_sent = head.fields().any(|(sent, _)| sent.eq_ignore_ascii_case(name));
        assert_eq!(head.has(known), is_sent, "{name}");
    }
    // The properties of a head must not depend on the address of its bytes.
    let moved = head.raw().to_vec();
    let again = Head::from_parts(&moved, head.index());
    assert_eq!(again.path(), head.path());
    assert_eq!(again.authority(), head.authority());
    assert_eq!(head.authority_bytes(), head.authority().map(str::as_bytes));
    for (name, value) in again.fields() {
        assert!(head.field(name).is_some(), "{name}");
        assert!(!value.starts_with(b" ") && !value.ends_with(b"\t"));
    }
    text
}
