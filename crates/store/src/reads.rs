//! Read sets and change sets, and the check whether a commit affects an earlier read. The check has
//! no false negatives and few false positives.

use std::ops::Bound;

use smallvec::SmallVec;

use crate::id::RowId;
use crate::key::Key;
use crate::state::{Definition, Definitions, Edge, Keys, KeysByIndex, State, Write};

/// The data that a transaction or a view has read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadSet {
    reads: Vec<Read>,
    /// Whether the set was coarsened to whole tables, so that the order of reads is lost.
    is_condensed: bool,
}

/// One read of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// One row, whether it exists or not.
    Row { table: usize, id: RowId },
    /// All rows with at least this id.
    Since { table: usize, id: RowId },
    /// All rows whose index key has this prefix.
    Prefix { table: usize, index: usize, key: Key },
    /// All rows whose index key is within these bounds.
    Range { table: usize, index: usize, from: Bound<Key>, until: Bound<Key> },
    /// All rows whose index entry is not below `from` and is below `until`.
    Slice { table: usize, index: usize, from: Option<Edge>, until: Option<Edge> },
    /// All rows whose id is not below `from` and is below `until`.
    Ids { table: usize, from: RowId, until: Option<RowId> },
    /// All rows.
    Table { table: usize },
}

/// The data that a commit changed, in the terms of [`ReadSet`].
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The sequence of the commit's record.
    pub sequence: u64,
    tables: SmallVec<[TableChanges; 1]>,
    /// Memory of the rows and keys in bytes.
    bytes: usize,
    /// Bytes of the rows that were removed or replaced.
    removed_bytes: usize,
    /// The tables whose definitions the record replaced: a write by an earlier definition is
    /// invalid. Those whose rows read differently now are in `tables` too.
    redefined: Box<[usize]>,
}

#[derive(Clone, Debug)]
pub(crate) struct TableChanges {
    table: usize,
    /// Changed rows, sorted.
    rows: SmallVec<[RowId; 1]>,
    /// The rows' keys before and after the commit, by index.
    keys: KeysByIndex,
    /// Whether the changed rows are too many to list.
    is_whole: bool,
}

/// A set with more reads is coarsened to whole tables.
const MAX_READS: usize = 4096;
/// A commit that changed more rows of one table counts as a change of the whole table.
const MAX_ROWS: usize = 4096;

impl ReadSet {
    /// Adds a read.
    #[inline]
    pub(crate) fn note(&mut self, read: Read) {
        // Loops repeat the same read.
        if self.reads.last() == Some(&read) {
            return;
        }
        if self.reads.len() >= MAX_READS {
            self.condense();
        }
        self.reads.push(read);
    }

    /// Whether the set has no reads.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether a commit may have changed the data read. True for each commit that did. False
    /// positives: commits inside of a range that was not read to its end, and tables with very many
    /// reads or changes.
    pub fn is_touched_by(&self, changes: &Changes) -> bool {
        changes.touch(&self.reads)
    }

    /// Checks only the first `len` reads, where `len` is an earlier result of [`len`](Self::len).
    pub fn is_touched_within(&self, len: usize, changes: &Changes) -> bool {
        let len = if self.is_condensed { self.reads.len() } else { len.min(self.reads.len()) };
        changes.touch(&self.reads[..len])
    }

    /// The number of reads.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Adds all reads of `other`.
    pub fn add(&mut self, other: &Self) {
        for read in &other.reads {
            if !self.reads.contains(read) {
                self.note(read.clone());
            }
        }
    }

    /// The reads, in order.
    pub(crate) fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Coarsens the set to whole tables, which needs little memory and makes more commits count as
    /// affecting it.
    pub fn condense(&mut self) {
        self.is_condensed = true;
        let mut tables: Vec<usize> = self.reads.iter().map(Read::table).collect();
        tables.sort_unstable();
        tables.dedup();
        self.reads = tables.into_iter().map(|table| Read::Table { table }).collect();
    }
}

impl Read {
    pub(crate) fn table(&self) -> usize {
        match self {
            Self::Row { table, .. }
            | Self::Since { table, .. }
            | Self::Prefix { table, .. }
            | Self::Range { table, .. }
            | Self::Slice { table, .. }
            | Self::Ids { table, .. }
            | Self::Table { table } => *table,
        }
    }
}

impl Changes {
    fn touch(&self, reads: &[Read]) -> bool {
        reads.iter().any(|read| {
            let changed = self.tables.iter().find(|changed| changed.table == read.table());
            changed.is_some_and(|changed| changed.touches(read))
        })
    }

    /// The changes by table.
    pub(crate) fn tables(&self) -> &[TableChanges] {
        &self.tables
    }

    /// A change set for tests, of rows with their keys in two indexes and of one whole table.
    #[cfg(test)]
    pub(crate) fn for_test(
        rows: impl IntoIterator<Item = (usize, RowId, [Key; 2])>,
        of_all: Option<usize>,
    ) -> Self {
        let mut changes = Self::empty(1);
        for (table, id, keys) in rows {
            let changed = changes.table(table, 2);
            changed.rows.push(id);
            for (own, key) in changed.keys.iter_mut().zip(keys) {
                own.push(key);
            }
        }
        if let Some(table) = of_all {
            let changed = changes.table(table, 2);
            let (rows, keys) = (SmallVec::new(), SmallVec::new());
            *changed = TableChanges { is_whole: true, rows, keys, ..*changed };
        }
        changes.sort();
        changes
    }

    /// The empty changes of a record that belongs to no table.
    pub(crate) fn empty(sequence: u64) -> Self {
        Self { sequence, ..Self::default() }
    }

    /// The changes of `writes`, computed from the state before them.
    pub(crate) fn of(definitions: &Definitions, state: &State, writes: &[Write]) -> Self {
        let mut changes = Self::empty(state.sequence + 1);
        for write in writes {
            let definition = &definitions[write.table];
            let old = state.tables[write.table].rows.get(write.id);
            changes.removed_bytes += old.map_or(0, <[u8]>::len);
            let rows = old.into_iter().chain(write.row.as_deref());
            changes.note(definition, write, rows.map(|row| definition.keys(row)));
        }
        changes.sort();
        changes
    }

    /// Applies `writes` to a state, which has their record's sequence, and returns the changes.
    pub(crate) fn apply(definitions: &Definitions, state: &mut State, writes: &[Write]) -> Self {
        let mut changes = Self::empty(state.sequence);
        for write in writes {
            let (removed_bytes, keys) = state.apply(definitions, write);
            changes.removed_bytes += removed_bytes;
            changes.note(&definitions[write.table], write, keys.into_iter().flatten());
        }
        changes.sort();
        changes
    }

    /// The changes of a record that replaced the definitions of the tables `redefined`. Rows of the
    /// tables `rewritten`, some of these, read differently since.
    pub(crate) fn redefinition(sequence: u64, redefined: Vec<usize>, rewritten: &[usize]) -> Self {
        let whole = |table: &usize| {
            let (rows, keys) = (SmallVec::new(), SmallVec::new());
            TableChanges { table: *table, rows, keys, is_whole: true }
        };
        let tables = rewritten.iter().map(whole).collect();
        Self { tables, redefined: redefined.into(), ..Self::empty(sequence) }
    }

    /// Whether the record declared a table, or replaced the definition of one.
    pub(crate) const fn has_redefined(&self) -> bool {
        !self.redefined.is_empty()
    }

    /// Whether the record replaced the definition of a table that one of these writes is for.
    #[inline]
    pub(crate) fn redefines(&self, writes: &[Write]) -> bool {
        !self.redefined.is_empty()
            && writes.iter().any(|write| self.redefined.contains(&write.table))
    }

    /// Adds a row, with its keys before and after.
    fn note(&mut self, table: &Definition, write: &Write, keys: impl Iterator<Item = Keys>) {
        let changed = self.table(write.table, table.schema.indexes.len());
        if changed.rows.len() == MAX_ROWS {
            let (rows, keys) = (SmallVec::new(), SmallVec::new());
            *changed = TableChanges { is_whole: true, rows, keys, ..*changed };
        }
        if changed.is_whole {
            return;
        }
        changed.rows.push(write.id);
        for own in keys {
            for (keys, key) in changed.keys.iter_mut().zip(own) {
                keys.push(key);
            }
        }
    }

    fn sort(&mut self) {
        for changed in &mut self.tables {
            changed.rows.sort_unstable();
            changed.rows.shrink_to_fit();
            self.bytes += size_of_val(&*changed.rows);
            for keys in &mut changed.keys {
                keys.sort_unstable();
                keys.dedup();
                keys.shrink_to_fit();
                let long = keys.iter().map(|key| key.bytes().len());
                self.bytes += size_of_val(&**keys) + long.sum::<usize>();
            }
        }
    }

    /// The changed rows of a table; `None` if they are too many to list.
    pub(crate) fn rows(&self, table: usize) -> Option<&[RowId]> {
        match self.tables.iter().find(|changed| changed.table == table) {
            None => Some(&[]),
            Some(TableChanges { is_whole: true, .. }) => None,
            Some(changed) => Some(&changed.rows),
        }
    }

    /// The approximate memory use in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the rows that were removed or replaced.
    pub(crate) const fn removed_bytes(&self) -> usize {
        self.removed_bytes
    }

    /// Whether each changed table has exactly one changed row, and the same definition as before.
    pub(crate) fn has_single_rows(&self) -> bool {
        self.redefined.is_empty() && self.tables.iter().all(|changed| changed.rows.len() == 1)
    }

    /// The rows of such a change: table, row, and the keys before and after.
    pub(crate) fn single_rows(&self) -> impl Iterator<Item = (usize, RowId, &KeysByIndex)> {
        self.tables.iter().map(|changed| (changed.table, changed.rows[0], &changed.keys))
    }

    fn table(&mut self, table: usize, indexes: usize) -> &mut TableChanges {
        let known = self.tables.iter().position(|changed| changed.table == table);
        let position = known.unwrap_or_else(|| {
            let keys = SmallVec::from_elem(SmallVec::new(), indexes);
            self.tables.push(TableChanges { table, rows: SmallVec::new(), keys, is_whole: false });
            self.tables.len() - 1
        });
        &mut self.tables[position]
    }
}

impl TableChanges {
    pub(crate) const fn table(&self) -> usize {
        self.table
    }

    /// The changed rows and their keys by index; `None` if they are too many to list.
    pub(crate) fn rows_and_keys(&self) -> Option<(&[RowId], &KeysByIndex)> {
        (!self.is_whole).then_some((&self.rows, &self.keys))
    }

    fn touches(&self, read: &Read) -> bool {
        if self.is_whole {
            return true;
        }
        // The table has lost an index since a read of it: that read is touched by the record which
        // replaced the definition, and so by all later ones.
        match read {
            Read::Row { id, .. } => self.rows.binary_search(id).is_ok(),
            Read::Since { id, .. } => self.rows.last().is_some_and(|last| last >= id),
            Read::Prefix { index, key, .. } => {
                let Some(keys) = self.keys.get(*index) else { return true };
                let first = keys.partition_point(|changed| changed < key);
                keys.get(first).is_some_and(|changed| changed.begins_with(key))
            }
            Read::Range { index, from, until, .. } => {
                let Some(keys) = self.keys.get(*index) else { return true };
                let first = keys.partition_point(|changed| match from {
                    Bound::Included(from) => changed < from,
                    Bound::Excluded(from) => changed <= from,
                    Bound::Unbounded => false,
                });
                keys.get(first).is_some_and(|changed| match until {
                    Bound::Included(until) => changed <= until,
                    Bound::Excluded(until) => changed < until,
                    Bound::Unbounded => true,
                })
            }
            Read::Slice { index, from, until, .. } => {
                self.touches_slice(*index, from.as_ref(), until.as_ref())
            }
            Read::Ids { from, until, .. } => self.has_row_within(Some(*from), *until),
            Read::Table { .. } => true,
        }
    }

    /// Whether a changed entry is within these bounds. The changes list keys and rows separately,
    /// so at the key of a bound each changed row counts as one with this key.
    fn touches_slice(&self, index: usize, from: Option<&Edge>, until: Option<&Edge>) -> bool {
        let Some(keys) = self.keys.get(index) else { return true };
        let first = from.map_or(0, |from| keys.partition_point(|key| *key < from.key));
        let is_below = |key: &&Key| {
            until.is_none_or(|until| **key < until.key || **key == until.key && until.id.is_some())
        };
        keys[first..].iter().take_while(is_below).any(|key| {
            let at = |edge: Option<&Edge>| edge.filter(|edge| edge.key == *key)?.id;
            self.has_row_within(at(from), at(until))
        })
    }

    /// Whether a changed row has an id that is not below `from` and is below `until`.
    fn has_row_within(&self, from: Option<RowId>, until: Option<RowId>) -> bool {
        let first = from.map_or(0, |from| self.rows.partition_point(|id| *id < from));
        self.rows.get(first).is_some_and(|id| until.is_none_or(|until| *id < until))
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn key(byte: u8) -> Key {
        Key::from_bytes(&[byte])
    }

    fn id(number: u8) -> RowId {
        RowId::from_number(number.into())
    }

    /// Row 5 with the key 3 in the only index.
    fn changed() -> TableChanges {
        let keys = smallvec![smallvec![key(3)]];
        TableChanges { table: 0, rows: smallvec![id(5)], keys, is_whole: false }
    }

    #[test]
    fn touches_ranges_that_contain_a_changed_key() {
        let bounds = |byte| [Bound::Included(byte), Bound::Excluded(byte), Bound::Unbounded];
        let mut touched = 0;
        for first in 1..=5_u8 {
            for last in first..=5 {
                for (from, until) in
                    bounds(first).iter().flat_map(|from| bounds(last).map(|until| (*from, until)))
                {
                    let is_inside = std::ops::RangeBounds::contains(&(from, until), &3);
                    let (from, until) = (from.map(key), until.map(key));
                    let read = Read::Range { table: 0, index: 0, from, until };
                    assert_eq!(changed().touches(&read), is_inside, "{read:?}");
                    touched += u32::from(is_inside);
                }
            }
        }
        assert!(touched > 40, "{touched}");
        let whole = TableChanges { is_whole: true, ..changed() };
        let (from, until) = (Bound::Included(key(4)), Bound::Unbounded);
        assert!(whole.touches(&Read::Range { table: 0, index: 0, from, until }));
    }

    #[test]
    fn touches_slices_that_contain_a_changed_entry() {
        // Edges in the order of entries: before all entries of a key, then before one of its rows.
        let mut edges = Vec::new();
        for byte in 2..=4 {
            edges.push(Edge { key: key(byte), id: None });
            edges.extend((4..=6).map(|row| Edge { key: key(byte), id: Some(id(row)) }));
        }
        let position = |edge: &Edge| (edge.key.bytes()[0], edge.id);
        let entry = (3, Some(id(5)));
        for from in &edges {
            for until in &edges {
                let is_inside = position(from) <= entry && entry < position(until);
                let (from, until) = (Some(from.clone()), Some(until.clone()));
                let read = Read::Slice { table: 0, index: 0, from, until };
                assert_eq!(changed().touches(&read), is_inside, "{read:?}");
            }
            let (from, until) = (Some(from.clone()), None);
            let is_inside = position(from.as_ref().unwrap()) <= entry;
            let read = Read::Slice { table: 0, index: 0, from, until };
            assert_eq!(changed().touches(&read), is_inside, "{read:?}");
        }
    }

    #[test]
    fn touches_ids_that_contain_a_changed_row() {
        for from in 4..=6 {
            assert_eq!(changed().touches(&Read::Row { table: 0, id: id(from) }), from == 5);
            assert_eq!(changed().touches(&Read::Since { table: 0, id: id(from) }), from <= 5);
            let ids = |until| Read::Ids { table: 0, from: id(from), until };
            assert_eq!(changed().touches(&ids(None)), from <= 5);
            for until in 4..=6 {
                let is_inside = (from..until).contains(&5);
                assert_eq!(changed().touches(&ids(Some(id(until)))), is_inside, "{from} {until}");
            }
        }
    }

    #[test]
    fn adds_the_reads_that_a_set_lacks() {
        let read = |number| Read::Row { table: 0, id: id(number) };
        let set = |numbers: &[u8]| {
            let mut set = ReadSet::default();
            for number in numbers {
                set.note(read(*number));
            }
            set
        };
        let mut sum = set(&[1, 2]);
        sum.add(&set(&[3, 1, 4]));
        assert_eq!(sum.reads(), [1, 2, 3, 4].map(read));
        sum.add(&set(&[]));
        sum.add(&set(&[2]));
        assert_eq!(sum.len(), 4);
    }

    #[test]
    fn measures_the_memory_of_changes() {
        let [one, two] = [&[1_u8, 2, 3][..], &[4]].map(Key::from_bytes);
        let rows = [(0, id(1), [one.clone(), two.clone()]), (1, id(1), [one.clone(), two.clone()])];
        let more = (0, id(2), [two.clone(), two]);
        // Two rows, with two keys of four bytes in the first index and one key in the second one.
        let (row, key) = (size_of::<RowId>(), size_of::<Key>());
        let expected = [0, row + 2 * key + 4, 2 * row + 3 * key + 5];
        let bytes = |count: usize| {
            let rows = rows.iter().take(count.min(1)).cloned();
            Changes::for_test(rows.chain([more.clone()].into_iter().take(count / 2)), None).bytes()
        };
        assert_eq!([0, 1, 2].map(bytes), expected);
        // The sum of two tables.
        assert_eq!(Changes::for_test(rows, None).bytes(), 2 * expected[1]);
        assert_eq!(Changes::for_test([], Some(3)).bytes(), 0);
    }

    #[test]
    fn coarsens_a_set_with_many_reads_to_whole_tables() {
        let mut set = ReadSet::default();
        assert!(set.is_empty());
        for number in 0..MAX_READS {
            let read = Read::Row { table: number % 2, id: RowId::from_number(number as u128 + 1) };
            set.note(read.clone());
            set.note(read);
        }
        assert_eq!((set.len(), set.is_empty()), (MAX_READS, false));
        set.note(Read::Table { table: 7 });
        assert_eq!(set.reads(), [0, 1, 7].map(|table| Read::Table { table }));
        // The order of reads is lost, so that a part of the set is the whole.
        let tables = smallvec![TableChanges { table: 7, ..changed() }];
        let changes = Changes { tables, ..Changes::empty(1) };
        assert!(set.is_touched_within(1, &changes));
        let mut ordered = ReadSet::default();
        ordered.note(Read::Table { table: 0 });
        ordered.note(Read::Table { table: 7 });
        assert!(!ordered.is_touched_within(1, &changes));
        assert!(ordered.is_touched_within(2, &changes));
    }
}
