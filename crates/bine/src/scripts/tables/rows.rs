//! Rows of the store as objects of a script.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use bine_script::{RecordKeys, Records, Value as ScriptValue};

use super::values::{self, TimeWriter};
use crate::store::{Kind, RowView, Schema, TableView, Value};

/// The names of a table's columns, which an instance of the engine keeps for quick conversions.
#[derive(Debug, Default)]
pub(super) struct RowKeys(RefCell<Option<Arc<RecordKeys>>>);

/// Writes rows of one table.
struct RowWriter<'v> {
    schema: &'v Schema,
    records: Records,
    /// The text of a cell.
    buffer: String,
    times: TimeWriter,
}

impl RowKeys {
    /// Rows as a list of objects `{ id, ...columns }`.
    pub(super) fn list(&self, view: &TableView<'_>, rows: &[RowView<'_>]) -> ScriptValue {
        ScriptValue::Records(Box::new(self.records(view, rows)))
    }

    /// A row as an object, or null.
    pub(super) fn first(&self, view: &TableView<'_>, row: Option<&RowView<'_>>) -> ScriptValue {
        let rows = row.map(std::slice::from_ref).unwrap_or_default();
        ScriptValue::Record(Box::new(self.records(view, rows)))
    }

    fn records(&self, view: &TableView<'_>, rows: &[RowView<'_>]) -> Records {
        let keys = self.of(view.schema());
        let mut writer = RowWriter {
            schema: view.schema(),
            records: Records::with_capacity(&keys, rows.len()),
            buffer: String::new(),
            times: TimeWriter::default(),
        };
        for row in rows {
            writer.push(row);
        }
        writer.records
    }

    /// The keys of the columns. They change only when the table is declared again.
    fn of(&self, schema: &Schema) -> Arc<RecordKeys> {
        let mut kept = self.0.borrow_mut();
        if let Some(keys) = &*kept
            && let Some((_, names)) = keys.names().split_first()
            && names.len() == schema.columns.len()
            && names.iter().zip(&schema.columns).all(|(name, column)| *name == column.name)
        {
            return Arc::clone(keys);
        }
        let columns = schema.columns.iter().map(|column| &*column.name);
        let keys = RecordKeys::new(std::iter::once("id").chain(columns));
        *kept = Some(Arc::clone(&keys));
        keys
    }
}

impl RowWriter<'_> {
    fn push(&mut self, row: &RowView<'_>) {
        self.buffer.clear();
        // A `String` takes any text.
        let _ = write!(self.buffer, "{}", row.id);
        self.records.push_text(&self.buffer);
        for (column, value) in self.schema.columns.iter().zip(row.values()) {
            self.push_cell(&column.kind, *value);
        }
    }

    /// Adds a cell, without its own text for the values of most columns.
    fn push_cell(&mut self, kind: &Kind, value: Value<'_>) {
        match value {
            Value::Text(text) => self.records.push_text(text),
            Value::Integer(number) => self.records.push_number(number as f64),
            Value::Time(time) => {
                self.buffer.clear();
                self.times.write(time, &mut self.buffer);
                self.records.push_text(&self.buffer);
            }
            Value::Id(id) => {
                self.buffer.clear();
                let _ = write!(self.buffer, "{id}");
                self.records.push_text(&self.buffer);
            }
            value => self.records.push(values::of_store(kind, value)),
        }
    }
}
