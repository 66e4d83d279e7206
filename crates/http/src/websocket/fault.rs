//! Decides which mistakes a peer can make, and with which code each closes the connection.

use core::fmt;

use super::code::Code;
use super::frame::Frame;

/// A mistake of the peer. Send [`farewell`](Self::farewell), then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reserved bit is set, and no extension gives it a meaning (RFC 6455 section 5.2).
    ReservedBit,
    /// An opcode that nobody has given a meaning.
    Opcode,
    /// A control frame that is not the whole of itself (RFC 6455 section 5.5).
    ControlInParts,
    /// A control frame of more than 125 bytes.
    ControlTooLong,
    /// Not masked although it comes from who asked, or masked although from who answers (RFC 6455 section 5.1).
    Mask,
    /// A length that is not in its shortest form, or that reaches the sign bit.
    LengthForm,
    /// A continuation of nothing (RFC 6455 section 5.4).
    NothingToContinue,
    /// A message begins inside another.
    Interrupted,
    /// A close frame of one byte (RFC 6455 section 5.5.1).
    CloseLength,
    /// A close code that may not be sent.
    CloseCode,
    /// Text that is not UTF-8.
    NotText,
    /// A message in more parts than [`Limits::fragments`](super::Limits::fragments).
    TooManyFragments,
    /// A message larger than [`Limits::message`](super::Limits::message).
    TooLarge,
}

impl Fault {
    /// The code that the close frame carries.
    pub const fn code(self) -> Code {
        match self {
            Self::NotText => Code::NOT_TEXT,
            Self::TooManyFragments => Code::POLICY,
            Self::TooLarge => Code::TOO_LARGE,
            _ => Code::PROTOCOL,
        }
    }

    /// The short text the peer gets: what to do about it, not where the reader stood.
    pub const fn told(self) -> &'static str {
        match self {
            Self::NotText => "The text is not UTF-8.",
            Self::TooManyFragments => "The message is in too many fragments.",
            Self::TooLarge => "The message is too large.",
            _ => "The frame is malformed.",
        }
    }

    /// The close frame that tells the peer.
    pub const fn farewell(self) -> Frame<'static> {
        Frame::Close { code: Some(self.code()), reason: self.told() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReservedBit => "reserved bit in a frame",
            Self::Opcode => "unknown opcode",
            Self::ControlInParts => "control frame in fragments",
            Self::ControlTooLong => "control frame over 125 bytes",
            Self::Mask => "frame masked the wrong way",
            Self::LengthForm => "length of a frame not in its shortest form",
            Self::NothingToContinue => "continuation of no message",
            Self::Interrupted => "message inside another",
            Self::CloseLength => "close frame of one byte",
            Self::CloseCode => "close code that may not be sent",
            Self::NotText => "text is not UTF-8",
            Self::TooManyFragments => "too many fragments in a message",
            Self::TooLarge => "message over its limit",
        })
    }
}

impl core::error::Error for Fault {}
