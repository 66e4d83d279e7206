//! Decides that no frames, however split, panic the reader or mean two different things, and that what it heard can be
//! said again.

#![no_main]

use bine_http::websocket::{FrameEvent, Frame, MessageLimits, FrameReader};
use libfuzzer_sys::fuzz_target;

/// Small enough for the fuzzer to reach each of them.
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

    // What one end heard, the other would hear.
    let again = feed(FrameReader::client(), &whole.said, |_| whole.said.len());
    assert!(again.fault.is_none() && again.said == whole.said);
});

/// What a reader made of the input.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// All that was heard, as a server would say it.
    said: Vec<u8>,
    fault: Option<String>,
}

/// Feeds pieces as a connection would: what is not consumed is kept and given again.
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
