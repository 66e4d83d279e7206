//! Frame boundaries, and the assembly of fragments into messages.

use alloc::vec::Vec;
use core::ops::Range;
use core::str;

use super::close_code::CloseCode;
use super::fault::FrameFault;
use super::frame::Frame;
use super::header::{Opcode, ReceivedHeader};
use super::mask::mask;

/// Reads the frames of one WebSocket. Performs no I/O and reads no clock.
///
/// Pass [`receive`](Self::receive) all bytes that were received and not yet consumed. Call it until
/// it returns [`FrameEvent::More`], then again when more bytes have arrived. After a close frame or
/// a fault, the reader consumes and ignores all further input.
#[derive(Debug)]
pub struct FrameReader {
    /// Whether frames must be masked. Otherwise they must not be.
    expects_mask: bool,
    state: ReaderState,
}

/// The position of the reader in the sequence of messages.
#[derive(Debug)]
enum ReaderState {
    /// Between messages.
    BetweenMessages,
    /// Inside a fragmented or incomplete message: between its frames, or inside a frame.
    Message(PartialMessage),
    /// After a close frame or a fault. Input is ignored.
    Ended,
}

/// The size limits of a message.
#[derive(Clone, Debug)]
pub struct MessageLimits {
    /// Maximum size of its content in bytes.
    pub message: u32,
    /// Maximum number of its frames. Otherwise empty frames could continue forever.
    pub fragments: u32,
}

/// The result of one call of [`FrameReader::receive`].
#[derive(Debug)]
pub struct FrameStep<'b> {
    /// The number of bytes that the reader consumed from the front of the input.
    pub consumed: usize,
    /// The event that these bytes produced.
    pub event: FrameEvent<'b>,
}

/// An event that the reader found in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEvent<'b> {
    /// The input contains no further event. Keep the unconsumed bytes and append to them.
    More,
    /// A control frame or a complete message.
    Frame(Frame<'b>),
    /// The client violated the protocol. Send [`FrameFault::close_frame`], then close.
    Fault(FrameFault),
}

/// A message that is not complete.
#[derive(Debug)]
struct PartialMessage {
    /// Text or binary.
    opcode: Opcode,
    /// The number of frames so far.
    fragments: u32,
    /// The length of the buffered prefix that is valid UTF-8.
    valid_up_to: usize,
    /// The frame whose payload is incomplete, if any.
    frame: Option<PartialFrame>,
}

/// A frame whose payload is incomplete.
#[derive(Debug)]
struct PartialFrame {
    remaining: u32,
    /// The key, rotated so that its first byte belongs to the next byte of the payload.
    key: [u8; 4],
    is_last: bool,
}

/// The location of a complete frame or message.
enum Complete {
    /// In the input, masked with the key.
    InPlace { opcode: Opcode, key: [u8; 4], payload: Range<usize> },
    /// In the buffer: text or binary.
    Buffered(Opcode),
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self { message: 1 << 20, fragments: 1024 }
    }
}

impl FrameReader {
    /// The maximum number of unconsumed bytes: one byte less than the longest control frame.
    ///
    /// Of other frames, not even a complete header stays unconsumed.
    pub const MAX_UNCONSUMED: usize = 2 + 4 + 125 - 1;

    /// Creates a reader for a server: frames must be masked.
    pub const fn server() -> Self {
        Self::new(true)
    }

    /// Creates a reader for a client: frames must not be masked.
    pub const fn client() -> Self {
        Self::new(false)
    }

    const fn new(expects_mask: bool) -> Self {
        Self { expects_mask, state: ReaderState::BetweenMessages }
    }

    /// Reads the bytes that were received and not yet consumed, and unmasks them in place.
    ///
    /// A message that is complete in the input is returned from there. The fragments of any other
    /// message are moved to `buffer`, which grows to [`MessageLimits::message`] at most. While
    /// [`has_partial_message`](Self::has_partial_message) is true, pass the same buffer in each
    /// call. Otherwise any buffer will do, and its content is lost. At most
    /// [`MAX_UNCONSUMED`](Self::MAX_UNCONSUMED) bytes of the input stay unconsumed.
    #[inline]
    pub fn receive<'b>(
        &mut self,
        input: &'b mut [u8],
        buffer: &'b mut Vec<u8>,
        limits: &MessageLimits,
    ) -> FrameStep<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, buffer, limits).unwrap_or_else(|fault| {
            self.state = ReaderState::Ended;
            FrameEvent::Fault(fault)
        });
        FrameStep { consumed, event }
    }

    /// Returns whether a message is incomplete.
    pub const fn has_partial_message(&self) -> bool {
        matches!(self.state, ReaderState::Message(_))
    }

    #[inline]
    fn advance<'b>(
        &mut self,
        input: &'b mut [u8],
        consumed: &mut usize,
        buffer: &'b mut Vec<u8>,
        limits: &MessageLimits,
    ) -> Result<FrameEvent<'b>, FrameFault> {
        if matches!(self.state, ReaderState::Ended) {
            *consumed = input.len();
            return Ok(FrameEvent::More);
        }
        let (opcode, payload) = match self.next_complete(input, consumed, buffer, limits)? {
            None => return Ok(FrameEvent::More),
            Some(Complete::Buffered(opcode)) => (opcode, buffer.as_slice()),
            Some(Complete::InPlace { opcode, key, payload }) => {
                let payload = &mut input[payload];
                mask(payload, key);
                (opcode, &*payload)
            }
        };
        Ok(FrameEvent::Frame(match opcode {
            // Buffered text was validated as it arrived, except for the end of its last character.
            // Without unsafe code the whole text is validated again.
            Opcode::Text => {
                Frame::Text(str::from_utf8(payload).map_err(|_| FrameFault::InvalidUtf8)?)
            }
            Opcode::Binary | Opcode::Continuation => Frame::Binary(payload),
            Opcode::Ping => Frame::Ping(payload),
            Opcode::Pong => Frame::Pong(payload),
            Opcode::Close => {
                self.state = ReaderState::Ended;
                parse_close(payload)?
            }
        }))
    }

    /// Returns the next complete frame or message. Buffers incomplete messages.
    #[inline]
    fn next_complete(
        &mut self,
        input: &[u8],
        consumed: &mut usize,
        buffer: &mut Vec<u8>,
        limits: &MessageLimits,
    ) -> Result<Option<Complete>, FrameFault> {
        loop {
            if let ReaderState::Message(message) = &mut self.state
                && let Some(frame) = &mut message.frame
            {
                *consumed += frame.unmask_into(&input[*consumed..], buffer);
                let (remaining, is_last) = (frame.remaining, frame.is_last);
                message.validate_text(buffer)?;
                if remaining > 0 {
                    return Ok(None);
                }
                message.frame = None;
                if is_last {
                    let opcode = message.opcode;
                    self.state = ReaderState::BetweenMessages;
                    return Ok(Some(Complete::Buffered(opcode)));
                }
            }
            let rest = &input[*consumed..];
            let Some((header, key)) = self.read_header(rest, buffer, limits)? else {
                return Ok(None);
            };
            let ReceivedHeader { opcode, is_last, .. } = header;
            let start = *consumed + header.size;
            let payload = start..start + header.payload as usize;
            let is_complete = payload.end <= input.len();
            let is_unfragmented = opcode.is_control() || (is_last && !self.has_partial_message());
            if is_complete && is_unfragmented {
                *consumed = payload.end;
                return Ok(Some(Complete::InPlace { opcode, key, payload }));
            }
            if opcode.is_control() {
                return Ok(None);
            }
            *consumed = start;
            let frame = Some(PartialFrame { remaining: header.payload as u32, key, is_last });
            if let ReaderState::Message(message) = &mut self.state {
                message.fragments += 1;
                message.frame = frame;
            } else {
                buffer.clear();
                self.state = ReaderState::Message(PartialMessage {
                    opcode,
                    fragments: 1,
                    valid_up_to: 0,
                    frame,
                });
            }
        }
    }

    /// Parses the header at the front of the bytes, and its key. Returns `None` while it is
    /// incomplete. Rejects a header that is not allowed in the current state.
    #[inline]
    fn read_header(
        &self,
        bytes: &[u8],
        buffer: &[u8],
        limits: &MessageLimits,
    ) -> Result<Option<(ReceivedHeader, [u8; 4])>, FrameFault> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let (opcode, is_last) = ReceivedHeader::parse_first_byte(first)?;
        let buffered = match (&self.state, opcode) {
            _ if opcode.is_control() => 0,
            (ReaderState::Message(message), Opcode::Continuation) => {
                if message.fragments >= limits.fragments {
                    return Err(FrameFault::TooManyFragments);
                }
                buffer.len() as u64
            }
            (ReaderState::Message(_), _) => return Err(FrameFault::InterleavedMessage),
            (_, Opcode::Continuation) => return Err(FrameFault::UnexpectedContinuation),
            _ => 0,
        };
        let Some(mut header) = ReceivedHeader::parse(bytes, opcode, is_last, self.expects_mask)?
        else {
            return Ok(None);
        };
        if !opcode.is_control() && buffered + header.payload > u64::from(limits.message) {
            return Err(FrameFault::TooLarge);
        }
        if !self.expects_mask {
            return Ok(Some((header, [0; 4])));
        }
        let Some(&key) = bytes[header.size..].first_chunk() else { return Ok(None) };
        header.size += key.len();
        Ok(Some((header, key)))
    }
}

impl PartialMessage {
    /// Rejects malformed text as soon as no further byte could complete it.
    fn validate_text(&mut self, buffer: &[u8]) -> Result<(), FrameFault> {
        if self.opcode != Opcode::Text {
            return Ok(());
        }
        let fresh = buffer.get(self.valid_up_to..).unwrap_or_default();
        match str::from_utf8(fresh) {
            Ok(_) => self.valid_up_to = buffer.len(),
            // The last character is incomplete.
            Err(error) if error.error_len().is_none() => self.valid_up_to += error.valid_up_to(),
            Err(_) => return Err(FrameFault::InvalidUtf8),
        }
        Ok(())
    }
}

impl PartialFrame {
    /// Moves the available payload to the buffer and unmasks it. Returns its length.
    fn unmask_into(&mut self, input: &[u8], buffer: &mut Vec<u8>) -> usize {
        let length = input.len().min(self.remaining as usize);
        let start = buffer.len();
        buffer.extend_from_slice(&input[..length]);
        mask(&mut buffer[start..], self.key);
        self.key.rotate_left(length % 4);
        self.remaining -= length as u32;
        length
    }
}

/// Parses the payload of a close frame (RFC 6455 section 5.5.1).
fn parse_close(payload: &[u8]) -> Result<Frame<'_>, FrameFault> {
    match payload {
        [] => Ok(Frame::Close { code: None, reason: "" }),
        [_] => Err(FrameFault::CloseLength),
        [high, low, reason @ ..] => {
            let code = CloseCode::new(u16::from_be_bytes([*high, *low]))
                .ok_or(FrameFault::InvalidCloseCode)?;
            let reason = str::from_utf8(reason).map_err(|_| FrameFault::InvalidUtf8)?;
            Ok(Frame::Close { code: Some(code), reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FrameReader;

    #[test]
    fn reader_is_small() {
        assert!(size_of::<FrameReader>() <= 40);
    }
}
