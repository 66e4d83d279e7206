//! Feeds frames to a reader and records its events as text.

use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits, mask};

/// The key of all frames in these tests. A wrong rotation would show in the payload.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Builds a frame as a browser sends it, with an arbitrary first byte.
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

/// The events that a reader returned for some input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// The events, separated by `; `. Ends with ` ...` if a frame or a message is incomplete.
    pub(crate) text: String,
    /// Whether the last event is a close frame or a fault.
    pub(crate) ended: bool,
}

/// Feeds the bytes at once, byte by byte, and followed by a ping. The events must be the same.
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

/// Feeds pieces of these lengths like a connection does: unconsumed bytes are fed again.
pub(crate) fn feed(
    bytes: &[u8],
    lengths: impl IntoIterator<Item = usize>,
    limits: &MessageLimits,
) -> Events {
    let mut reader = FrameReader::server();
    let mut events = Events::default();
    let mut buffer = Vec::new();
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
            let step = reader.receive(input, &mut buffer, limits);
            assert!(step.consumed <= most, "consumed more bytes than the input has");
            consumed += step.consumed;
            if step.event != FrameEvent::More && !events.text.is_empty() {
                events.text += "; ";
            }
            match step.event {
                FrameEvent::More => break,
                FrameEvent::Frame(frame) => {
                    assert!(!events.ended, "a frame after the end");
                    events.ended = matches!(frame, Frame::Close { .. });
                    events.text += &describe(frame);
                }
                FrameEvent::Fault(fault) => {
                    assert!(!events.ended, "a fault after the end");
                    events.ended = true;
                    events.text += &format!("{} {fault}", fault.code().number());
                }
            }
        }
        kept.drain(..consumed);
        assert!(kept.len() <= FrameReader::MAX_UNCONSUMED, "kept {} bytes", kept.len());
        assert!(buffer.len() <= limits.message as usize, "buffer {} bytes", buffer.len());
        assert!(!events.ended || kept.is_empty(), "the reader must ignore all input after the end");
    }
    if !kept.is_empty() || reader.has_partial_message() {
        events.text += if events.text.is_empty() { "..." } else { " ..." };
    }
    events
}

fn describe(frame: Frame<'_>) -> String {
    match frame {
        Frame::Text(text) => format!("text {}", format_payload(text.as_bytes())),
        Frame::Binary(bytes) => format!("binary {}", format_payload(bytes)),
        Frame::Ping(payload) => format!("ping {}", format_payload(payload)),
        Frame::Pong(payload) => format!("pong {}", format_payload(payload)),
        Frame::Close { code: None, .. } => String::from("close"),
        Frame::Close { code: Some(code), reason } => {
            format!("close {} {}", code.number(), format_payload(reason.as_bytes()))
        }
    }
}

/// Formats a payload. A long one is summarized by its length, its first and its last byte.
fn format_payload(bytes: &[u8]) -> String {
    match bytes {
        [first, .., last] if bytes.len() > 100 => {
            format!("of {} from {first:#04x} to {last:#04x}", bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
