//! Decides what all tables hold at one moment, so that the next moment shares with it whatever has not changed.

use std::any::TypeId;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::id::RowId;
use crate::key::Key;
use crate::row::Row;
use crate::schema::{Layout, Schema};
use crate::value::Value;

/// What the program and the store agree on about one table.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) schema: Schema,
    pub(crate) layout: Layout,
    /// The type of its rows, if it is one of the program's.
    pub(crate) rows: Option<TypeId>,
    /// The indexes of other tables whose columns name rows of this one: table, index.
    pub(crate) referrers: Vec<(usize, usize)>,
    /// The columns that name rows of others: column, table.
    pub(crate) references: Vec<(usize, usize)>,
}

/// All tables, in the order in which the program names them.
pub(crate) type Definitions = Arc<[Definition]>;

/// What all tables hold at one moment.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Of the last record that is in it.
    pub(crate) sequence: u64,
    /// How often the head had fallen back when this was made.
    pub(crate) epoch: usize,
    pub(crate) tables: Vec<Rows>,
}

/// What a table holds at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) rows: OrdMap<RowId, Row>,
    pub(crate) indexes: Vec<OrdSet<Entry>>,
}

/// A row in an index. Ordered by the key, then by the id, so that rows of one key come by age.
pub(crate) type Entry = (Key, RowId);

/// One row that is put or, without a row, removed.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) table: usize,
    pub(crate) id: RowId,
    pub(crate) row: Option<Row>,
}

impl Definition {
    /// The values of a row, in the order of the columns. `None`: these bytes are no row of this table.
    pub(crate) fn values<'r>(&'r self, row: &'r [u8]) -> Option<Vec<Value<'r>>> {
        let mut values = vec![Value::Null; self.schema.columns.len()];
        self.layout.read(row, &mut values)?;
        Some(values)
    }

    /// The key of these values in an index.
    pub(crate) fn key(&self, index: usize, values: &[Value<'_>]) -> Key {
        let mut key = Key::default();
        for column in &self.schema.indexes[index].columns {
            key.push(values[*column]);
        }
        key
    }

    /// Calls `each` with the key of a row in each index.
    pub(crate) fn for_each_key(&self, row: &[u8], mut each: impl FnMut(usize, Key)) {
        if self.schema.indexes.is_empty() {
            return;
        }
        // Whatever comes into a table has been read once.
        let Some(values) = self.values(row) else { return };
        for index in 0..self.schema.indexes.len() {
            each(index, self.key(index, &values));
        }
    }
}

impl State {
    #[cfg(test)]
    pub(crate) fn empty(definitions: &Definitions) -> Self {
        let empty = |definition: &Definition| Rows {
            rows: OrdMap::new(),
            indexes: vec![OrdSet::new(); definition.schema.indexes.len()],
        };
        Self { sequence: 0, epoch: 0, tables: definitions.iter().map(empty).collect() }
    }

    pub(crate) fn apply(&mut self, definitions: &Definitions, write: &Write) {
        let (table, definition) = (&mut self.tables[write.table], &definitions[write.table]);
        let old = match &write.row {
            Some(row) => table.rows.insert(write.id, Arc::clone(row)),
            None => table.rows.remove(&write.id),
        };
        let indexes = &mut table.indexes;
        if let Some(old) = old {
            definition.for_each_key(&old, |index, key| {
                indexes[index].remove(&(key, write.id));
            });
        }
        if let Some(row) = &write.row {
            definition.for_each_key(row, |index, key| {
                indexes[index].insert((key, write.id));
            });
        }
    }
}
