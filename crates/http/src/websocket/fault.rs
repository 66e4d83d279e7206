//! Decides which mistakes a peer can make, and with which code each closes the connection.

use core::fmt;

use super::close_code::CloseCode;
use super::frame::Frame;

/// A mistake of the peer. Send [`close_frame`](Self::close_frame), then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// A reserved bit is set, and no extension gives it a meaning (RFC 6455 section 5.2).
    ReservedBit,
    /// An opcode that nobody has given a meaning.
    Opcode,
    /// A control frame that is not the whole of itself (RFC 6455 section 5.5).
    FragmentedControl,
    /// A control frame of more than 125 bytes.
    ControlTooLong,
    /// Not masked although it comes from who asked, or masked although from who answers (RFC 6455 section 5.1).
    Mask,
    /// A length that is not in its shortest form, or that reaches the sign bit.
    InvalidLength,
    /// A continuation of nothing (RFC 6455 section 5.4).
    UnexpectedContinuation,
    /// A message begins inside another.
    InterleavedMessage,
    /// A close frame of one byte (RFC 6455 section 5.5.1).
    CloseLength,
    /// A close code that may not be sent.
    InvalidCloseCode,
    /// Text that is not UTF-8.
    InvalidUtf8,
    /// A message in more parts than [`MessageLimits::fragments`](super::MessageLimits::fragments).
    TooManyFragments,
    /// A message larger than [`MessageLimits::message`](super::MessageLimits::message).
    TooLarge,
}

impl FrameFault {
    /// The code that the close frame carries.
    pub const fn code(self) -> CloseCode {
        match self {
            Self::InvalidUtf8 => CloseCode::INVALID_PAYLOAD,
            Self::TooManyFragments => CloseCode::POLICY_VIOLATION,
            Self::TooLarge => CloseCode::MESSAGE_TOO_BIG,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }

    /// The short text the peer gets: what to do about it, not where the reader stood.
    pub const fn close_reason(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "The text is not UTF-8.",
            Self::TooManyFragments => "The message is in too many fragments.",
            Self::TooLarge => "The message is too large.",
            _ => "The frame is malformed.",
        }
    }

    /// The close frame that tells the peer.
    pub const fn close_frame(self) -> Frame<'static> {
        Frame::Close { code: Some(self.code()), reason: self.close_reason() }
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReservedBit => "reserved bit in a frame",
            Self::Opcode => "unknown opcode",
            Self::FragmentedControl => "control frame in fragments",
            Self::ControlTooLong => "control frame over 125 bytes",
            Self::Mask => "frame masked the wrong way",
            Self::InvalidLength => "length of a frame not in its shortest form",
            Self::UnexpectedContinuation => "continuation of no message",
            Self::InterleavedMessage => "message inside another",
            Self::CloseLength => "close frame of one byte",
            Self::InvalidCloseCode => "close code that may not be sent",
            Self::InvalidUtf8 => "text is not UTF-8",
            Self::TooManyFragments => "too many fragments in a message",
            Self::TooLarge => "message over its limit",
        })
    }
}

impl core::error::Error for FrameFault {}
