//! Decides where one frame ends and the next begins, and how parts become a message.

use alloc::vec::Vec;
use core::ops::Range;
use core::str;

use super::close_code::CloseCode;
use super::fault::FrameFault;
use super::frame::Frame;
use super::header::{Opcode, ReceivedHeader};
use super::mask::mask;

/// The receiving half of one WebSocket. Owns no buffer, no socket and no clock.
///
/// Give [`receive`](Self::receive) all bytes received and not yet consumed, again and again until it says
/// [`FrameEvent::More`]; it is then worth asking again only with more bytes. Behind a close frame and behind a fault all
/// further input is consumed and ignored.
#[derive(Debug)]
pub struct FrameReader {
    /// Whether frames must come under a mask; the other way about they must not.
    expects_mask: bool,
    state: State,
}

/// All the states there are.
#[derive(Debug)]
enum State {
    /// Between messages.
    BetweenMessages,
    /// Inside a message that is not all in one place: between its frames, or in one of them.
    Message(PartialMessage),
    /// Nothing further is understood.
    Ended,
}

/// What one message may cost.
#[derive(Clone, Debug)]
pub struct MessageLimits {
    /// Bytes of its content.
    pub message: u32,
    /// Frames that it comes in: empty ones would otherwise go on forever.
    pub fragments: u32,
}

/// What became of some input: how much of it is done with, and what it meant.
#[derive(Debug)]
pub struct FrameStep<'b> {
    /// Bytes at the front of the input that must not be given again.
    pub consumed: usize,
    /// What they meant.
    pub event: FrameEvent<'b>,
}

/// What the reader has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEvent<'b> {
    /// Nothing further: keep what is not consumed and call again with more behind it.
    More,
    /// Something was said, and all of it is here.
    Frame(Frame<'b>),
    /// The peer did wrong: send the farewell, then close.
    Fault(FrameFault),
}

/// What is known of a message that is being buffer.
#[derive(Debug)]
struct PartialMessage {
    /// Text or binary.
    opcode: Opcode,
    /// Frames that it has had.
    fragments: u32,
    /// Up to here what was buffer is text.
    valid_up_to: usize,
    /// The frame that it is in.
    frame: Option<PartialFrame>,
}

/// A frame whose payload is still to come, or some of it.
#[derive(Debug)]
struct PartialFrame {
    remaining: u32,
    /// The key, turned so that its first byte belongs to the next byte of the payload.
    key: [u8; 4],
    is_last: bool,
}

/// Where something whole is.
enum Complete {
    /// In the input, under its key.
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
    /// The most that is ever remaining unconsumed: a byte less than the longest control frame.
    ///
    /// Of other frames not even a whole header is kept.
    pub const MAX_UNCONSUMED: usize = 2 + 4 + 125 - 1;

    /// For the end that accepted the connection: frames must come under a mask.
    pub const fn server() -> Self {
        Self::new(true)
    }

    /// For the end that opened the connection: frames must come without a mask.
    pub const fn client() -> Self {
        Self::new(false)
    }

    const fn new(expects_mask: bool) -> Self {
        Self { expects_mask, state: State::BetweenMessages }
    }

    /// Looks at all bytes received and not yet consumed; masks are taken off where they lie.
    ///
    /// A message that lies whole in the input is told from there. The parts of any other are moved to `buffer`, which
    /// grows no further than [`MessageLimits::message`]. It must be the same from call to call while this
    /// [`has_partial_message`](Self::has_partial_message); else it may be any, and what is in it is lost. Of the input at most
    /// [`MAX_UNCONSUMED`](Self::MAX_UNCONSUMED) bytes are remaining unconsumed.
    #[inline]
    pub fn receive<'b>(
        &mut self,
        input: &'b mut [u8],
        buffer: &'b mut Vec<u8>,
        limits: &MessageLimits,
    ) -> FrameStep<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, buffer, limits).unwrap_or_else(|fault| {
            self.state = State::Ended;
            FrameEvent::Fault(fault)
        });
        FrameStep { consumed, event }
    }

    /// Whether a message is being buffer.
    pub const fn has_partial_message(&self) -> bool {
        matches!(self.state, State::Message(_))
    }

    #[inline]
    fn advance<'b>(
        &mut self,
        input: &'b mut [u8],
        consumed: &mut usize,
        buffer: &'b mut Vec<u8>,
        limits: &MessageLimits,
    ) -> Result<FrameEvent<'b>, FrameFault> {
        if matches!(self.state, State::Ended) {
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
            // Gathered text was valid_up_to as it came, but for whether its last letter ends; without unsafe all is valid_up_to.
            Opcode::Text => {
                Frame::Text(str::from_utf8(payload).map_err(|_| FrameFault::InvalidUtf8)?)
            }
            Opcode::Binary | Opcode::Continuation => Frame::Binary(payload),
            Opcode::Ping => Frame::Ping(payload),
            Opcode::Pong => Frame::Pong(payload),
            Opcode::Close => {
                self.state = State::Ended;
                parse_close(payload)?
            }
        }))
    }

    /// The next that is whole; what is on the way to it is buffer.
    #[inline]
    fn next_complete(
        &mut self,
        input: &[u8],
        consumed: &mut usize,
        buffer: &mut Vec<u8>,
        limits: &MessageLimits,
    ) -> Result<Option<Complete>, FrameFault> {
        loop {
            if let State::Message(message) = &mut self.state
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
                    self.state = State::BetweenMessages;
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
            if let State::Message(message) = &mut self.state {
                message.fragments += 1;
                message.frame = frame;
            } else {
                buffer.clear();
                self.state =
                    State::Message(PartialMessage { opcode, fragments: 1, valid_up_to: 0, frame });
            }
        }
    }

    /// The header at the front of the bytes, and its key, if all of it is there and it may stand here.
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
            (State::Message(message), Opcode::Continuation) => {
                if message.fragments >= limits.fragments {
                    return Err(FrameFault::TooManyFragments);
                }
                buffer.len() as u64
            }
            (State::Message(_), _) => return Err(FrameFault::InterleavedMessage),
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
    /// Refuses what is not text as soon as no further byte could make it so.
    fn validate_text(&mut self, buffer: &[u8]) -> Result<(), FrameFault> {
        if self.opcode != Opcode::Text {
            return Ok(());
        }
        let fresh = buffer.get(self.valid_up_to..).unwrap_or_default();
        match str::from_utf8(fresh) {
            Ok(_) => self.valid_up_to = buffer.len(),
            // A letter has begun that may yet end.
            Err(error) if error.error_len().is_none() => self.valid_up_to += error.valid_up_to(),
            Err(_) => return Err(FrameFault::InvalidUtf8),
        }
        Ok(())
    }
}

impl PartialFrame {
    /// Moves what is there of the payload, without its mask; says how much.
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

/// What a close frame says (RFC 6455 section 5.5.1).
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
    fn a_reader_costs_little() {
        assert!(size_of::<FrameReader>() <= 40);
    }
}
