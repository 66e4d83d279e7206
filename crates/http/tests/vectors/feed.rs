//! Decides what is told of a feeding: the events as text, pieces of content joined.

use bine_http::{Event, Framing, Head, Limits, PeerFault, Phase, RequestParser, Version};

/// What a machine made of some input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The events, `; ` between them; ` ...` at the end if something is unfinished.
    pub(crate) text: String,
    /// Where each request ended.
    pub(crate) ends: Vec<usize>,
    pub(crate) fault: Option<PeerFault>,
    complete: bool,
}

/// Feeds the bytes whole, byte by byte and with two different tails; all must tell the same.
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
            assert!(tailed.ends.starts_with(&whole.ends), "the tail was touched");
        }
    }
}

/// Feeds pieces of these lengths as a connection would: what is not consumed is kept and given again.
pub(crate) fn feed(
    bytes: &[u8],
    lengths: impl IntoIterator<Item = usize>,
    limits: &Limits,
) -> Told {
    let mut machine = RequestParser::new();
    let mut told = Told::default();
    let (mut consumed, mut received) = (0, 0);
    let mut in_content = false;
    for length in lengths.into_iter().chain(std::iter::once(bytes.len())) {
        received = bytes.len().min(received + length);
        loop {
            let input = &bytes[consumed..received];
            let step = machine.receive(input, limits);
            assert!(step.consumed <= input.len(), "consumed what was not there");
            consumed += step.consumed;
            if !in_content && !matches!(step.event, Event::More) && !told.text.is_empty() {
                told.text += "; ";
            }
            match step.event {
                Event::More => break,
                Event::Head(head) => {
                    assert!(input[..step.consumed].ends_with(head.raw()));
                    told.text += &describe(&head);
                    match head.framing() {
                        Framing::None => told.ends.push(consumed),
                        Framing::Length(_) | Framing::Chunked => {
                            in_content = true;
                            told.text += " \"";
                        }
                    }
                }
                Event::Body(piece) => {
                    assert!(in_content && !piece.is_empty());
                    told.text += &piece.escape_ascii().to_string();
                }
                Event::End => {
                    assert!(in_content);
                    in_content = false;
                    told.text += "\"";
                    told.ends.push(consumed);
                }
                Event::Fault(fault) => {
                    if in_content {
                        in_content = false;
                        told.text += "\"; ";
                    }
                    told.text += &format!("{} {fault}", fault.status().code());
                    told.fault = Some(fault);
                    assert_eq!(machine.phase(), Phase::Ended);
                }
            }
        }
        let kept = received - consumed;
        assert!(kept < limits.head as usize, "an unfinished head may not fill its limit");
        if machine.phase() == Phase::Ended {
            assert_eq!(kept, 0, "behind a fault everything is discarded");
        }
    }
    told.complete = machine.phase() == Phase::Head && consumed == bytes.len();
    if !told.complete && told.fault.is_none() {
        told.text += " ...";
    }
    told
}

/// A head as text: method, path, query, authority, then only what is not usual.
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
    // What the head says must not depend on where its bytes are.
    let moved = head.raw().to_vec();
    let again = Head::from_parts(&moved, head.index());
    assert_eq!(again.path(), head.path());
    assert_eq!(again.authority(), head.authority());
    for (name, value) in again.fields() {
        assert!(head.field(name).is_some(), "{name}");
        assert!(!value.starts_with(b" ") && !value.ends_with(b"\t"));
    }
    text
}
