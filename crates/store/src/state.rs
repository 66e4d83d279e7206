//! Decides what all tables hold at one moment, so that the next moment shares with it whatever has not changed.

use std::any::TypeId;
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::RowId;
use crate::key::Key;
use crate::reads::Changes;
use crate::row::Row;
use crate::schema::{Layout, Schema};
use crate::tree::{self, Tree};
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
    pub(crate) tables: Vec<Contents>,
}

/// What a table holds at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) rows: Rows,
    pub(crate) indexes: Vec<Entries>,
}

/// Rows by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(Tree<16>);

/// The rows in an index, by their keys and then by their ids, so that those of one key come by age.
///
/// An entry is the bytes of the key and then those of the id. They are ordered as the two are: no key of an index is the
/// beginning of another one, since each of its values says where it ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Tree<{ usize::MAX }>);

/// Some of the rows, in the order of their ids.
pub(crate) type RowsBetween<'t> = tree::Range<'t, 16>;

/// Some of the entries of an index, in their order.
pub(crate) type EntriesBetween<'t> = tree::Range<'t, { usize::MAX }>;

/// The values of a row. So many stand in place.
pub(crate) type Values<'r> = SmallVec<[Value<'r>; 12]>;

/// The keys of a row, by index.
pub(crate) type Keys = SmallVec<[Key; 4]>;

/// One row that is put or, without a row, removed.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) table: usize,
    pub(crate) id: RowId,
    pub(crate) row: Option<Row>,
}

impl Definition {
    /// The values of a row, in the order of the columns, which are put into `values`: returned, all of them would be
    /// copied. `None`: these bytes are no row of this table.
    #[inline]
    pub(crate) fn read<'v, 'r>(
        &'r self,
        row: &'r [u8],
        values: &'v mut Values<'r>,
    ) -> Option<&'v [Value<'r>]> {
        values.resize(self.schema.columns.len(), Value::Null);
        self.layout.read(row, values)?;
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

    /// The keys of a row, by index.
    pub(crate) fn keys(&self, row: &[u8]) -> Keys {
        let indexes = 0..self.schema.indexes.len();
        if indexes.is_empty() {
            return Keys::new();
        }
        // Whatever comes into a table has been read once.
        let mut values = Values::new();
        let values = self.read(row, &mut values).unwrap_or_default();
        indexes.map(|index| self.key(index, values)).collect()
    }
}

impl State {
    #[cfg(test)]
    pub(crate) fn empty(definitions: &Definitions) -> Self {
        let empty = |definition: &Definition| Contents {
            rows: Rows::default(),
            indexes: vec![Entries::default(); definition.schema.indexes.len()],
        };
        Self { sequence: 0, epoch: 0, tables: definitions.iter().map(empty).collect() }
    }

    /// Becomes the same as a younger state, which is apart by these changes, each of one row.
    pub(crate) fn follow<'c>(
        &mut self,
        younger: &Self,
        changes: impl Iterator<Item = &'c Changes>,
    ) {
        (self.sequence, self.epoch) = (younger.sequence, younger.epoch);
        for (table, id, keys) in changes.flat_map(Changes::single_rows) {
            let (own, younger) = (&mut self.tables[table], &younger.tables[table]);
            own.rows.0.follow(&younger.rows.0, &id.bytes());
            let indexes = own.indexes.iter_mut().zip(&younger.indexes);
            for ((own, younger), keys) in indexes.zip(keys) {
                for key in keys {
                    own.0.follow(&younger.0, &entry(key, id));
                }
            }
        }
    }

    /// Puts or removes a row. Returns the bytes that it had and the keys, if it was there, and those that it has, if it is.
    pub(crate) fn apply(
        &mut self,
        definitions: &Definitions,
        write: &Write,
    ) -> (usize, [Option<Keys>; 2]) {
        let (table, definition) = (&mut self.tables[write.table], &definitions[write.table]);
        let old = table.rows.get(write.id);
        let (gone, before) = (old.map_or(0, <[u8]>::len), old.map(|row| definition.keys(row)));
        let after = write.row.as_ref().map(|row| definition.keys(row));
        for (index, entries) in table.indexes.iter_mut().enumerate() {
            let [before, after] =
                [&before, &after].map(|keys| keys.as_ref().map(|keys| &keys[index]));
            if before == after {
                continue;
            }
            if let Some(before) = before {
                entries.remove(before, write.id);
            }
            if let Some(after) = after {
                entries.insert(after, write.id);
            }
        }
        match &write.row {
            Some(row) => table.rows.insert(write.id, row),
            None => table.rows.remove(write.id),
        }
        (gone, [before, after])
    }
}

impl Rows {
    pub(crate) fn insert(&mut self, id: RowId, row: &[u8]) {
        self.0.insert(&id.bytes(), row);
    }

    pub(crate) fn remove(&mut self, id: RowId) {
        self.0.remove(&id.bytes());
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn get(&self, id: RowId) -> Option<&[u8]> {
        self.0.get(&id.bytes())
    }

    /// All of them, the oldest first.
    pub(crate) fn between(&self) -> RowsBetween<'_> {
        self.0.range(None, None)
    }

    /// The same with their ids.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (RowId, &[u8])> {
        self.between().map(|(id, row)| (id_of(id), row))
    }
}

impl Entries {
    fn insert(&mut self, key: &Key, id: RowId) {
        self.insert_entry(&entry(key, id));
    }

    pub(crate) fn insert_entry(&mut self, entry: &[u8]) {
        self.0.insert(entry, &[]);
    }

    fn remove(&mut self, key: &Key, id: RowId) {
        self.0.remove(&entry(key, id));
    }

    /// Those whose keys lie there, which may be nowhere.
    pub(crate) fn between(&self, from: Bound<&Key>, until: Bound<&Key>) -> EntriesBetween<'_> {
        let [from, until] = [from, until].map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.bytes()),
            Bound::Unbounded => None,
        });
        // A tree would not find the end of what ends before it begins.
        let until = until.map(|until| from.map_or(until, |from| until.max(from)));
        self.0.range(from, until)
    }
}

/// The id of a row, or of an entry of an index, from its bytes in a tree: the last of them.
#[inline]
pub(crate) fn id_of(key: &[u8]) -> RowId {
    let bytes = key.last_chunk().copied().unwrap_or_default();
    RowId::from_number(u128::from_be_bytes(bytes))
}

/// The entry of a row in an index.
pub(crate) fn entry(key: &Key, id: RowId) -> SmallVec<[u8; 64]> {
    let mut entry = SmallVec::from_slice(key.bytes());
    entry.extend_from_slice(&id.bytes());
    entry
}
