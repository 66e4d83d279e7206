//! Target: requests, split anywhere. The parser does not panic and reads the same requests from every
//! split.

#![no_main]

use bine_http::{Event, Framing, Limits, RequestParser, Phase};
use libfuzzer_sys::fuzz_target;

/// Limits that are small enough for the fuzzer to reach.
const LIMITS: Limits =
    Limits { head: 256, fields: 6, target: 64, body: 64, chunk_extension: 8, chunk_extensions: 16 };

// The first two bytes choose the splits, the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let [first, second, bytes @ ..] = bytes else {
        return;
    };
    let whole = feed(bytes, |_| bytes.len());
    let single = feed(bytes, |_| 1);
    assert_eq!(single, whole, "byte by byte");
    let split = feed(bytes, |turn| {
        let choice = if turn % 2 == 0 { first } else { second };
        usize::from(*choice) % 64 + 1
    });
    assert_eq!(split, whole, "split");

    // A request has the same meaning without the bytes after it.
    if let Some(&end) = whole.ends.first() {
        let alone = feed(&bytes[..end], |_| end);
        assert_eq!(alone.ends, [end], "the tail was touched");
        assert!(whole.text.starts_with(&alone.text), "the tail was looked at");
    }
});

/// The result of a parser.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// The events as text, with content joined.
    text: String,
    /// The end of each request.
    ends: Vec<usize>,
}

/// Feeds pieces as a connection does: the parser gets unconsumed bytes again.
fn feed(bytes: &[u8], length: impl Fn(usize) -> usize) -> Told {
    let mut machine = RequestParser::new();
    let mut told = Told::default();
    let (mut consumed, mut received) = (0, 0);
    for turn in 0.. {
        if received == bytes.len() && turn > 0 {
            break;
        }
        received = bytes.len().min(received + length(turn));
        loop {
            let input = &bytes[consumed..received];
            let step = machine.receive(input, &LIMITS);
            assert!(step.consumed <= input.len(), "consumed what was not there");
            consumed += step.consumed;
            match step.event {
                Event::More => break,
                Event::Head(head) => {
                    let authority = head.authority();
                    let keep_alive = head.keep_alive();
                    let framing = head.framing();
                    told.text += &format!("{} {keep_alive} {framing:?} ", head.method().as_str());
                    told.text += &format!("{} {:?} {authority:?} ", head.path(), head.query());
                    for (name, value) in head.fields() {
                        assert!(head.field(name).is_some());
                        told.text += &format!("{name}={} ", value.escape_ascii());
                    }
                    if framing == Framing::None {
                        told.ends.push(consumed);
                    }
                }
                Event::Body(piece) => {
                    assert!(!piece.is_empty());
                    told.text += &piece.escape_ascii().to_string();
                }
                Event::End => {
                    told.text += " end ";
                    told.ends.push(consumed);
                }
                Event::Fault(fault) => {
                    told.text += &fault.to_string();
                    assert_eq!(machine.phase(), Phase::Ended);
                }
            }
        }
        assert!(received - consumed < LIMITS.head as usize, "kept more than a head");
    }
    told
}
