//! Decides what a place in the order of all messages is, and how it is written.

use core::fmt;
use core::str::FromStr;

/// The place of a message in the one order of all channels: the number of the record that brought it, and its place
/// among that record's messages.
///
/// As a position, it stands right behind the message: everything up to it and with it has been seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

/// Messages in one record, at most.
pub const MOST_PLACES: usize = 1 << PLACE_BITS;

/// The highest number of a record.
pub const LAST_RECORD: u64 = u64::MAX >> PLACE_BITS;

/// Ten bits leave the records 54: a million a second for five centuries.
const PLACE_BITS: u32 = 10;

/// A [`Sequence`] as peers see it: opaque, ordered as text too, good for any set of channels.
///
/// Written `<epoch>_<sequence>`, both in hexadecimal: `0badcafe_0000000000000400`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// Which life of the server's data the sequence belongs to; another number is another order.
    pub epoch: u32,
    /// The place.
    pub sequence: Sequence,
}

/// Why a text is no [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorFault {
    /// It has so many bytes and not [`Cursor::LENGTH`].
    Length(usize),
    /// At this byte there is no hexadecimal digit in small letters (or, at byte 8, no `_`).
    Digit(usize),
}

impl Sequence {
    /// Before all messages.
    pub const START: Self = Self(0);

    /// The message with this place in a record. Both are bounded: [`LAST_RECORD`], [`MOST_PLACES`].
    pub(crate) const fn new(record: u64, place: usize) -> Self {
        Self(record << PLACE_BITS | place as u64)
    }

    /// Behind everything that a record may hold.
    pub(crate) const fn end_of(record: u64) -> Self {
        Self::new(record, MOST_PLACES - 1)
    }

    /// The number of the record.
    pub const fn record(self) -> u64 {
        self.0 >> PLACE_BITS
    }

    /// The sequence as a number, with the same order.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The sequence that [`number`](Self::number) gave.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl Cursor {
    /// Bytes of its text.
    pub const LENGTH: usize = 25;

    /// Its text, without a detour through the formatter.
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
    type Err = CursorFault;

    fn from_str(text: &str) -> Result<Self, CursorFault> {
        let bytes: &[u8; Self::LENGTH] =
            text.as_bytes().try_into().map_err(|_| CursorFault::Length(text.len()))?;
        let epoch = read_digits(bytes, 0, 8)?;
        if bytes[8] != b'_' {
            return Err(CursorFault::Digit(8));
        }
        let sequence = Sequence(read_digits(bytes, 9, Self::LENGTH)?);
        Ok(Self { epoch: epoch as u32, sequence })
    }
}

impl fmt::Display for CursorFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(
                    out,
                    "a cursor has {} bytes, not {length}; send one as it was received",
                    Cursor::LENGTH
                )
            }
            Self::Digit(at) => {
                write!(out, "byte {at} is none of a cursor's; send one as it was received")
            }
        }
    }
}

impl core::error::Error for CursorFault {}

fn write_digits(to: &mut [u8], mut number: u64) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

/// Small letters only: two texts of one cursor would be two keys of a cache.
fn read_digits(bytes: &[u8], from: usize, to: usize) -> Result<u64, CursorFault> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(to).skip(from) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return Err(CursorFault::Digit(at)),
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

    fn check(text: &str, told: &str) {
        let read = match text.parse::<Cursor>() {
            Ok(cursor) => cursor.to_string(),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(read, told);
    }

    #[test]
    fn a_sequence_tells_its_record() {
        for record in [0, 1, 7, LAST_RECORD] {
            assert_eq!(Sequence::new(record, 3).record(), record);
            assert_eq!(Sequence::end_of(record).record(), record);
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_nothing_else_is() {
        check("0badcafe_0000000000000400", "0badcafe_0000000000000400");
        check("", "a cursor has 25 bytes, not 0; send one as it was received");
        check(
            "0badcafe_00000000000004001",
            "a cursor has 25 bytes, not 26; send one as it was received",
        );
        check(
            "0BADCAFE_0000000000000400",
            "byte 1 is none of a cursor's; send one as it was received",
        );
        check(
            "0badcafe-0000000000000400",
            "byte 8 is none of a cursor's; send one as it was received",
        );
        check(
            "0badcafe_000000000000040 ",
            "byte 24 is none of a cursor's; send one as it was received",
        );
    }

    proptest! {
        #[test]
        fn texts_are_ordered_as_their_cursors(epoch: u32, one: u64, other: u64, shift in 0_u32..64) {
            let at = |number: u64| Cursor { epoch, sequence: Sequence(number >> shift) };
            let (one, other) = (at(one), at(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert_eq!(one.to_string().parse(), Ok(one));
            prop_assert_eq!(one.to_string().into_bytes(), one.text().to_vec());
        }

        #[test]
        fn whatever_text_is_read_writes_itself_again(text in "[0-9a-fA-F_]{23,27}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}
