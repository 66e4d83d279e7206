//! Index keys: values encoded so that comparing the bytes compares the values.
//!
//! Each value begins with a byte that marks null or a value, so that null sorts first. A text ends
//! with two zero bytes, and a zero byte inside is followed by 0xff. So a text sorts before each
//! longer text with that prefix, whatever columns follow.

use smallvec::SmallVec;

use crate::time::Time;
use crate::value::{Kind, Value};

/// The key of one row in one index, without the row's id. Up to sixteen bytes are stored inline.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct Key(SmallVec<[u8; 16]>);

const NOTHING: u8 = 0;
const SOMETHING: u8 = 1;
const SIGN: u64 = 1 << 63;

impl Key {
    /// Encodes values in the order of the index's columns.
    #[cfg(test)]
    pub(crate) fn of<'v>(values: impl IntoIterator<Item = Value<'v>>) -> Self {
        let mut key = Self::default();
        values.into_iter().for_each(|value| key.push(value));
        key
    }

    /// Appends the value of the next column.
    pub(crate) fn push(&mut self, value: Value<'_>) {
        let to = &mut self.0;
        if value == Value::Null {
            return to.push(NOTHING);
        }
        to.push(SOMETHING);
        match value {
            Value::Null => {}
            Value::Bool(value) => to.push(u8::from(value)),
            Value::Integer(number) => put_whole(to, number),
            Value::Float(number) => to.extend_from_slice(&ordered(number).to_be_bytes()),
            Value::Text(text) => put_text(to, text.as_bytes()),
            Value::Bytes(bytes) => put_text(to, bytes),
            Value::Time(Time(moment)) => {
                to.extend_from_slice(&(moment.cast_unsigned() ^ SIGN).to_be_bytes());
            }
            Value::Enum(position) => to.extend_from_slice(&position.to_be_bytes()),
            Value::Id(id) => to.extend_from_slice(&id.number().to_be_bytes()),
        }
    }

    /// The least key of all values other than null.
    pub(crate) fn above_null() -> Self {
        Self(SmallVec::from_slice(&[SOMETHING]))
    }

    /// The key with these bytes, which encode values.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }

    /// Appends the values of another key.
    pub(crate) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The least key above all keys with this prefix; `None` if there is no such key.
    pub(crate) fn end(&self) -> Option<Self> {
        let last = self.0.iter().rposition(|byte| *byte != 0xff)?;
        let mut end = self.0[..=last].iter().copied().collect::<SmallVec<[u8; 16]>>();
        end[last] += 1;
        Some(Self(end))
    }

    /// Whether the key has the prefix `start`.
    pub(crate) fn begins_with(&self, start: &Self) -> bool {
        self.0.starts_with(&start.0)
    }
}

/// Whether bytes from outside are the key of exactly one value of this type, or of null.
pub(crate) fn encodes(bytes: &[u8], kind: &Kind) -> bool {
    let Some((&SOMETHING, value)) = bytes.split_first() else { return bytes == [NOTHING] };
    match kind {
        Kind::Bool => matches!(value, [0 | 1]),
        Kind::Integer { .. } => {
            let number = whole(value).filter(|number| kind.admits(Value::Integer(*number)));
            // Each number has one encoding.
            number.is_some_and(|number| {
                let mut again = Key::default();
                again.push(Value::Integer(number));
                again.bytes() == bytes
            })
        }
        Kind::Float | Kind::Time => value.len() == 8,
        Kind::Enum(words) => {
            let position = value.try_into().map(u16::from_be_bytes);
            position.is_ok_and(|position| usize::from(position) < words.len())
        }
        Kind::Reference(_) => value.len() == 16,
        Kind::Text => text(value).is_some_and(|bytes| str::from_utf8(&bytes).is_ok()),
        Kind::Bytes => text(value).is_some(),
    }
}

/// Decodes the result of `put_whole`.
fn whole(bytes: &[u8]) -> Option<i128> {
    let (&first, digits) = bytes.split_first()?;
    let is_negative = first < 0x80;
    let count = usize::from(if is_negative { 0x80 - 1 - first } else { first - 0x80 });
    // A column's integers have 64 bits.
    if count != digits.len() || count > size_of::<u64>() {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| {
        number << 8 | i128::from(if is_negative { !digit } else { *digit })
    });
    Some(if is_negative { !number } else { number })
}

/// Decodes the result of `put_text`.
fn text(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = bytes.strip_suffix(&[0, 0])?.iter();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some(byte) = rest.next() {
        if *byte == 0 && rest.next() != Some(&0xff) {
            return None;
        }
        decoded.push(*byte);
    }
    Some(decoded)
}

/// Encodes an integer of 64 bits, signed or unsigned. The first byte holds the sign and the number
/// of bytes that follow, so that the encoding is ordered and short for small numbers.
fn put_whole(to: &mut SmallVec<[u8; 16]>, number: i128) {
    let bytes = if number < 0 { !number } else { number }.cast_unsigned().to_be_bytes();
    let leading = bytes.iter().take_while(|byte| **byte == 0).count();
    let count = (bytes.len() - leading) as u8;
    if number < 0 {
        to.push(0x80 - 1 - count);
        to.extend(bytes[leading..].iter().map(|byte| !byte));
    } else {
        to.push(0x80 + count);
        to.extend_from_slice(&bytes[leading..]);
    }
}

fn put_text(to: &mut SmallVec<[u8; 16]>, bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    to.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        to.extend_from_slice(&[0, 0xff]);
        to.extend_from_slice(part);
    }
    to.extend_from_slice(&[0, 0]);
}

/// Maps a float to an integer in IEEE 754's total order: negative numbers have their bits inverted.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::row::tests::{Owned, kinds, value};

    fn compared(left: &Owned, right: &Owned) -> Ordering {
        match (left.value(), right.value()) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Less,
            (_, Value::Null) => Ordering::Greater,
            (Value::Bool(left), Value::Bool(right)) => left.cmp(&right),
            (Value::Integer(left), Value::Integer(right)) => left.cmp(&right),
            (Value::Float(left), Value::Float(right)) => left.total_cmp(&right),
            (Value::Text(left), Value::Text(right)) => left.cmp(right),
            (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
            (Value::Time(left), Value::Time(right)) => left.cmp(&right),
            (Value::Id(left), Value::Id(right)) => left.cmp(&right),
            other => unreachable!("{other:?}"),
        }
    }

    fn value_of_each_kind() -> impl Strategy<Value = Vec<Owned>> {
        (0..7).map(value).collect::<Vec<_>>()
    }

    fn column() -> impl Strategy<Value = (Owned, Owned)> {
        (0_usize..7).prop_flat_map(|kind| {
            let one = || prop_oneof![1 => Just(Owned::Null), 6 => value(kind)];
            // Texts with a common prefix, and the terminator byte.
            let near = prop_oneof![Just(kind), Just(3), Just(4)].prop_flat_map(|kind| match kind {
                3 => ("[a\u{0}]{0,4}", "[a\u{0}]{0,4}")
                    .prop_map(|(left, right)| (Owned::Text(left), Owned::Text(right)))
                    .boxed(),
                4 => (prop::collection::vec(0_u8..3, 0..4), prop::collection::vec(0_u8..3, 0..4))
                    .prop_map(|(left, right)| (Owned::Bytes(left), Owned::Bytes(right)))
                    .boxed(),
                kind => (value(kind), value(kind)).boxed(),
            });
            prop_oneof![(one(), one()), near]
        })
    }

    #[test]
    fn recognizes_keys_at_the_bounds_of_their_type() {
        let words = Kind::Enum(vec!["a".into(), "b".into()].into());
        for (position, expected) in [(0, true), (1, true), (2, false)] {
            assert_eq!(encodes(Key::of([Value::Enum(position)]).bytes(), &words), expected);
        }
        let unsigned = Kind::Integer { min: 0, max: i128::from(u64::MAX) };
        let signed = Kind::Integer { min: i128::from(i64::MIN), max: i128::from(i64::MAX) };
        for (number, is_unsigned, is_signed) in [
            (-1, false, true),
            (0, true, true),
            (i128::from(i64::MIN), false, true),
            (i128::from(i64::MAX), true, true),
            (i128::from(u64::MAX), true, false),
            (1 << 64, false, false),
        ] {
            let key = Key::of([Value::Integer(number)]);
            assert_eq!(encodes(key.bytes(), &unsigned), is_unsigned, "{number}");
            assert_eq!(encodes(key.bytes(), &signed), is_signed, "{number}");
        }
        assert!(!encodes(&[SOMETHING, 0x82, 0, 7], &unsigned), "7 has a shorter encoding");
        assert!(!encodes(&[SOMETHING, 2], &Kind::Bool) && !encodes(&[], &Kind::Bool));
        assert!(!encodes(&[SOMETHING, b'a', 0, 0xfe, 0, 0], &Kind::Bytes));
        let text = [SOMETHING, 0xff, 0, 0];
        assert!(encodes(&text, &Kind::Bytes) && !encodes(&text, &Kind::Text), "not UTF-8");
    }

    proptest! {
        #[test]
        fn orders_keys_as_their_values(columns in prop::collection::vec(column(), 1..4)) {
            let left = Key::of(columns.iter().map(|(left, _)| left.value()));
            let right = Key::of(columns.iter().map(|(_, right)| right.value()));
            let expected = columns
                .iter()
                .map(|(left, right)| compared(left, right))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal);
            prop_assert_eq!(left.cmp(&right), expected);
        }

        #[test]
        fn recognizes_the_key_of_each_value(kind in 0_usize..7, other in 0_usize..7, seed in value_of_each_kind()) {
            let key = Key::of([seed[kind].value()]);
            prop_assert!(encodes(key.bytes(), &kinds()[kind]), "{:?}", seed[kind]);
            prop_assert!(encodes(Key::of([Value::Null]).bytes(), &kinds()[kind]));
            let mut longer = key.bytes().to_vec();
            longer.push(other as u8);
            prop_assert!(!encodes(&longer, &kinds()[kind]), "{longer:?}");
        }

        /// An accepted key is the only encoding of its value, so it orders as the value does.
        #[test]
        fn examines_any_bytes_as_a_key_without_panic(
            kind in 0_usize..7, bytes in prop::collection::vec(prop_oneof![0_u8..3, any::<u8>(), 0x7c_u8..0x84], 0..12)
        ) {
            if encodes(&bytes, &kinds()[kind]) {
                prop_assert!(Key::from_bytes(&bytes).end().is_some());
            }
            if let Some(number) = whole(&bytes) {
                prop_assert!(number.unsigned_abs() <= 1 << 64);
            }
        }

        #[test]
        fn end_of_a_key_bounds_its_prefix(
            columns in prop::collection::vec(column(), 1..4), count in 0_usize..4, other in column()
        ) {
            let start = Key::of(columns.iter().take(count).map(|(left, _)| left.value()));
            let whole = Key::of(columns.iter().map(|(left, _)| left.value()));
            let other = Key::of([other.0.value()]);
            prop_assert!(whole.begins_with(&start) && whole >= start);
            for key in [&whole, &other] {
                let is_within = *key >= start && start.end().is_none_or(|end| *key < end);
                prop_assert_eq!(is_within, key.begins_with(&start));
            }
        }
    }
}
