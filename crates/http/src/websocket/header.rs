//! Decides what stands in front of a payload, written and read (RFC 6455 section 5.2).

use super::fault::Fault;

/// The bit of the first byte that says that a message ends with this frame.
const LAST: u8 = 0x80;
/// The bits that only extensions give a meaning.
const RESERVED: u8 = 0x70;
/// The bit of the second byte that says that a key follows the length.
const MASKED: u8 = 0x80;
/// The longest payload whose length stands in the second byte, and the longest of a control frame.
pub(super) const SHORT: u8 = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further part of a message.
    Continuation = 0,
    /// Text, or its first part.
    Text = 1,
    /// Bytes, or their first part.
    Binary = 2,
    /// The sender sends nothing further.
    Close = 8,
    /// To be answered by a pong.
    Ping = 9,
    /// The answer to a ping, or a sign of life.
    Pong = 10,
}

impl Opcode {
    const fn of(first: u8) -> Option<Self> {
        Some(match first & 0x0f {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    pub(super) const fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }
}

/// The bytes in front of a payload that is sent.
///
/// They depend on its length alone, so what is sent to many is put together once. A message whose length is not yet
/// known is sent in parts: [`part`](Self::part) for all but the last.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; 14],
    length: u8,
}

impl Header {
    /// For a whole message, or the last part of one, of so many bytes.
    pub fn last(opcode: Opcode, payload: u64) -> Self {
        Self::of(LAST | opcode as u8, payload)
    }

    /// For a part of a message behind which others follow as [`Opcode::Continuation`].
    pub fn part(opcode: Opcode, payload: u64) -> Self {
        Self::of(opcode as u8, payload)
    }

    /// The same for a payload under this mask, as it is sent by who opened the connection.
    #[must_use]
    pub fn masked(mut self, key: [u8; 4]) -> Self {
        self.bytes[1] |= MASKED;
        self.append(&key);
        self
    }

    /// What is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn of(first: u8, payload: u64) -> Self {
        let mut header = Self { bytes: [0; 14], length: 0 };
        if payload <= u64::from(SHORT) {
            header.append(&[first, payload as u8]);
        } else if let Ok(payload) = u16::try_from(payload) {
            header.append(&[first, 126]);
            header.append(&payload.to_be_bytes());
        } else {
            header.append(&[first, 127]);
            header.append(&payload.to_be_bytes());
        }
        header
    }

    fn append(&mut self, bytes: &[u8]) {
        let at = usize::from(self.length);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }
}

/// A header that was received, so far as it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) opcode: Opcode,
    pub(super) is_last: bool,
    /// Bytes of the header itself.
    pub(super) size: usize,
    /// Bytes of the payload; checked by the caller before it goes anywhere.
    pub(super) payload: u64,
}

impl Received {
    /// What the first byte says.
    #[inline]
    pub(super) const fn first(byte: u8) -> Result<(Opcode, bool), Fault> {
        if byte & RESERVED != 0 {
            return Err(Fault::ReservedBit);
        }
        let is_last = byte & LAST != 0;
        match Opcode::of(byte) {
            None => Err(Fault::Opcode),
            Some(opcode) if opcode.is_control() && !is_last => Err(Fault::ControlInParts),
            Some(opcode) => Ok((opcode, is_last)),
        }
    }

    /// What follows the first byte, up to the key; nothing yet if the length is not all there.
    #[inline]
    pub(super) fn read(
        bytes: &[u8],
        opcode: Opcode,
        is_last: bool,
        is_masked: bool,
    ) -> Result<Option<Self>, Fault> {
        let [_, second, rest @ ..] = bytes else { return Ok(None) };
        if (second & MASKED != 0) != is_masked {
            return Err(Fault::Mask);
        }
        let short = second & !MASKED;
        if opcode.is_control() && short > SHORT {
            return Err(Fault::ControlTooLong);
        }
        let (payload, shortest, size) = match short {
            126 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                (u64::from(u16::from_be_bytes(*length)), u64::from(SHORT) + 1, 4)
            }
            127 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                (u64::from_be_bytes(*length), u64::from(u16::MAX) + 1, 10)
            }
            short => (u64::from(short), 0, 2),
        };
        if payload < shortest || payload > i64::MAX as u64 {
            return Err(Fault::LengthForm);
        }
        Ok(Some(Self { opcode, is_last, size, payload }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, Opcode};

    #[track_caller]
    fn check(header: Header, expected: &[u8]) {
        assert_eq!(header.as_bytes(), expected);
    }

    #[test]
    fn a_length_is_in_its_shortest_form() {
        check(Header::last(Opcode::Text, 0), &[0x81, 0]);
        check(Header::last(Opcode::Text, 125), &[0x81, 125]);
        check(Header::last(Opcode::Binary, 126), &[0x82, 126, 0, 126]);
        check(Header::last(Opcode::Binary, 0xffff), &[0x82, 126, 0xff, 0xff]);
        check(Header::last(Opcode::Binary, 0x1_0000), &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_message_in_parts_says_so_in_each() {
        check(Header::part(Opcode::Text, 3), &[0x01, 3]);
        check(Header::part(Opcode::Continuation, 3), &[0x00, 3]);
        check(Header::last(Opcode::Continuation, 3), &[0x80, 3]);
    }

    #[test]
    fn a_key_follows_the_length() {
        check(Header::last(Opcode::Text, 1).masked([1, 2, 3, 4]), &[0x81, 0x81, 1, 2, 3, 4]);
        let long = Header::last(Opcode::Text, 0x1_0000).masked([1, 2, 3, 4]);
        check(long, &[0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4]);
    }
}
