//! Decides what stands in front of a payload, written and read (RFC 6455 section 5.2).

use super::fault::FrameFault;

/// The bit of the first byte that says that a message ends with this frame.
const FIN: u8 = 0x80;
/// The bits that only extensions give a meaning.
const RSV: u8 = 0x70;
/// The bit of the second byte that says that a key follows the length.
const MASK: u8 = 0x80;
/// The longest payload whose length stands in the second byte, and the longest of a control frame.
pub(super) const MAX_SHORT_LENGTH: u8 = 125;

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
    const fn from_first_byte(first: u8) -> Option<Self> {
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
/// known is sent in parts: [`fragment`](Self::fragment) for all but the last.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; 14],
    length: u8,
}

impl Header {
    /// For a whole message, or the last part of one, of so many bytes.
    pub fn final_frame(opcode: Opcode, payload: u64) -> Self {
        Self::new(FIN | opcode as u8, payload)
    }

    /// For a part of a message behind which others follow as [`Opcode::Continuation`].
    pub fn fragment(opcode: Opcode, payload: u64) -> Self {
        Self::new(opcode as u8, payload)
    }

    /// The same for a payload under this mask, as it is sent by who opened the connection.
    #[must_use]
    pub fn masked(mut self, key: [u8; 4]) -> Self {
        self.bytes[1] |= MASK;
        self.append(&key);
        self
    }

    /// What is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn new(first: u8, payload: u64) -> Self {
        let mut header = Self { bytes: [0; 14], length: 0 };
        if payload <= u64::from(MAX_SHORT_LENGTH) {
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
pub(super) struct ReceivedHeader {
    pub(super) opcode: Opcode,
    pub(super) is_last: bool,
    /// Bytes of the header itself.
    pub(super) size: usize,
    /// Bytes of the payload; checked by the caller before it goes anywhere.
    pub(super) payload: u64,
}

impl ReceivedHeader {
    /// What the first byte says.
    #[inline]
    pub(super) const fn parse_first_byte(byte: u8) -> Result<(Opcode, bool), FrameFault> {
        if byte & RSV != 0 {
            return Err(FrameFault::ReservedBit);
        }
        let is_last = byte & FIN != 0;
        match Opcode::from_first_byte(byte) {
            None => Err(FrameFault::Opcode),
            Some(opcode) if opcode.is_control() && !is_last => Err(FrameFault::FragmentedControl),
            Some(opcode) => Ok((opcode, is_last)),
        }
    }

    /// What follows the first byte, up to the key; nothing yet if the length is not all there.
    #[inline]
    pub(super) fn parse(
        bytes: &[u8],
        opcode: Opcode,
        is_last: bool,
        is_masked: bool,
    ) -> Result<Option<Self>, FrameFault> {
        let [_, second, rest @ ..] = bytes else { return Ok(None) };
        if (second & MASK != 0) != is_masked {
            return Err(FrameFault::Mask);
        }
        let short = second & !MASK;
        if opcode.is_control() && short > MAX_SHORT_LENGTH {
            return Err(FrameFault::ControlTooLong);
        }
        let (payload, shortest, size) = match short {
            126 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                (u64::from(u16::from_be_bytes(*length)), u64::from(MAX_SHORT_LENGTH) + 1, 4)
            }
            127 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                (u64::from_be_bytes(*length), u64::from(u16::MAX) + 1, 10)
            }
            short => (u64::from(short), 0, 2),
        };
        if payload < shortest || payload > i64::MAX as u64 {
            return Err(FrameFault::InvalidLength);
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
        check(Header::final_frame(Opcode::Text, 0), &[0x81, 0]);
        check(Header::final_frame(Opcode::Text, 125), &[0x81, 125]);
        check(Header::final_frame(Opcode::Binary, 126), &[0x82, 126, 0, 126]);
        check(Header::final_frame(Opcode::Binary, 0xffff), &[0x82, 126, 0xff, 0xff]);
        check(Header::final_frame(Opcode::Binary, 0x1_0000), &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_message_in_parts_says_so_in_each() {
        check(Header::fragment(Opcode::Text, 3), &[0x01, 3]);
        check(Header::fragment(Opcode::Continuation, 3), &[0x00, 3]);
        check(Header::final_frame(Opcode::Continuation, 3), &[0x80, 3]);
    }

    #[test]
    fn a_key_follows_the_length() {
        check(Header::final_frame(Opcode::Text, 1).masked([1, 2, 3, 4]), &[0x81, 0x81, 1, 2, 3, 4]);
        let long = Header::final_frame(Opcode::Text, 0x1_0000).masked([1, 2, 3, 4]);
        check(long, &[0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4]);
    }
}
