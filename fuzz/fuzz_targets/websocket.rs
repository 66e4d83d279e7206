//! Target: WebSocket frames, split anywhere. The reader does not panic, reads the same messages from
//! every split, and its messages can be written as frames again.

#![no_main]

use bine_http::websocket::{FrameEvent, Frame, MessageLimits, FrameReader};
use libfuzzer_sys::fuzz_target;

/// Limits that are small enough for the fuzzer to reach.
const LIMITS: MessageLimits = MessageLimits { message: 300, fragments: 6 };

// The first two bytes choose the splits, the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let [first, second, bytes @ ..] = bytes else {
        return;
    };
    let whole = feed(FrameReader::server(), bytes, |_| bytes.len());
    let single = feed(FrameReader::server(), bytes, |_| 1);
    assert_eq!(single, whole, "byte by byte");
    let split = feed(FrameReader::server(), bytes, |turn| {
        let choice = if turn % 2 == 0 { first } else { second };
        usize::from(*choice) % 64 + 1
    });
    assert_eq!(split, whole, "split");

    // The other end reads the same messages.
    let again = feed(FrameReader::client(), &whole.said, |_| whole.said.len());
    assert!(again.fault.is_none() && again.said == whole.said);
});

/// The result of a reader.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// All messages, written as a server writes them.
    said: Vec<u8>,
    fault: Option<String>,
}

/// Feeds pieces as a connection does: the reader gets unconsumed bytes again.
fn feed(mut reader: FrameReader, bytes: &[u8], length: impl Fn(usize) -> usize) -> Told {
    let mut told = Told::default();
    let (mut kept, mut gathered) = (Vec::new(), Vec::new());
    let mut received = 0;
    let mut ended = false;
    for turn in 0.. {
        if received == bytes.len() && turn > 0 {
            break;
        }
        let next = bytes.len().min(received + length(turn));
        kept.extend_from_slice(&bytes[received..next]);
        received = next;
        let mut consumed = 0;
        loop {
            let input = &mut kept[consumed..];
            let most = input.len();
            let step = reader.receive(input, &mut gathered, &LIMITS);
            assert!(step.consumed <= most, "consumed what was not there");
            consumed += step.consumed;
            if step.event == FrameEvent::More {
                break;
            }
            assert!(!ended, "spoke behind the end");
            match step.event {
                FrameEvent::More => {}
                FrameEvent::Frame(frame) => {
                    ended = matches!(frame, Frame::Close { .. });
                    frame.append(&mut told.said);
                }
                FrameEvent::Fault(fault) => {
                    ended = true;
                    told.fault = Some(fault.to_string());
                }
            }
        }
        kept.drain(..consumed);
        assert!(kept.len() <= FrameReader::MAX_UNCONSUMED, "kept more than a control frame");
        assert!(gathered.len() <= LIMITS.message as usize, "gathered more than a message");
    }
    told
}
