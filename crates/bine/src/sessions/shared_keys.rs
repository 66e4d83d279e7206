//! The session keys of several nodes, in a table that all of them share.

use crate::store::{self, Column, Pending, Schema, Store, Value};

/// The table of the keys: one line of a key file in each row. Pages and dumps of the data browser do
/// not show it.
#[derive(Debug)]
pub(super) struct SharedKeys(Store);

/// The name of the table.
pub(super) const TABLE: &str = "session_key";
/// The only column.
pub(super) const LINE: &str = "line";

/// The table.
pub(super) fn schema() -> Schema {
    let mut schema = Schema::new(TABLE);
    schema.columns.push(Column { is_private: true, ..Column::of::<String>(LINE) });
    schema
}

impl SharedKeys {
    /// Declares the table.
    ///
    /// # Errors
    ///
    /// The store rejects the table.
    pub(super) fn open(store: &Store) -> Result<Self, String> {
        let declared = store.declare(&[schema()]).map_err(|error| error.to_string())?;
        declared.wait().map_err(|error| error.to_string())?;
        Ok(Self(store.clone()))
    }

    /// The lines of all nodes, as far as this node has seen them.
    pub(super) fn lines(&self) -> Vec<String> {
        let snapshot = self.0.read();
        let rows = snapshot.table_named(TABLE).map(|table| table.select().rows());
        let line = |row: &store::RowView<'_>| match row.values().first() {
            Some(Value::Text(line)) => Some((*line).to_owned()),
            _ => None,
        };
        rows.unwrap_or_default().iter().filter_map(line).collect()
    }

    /// Adds a line. Other nodes see it once the returned commit resolves.
    ///
    /// # Errors
    ///
    /// The store rejects the commit.
    pub(super) fn add(&self, line: &str) -> Result<Pending, store::Error> {
        let mut change = self.0.begin();
        change.insert_values(TABLE, &[Value::Text(line)])?;
        self.0.commit(change)
    }
}
