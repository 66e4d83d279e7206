//! WebSocket messages and control frames, and how they are written.

use alloc::vec::Vec;

use super::close_code::CloseCode;
use super::fault::FrameFault;
use super::header::{Header, MAX_SHORT_LENGTH, Opcode};
use super::mask::mask;

/// A control frame or a complete message. The fragments of a message are joined into one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'p> {
    /// A message of text.
    Text(&'p str),
    /// A message of bytes.
    Binary(&'p [u8]),
    /// A ping of at most 125 bytes. A longer payload is truncated. The response is a pong with the
    /// same bytes.
    Ping(&'p [u8]),
    /// A pong of at most 125 bytes: the response to a ping, or an unsolicited heartbeat. A longer
    /// payload is truncated.
    Pong(&'p [u8]),
    /// The last frame in this direction. The connection closes after both sides have sent one (RFC
    /// 6455 section 7).
    Close {
        /// The status code, if any.
        code: Option<CloseCode>,
        /// The reason for people, at most 123 bytes. A longer text is truncated. Without a code it
        /// is omitted.
        reason: &'p str,
    },
}

impl<'p> Frame<'p> {
    /// Returns the response that the protocol requires: a pong to a ping, and a close with the same
    /// code to a close that is not itself a response (RFC 6455 sections 5.5.1, 5.5.2).
    pub const fn answer(&self) -> Option<Self> {
        match *self {
            Self::Ping(payload) => Some(Self::Pong(payload)),
            Self::Close { code, .. } => Some(Self::Close { code, reason: "" }),
            Self::Text(_) | Self::Binary(_) | Self::Pong(_) => None,
        }
    }

    /// Appends the frame as a server sends it.
    pub fn append(&self, out: &mut Vec<u8>) {
        let parts = self.parts();
        out.extend_from_slice(parts.header().as_bytes());
        out.extend_from_slice(parts.code());
        out.extend_from_slice(parts.payload);
    }

    /// Appends the frame as a client sends it: masked.
    ///
    /// The key must be unpredictable and different for each frame (RFC 6455 section 5.3).
    pub fn append_masked(&self, out: &mut Vec<u8>, key: [u8; 4]) {
        let parts = self.parts();
        out.extend_from_slice(parts.header().masked(key).as_bytes());
        let start = out.len();
        out.extend_from_slice(parts.code());
        out.extend_from_slice(parts.payload);
        mask(&mut out[start..], key);
    }

    fn parts(&self) -> Parts<'p> {
        let truncate =
            |payload: &'p [u8]| &payload[..payload.len().min(usize::from(MAX_SHORT_LENGTH))];
        let without_code = |opcode, payload| Parts { opcode, code: None, payload };
        match *self {
            Self::Text(text) => without_code(Opcode::Text, text.as_bytes()),
            Self::Binary(bytes) => without_code(Opcode::Binary, bytes),
            Self::Ping(payload) => without_code(Opcode::Ping, truncate(payload)),
            Self::Pong(payload) => without_code(Opcode::Pong, truncate(payload)),
            Self::Close { code: None, .. } => without_code(Opcode::Close, b""),
            Self::Close { code: Some(code), reason } => {
                let code = code.number().to_be_bytes();
                let end = reason.floor_char_boundary(usize::from(MAX_SHORT_LENGTH) - code.len());
                let payload = &reason.as_bytes()[..end];
                Parts { opcode: Opcode::Close, code: Some(code), payload }
            }
        }
    }
}

impl FrameFault {
    /// Returns the close frame that reports the fault to the client.
    pub const fn close_frame(self) -> Frame<'static> {
        Frame::Close { code: Some(self.code()), reason: self.close_reason() }
    }
}

/// The parts of a frame to send.
struct Parts<'p> {
    opcode: Opcode,
    /// The code of a close frame.
    code: Option<[u8; 2]>,
    /// The payload after the code.
    payload: &'p [u8],
}

impl Parts<'_> {
    fn header(&self) -> Header {
        let length = self.code().len() + self.payload.len();
        Header::final_frame(self.opcode, length as u64)
    }

    fn code(&self) -> &[u8] {
        self.code.as_slice().as_flattened()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Frame;
    use crate::websocket::close_code::CloseCode;
    use crate::websocket::fault::FrameFault;

    #[track_caller]
    fn check(frame: Frame<'_>, expected: &[u8]) {
        let mut out = Vec::new();
        frame.append(&mut out);
        assert_eq!(out, expected);
    }

    /// Each fault closes the connection with a code of RFC 6455 section 7.4.1 and a text.
    #[test]
    fn reports_fault_with_code_and_reason() {
        for (fault, code, reason) in [
            (FrameFault::Mask, 1002, "The frame is malformed."),
            (FrameFault::InvalidUtf8, 1007, "The text is not UTF-8."),
            (FrameFault::TooManyFragments, 1008, "The message is in too many fragments."),
            (FrameFault::TooLarge, 1009, "The message is too large."),
        ] {
            let Frame::Close { code: Some(sent), reason: text } = fault.close_frame() else {
                panic!("no close frame")
            };
            assert_eq!((sent.number(), text), (code, reason));
        }
    }

    #[test]
    fn writes_unmasked_frames() {
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
    fn writes_masked_hello_of_rfc() {
        let mut out = Vec::new();
        Frame::Text("Hello").append_masked(&mut out, [0x37, 0xfa, 0x21, 0x3d]);
        assert_eq!(out, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    }

    #[test]
    fn truncates_reason_at_char_boundary_and_requires_code() {
        let reason = alloc::format!("a{}", "\u{20ac}".repeat(42));
        let mut out = Vec::new();
        Frame::Close { code: Some(CloseCode::NORMAL), reason: &reason }.append(&mut out);
        assert_eq!(out[1], 2 + 1 + 40 * 3);
        assert!(reason.as_bytes().starts_with(&out[4..]));
        check(Frame::Close { code: None, reason: "bye" }, &[0x88, 0]);
    }

    #[test]
    fn truncates_long_pings() {
        let mut out = Vec::new();
        Frame::Ping(&[7; 200]).append(&mut out);
        assert_eq!((out[1], out.len()), (125, 127));
    }

    #[test]
    fn answers_pings_and_closes() {
        assert_eq!(Frame::Ping(b"a").answer(), Some(Frame::Pong(b"a")));
        let close = Frame::Close { code: Some(CloseCode::NORMAL), reason: "bye" };
        assert_eq!(
            close.answer(),
            Some(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" })
        );
        assert_eq!(Frame::Text("a").answer(), None);
    }
}
