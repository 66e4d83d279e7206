//! The encoding of rows in memory and on disk: the values in the order in which the table's columns
//! were added.
//!
//! A row begins with its number of columns, so that a table can add columns without rewriting rows:
//! docs/formats/rows.md.

use std::sync::Arc;

use crate::bytes::{ByteReader, put_bytes, put_number, put_signed};
use crate::id::RowId;
use crate::time::Time;
use crate::value::{Kind, Value};

/// An encoded row, shared by all readers.
pub(crate) type Row = Arc<[u8]>;

/// An encoder for a row.
#[derive(Debug)]
pub(crate) struct RowWriter {
    bytes: Vec<u8>,
    column: usize,
    /// The position of the null bitmap.
    nulls: usize,
}

/// A decoder of a row's values, in order.
#[derive(Clone, Debug)]
pub(crate) struct RowReader<'r> {
    nulls: &'r [u8],
    rest: ByteReader<'r>,
    column: usize,
    columns: usize,
}

impl RowWriter {
    /// Begins a row with this number of columns.
    pub(crate) fn new(columns: usize) -> Self {
        // Most rows are shorter, and the buffer is short-lived.
        let mut bytes = Vec::with_capacity(256);
        put_number(&mut bytes, columns as u128);
        let nulls = bytes.len();
        bytes.resize(nulls + columns.div_ceil(8), 0);
        Self { bytes, column: 0, nulls }
    }

    /// Appends the value of the next column.
    pub(crate) fn put(&mut self, value: Value<'_>) {
        let column = self.column;
        self.column += 1;
        let to = &mut self.bytes;
        match value {
            Value::Null => to[self.nulls + column / 8] |= 1 << (column % 8),
            Value::Bool(value) => to.push(u8::from(value)),
            Value::Integer(number) => put_signed(to, number),
            Value::Float(number) => to.extend_from_slice(&number.to_le_bytes()),
            Value::Text(text) => put_bytes(to, text.as_bytes()),
            Value::Bytes(bytes) => put_bytes(to, bytes),
            Value::Time(Time(moment)) => to.extend_from_slice(&moment.to_le_bytes()),
            Value::Enum(position) => put_number(to, u128::from(position)),
            Value::Id(id) => to.extend_from_slice(&id.number().to_be_bytes()),
        }
    }

    pub(crate) fn finish(self) -> Row {
        self.bytes.into()
    }
}

impl<'r> RowReader<'r> {
    /// Begins to decode; `None` if the bytes are not a row.
    pub(crate) fn new(row: &'r [u8]) -> Option<Self> {
        let mut rest = ByteReader(row);
        let columns = rest.count()?;
        let nulls = rest.take(columns.div_ceil(8))?;
        Some(Self { nulls, rest, column: 0, columns })
    }

    /// The number of columns when the row was written.
    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }

    /// Whether all columns and bytes were read.
    pub(crate) fn is_over(&self) -> bool {
        self.column == self.columns && self.rest.is_empty()
    }

    /// The next value, of the type `kind` or null. `None` if the bytes are invalid or the row has
    /// ended.
    #[inline]
    pub(crate) fn next(&mut self, kind: &Kind) -> Option<Value<'r>> {
        let column = self.column;
        if column >= self.columns {
            return None;
        }
        self.column += 1;
        if self.nulls[column / 8] >> (column % 8) & 1 == 1 {
            return Some(Value::Null);
        }
        let rest = &mut self.rest;
        Some(match kind {
            Kind::Bool => Value::Bool(rest.byte()? != 0),
            Kind::Integer { .. } => Value::Integer(rest.signed()?),
            Kind::Float => Value::Float(f64::from_le_bytes(rest.array()?)),
            Kind::Text => Value::Text(rest.text()?),
            Kind::Bytes => Value::Bytes(rest.bytes()?),
            Kind::Time => Value::Time(Time(i64::from_le_bytes(rest.array()?))),
            Kind::Enum(_) => Value::Enum(u16::try_from(rest.number()?).ok()?),
            Kind::Reference(_) => Value::Id(RowId::from_number(u128::from_be_bytes(rest.array()?))),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    /// A value that owns its data, for generated tests.
    #[derive(Clone, Debug)]
    pub(crate) enum Owned {
        Null,
        Bool(bool),
        Integer(i64),
        Float(f64),
        Text(String),
        Bytes(Vec<u8>),
        Time(i64),
        Id(u128),
    }

    impl Owned {
        pub(crate) fn value(&self) -> Value<'_> {
            match self {
                Self::Null => Value::Null,
                Self::Bool(value) => Value::Bool(*value),
                Self::Integer(number) => Value::Integer(i128::from(*number)),
                Self::Float(number) => Value::Float(*number),
                Self::Text(text) => Value::Text(text),
                Self::Bytes(bytes) => Value::Bytes(bytes),
                Self::Time(moment) => Value::Time(Time(*moment)),
                Self::Id(number) => Value::Id(RowId::from_number(*number)),
            }
        }
    }

    pub(crate) fn kinds() -> [Kind; 7] {
        let whole = Kind::Integer { min: i128::from(i64::MIN), max: i128::from(i64::MAX) };
        let reference = Kind::Reference(Cow::Borrowed("other"));
        [Kind::Bool, whole, Kind::Float, Kind::Text, Kind::Bytes, Kind::Time, reference]
    }

    /// A value of the type with this number.
    pub(crate) fn value(kind: usize) -> BoxedStrategy<Owned> {
        match kind {
            0 => any::<bool>().prop_map(Owned::Bool).boxed(),
            1 => any::<i64>().prop_map(Owned::Integer).boxed(),
            2 => any::<f64>().prop_map(Owned::Float).boxed(),
            3 => ".{0,40}".prop_map(Owned::Text).boxed(),
            4 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Owned::Bytes).boxed(),
            5 => any::<i64>().prop_map(Owned::Time).boxed(),
            _ => any::<u128>().prop_map(Owned::Id).boxed(),
        }
    }

    fn column() -> impl Strategy<Value = (usize, Owned)> {
        (0_usize..7, any::<bool>()).prop_flat_map(|(kind, is_null)| {
            let value = if is_null { Just(Owned::Null).boxed() } else { value(kind) };
            (Just(kind), value)
        })
    }

    proptest! {
        #[test]
        fn round_trips_rows(columns in prop::collection::vec(column(), 0..20)) {
            let mut writer = RowWriter::new(columns.len());
            for (_, value) in &columns {
                writer.put(value.value());
            }
            let row = writer.finish();
            let mut reader = RowReader::new(&row).unwrap();
            for (kind, value) in &columns {
                let read = reader.next(&kinds()[*kind]).unwrap();
                prop_assert_eq!(format!("{read:?}"), format!("{:?}", value.value()));
            }
            prop_assert!(reader.is_over() && reader.next(&Kind::Bool).is_none());
        }

        #[test]
        fn decodes_any_bytes_as_a_row_without_panic(
            bytes: Vec<u8>, order in prop::collection::vec(0_usize..7, 0..20)
        ) {
            if let Some(mut reader) = RowReader::new(&bytes) {
                for kind in order {
                    if reader.next(&kinds()[kind]).is_none() {
                        break;
                    }
                }
            }
        }
    }
}
