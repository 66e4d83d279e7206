//! Protocol violations in WebSocket frames, and the code with which each closes the connection.

use core::fmt;

use super::close_code::CloseCode;

/// A protocol violation by the client. Send the [`close_frame`](Self::close_frame), then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// A reserved bit is set although no extension defines it (RFC 6455 section 5.2).
    ReservedBit,
    /// An undefined opcode.
    Opcode,
    /// A fragmented control frame (RFC 6455 section 5.5).
    FragmentedControl,
    /// A control frame of more than 125 bytes.
    ControlTooLong,
    /// An unmasked frame from a client, or a masked frame from a server (RFC 6455 section 5.1).
    Mask,
    /// A length that is not in its shortest form, or that uses the sign bit.
    InvalidLength,
    /// A continuation frame outside a message (RFC 6455 section 5.4).
    UnexpectedContinuation,
    /// A message begins before the previous one is complete.
    InterleavedMessage,
    /// A close frame of one byte (RFC 6455 section 5.5.1).
    CloseLength,
    /// A code that is not allowed in a close frame.
    InvalidCloseCode,
    /// Text that is not UTF-8.
    InvalidUtf8,
    /// A message with more fragments than
    /// [`MessageLimits::fragments`](super::MessageLimits::fragments).
    TooManyFragments,
    /// A message larger than [`MessageLimits::message`](super::MessageLimits::message).
    TooLarge,
}

impl FrameFault {
    /// Returns the code of the close frame.
    pub const fn code(self) -> CloseCode {
        match self {
            Self::InvalidUtf8 => CloseCode::INVALID_PAYLOAD,
            Self::TooManyFragments => CloseCode::POLICY_VIOLATION,
            Self::TooLarge => CloseCode::MESSAGE_TOO_BIG,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }

    /// Returns the reason for the close frame: how to correct the message, without the position of
    /// the reader.
    pub const fn close_reason(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "The text is not UTF-8.",
            Self::TooManyFragments => "The message is in too many fragments.",
            Self::TooLarge => "The message is too large.",
            _ => "The frame is malformed.",
        }
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
