//! Properties of all frames: results are independent of splits, no input panics, and what is sent
//! arrives.

use bine_http::websocket::{
    CloseCode, Frame, FrameEvent, FrameReader, Header, MessageLimits, Opcode, mask,
};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use super::feed::{feed, frame};

/// Limits low enough for short input to reach.
const NARROW: MessageLimits = MessageLimits { message: 150, fragments: 4 };

/// Generates sequences of valid frames, invalid frames and other bytes that reach many states of
/// the reader.
fn sequences() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        6 => select(vec![0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8a]),
        1 => any::<u8>(),
    ];
    let text = "[a-z\u{e4}\u{20ac}\u{1f600}]{0,60}".prop_map(String::into_bytes);
    let payload = prop_oneof![4 => text, 1 => vec(any::<u8>(), 0..200)];
    let piece = prop_oneof![
        12 => (first, payload).prop_map(|(first, payload)| frame(first, payload)),
        1 => vec(any::<u8>(), 1..16),
    ];
    vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// A frame that owns its payload.
#[derive(Clone, Debug)]
enum OwnedFrame {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

impl OwnedFrame {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Text(text) => Frame::Text(text),
            Self::Binary(bytes) => Frame::Binary(bytes),
            Self::Ping(payload) => Frame::Ping(payload),
            Self::Pong(payload) => Frame::Pong(payload),
            Self::Close(None, _) => Frame::Close { code: None, reason: "" },
            Self::Close(Some(code), reason) => Frame::Close { code: CloseCode::new(*code), reason },
        }
    }

    /// Appends a message in fragments of this length, masked as a client sends it. Any other frame
    /// stays whole.
    fn append_in_fragments(&self, out: &mut Vec<u8>, length: usize, key: [u8; 4]) {
        let (mut opcode, payload) = match self {
            Self::Text(text) if text.len() > length => (Opcode::Text, text.as_bytes()),
            Self::Binary(bytes) if bytes.len() > length => (Opcode::Binary, bytes.as_slice()),
            _ => return self.frame().append_masked(out, key),
        };
        let mut parts = payload.chunks(length).peekable();
        while let Some(part) = parts.next() {
            let header = match parts.peek() {
                Some(_) => Header::fragment(opcode, part.len() as u64),
                None => Header::final_frame(opcode, part.len() as u64),
            };
            out.extend_from_slice(header.masked(key).as_bytes());
            let start = out.len();
            out.extend_from_slice(part);
            mask(&mut out[start..], key);
            opcode = Opcode::Continuation;
        }
    }
}

fn owned_frame() -> impl Strategy<Value = OwnedFrame> {
    let control = || vec(any::<u8>(), 0..=125);
    let code = prop_oneof![1000..=1003u16, 1007..=1014u16, 3000..=4999u16];
    let text = || prop_oneof![4 => any::<String>(), 1 => Just("\u{20ac}".repeat(30_000))];
    let bytes = prop_oneof![4 => vec(any::<u8>(), 0..300), 1 => Just(vec![7; 70_000])];
    prop_oneof![
        4 => text().prop_map(OwnedFrame::Text),
        4 => bytes.prop_map(OwnedFrame::Binary),
        1 => control().prop_map(OwnedFrame::Ping),
        1 => control().prop_map(OwnedFrame::Pong),
        1 => (proptest::option::of(code), ".{0,30}").prop_map(|(code, reason)| OwnedFrame::Close(code, reason)),
    ]
}

/// Asserts that the reader returns exactly these frames.
fn check_frames(mut reader: FrameReader, bytes: &mut [u8], frames: &[OwnedFrame]) {
    let mut buffer = Vec::new();
    let mut consumed = 0;
    for expected in frames {
        let step = reader.receive(&mut bytes[consumed..], &mut buffer, &MessageLimits::default());
        consumed += step.consumed;
        assert_eq!(step.event, FrameEvent::Frame(expected.frame()));
        if matches!(expected, OwnedFrame::Close(..)) {
            return;
        }
    }
    assert_eq!(consumed, bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn frames_are_independent_of_splits(bytes in sequences(), lengths in vec(1..40usize, 0..40)) {
        for limits in [MessageLimits::default(), NARROW] {
            let whole = feed(&bytes, [bytes.len()], &limits);
            let single = feed(&bytes, std::iter::repeat_n(1, bytes.len()), &limits);
            assert_eq!(single, whole);
            let split = feed(&bytes, lengths.iter().copied(), &limits);
            assert_eq!(split, whole);
        }
    }

    #[test]
    fn arbitrary_frames_never_panic(bytes in vec(any::<u8>(), 0..200), lengths in vec(1..40usize, 0..40)) {
        assert_eq!(feed(&bytes, lengths, &NARROW), feed(&bytes, [bytes.len()], &NARROW));
    }
}

proptest! {
    #[test]
    fn reads_what_was_written(frames in vec(owned_frame(), 0..6), key: [u8; 4], length in 1..50_000usize) {
        let length = length.max(100);
        let mut unmasked = Vec::new();
        let mut masked = Vec::new();
        let mut fragmented = Vec::new();
        for expected in &frames {
            expected.frame().append(&mut unmasked);
            expected.frame().append_masked(&mut masked, key);
            expected.append_in_fragments(&mut fragmented, length, key);
        }
        check_frames(FrameReader::client(), &mut unmasked, &frames);
        check_frames(FrameReader::server(), &mut masked, &frames);
        check_frames(FrameReader::server(), &mut fragmented, &frames);
    }
}
