//! Frame headers, written and parsed (RFC 6455 section 5.2).

use super::fault::FrameFault;

/// The bit of the first byte that marks the last frame of a message.
const FIN: u8 = 0x80;
/// The bits that only extensions define.
const RSV: u8 = 0x70;
/// The bit of the second byte that announces a masking key.
const MASK: u8 = 0x80;
/// The longest payload whose length fits into the second byte. Also the longest payload of a
/// control frame.
pub(super) const MAX_SHORT_LENGTH: u8 = 125;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation = 0,
    /// A text message, or its first fragment.
    Text = 1,
    /// A binary message, or its first fragment.
    Binary = 2,
    /// The last frame of its sender.
    Close = 8,
    /// A request for a pong.
    Ping = 9,
    /// The response to a ping, or an unsolicited heartbeat.
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

/// The header of a frame to send.
///
/// It depends only on the length of the payload, so a broadcast formats it once. A message of
/// unknown length is sent in fragments: use [`fragment`](Self::fragment) for all but the last.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; 14],
    length: u8,
}

impl Header {
    /// Creates the header of an unfragmented message, or of the last fragment.
    pub fn final_frame(opcode: Opcode, payload: u64) -> Self {
        Self::new(FIN | opcode as u8, payload)
    }

    /// Creates the header of a fragment that more [`Opcode::Continuation`] frames follow.
    pub fn fragment(opcode: Opcode, payload: u64) -> Self {
        Self::new(opcode as u8, payload)
    }

    /// Adds a masking key to the header, as a client sends it.
    #[must_use]
    pub fn masked(mut self, key: [u8; 4]) -> Self {
        self.bytes[1] |= MASK;
        self.append(&key);
        self
    }

    /// Returns the bytes of the header.
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

/// A received header.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedHeader {
    pub(super) opcode: Opcode,
    pub(super) is_last: bool,
    /// The size of the header in bytes.
    pub(super) size: usize,
    /// The size of the payload in bytes. The caller checks it before use.
    pub(super) payload: u64,
}

/// A length as the header encodes it.
struct Length {
    payload: u64,
    /// The least length that requires this encoding.
    minimum: u64,
    /// The size of the header up to the end of the length.
    size: usize,
}

impl ReceivedHeader {
    /// Parses the first byte: the opcode, and whether the frame is the last of its message.
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

    /// Parses the header up to the key. Returns `None` while the length is incomplete.
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
        let Length { payload, minimum, size } = match short {
            126 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                let payload = u64::from(u16::from_be_bytes(*length));
                Length { payload, minimum: u64::from(MAX_SHORT_LENGTH) + 1, size: 4 }
            }
            127 => {
                let Some(length) = rest.first_chunk() else { return Ok(None) };
                let payload = u64::from_be_bytes(*length);
                Length { payload, minimum: u64::from(u16::MAX) + 1, size: 10 }
            }
            short => Length { payload: u64::from(short), minimum: 0, size: 2 },
        };
        if payload < minimum || payload > i64::MAX as u64 {
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
    fn writes_length_in_shortest_form() {
        check(Header::final_frame(Opcode::Text, 0), &[0x81, 0]);
        check(Header::final_frame(Opcode::Text, 125), &[0x81, 125]);
        check(Header::final_frame(Opcode::Binary, 126), &[0x82, 126, 0, 126]);
        check(Header::final_frame(Opcode::Binary, 0xffff), &[0x82, 126, 0xff, 0xff]);
        check(Header::final_frame(Opcode::Binary, 0x1_0000), &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn marks_fragments_of_a_message() {
        check(Header::fragment(Opcode::Text, 3), &[0x01, 3]);
        check(Header::fragment(Opcode::Continuation, 3), &[0x00, 3]);
        check(Header::final_frame(Opcode::Continuation, 3), &[0x80, 3]);
    }

    #[test]
    fn writes_key_after_length() {
        check(Header::final_frame(Opcode::Text, 1).masked([1, 2, 3, 4]), &[0x81, 0x81, 1, 2, 3, 4]);
        let long = Header::final_frame(Opcode::Text, 0x1_0000).masked([1, 2, 3, 4]);
        check(long, &[0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4]);
    }
}
