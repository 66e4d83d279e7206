//! Decides where one frame ends and the next begins, and how parts become a message.

use alloc::vec::Vec;
use core::ops::Range;
use core::str;

use super::code::Code;
use super::fault::Fault;
use super::frame::Frame;
use super::header::{Opcode, Received};
use super::mask::mask;

/// The receiving half of one WebSocket. Owns no buffer, no socket and no clock.
///
/// Give [`receive`](Self::receive) all bytes received and not yet consumed, again and again until it says
/// [`Event::More`]; it is then worth asking again only with more bytes. Behind a close frame and behind a fault all
/// further input is consumed and ignored.
#[derive(Debug)]
pub struct Reader {
    /// Whether frames must come under a mask; the other way about they must not.
    is_masked: bool,
    state: State,
}

/// All the states there are.
#[derive(Debug)]
enum State {
    /// Between messages.
    Between,
    /// Inside a message that is not all in one place: between its frames, or in one of them.
    Message(Message),
    /// Nothing further is understood.
    Ended,
}

/// What one message may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of its content.
    pub message: u32,
    /// Frames that it comes in: empty ones would otherwise go on forever.
    pub fragments: u32,
}

/// What became of some input: how much of it is done with, and what it meant.
#[derive(Debug)]
pub struct Step<'b> {
    /// Bytes at the front of the input that must not be given again.
    pub consumed: usize,
    /// What they meant.
    pub event: Event<'b>,
}

/// What the reader has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// Nothing further: keep what is not consumed and call again with more behind it.
    More,
    /// Something was said, and all of it is here.
    Frame(Frame<'b>),
    /// The peer did wrong: send the farewell, then close.
    Fault(Fault),
}

/// What is known of a message that is being gathered.
#[derive(Debug)]
struct Message {
    /// Text or binary.
    opcode: Opcode,
    /// Frames that it has had.
    fragments: u32,
    /// Up to here what was gathered is text.
    checked: usize,
    /// The frame that it is in.
    part: Option<Part>,
}

/// A frame whose payload is still to come, or some of it.
#[derive(Debug)]
struct Part {
    left: u32,
    /// The key, turned so that its first byte belongs to the next byte of the payload.
    key: [u8; 4],
    is_last: bool,
}

/// Where something whole is.
enum Found {
    /// In the input, under its key.
    Here { opcode: Opcode, key: [u8; 4], payload: Range<usize> },
    /// In the buffer: text or binary.
    Gathered(Opcode),
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 1 << 20, fragments: 1024 }
    }
}

impl Reader {
    /// The most that is ever left unconsumed: a byte less than the longest control frame.
    ///
    /// Of other frames not even a whole header is kept.
    pub const LONGEST_KEPT: usize = 2 + 4 + 125 - 1;

    /// For the end that accepted the connection: frames must come under a mask.
    pub const fn accepting() -> Self {
        Self::new(true)
    }

    /// For the end that opened the connection: frames must come without a mask.
    pub const fn opening() -> Self {
        Self::new(false)
    }

    const fn new(is_masked: bool) -> Self {
        Self { is_masked, state: State::Between }
    }

    /// Looks at all bytes received and not yet consumed; masks are taken off where they lie.
    ///
    /// A message that lies whole in the input is told from there. The parts of any other are moved to `gathered`, which
    /// grows no further than [`Limits::message`]. It must be the same from call to call while this
    /// [`gathers`](Self::gathers); else it may be any, and what is in it is lost. Of the input at most
    /// [`LONGEST_KEPT`](Self::LONGEST_KEPT) bytes are left unconsumed.
    #[inline]
    pub fn receive<'b>(
        &mut self,
        input: &'b mut [u8],
        gathered: &'b mut Vec<u8>,
        limits: &Limits,
    ) -> Step<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, gathered, limits).unwrap_or_else(|fault| {
            self.state = State::Ended;
            Event::Fault(fault)
        });
        Step { consumed, event }
    }

    /// Whether a message is being gathered.
    pub const fn gathers(&self) -> bool {
        matches!(self.state, State::Message(_))
    }

    #[inline]
    fn advance<'b>(
        &mut self,
        input: &'b mut [u8],
        consumed: &mut usize,
        gathered: &'b mut Vec<u8>,
        limits: &Limits,
    ) -> Result<Event<'b>, Fault> {
        if matches!(self.state, State::Ended) {
            *consumed = input.len();
            return Ok(Event::More);
        }
        let (opcode, payload) = match self.find(input, consumed, gathered, limits)? {
            None => return Ok(Event::More),
            Some(Found::Gathered(opcode)) => (opcode, gathered.as_slice()),
            Some(Found::Here { opcode, key, payload }) => {
                let payload = &mut input[payload];
                mask(payload, key);
                (opcode, &*payload)
            }
        };
        Ok(Event::Frame(match opcode {
            // Gathered text was checked as it came, but for whether its last letter ends; without unsafe all is checked.
            Opcode::Text => Frame::Text(str::from_utf8(payload).map_err(|_| Fault::NotText)?),
            Opcode::Binary | Opcode::Continuation => Frame::Binary(payload),
            Opcode::Ping => Frame::Ping(payload),
            Opcode::Pong => Frame::Pong(payload),
            Opcode::Close => {
                self.state = State::Ended;
                close(payload)?
            }
        }))
    }

    /// The next that is whole; what is on the way to it is gathered.
    #[inline]
    fn find(
        &mut self,
        input: &[u8],
        consumed: &mut usize,
        gathered: &mut Vec<u8>,
        limits: &Limits,
    ) -> Result<Option<Found>, Fault> {
        loop {
            if let State::Message(message) = &mut self.state
                && let Some(part) = &mut message.part
            {
                *consumed += part.take(&input[*consumed..], gathered);
                let (left, is_last) = (part.left, part.is_last);
                message.check(gathered)?;
                if left > 0 {
                    return Ok(None);
                }
                message.part = None;
                if is_last {
                    let opcode = message.opcode;
                    self.state = State::Between;
                    return Ok(Some(Found::Gathered(opcode)));
                }
            }
            let rest = &input[*consumed..];
            let Some((header, key)) = self.header(rest, gathered, limits)? else {
                return Ok(None);
            };
            let Received { opcode, is_last, .. } = header;
            let start = *consumed + header.size;
            let payload = start..start + header.payload as usize;
            let is_here = payload.end <= input.len();
            let is_alone = opcode.is_control() || (is_last && !self.gathers());
            if is_here && is_alone {
                *consumed = payload.end;
                return Ok(Some(Found::Here { opcode, key, payload }));
            }
            if opcode.is_control() {
                return Ok(None);
            }
            *consumed = start;
            let part = Some(Part { left: header.payload as u32, key, is_last });
            if let State::Message(message) = &mut self.state {
                message.fragments += 1;
                message.part = part;
            } else {
                gathered.clear();
                self.state = State::Message(Message { opcode, fragments: 1, checked: 0, part });
            }
        }
    }

    /// The header at the front of the bytes, and its key, if all of it is there and it may stand here.
    #[inline]
    fn header(
        &self,
        bytes: &[u8],
        gathered: &[u8],
        limits: &Limits,
    ) -> Result<Option<(Received, [u8; 4])>, Fault> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let (opcode, is_last) = Received::first(first)?;
        let before = match (&self.state, opcode) {
            _ if opcode.is_control() => 0,
            (State::Message(message), Opcode::Continuation) => {
                if message.fragments >= limits.fragments {
                    return Err(Fault::TooManyFragments);
                }
                gathered.len() as u64
            }
            (State::Message(_), _) => return Err(Fault::Interrupted),
            (_, Opcode::Continuation) => return Err(Fault::NothingToContinue),
            _ => 0,
        };
        let Some(mut header) = Received::read(bytes, opcode, is_last, self.is_masked)? else {
            return Ok(None);
        };
        if !opcode.is_control() && before + header.payload > u64::from(limits.message) {
            return Err(Fault::TooLarge);
        }
        if !self.is_masked {
            return Ok(Some((header, [0; 4])));
        }
        let Some(&key) = bytes[header.size..].first_chunk() else { return Ok(None) };
        header.size += key.len();
        Ok(Some((header, key)))
    }
}

impl Message {
    /// Refuses what is not text as soon as no further byte could make it so.
    fn check(&mut self, gathered: &[u8]) -> Result<(), Fault> {
        if self.opcode != Opcode::Text {
            return Ok(());
        }
        let fresh = gathered.get(self.checked..).unwrap_or_default();
        match str::from_utf8(fresh) {
            Ok(_) => self.checked = gathered.len(),
            // A letter has begun that may yet end.
            Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
            Err(_) => return Err(Fault::NotText),
        }
        Ok(())
    }
}

impl Part {
    /// Moves what is there of the payload, without its mask; says how much.
    fn take(&mut self, input: &[u8], gathered: &mut Vec<u8>) -> usize {
        let length = input.len().min(self.left as usize);
        let start = gathered.len();
        gathered.extend_from_slice(&input[..length]);
        mask(&mut gathered[start..], self.key);
        self.key.rotate_left(length % 4);
        self.left -= length as u32;
        length
    }
}

/// What a close frame says (RFC 6455 section 5.5.1).
fn close(payload: &[u8]) -> Result<Frame<'_>, Fault> {
    match payload {
        [] => Ok(Frame::Close { code: None, reason: "" }),
        [_] => Err(Fault::CloseLength),
        [high, low, reason @ ..] => {
            let code = Code::new(u16::from_be_bytes([*high, *low])).ok_or(Fault::CloseCode)?;
            let reason = str::from_utf8(reason).map_err(|_| Fault::NotText)?;
            Ok(Frame::Close { code: Some(code), reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn a_reader_costs_little() {
        assert!(size_of::<Reader>() <= 40);
    }
}
