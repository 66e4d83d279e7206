//! Decides what is told of a feeding of frames: what was said, as text.

use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits, mask};

/// The key of every frame here; a wrong turn of it shows in the payload.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame as a browser would send it, but for what the first byte says.
pub(crate) fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let mut payload = payload.as_ref().to_vec();
    mask(&mut payload, KEY);
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            bytes.push(0xfe);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(KEY);
    bytes.extend(payload);
    bytes
}

/// What a reader made of some input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// What was said, `; ` between; ` ...` at the end if something is unfinished.
    pub(crate) text: String,
    /// Whether a close frame or a fault ended it.
    pub(crate) ended: bool,
}

/// Feeds the bytes whole, byte by byte and with a tail; all must tell the same.
#[track_caller]
pub(crate) fn check(bytes: &[u8], expected: &str) {
    let limits = MessageLimits { message: 200_000, fragments: 20 };
    let whole = feed(bytes, [bytes.len()], &limits);
    assert_eq!(whole.text, expected, "whole");
    let single = feed(bytes, std::iter::repeat_n(1, bytes.len()), &limits);
    assert_eq!(single, whole, "byte by byte");
    let joined = [bytes, &frame(0x89, "tail")].concat();
    let tailed = feed(&joined, [joined.len()], &limits);
    if whole.ended {
        assert_eq!(tailed, whole, "with a tail");
    } else if !whole.text.ends_with("...") {
        assert_eq!(tailed.text, format!("{expected}; ping \"tail\""), "with a tail");
    }
}

/// Feeds pieces of these lengths as a connection would: what is not consumed is kept and given again.
pub(crate) fn feed(
    bytes: &[u8],
    lengths: impl IntoIterator<Item = usize>,
    limits: &MessageLimits,
) -> Told {
    let mut reader = FrameReader::server();
    let mut told = Told::default();
    let mut gathered = Vec::new();
    let mut kept = Vec::new();
    let mut received = 0;
    for length in lengths.into_iter().chain(std::iter::once(bytes.len())) {
        let next = bytes.len().min(received + length);
        kept.extend_from_slice(&bytes[received..next]);
        received = next;
        let mut consumed = 0;
        loop {
            let input = &mut kept[consumed..];
            let most = input.len();
            let step = reader.receive(input, &mut gathered, limits);
            assert!(step.consumed <= most, "consumed what was not there");
            consumed += step.consumed;
            if step.event != FrameEvent::More && !told.text.is_empty() {
                told.text += "; ";
            }
            match step.event {
                FrameEvent::More => break,
                FrameEvent::Frame(frame) => {
                    assert!(!told.ended, "said behind the end");
                    told.ended = matches!(frame, Frame::Close { .. });
                    told.text += &describe(frame);
                }
                FrameEvent::Fault(fault) => {
                    assert!(!told.ended, "a fault behind the end");
                    told.ended = true;
                    told.text += &format!("{} {fault}", fault.code().number());
                }
            }
        }
        kept.drain(..consumed);
        assert!(kept.len() <= FrameReader::MAX_UNCONSUMED, "kept {} bytes", kept.len());
        assert!(gathered.len() <= limits.message as usize, "gathered {} bytes", gathered.len());
        assert!(!told.ended || kept.is_empty(), "behind the end everything is ignored");
    }
    if !kept.is_empty() || reader.has_partial_message() {
        told.text += if told.text.is_empty() { "..." } else { " ..." };
    }
    told
}

fn describe(frame: Frame<'_>) -> String {
    match frame {
        Frame::Text(text) => format!("text {}", shown(text.as_bytes())),
        Frame::Binary(bytes) => format!("binary {}", shown(bytes)),
        Frame::Ping(payload) => format!("ping {}", shown(payload)),
        Frame::Pong(payload) => format!("pong {}", shown(payload)),
        Frame::Close { code: None, .. } => String::from("close"),
        Frame::Close { code: Some(code), reason } => {
            format!("close {} {}", code.number(), shown(reason.as_bytes()))
        }
    }
}

/// What is long is told by its length and its ends.
fn shown(bytes: &[u8]) -> String {
    match bytes {
        [first, .., last] if bytes.len() > 100 => {
            format!("of {} from {first:#04x} to {last:#04x}", bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
