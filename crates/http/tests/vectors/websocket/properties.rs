//! Decides what holds for all frames: splits do not matter, nothing panics, what is sent arrives.

use bine_http::websocket::{
    CloseCode, Frame, FrameEvent, FrameReader, Header, MessageLimits, Opcode, mask,
};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use super::feed::{feed, frame};

/// MessageLimits that short input reaches.
const NARROW: MessageLimits = MessageLimits { message: 150, fragments: 4 };

/// Frames right and wrong, and what is none, so that their sequences come far into the reader.
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

/// Something said that owns its payload.
#[derive(Clone, Debug)]
enum Said {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

impl Said {
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

    /// A message in parts of this length, as the end that opened a connection sends it; anything else whole.
    fn append_in_parts(&self, out: &mut Vec<u8>, length: usize, key: [u8; 4]) {
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

fn said() -> impl Strategy<Value = Said> {
    let control = || vec(any::<u8>(), 0..=125);
    let code = prop_oneof![1000..=1003u16, 1007..=1014u16, 3000..=4999u16];
    let text = || prop_oneof![4 => any::<String>(), 1 => Just("\u{20ac}".repeat(30_000))];
    let bytes = prop_oneof![4 => vec(any::<u8>(), 0..300), 1 => Just(vec![7; 70_000])];
    prop_oneof![
        4 => text().prop_map(Said::Text),
        4 => bytes.prop_map(Said::Binary),
        1 => control().prop_map(Said::Ping),
        1 => control().prop_map(Said::Pong),
        1 => (proptest::option::of(code), ".{0,30}").prop_map(|(code, why)| Said::Close(code, why)),
    ]
}

/// All that a reader says of these bytes must be `frames`, in their order.
fn hears(mut reader: FrameReader, bytes: &mut [u8], frames: &[Said]) {
    let mut gathered = Vec::new();
    let mut consumed = 0;
    for said in frames {
        let step = reader.receive(&mut bytes[consumed..], &mut gathered, &MessageLimits::default());
        consumed += step.consumed;
        assert_eq!(step.event, FrameEvent::Frame(said.frame()));
        if matches!(said, Said::Close(..)) {
            return;
        }
    }
    assert_eq!(consumed, bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn splits_of_frames_do_not_matter(bytes in sequences(), lengths in vec(1..40usize, 0..40)) {
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
    fn what_is_said_is_heard(frames in vec(said(), 0..6), key: [u8; 4], length in 1..50_000usize) {
        let length = length.max(100);
        let (mut answered, mut asked, mut in_parts) = (Vec::new(), Vec::new(), Vec::new());
        for said in &frames {
            said.frame().append(&mut answered);
            said.frame().append_masked(&mut asked, key);
            said.append_in_parts(&mut in_parts, length, key);
        }
        hears(FrameReader::client(), &mut answered, &frames);
        hears(FrameReader::server(), &mut asked, &frames);
        hears(FrameReader::server(), &mut in_parts, &frames);
    }
}
