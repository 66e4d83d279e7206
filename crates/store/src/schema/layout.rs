//! How rows of a table are encoded and decoded: the stored columns, and their places in the program.

use super::StoredColumn;
use crate::row::{Row, RowReader, RowWriter};
use crate::value::Value;

/// How rows of a table are encoded and decoded.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Layout {
    columns: Vec<StoredColumn>,
    /// For each column its position among the program's columns.
    positions: Vec<Option<usize>>,
    /// Whether another program has added columns that this one does not know.
    pub(crate) has_unknown: bool,
}

impl Layout {
    /// Encodes a row. The values are in the order of the program's columns.
    pub(crate) fn write(&self, values: &[Value<'_>]) -> Row {
        self.write_over(values, None)
    }

    /// Encodes a row that replaces another one. Columns that the program does not know keep their
    /// values, or get their defaults in a new row.
    pub(crate) fn write_over(&self, values: &[Value<'_>], before: Option<&[u8]>) -> Row {
        let kept = if self.has_unknown { self.stored_values(before) } else { Vec::new() };
        let mut writer = RowWriter::new(self.columns.len());
        for (number, position) in self.positions.iter().enumerate() {
            writer.put(match position {
                Some(position) => values[*position],
                None => kept.get(number).copied().unwrap_or(Value::Null),
            });
        }
        writer.finish()
    }

    pub(super) fn new(columns: Vec<StoredColumn>, positions: Vec<Option<usize>>) -> Self {
        let mut all = columns.iter().zip(&positions);
        let has_unknown = all.any(|(column, position)| position.is_none() && !column.is_dropped);
        Self { columns, positions, has_unknown }
    }

    /// The values of all stored columns; the defaults without a row. Dropped columns are null.
    fn stored_values<'r>(&'r self, row: Option<&'r [u8]>) -> Vec<Value<'r>> {
        let mut reader = row.and_then(RowReader::new);
        let written = reader.as_ref().map_or(0, RowReader::columns);
        let mut values = Vec::with_capacity(self.columns.len());
        for (number, column) in self.columns.iter().enumerate() {
            let value = match &mut reader {
                Some(reader) if number < written => reader.next(&column.kind),
                _ => Some(column.default.value()),
            };
            values.push(value.filter(|_| !column.is_dropped).unwrap_or(Value::Null));
        }
        values
    }

    /// The position of a column of the program among the stored ones.
    pub(crate) fn stored_position(&self, column: usize) -> usize {
        // Each column of the program is stored.
        self.positions.iter().position(|own| *own == Some(column)).unwrap_or_default()
    }

    /// Decodes a row into the order of the program's columns. `None` if the bytes are not a row of
    /// this table.
    #[inline]
    pub(crate) fn read<'r>(&'r self, row: &'r [u8], values: &mut [Value<'r>]) -> Option<()> {
        let mut reader = RowReader::new(row)?;
        let written = reader.columns();
        for (number, (column, position)) in self.columns.iter().zip(&self.positions).enumerate() {
            let value =
                if number < written { reader.next(&column.kind)? } else { column.default.value() };
            if let Some(position) = position {
                values[*position] = value;
            }
        }
        reader.is_over().then_some(())
    }
}
