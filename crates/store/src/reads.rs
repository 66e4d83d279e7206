//! Decides what a reader's view depended on, and whether a change touches it: never missed, now and then seen where
//! there is none.

use std::ops::Bound;

use smallvec::SmallVec;

use crate::id::RowId;
use crate::key::Key;
use crate::state::{Definition, Definitions, Keys, State, Write};

/// What was looked at: the read-set.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadSet {
    reads: Vec<Read>,
    /// There were so many that some were taken together: what was looked at first is not told from the rest.
    is_condensed: bool,
}

/// One look at a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// One row, be it there or not.
    Row { table: usize, id: RowId },
    /// All rows whose id is at least this one.
    Since { table: usize, id: RowId },
    /// All rows whose key in an index begins so.
    Prefix { table: usize, index: usize, key: Key },
    /// All rows whose key in an index lies between these.
    Range { table: usize, index: usize, from: Bound<Key>, until: Bound<Key> },
    /// All rows.
    Table { table: usize },
}

/// What a commit has changed, in the same words.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Of the commit's record.
    pub sequence: u64,
    tables: SmallVec<[Changed; 1]>,
    /// Of the rows and keys that are told.
    bytes: usize,
    /// Bytes of the rows that were removed or got others in their places.
    gone: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Changed {
    table: usize,
    /// Sorted.
    rows: SmallVec<[RowId; 1]>,
    /// The keys that these rows have or had, by index.
    keys: KeysByIndex,
    /// Too many to be told one by one.
    all: bool,
}

/// Sorted keys, by index. Those of a small change stand in place: thousands of changes are kept for a while, and what was
/// allocated for each of them would be given back when it lies in no cache any more.
pub(crate) type KeysByIndex = SmallVec<[SmallVec<[Key; 2]>; 2]>;

/// A view that looked at more than this in one table has looked at all of it.
const MOST_READS: usize = 4096;
/// A commit that changed more rows than this of one table has changed all of it.
const MOST_ROWS: usize = 4096;

impl ReadSet {
    /// Notes a look.
    #[inline]
    pub(crate) fn note(&mut self, read: Read) {
        // The same twice in a row is what loops do.
        if self.reads.last() == Some(&read) {
            return;
        }
        if self.reads.len() >= MOST_READS {
            self.condense();
        }
        self.reads.push(read);
    }

    /// Whether anything was looked at.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether what was looked at may have changed. It says so of every change that matters, and of few others: of
    /// those in a range of which less was taken than asked for, and of those in tables of which very much was read
    /// or changed.
    pub fn is_touched_by(&self, changes: &Changes) -> bool {
        changes.touch(&self.reads)
    }

    /// The same of the first looks, so many as [`len`](Self::len) was when they were all.
    pub fn is_touched_within(&self, len: usize, changes: &Changes) -> bool {
        let len = if self.is_condensed { self.reads.len() } else { len.min(self.reads.len()) };
        changes.touch(&self.reads[..len])
    }

    /// How many looks it has noted.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Adds what another view has looked at.
    pub fn add(&mut self, other: &Self) {
        for read in &other.reads {
            if !self.reads.contains(read) {
                self.note(read.clone());
            }
        }
    }

    /// The looks, in their order.
    pub(crate) fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Takes the same tables as wholly read, which needs little memory and says of more changes that they touch it.
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

    /// What is changed, by table.
    pub(crate) fn tables(&self) -> &[Changed] {
        &self.tables
    }

    /// These rows with their keys in two indexes, and one table as a whole.
    #[cfg(test)]
    pub(crate) fn for_test(
        rows: impl IntoIterator<Item = (usize, RowId, [Key; 2])>,
        of_all: Option<usize>,
    ) -> Self {
        let mut changes = Self::none(1);
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
            *changed = Changed { all: true, rows, keys, ..*changed };
        }
        changes.sort();
        changes
    }

    /// What a record changes that is of no table.
    pub(crate) fn none(sequence: u64) -> Self {
        Self { sequence, ..Self::default() }
    }

    /// What `writes` change in `state`, which is as it was before them.
    pub(crate) fn of(definitions: &Definitions, state: &State, writes: &[Write]) -> Self {
        let mut changes = Self::none(state.sequence + 1);
        for write in writes {
            let definition = &definitions[write.table];
            let old = state.tables[write.table].rows.get(write.id);
            changes.gone += old.map_or(0, <[u8]>::len);
            let rows = old.into_iter().chain(write.row.as_deref());
            changes.note(definition, write, rows.map(|row| definition.keys(row)));
        }
        changes.sort();
        changes
    }

    /// Puts `writes` into `state`, which has the sequence of their record, and says what that changes.
    pub(crate) fn made(definitions: &Definitions, state: &mut State, writes: &[Write]) -> Self {
        let mut changes = Self::none(state.sequence);
        for write in writes {
            let (gone, keys) = state.apply(definitions, write);
            changes.gone += gone;
            changes.note(&definitions[write.table], write, keys.into_iter().flatten());
        }
        changes.sort();
        changes
    }

    /// Notes a row, with the keys that it had and has.
    fn note(&mut self, table: &Definition, write: &Write, keys: impl Iterator<Item = Keys>) {
        let changed = self.table(write.table, table.schema.indexes.len());
        if changed.rows.len() == MOST_ROWS {
            let (rows, keys) = (SmallVec::new(), SmallVec::new());
            *changed = Changed { all: true, rows, keys, ..*changed };
        }
        if changed.all {
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

    /// The rows of a table that it changes; `None`: too many to be told one by one.
    pub(crate) fn rows(&self, table: usize) -> Option<&[RowId]> {
        match self.tables.iter().find(|changed| changed.table == table) {
            None => Some(&[]),
            Some(Changed { all: true, .. }) => None,
            Some(changed) => Some(&changed.rows),
        }
    }

    /// About how much memory it takes, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the rows that are not there any more.
    pub(crate) const fn gone(&self) -> usize {
        self.gone
    }

    /// Whether it is one row of each table that it changes.
    pub(crate) fn is_of_single_rows(&self) -> bool {
        self.tables.iter().all(|changed| changed.rows.len() == 1)
    }

    /// The rows of such a change: table, row, and the keys that it has or had.
    pub(crate) fn single_rows(&self) -> impl Iterator<Item = (usize, RowId, &KeysByIndex)> {
        self.tables.iter().map(|changed| (changed.table, changed.rows[0], &changed.keys))
    }

    fn table(&mut self, table: usize, indexes: usize) -> &mut Changed {
        let known = self.tables.iter().position(|changed| changed.table == table);
        let place = known.unwrap_or_else(|| {
            let keys = SmallVec::from_elem(SmallVec::new(), indexes);
            self.tables.push(Changed { table, rows: SmallVec::new(), keys, all: false });
            self.tables.len() - 1
        });
        &mut self.tables[place]
    }
}

impl Changed {
    pub(crate) const fn table(&self) -> usize {
        self.table
    }

    /// The changed rows and their keys by index; `None`: too many to be told one by one.
    pub(crate) fn parts(&self) -> Option<(&[RowId], &KeysByIndex)> {
        (!self.all).then_some((&self.rows, &self.keys))
    }

    fn touches(&self, read: &Read) -> bool {
        if self.all {
            return true;
        }
        match read {
            Read::Row { id, .. } => self.rows.binary_search(id).is_ok(),
            Read::Since { id, .. } => self.rows.last().is_some_and(|last| last >= id),
            Read::Prefix { index, key, .. } => {
                let keys = &self.keys[*index];
                let first = keys.partition_point(|changed| changed < key);
                keys.get(first).is_some_and(|changed| changed.begins_with(key))
            }
            Read::Range { index, from, until, .. } => {
                let keys = &self.keys[*index];
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
            Read::Table { .. } => true,
        }
    }
}
