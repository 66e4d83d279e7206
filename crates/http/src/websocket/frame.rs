//! Decides how what is said becomes a frame.

use alloc::vec::Vec;

use super::close_code::CloseCode;
use super::header::{Header, MAX_SHORT_LENGTH, Opcode};
use super::mask::mask;

/// Something said, whole: a message in parts is one frame here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'p> {
    /// A message of text.
    Text(&'p str),
    /// A message of bytes.
    Binary(&'p [u8]),
    /// To be answered by a pong of the same bytes, at most 125; what is longer is cut.
    Ping(&'p [u8]),
    /// The answer to a ping, or a sign of life; at most 125 bytes, what is longer is cut.
    Pong(&'p [u8]),
    /// Nothing follows: once both have said so, the connection closes (RFC 6455 section 7).
    Close {
        /// Why, if it is said.
        code: Option<CloseCode>,
        /// The same for people, at most 123 bytes: what is longer is cut, and without a code it is left out.
        reason: &'p str,
    },
}

impl<'p> Frame<'p> {
    /// What the protocol wants said in return: a pong to a ping, and a close, with the same code, to a close that was
    /// not itself an answer (RFC 6455 sections 5.5.1, 5.5.2).
    pub const fn answer(&self) -> Option<Self> {
        match *self {
            Self::Ping(payload) => Some(Self::Pong(payload)),
            Self::Close { code, .. } => Some(Self::Close { code, reason: "" }),
            Self::Text(_) | Self::Binary(_) | Self::Pong(_) => None,
        }
    }

    /// Appends what a server sends.
    pub fn append(&self, out: &mut Vec<u8>) {
        let (header, code, payload) = self.parts();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(code.as_slice().as_flattened());
        out.extend_from_slice(payload);
    }

    /// Appends what the end that opened the connection sends: the same under a mask.
    ///
    /// The key must be one that nobody can foretell, another for each frame (RFC 6455 section 5.3).
    pub fn append_masked(&self, out: &mut Vec<u8>, key: [u8; 4]) {
        let (header, code, payload) = self.parts();
        out.extend_from_slice(header.masked(key).as_bytes());
        let start = out.len();
        out.extend_from_slice(code.as_slice().as_flattened());
        out.extend_from_slice(payload);
        mask(&mut out[start..], key);
    }

    /// The header and the payload, of which the code of a close is apart.
    fn parts(&self) -> (Header, Option<[u8; 2]>, &'p [u8]) {
        let cut = |payload: &'p [u8]| &payload[..payload.len().min(usize::from(MAX_SHORT_LENGTH))];
        let (opcode, code, payload) = match *self {
            Self::Text(text) => (Opcode::Text, None, text.as_bytes()),
            Self::Binary(bytes) => (Opcode::Binary, None, bytes),
            Self::Ping(payload) => (Opcode::Ping, None, cut(payload)),
            Self::Pong(payload) => (Opcode::Pong, None, cut(payload)),
            Self::Close { code: None, .. } => (Opcode::Close, None, b"".as_slice()),
            Self::Close { code: Some(code), reason } => {
                let code = code.number().to_be_bytes();
                let end = reason.floor_char_boundary(usize::from(MAX_SHORT_LENGTH) - code.len());
                (Opcode::Close, Some(code), &reason.as_bytes()[..end])
            }
        };
        let length = code.as_slice().as_flattened().len() + payload.len();
        (Header::final_frame(opcode, length as u64), code, payload)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Frame;
    use crate::websocket::close_code::CloseCode;

    #[track_caller]
    fn check(frame: Frame<'_>, expected: &[u8]) {
        let mut out = Vec::new();
        frame.append(&mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_server_sends_without_a_mask() {
        check(Frame::Text("Hello"), b"\x81\x05Hello");
        check(Frame::Binary(&[1, 2]), &[0x82, 2, 1, 2]);
        check(Frame::Ping(b""), &[0x89, 0]);
        check(Frame::Pong(b"a"), b"\x8a\x01a");
        check(
            Frame::Close { code: Some(CloseCode::NORMAL), reason: "bye" },
            b"\x88\x05\x03\xe8bye",
        );
    }

    #[test]
    fn the_masked_hello_of_the_standard_comes_out() {
        let mut out = Vec::new();
        Frame::Text("Hello").append_masked(&mut out, [0x37, 0xfa, 0x21, 0x3d]);
        assert_eq!(out, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    }

    #[test]
    fn a_reason_is_cut_between_letters_and_needs_a_code() {
        let reason = alloc::format!("a{}", "\u{20ac}".repeat(42));
        let mut out = Vec::new();
        Frame::Close { code: Some(CloseCode::NORMAL), reason: &reason }.append(&mut out);
        assert_eq!(out[1], 2 + 1 + 40 * 3);
        assert!(reason.as_bytes().starts_with(&out[4..]));
        check(Frame::Close { code: None, reason: "bye" }, &[0x88, 0]);
    }

    #[test]
    fn a_ping_is_cut_rather_than_malformed() {
        let mut out = Vec::new();
        Frame::Ping(&[7; 200]).append(&mut out);
        assert_eq!((out[1], out.len()), (125, 127));
    }

    #[test]
    fn a_ping_is_answered_with_its_bytes_and_a_close_with_its_code() {
        assert_eq!(Frame::Ping(b"a").answer(), Some(Frame::Pong(b"a")));
        let close = Frame::Close { code: Some(CloseCode::NORMAL), reason: "bye" };
        assert_eq!(
            close.answer(),
            Some(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" })
        );
        assert_eq!(Frame::Text("a").answer(), None);
    }
}
