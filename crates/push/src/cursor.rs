//! Positions in the order of all messages, and their text form.

use core::fmt;
use core::str::FromStr;

/// The position of a message in the order of all channels: the number of the record that contains
/// it, and its index among that record's messages.
///
/// Used as a reader's position, it means that the reader has read everything up to and including
/// the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

/// The maximum number of messages in one record.
pub const MAX_MESSAGES_PER_RECORD: usize = 1 << INDEX_BITS;

/// The highest number of a record.
pub const MAX_RECORD: u64 = u64::MAX >> INDEX_BITS;

/// Ten bits leave 54 for the record number: a million records a second for five centuries.
const INDEX_BITS: u32 = 10;

/// A [`Sequence`] as clients see it. It is opaque, its texts sort in the same order, and it is
/// valid for any set of channels.
///
/// Written `<epoch>_<sequence>`, both in hexadecimal: `0badcafe_0000000000000400`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The epoch of the server's data. Sequences of different epochs are unrelated.
    pub epoch: u32,
    /// The position.
    pub sequence: Sequence,
}

/// The reason why a text is not a [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorError {
    /// The text has this number of bytes instead of [`Cursor::LENGTH`].
    Length(usize),
    /// The byte at this index is not a lowercase hexadecimal digit (or, at index 8, not `_`).
    Digit(usize),
}

impl Sequence {
    /// The position before all messages.
    pub const START: Self = Self(0);

    /// Returns the position of a message in a record. The arguments are at most [`MAX_RECORD`] and
    /// less than [`MAX_MESSAGES_PER_RECORD`].
    pub(crate) const fn new(record: u64, index: usize) -> Self {
        Self(record << INDEX_BITS | index as u64)
    }

    /// Returns the position after everything that a record can contain.
    pub(crate) const fn end_of(record: u64) -> Self {
        Self::new(record, MAX_MESSAGES_PER_RECORD - 1)
    }

    /// Returns the number of the record.
    pub const fn record(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    /// Returns the sequence as a number with the same order.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the sequence that [`number`](Self::number) returned as a number.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl Cursor {
    /// The number of bytes of the text.
    pub const LENGTH: usize = 25;

    /// Returns the text without the overhead of the formatter.
    pub fn text(self) -> [u8; Self::LENGTH] {
        let mut text = [b'_'; Self::LENGTH];
        write_digits(&mut text[..8], u64::from(self.epoch));
        write_digits(&mut text[9..], self.sequence.0);
        text
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}_{:016x}", self.epoch, self.sequence.0)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let bytes: &[u8; Self::LENGTH] =
            text.as_bytes().try_into().map_err(|_| CursorError::Length(text.len()))?;
        let epoch = read_digits(bytes, 0, 8)?;
        if bytes[8] != b'_' {
            return Err(CursorError::Digit(8));
        }
        let sequence = Sequence(read_digits(bytes, 9, Self::LENGTH)?);
        Ok(Self { epoch: epoch as u32, sequence })
    }
}

impl fmt::Display for CursorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(
                    out,
                    "a cursor has {} bytes, not {length}; send the cursor as it was received",
                    Cursor::LENGTH
                )
            }
            Self::Digit(at) => {
                write!(
                    out,
                    "byte {at} is not valid in a cursor; send the cursor as it was received"
                )
            }
        }
    }
}

impl core::error::Error for CursorError {}

fn write_digits(to: &mut [u8], mut number: u64) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

/// Reads lowercase digits only: two texts of one cursor would be two keys in a cache.
fn read_digits(bytes: &[u8], from: usize, to: usize) -> Result<u64, CursorError> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(to).skip(from) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return Err(CursorError::Digit(at)),
        };
        number = number << 4 | u64::from(digit);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let read = match text.parse::<Cursor>() {
            Ok(cursor) => cursor.to_string(),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn extracts_record_from_sequence() {
        for record in [0, 1, 7, MAX_RECORD] {
            assert_eq!(Sequence::new(record, 3).record(), record);
            assert_eq!(Sequence::end_of(record).record(), record);
        }
    }

    #[test]
    fn parses_only_canonical_cursors() {
        check("0badcafe_0000000000000400", "0badcafe_0000000000000400");
        check("", "a cursor has 25 bytes, not 0; send the cursor as it was received");
        check(
            "0badcafe_00000000000004001",
            "a cursor has 25 bytes, not 26; send the cursor as it was received",
        );
        check(
            "0BADCAFE_0000000000000400",
            "byte 1 is not valid in a cursor; send the cursor as it was received",
        );
        check(
            "0badcafe-0000000000000400",
            "byte 8 is not valid in a cursor; send the cursor as it was received",
        );
        check(
            "0badcafe_000000000000040 ",
            "byte 24 is not valid in a cursor; send the cursor as it was received",
        );
    }

    proptest! {
        #[test]
        fn orders_cursor_texts_as_cursors(epoch: u32, one: u64, other: u64, shift in 0_u32..64) {
            let at = |number: u64| Cursor { epoch, sequence: Sequence(number >> shift) };
            let (one, other) = (at(one), at(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert_eq!(one.to_string().parse(), Ok(one));
            prop_assert_eq!(one.to_string().into_bytes(), one.text().to_vec());
        }

        #[test]
        fn formats_parsed_cursor_unchanged(text in "[0-9a-fA-F_]{23,27}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}
