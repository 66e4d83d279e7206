//! The state of all tables at one moment. Successive states share the data that did not change.

use std::any::TypeId;
use std::ops::{Bound, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use crate::id::RowId;
use crate::key::Key;
use crate::row::Row;
use crate::schema::{Layout, OnRemove, Schema, StoredTable};
use crate::tree::{self, Tree};
use crate::value::Value;

/// The schema and layout of one table of the program.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) schema: Schema,
    pub(crate) layout: Layout,
    /// The row type, if the program declares one.
    pub(crate) row_type: Option<TypeId>,
    /// Whether the row type can hold these values.
    pub(crate) accepts: fn(RowId, &[Value<'_>]) -> bool,
    /// The columns that refer to rows of this table.
    pub(crate) referrers: Vec<Referrer>,
    /// The columns that refer to other tables: column, table.
    pub(crate) references: Vec<(usize, usize)>,
}

/// A column that refers to rows of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Referrer {
    pub(crate) table: usize,
    pub(crate) column: usize,
    /// The index that begins with the column.
    pub(crate) index: usize,
    pub(crate) on_remove: OnRemove,
}

/// The tables that the program declares, in this order, and the stored ones.
///
/// A catalog never changes. Declaring tables replaces it by one that has the same tables at the
/// same positions, and new ones after them.
#[derive(Debug)]
pub(crate) struct Catalog {
    declared: Box<[Definition]>,
    /// All tables that ever existed, in the order in which records number them.
    pub(crate) stored: Vec<StoredTable>,
    /// The positions of the declared tables among these.
    pub(crate) positions: Vec<usize>,
}

pub(crate) type Definitions = Arc<Catalog>;

/// All tables at one moment.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The sequence of the last record that the state includes.
    pub(crate) sequence: u64,
    /// The number of fallbacks of the head before this state was created.
    pub(crate) epoch: usize,
    pub(crate) definitions: Definitions,
    pub(crate) tables: Vec<TableState>,
    /// The rows of stored tables that the program does not declare, by stored position.
    pub(crate) undeclared: UndeclaredRows,
}

/// The rows of stored tables that a program does not declare, by their stored position. Most
/// programs have none, and few of their commits change one.
pub(crate) type UndeclaredRows = Arc<Vec<(usize, Rows)>>;

/// The rows and indexes of one table at one moment.
#[derive(Clone, Debug)]
pub(crate) struct TableState {
    pub(crate) rows: Rows,
    pub(crate) indexes: Vec<IndexEntries>,
}

/// Rows by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    tree: Tree<16>,
    /// A number that no other content of the process has; 0 for no rows.
    version: u64,
}

/// An index: entries ordered by key and then by id, so that rows with equal keys are ordered by
/// age.
///
/// An entry is the bytes of the key followed by those of the id. Comparing these bytes compares key
/// and id: no key of an index is a prefix of another, because each encoded value marks its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexEntries(Tree<{ usize::MAX }>);

/// A range of rows, in the order of their ids.
pub(crate) type RowRange<'t> = tree::Range<'t, 16>;

/// A range of entries of an index.
pub(crate) type IndexRange<'t> = tree::Range<'t, { usize::MAX }>;

/// The values of a row; up to twelve are stored inline.
pub(crate) type Values<'r> = SmallVec<[Value<'r>; 12]>;

/// A place in an index: before all entries of rows with this key, or with the key's first columns,
/// or before the entry of the row `id` with this key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) key: Key,
    pub(crate) id: Option<RowId>,
}

/// The keys of a row, by index.
pub(crate) type Keys = SmallVec<[Key; 4]>;

/// Sorted keys, by index. The keys of a small change are stored inline: the store keeps thousands
/// of changes for a while, and freeing a heap block for each would touch memory that has left the
/// cache.
pub(crate) type KeysByIndex = SmallVec<[SmallVec<[Key; 2]>; 2]>;

/// The write of one row, or its removal if `row` is `None`.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) table: usize,
    pub(crate) id: RowId,
    pub(crate) row: Option<Row>,
}

impl Definition {
    /// Decodes a row into `values`, in the order of the columns; returning them by value would copy
    /// them all. `None` if the bytes are not a row of this table.
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

    /// Encodes the key of a row's values in an index.
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
        // The row decodes, because each row is checked when it enters the table.
        let mut values = Values::new();
        let values = self.read(row, &mut values).unwrap_or_default();
        indexes.map(|index| self.key(index, values)).collect()
    }
}

impl Catalog {
    pub(crate) fn new(
        declared: Vec<Definition>,
        stored: Vec<StoredTable>,
        positions: Vec<usize>,
    ) -> Self {
        Self { declared: declared.into(), stored, positions }
    }

    /// The rows among these, which are by stored position, whose tables the program does not
    /// declare.
    pub(crate) fn undeclared(
        &self,
        rows: impl IntoIterator<Item = (usize, Rows)>,
    ) -> UndeclaredRows {
        let rows = rows.into_iter().filter(|(position, _)| !self.positions.contains(position));
        Arc::new(rows.collect())
    }
}

impl Deref for Catalog {
    type Target = [Definition];

    #[inline]
    fn deref(&self) -> &[Definition] {
        &self.declared
    }
}

impl State {
    /// The state of stored tables that no program declares.
    pub(crate) fn undeclared(sequence: u64, stored: Vec<StoredTable>, rows: Vec<Rows>) -> Self {
        let catalog = Catalog::new(Vec::new(), stored, Vec::new());
        let undeclared = catalog.undeclared(rows.into_iter().enumerate());
        let definitions = Arc::new(catalog);
        Self { sequence, epoch: 0, definitions, tables: Vec::new(), undeclared }
    }

    #[cfg(test)]
    pub(crate) fn empty(definitions: &Definitions) -> Self {
        let empty = |definition: &Definition| TableState {
            rows: Rows::default(),
            indexes: vec![IndexEntries::default(); definition.schema.indexes.len()],
        };
        let tables = definitions.iter().map(empty).collect();
        let undeclared = UndeclaredRows::default();
        Self { sequence: 0, epoch: 0, definitions: Arc::clone(definitions), tables, undeclared }
    }

    /// Catches up with a newer state, from which it differs by these rows: table, row, and the keys
    /// before and after.
    pub(crate) fn follow<'c>(
        &mut self,
        younger: &Self,
        rows: impl Iterator<Item = (usize, RowId, &'c KeysByIndex)>,
    ) {
        (self.sequence, self.epoch) = (younger.sequence, younger.epoch);
        self.undeclared = Arc::clone(&younger.undeclared);
        for (table, id, keys) in rows {
            let (own, younger) = (&mut self.tables[table], &younger.tables[table]);
            own.rows.tree.follow(&younger.rows.tree, &id.bytes());
            own.rows.version = younger.rows.version;
            let indexes = own.indexes.iter_mut().zip(&younger.indexes);
            for ((own, younger), keys) in indexes.zip(keys) {
                for key in keys {
                    own.0.follow(&younger.0, &entry(key, id));
                }
            }
        }
    }

    /// Writes or removes a row. Returns the length of the old row and the index keys before and
    /// after, each `None` without a row.
    pub(crate) fn apply(
        &mut self,
        definitions: &Definitions,
        write: &Write,
    ) -> (usize, [Option<Keys>; 2]) {
        let (table, definition) = (&mut self.tables[write.table], &definitions[write.table]);
        let old = table.rows.get(write.id);
        let (removed_bytes, before) =
            (old.map_or(0, <[u8]>::len), old.map(|row| definition.keys(row)));
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
        (removed_bytes, [before, after])
    }
}

impl Rows {
    pub(crate) fn insert(&mut self, id: RowId, row: &[u8]) {
        self.tree.insert(&id.bytes(), row);
        self.version = next_version();
    }

    pub(crate) fn remove(&mut self, id: RowId) {
        self.tree.remove(&id.bytes());
        self.version = next_version();
    }

    /// The number of this content: rows with the same number are the same.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    pub(crate) const fn len(&self) -> usize {
        self.tree.len()
    }

    #[inline]
    pub(crate) fn get(&self, id: RowId) -> Option<&[u8]> {
        self.tree.get(&id.bytes())
    }

    /// All rows, the oldest first.
    pub(crate) fn range(&self) -> RowRange<'_> {
        self.tree.range(None, None)
    }

    /// The rows from an id on (inclusive), and until another one (exclusive).
    pub(crate) fn slice(&self, from: Option<RowId>, until: Option<RowId>) -> RowRange<'_> {
        // The tree requires that a range does not end before it begins.
        let until = until.map(|until| from.map_or(until, |from| until.max(from)).bytes());
        let from = from.map(RowId::bytes);
        self.tree.range(
            from.as_ref().map(<[u8; 16]>::as_slice),
            until.as_ref().map(<[u8; 16]>::as_slice),
        )
    }

    /// All rows with their ids.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (RowId, &[u8])> {
        self.range().map(|(id, row)| (id_of(id), row))
    }
}

/// A number that no other content has.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl IndexEntries {
    fn insert(&mut self, key: &Key, id: RowId) {
        self.insert_entry(&entry(key, id));
    }

    pub(crate) fn insert_entry(&mut self, entry: &[u8]) {
        self.0.insert(entry, &[]);
    }

    fn remove(&mut self, key: &Key, id: RowId) {
        self.0.remove(&entry(key, id));
    }

    /// The entries whose keys are within these bounds, possibly an empty range.
    pub(crate) fn range(&self, from: Bound<&Key>, until: Bound<&Key>) -> IndexRange<'_> {
        let [from, until] = [from, until].map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.bytes()),
            Bound::Unbounded => None,
        });
        self.range_of_entries(from, until)
    }

    /// The entries from a place on, and until another one.
    pub(crate) fn slice(&self, from: Option<&Edge>, until: Option<&Edge>) -> IndexRange<'_> {
        let [from, until] = [from, until].map(|edge| {
            let bytes = |edge: &Edge| match edge.id {
                Some(id) => entry(&edge.key, id),
                None => SmallVec::from_slice(edge.key.bytes()),
            };
            edge.map(bytes)
        });
        self.range_of_entries(from.as_deref(), until.as_deref())
    }

    fn range_of_entries(&self, from: Option<&[u8]>, until: Option<&[u8]>) -> IndexRange<'_> {
        // The tree requires that a range does not end before it begins.
        let until = until.map(|until| from.map_or(until, |from| until.max(from)));
        self.0.range(from, until)
    }
}

/// The id of a row or an index entry: the last bytes of its key in the tree.
#[inline]
pub(crate) fn id_of(key: &[u8]) -> RowId {
    let bytes = key.last_chunk().copied().unwrap_or_default();
    RowId::from_number(u128::from_be_bytes(bytes))
}

/// The index entry of a row.
pub(crate) fn entry(key: &Key, id: RowId) -> SmallVec<[u8; 64]> {
    let mut entry = SmallVec::from_slice(key.bytes());
    entry.extend_from_slice(&id.bytes());
    entry
}
