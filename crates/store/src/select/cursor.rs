//! Cursors: places in the order of a query, as texts for a URL.

use std::fmt;
use std::str::FromStr;

use crate::column::OrderPosition;
use crate::id::RowId;
use crate::key::{self, Key};
use crate::value::Kind;

/// A place in the order of a query: the value and the id of a row, which need not exist any more.
///
/// Its text consists of letters, digits, `-` and `_`. It shows the value to each client that
/// receives it, and is not signed: a client can name any place of the order by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// A checksum of the order and the position.
    checksum: u32,
    position: OrderPosition,
}

/// The reason why there is no page at a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CursorError {
    /// The text is no cursor, or one of a different order.
    Invalid,
    /// The value of a row at the edge of the page is too long for a URL: more than 1 KB.
    TooLong,
}

/// The order to which a cursor belongs.
pub(crate) struct CursorOrder<'o> {
    pub(crate) table: &'o str,
    /// The column's name and type; `None` in the order of ids.
    pub(crate) column: Option<(&'o str, &'o Kind)>,
    pub(crate) is_descending: bool,
}

const CHECKSUM_LENGTH: usize = 4;
const ID_LENGTH: usize = 16;
/// The longest key of a value.
const MAX_KEY_LENGTH: usize = 1024;
/// The URL-safe alphabet of Base64 (RFC 4648 section 5).
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Cursor {
    pub(crate) fn new(
        order: &CursorOrder<'_>,
        position: &OrderPosition,
    ) -> Result<Self, CursorError> {
        if position.key.bytes().len() > MAX_KEY_LENGTH {
            return Err(CursorError::TooLong);
        }
        Ok(Self { checksum: order.checksum(position), position: position.clone() })
    }

    /// The place, if the cursor belongs to this order, whatever the bytes of its key are: for a
    /// search by bytes, which finds a place for all of them.
    pub(crate) fn place(&self, order: &CursorOrder<'_>) -> Result<&OrderPosition, CursorError> {
        let is_of_order = order.column.is_some() || self.position.key.bytes().is_empty();
        let is_valid = is_of_order && self.checksum == order.checksum(&self.position);
        if is_valid { Ok(&self.position) } else { Err(CursorError::Invalid) }
    }

    /// The place, if the cursor belongs to this order.
    pub(crate) fn position(&self, order: &CursorOrder<'_>) -> Result<&OrderPosition, CursorError> {
        let key = self.position.key.bytes();
        let is_value = match order.column {
            Some((_, kind)) => key::encodes(key, kind),
            None => key.is_empty(),
        };
        let is_valid = is_value && self.checksum == order.checksum(&self.position);
        if is_valid { Ok(&self.position) } else { Err(CursorError::Invalid) }
    }
}

impl CursorOrder<'_> {
    fn checksum(&self, position: &OrderPosition) -> u32 {
        let column = self.column.map_or("", |(name, _)| name);
        // The checksum finds typing errors and cursors of other orders; it protects nothing.
        let parts: [&[u8]; 6] = [
            self.table.as_bytes(),
            &[0],
            column.as_bytes(),
            &[0, u8::from(self.is_descending)],
            &position.id.bytes(),
            position.key.bytes(),
        ];
        parts.iter().fold(0, |checksum, part| crc32c::crc32c_append(checksum, part))
    }
}

/// Writes the text for a URL.
impl fmt::Display for Cursor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.checksum.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.position.id.bytes());
        bytes.extend_from_slice(self.position.key.bytes());
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for group in bytes.chunks(3) {
            let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letters =
                (0..=group.len()).map(|place| LETTERS[(bits >> (18 - 6 * place) & 63) as usize]);
            text.extend(letters.map(char::from));
        }
        to.write_str(&text)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    /// Parses the displayed form. Whether the cursor belongs to the order of a query is known only
    /// when the query uses it.
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let longest = (CHECKSUM_LENGTH + ID_LENGTH + MAX_KEY_LENGTH).div_ceil(3) * 4;
        let bytes = if text.len() <= longest { decode(text.as_bytes()) } else { None };
        let read = |bytes: &[u8]| {
            let (checksum, rest) = bytes.split_first_chunk::<CHECKSUM_LENGTH>()?;
            let (id, key) = rest.split_first_chunk::<ID_LENGTH>()?;
            let id = RowId::from_number(u128::from_be_bytes(*id));
            let position = OrderPosition { key: Key::from_bytes(key), id };
            let checksum = u32::from_be_bytes(*checksum);
            (key.len() <= MAX_KEY_LENGTH).then_some(Self { checksum, position })
        };
        bytes.as_deref().and_then(read).ok_or(CursorError::Invalid)
    }
}

/// Decodes Base64. Accepts only the canonical encoding, so that no two texts are the same cursor.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let value = match group.get(place) {
                Some(letter) => LETTERS.iter().position(|own| own == letter)? as u32,
                None => 0,
            };
            bits = bits << 6 | value;
        }
        let [_, three @ ..] = bits.to_be_bytes();
        let (kept, unused) = three.split_at(group.len() - 1);
        if kept.is_empty() || unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

impl fmt::Display for CursorError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Invalid => "the cursor is invalid or belongs to a different order",
            Self::TooLong => "a row at the edge of the page has a value of more than 1 KB in the column of the order",
        })
    }
}

impl std::error::Error for CursorError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order() -> CursorOrder<'static> {
        CursorOrder { table: "note", column: Some(("text", &Kind::Text)), is_descending: false }
    }

    fn at(text: &str, id: u128) -> OrderPosition {
        let mut key = Key::default();
        key.push(crate::value::Value::Text(text));
        OrderPosition { key, id: RowId::from_number(id) }
    }

    #[test]
    fn explains_its_errors() {
        let invalid = "x".parse::<Cursor>().unwrap_err().to_string();
        assert_eq!(invalid, "the cursor is invalid or belongs to a different order");
        let too_long = Cursor::new(&order(), &at(&"x".repeat(2000), 1)).unwrap_err();
        assert!(too_long.to_string().contains("more than 1 KB"), "{too_long}");
    }

    proptest! {
        #[test]
        fn parses_formatted_cursors(text in ".{0,40}", id: u128) {
            let position = at(&text, id);
            let cursor = Cursor::new(&order(), &position).unwrap();
            let written = cursor.to_string();
            let is_safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
            prop_assert!(written.chars().all(is_safe), "{written}");
            let read: Cursor = written.parse().unwrap();
            prop_assert_eq!(read.position(&order()), Ok(&position));
        }

        #[test]
        fn rejects_damaged_cursors(id: u128, place in 0_usize..40, letter in "[A-Za-z0-9_=%. -]") {
            let written = Cursor::new(&order(), &at("hops", id)).unwrap().to_string();
            let place = place % written.len();
            let damaged = format!("{}{letter}{}", &written[..place], &written[place + 1..]);
            let read = damaged.parse::<Cursor>();
            let found = read.as_ref().map_err(|error| *error).and_then(|read| read.position(&order()));
            prop_assert_eq!(found.is_ok(), damaged == written, "{}", damaged);
        }

        #[test]
        fn rejects_any_text_without_panic(text in "\\PC{0,60}|[A-Za-z0-9_-]{20,60}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
                prop_assert_eq!(cursor.position(&order()), Err(CursorError::Invalid));
            }
        }
    }

    #[test]
    fn belongs_to_one_order() {
        let cursor = Cursor::new(&order(), &at("hops", 7)).unwrap();
        let others = [
            CursorOrder { table: "user", ..order() },
            CursorOrder { column: Some(("name", &Kind::Text)), ..order() },
            CursorOrder { column: Some(("text", &Kind::Time)), ..order() },
            CursorOrder { column: None, ..order() },
            CursorOrder { is_descending: true, ..order() },
        ];
        for other in others {
            assert_eq!(cursor.position(&other), Err(CursorError::Invalid));
        }
        assert!(cursor.position(&order()).is_ok());
    }

    #[test]
    fn rejects_long_values() {
        let long = at(&"a".repeat(MAX_KEY_LENGTH), 7);
        assert_eq!(Cursor::new(&order(), &long), Err(CursorError::TooLong));
        let longest = at(&"a".repeat(MAX_KEY_LENGTH - 3), 7);
        let text = Cursor::new(&order(), &longest).unwrap().to_string();
        assert!(text.parse::<Cursor>().is_ok());
        assert_eq!(format!("{text}AAAA").parse::<Cursor>(), Err(CursorError::Invalid));
    }
}
