//! Snapshots: consistent reads of all tables, with a record of the data read.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::id::{Id, RowId};
use crate::key::Key;
use crate::query::{self, IndexOf, KeyParts};
use crate::reads::{Changes, Read, ReadSet};
use crate::recorder::Recorder;
use crate::schema::Table;
use crate::state::{Definition, Definitions, IndexRange, RowRange, State, Values, id_of};

/// All tables as of one moment. A snapshot sees no later change and blocks no writer.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) definitions: Definitions,
    pub(crate) state: Arc<State>,
    pub(crate) reads: RefCell<ReadSet>,
    /// Whether the caller knows more of the state than `reads` has.
    pub(crate) has_unnoted_reads: Cell<bool>,
    is_tracking: bool,
    /// The recorder of the run that the snapshot was begun in.
    pub(crate) recorder: Option<Recorder>,
}

/// An iterator over rows of one table, in the order of their ids or of an index; `rev()` reverses
/// it.
pub struct RowIter<'s, T> {
    snapshot: &'s Snapshot,
    table: usize,
    cursor: RowCursor<'s>,
    of: PhantomData<fn() -> T>,
}

enum RowCursor<'s> {
    Empty,
    Rows(RowRange<'s>),
    Index(IndexRange<'s>),
}

impl Snapshot {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Self {
            definitions: Arc::clone(&state.definitions),
            state,
            reads: RefCell::default(),
            has_unnoted_reads: Cell::default(),
            is_tracking: true,
            recorder: Recorder::current(),
        }
    }

    /// Returns the snapshot with this recorder.
    pub(crate) fn with_recorder(self, recorder: &Recorder) -> Self {
        Self { recorder: Some(recorder.clone()), ..self }
    }

    /// Returns the snapshot without tracking: later reads are not recorded, for a caller that needs
    /// no notice of changes.
    #[must_use]
    pub fn without_tracking(mut self) -> Self {
        self.is_tracking = false;
        self
    }

    /// A second snapshot of the same moment, without tracking: for reads of a transaction that may
    /// be outdated when it commits, such as the size of a log. They cause no conflict.
    #[must_use]
    pub fn untracked(&self) -> Self {
        self.has_unnoted_reads.set(true);
        Self {
            definitions: Arc::clone(&self.definitions),
            state: Arc::clone(&self.state),
            reads: RefCell::default(),
            has_unnoted_reads: Cell::default(),
            is_tracking: false,
            recorder: None,
        }
    }

    /// The rows of one table that a commit added, changed or removed. `None` if they are too many
    /// to list.
    pub fn changed<'c, T: Table>(&self, changes: &'c Changes) -> Option<&'c [RowId]> {
        changes.rows(self.table::<T>())
    }

    /// The sequence of the last journal record that the snapshot includes.
    pub fn sequence(&self) -> u64 {
        self.has_unnoted_reads.set(true);
        self.state.sequence
    }

    /// The reads so far.
    pub fn reads(&self) -> ReadSet {
        self.reads.borrow().clone()
    }

    /// The row with this id.
    #[inline]
    pub fn get<T: Table>(&self, id: Id<T>) -> Option<T> {
        self.look_up(id, true)
    }

    /// The row with this id. Records the read if `is_first`, that is, if the caller has not read
    /// the row before.
    #[inline]
    pub(crate) fn look_up<T: Table>(&self, id: Id<T>, is_first: bool) -> Option<T> {
        let table = self.table::<T>();
        if is_first {
            self.note(Read::Row { table, id: id.row() });
        }
        self.row(table, id.row()).map(|row| self.read(table, id.row(), row))
    }

    /// The newest rows, at most `count`, the newest first.
    pub fn newest<T: Table>(&self, count: usize) -> Vec<T> {
        let table = self.table::<T>();
        let rows = &self.state.tables[table].rows;
        let mut found = Vec::with_capacity(count.min(rows.len()));
        let newest = rows.iter().rev().take(count);
        found.extend(newest.map(|(id, row)| self.read::<T>(table, id, row)));
        // With fewer rows than `count`, every older row would have been read as well.
        let oldest = found.last().filter(|_| found.len() == count);
        let id = oldest.map_or(RowId::default(), Table::id);
        self.note(Read::Since { table, id });
        found
    }

    /// All rows, the oldest first.
    pub fn all<T: Table>(&self) -> RowIter<'_, T> {
        let table = self.table::<T>();
        self.note(Read::Table { table });
        self.found(table, RowCursor::Rows(self.state.tables[table].rows.range()))
    }

    /// The number of rows.
    pub fn count<T: Table>(&self) -> usize {
        let table = self.table::<T>();
        self.note(Read::Table { table });
        self.state.tables[table].rows.len()
    }

    /// The rows with these values in all or the first columns of the index, ordered by the
    /// remaining columns and then by age.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "keys are small, and written where they are used"
    )]
    pub fn find<T: Table, K>(&self, by: IndexOf<T, K>, parts: impl KeyParts<K>) -> RowIter<'_, T> {
        let (table, index) = (self.table::<T>(), by.position);
        let key = query::key(&parts);
        let cursor = self.cursor(table, index, Bound::Included(&key), end_of(key.end().as_ref()));
        self.note(Read::Prefix { table, index, key });
        self.found(table, cursor)
    }

    /// The row whose index columns have these values; of several, the oldest.
    pub fn one<T: Table, K>(&self, by: IndexOf<T, K>, parts: impl KeyParts<K>) -> Option<T> {
        self.find(by, parts).next()
    }

    /// The rows whose values in all or the first columns of the index are within this range, in
    /// index order.
    pub fn range<T: Table, K, P: KeyParts<K>>(
        &self,
        by: IndexOf<T, K>,
        range: impl RangeBounds<P>,
    ) -> RowIter<'_, T> {
        let (table, index) = (self.table::<T>(), by.position);
        let Some([from, until]) = query::bounds(&range) else {
            return self.found(table, RowCursor::Empty);
        };
        let cursor = self.cursor(table, index, from.as_ref(), until.as_ref());
        self.note(Read::Range { table, index, from, until });
        self.found(table, cursor)
    }

    #[inline]
    pub(crate) fn table<T: Table>(&self) -> usize {
        table_of::<T>(&self.definitions)
    }

    #[inline]
    pub(crate) fn note(&self, read: Read) {
        if self.is_tracking {
            if let Some(recorder) = &self.recorder {
                recorder.note(read.clone());
            }
            self.reads.borrow_mut().note(read);
        }
    }

    #[inline]
    pub(crate) fn row(&self, table: usize, id: RowId) -> Option<&[u8]> {
        self.state.tables[table].rows.get(id)
    }

    /// The ids of rows whose index key has this prefix.
    pub(crate) fn ids(&self, table: usize, index: usize, key: &Key) -> impl Iterator<Item = RowId> {
        let entries = &self.state.tables[table].indexes[index];
        let own = entries.range(Bound::Included(key), end_of(key.end().as_ref()));
        own.map(|(entry, _)| id_of(entry))
    }

    /// Decodes a row into the program's type.
    #[inline]
    fn read<T: Table>(&self, table: usize, id: RowId, row: &[u8]) -> T {
        let definition: &Definition = &self.definitions[table];
        let mut values = Values::new();
        definition
            .read(row, &mut values)
            .and_then(|values| T::from_values(id, values))
            .expect("what came in was of this type")
    }

    fn cursor(
        &self,
        table: usize,
        index: usize,
        from: Bound<&Key>,
        until: Bound<&Key>,
    ) -> RowCursor<'_> {
        RowCursor::Index(self.state.tables[table].indexes[index].range(from, until))
    }

    fn found<'s, T>(&'s self, table: usize, cursor: RowCursor<'s>) -> RowIter<'s, T> {
        RowIter { snapshot: self, table, cursor, of: PhantomData }
    }
}

/// The position of a type's table.
///
/// # Panics
///
/// The store was opened without the table, a bug in the program.
#[inline]
pub(crate) fn table_of<T: Table>(definitions: &Definitions) -> usize {
    let wanted = TypeId::of::<T>();
    let found = definitions.iter().position(|table| table.row_type == Some(wanted));
    found.unwrap_or_else(|| {
        let path = std::any::type_name::<T>();
        let name = path.rsplit("::").next().unwrap_or(path);
        panic!("the store was opened without the table of {path}: add `.table::<{name}>()`")
    })
}

fn end_of(end: Option<&Key>) -> Bound<&Key> {
    end.map_or(Bound::Unbounded, Bound::Excluded)
}

impl<T: Table> RowIter<'_, T> {
    fn decode(&self, entry: Option<(RowId, Option<&[u8]>)>) -> Option<T> {
        let (id, row) = entry?;
        // An index entry always has its row.
        let row = row.or_else(|| self.snapshot.row(self.table, id))?;
        Some(self.snapshot.read(self.table, id, row))
    }
}

impl<T: Table> Iterator for RowIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let entry = match &mut self.cursor {
            RowCursor::Empty => None,
            RowCursor::Rows(rows) => rows.next().map(|(id, row)| (id_of(id), Some(row))),
            RowCursor::Index(entries) => entries.next().map(|(entry, _)| (id_of(entry), None)),
        };
        self.decode(entry)
    }
}

impl<T: Table> DoubleEndedIterator for RowIter<'_, T> {
    fn next_back(&mut self) -> Option<T> {
        let entry = match &mut self.cursor {
            RowCursor::Empty => None,
            RowCursor::Rows(rows) => rows.next_back().map(|(id, row)| (id_of(id), Some(row))),
            RowCursor::Index(entries) => entries.next_back().map(|(entry, _)| (id_of(entry), None)),
        };
        self.decode(entry)
    }
}

impl<T> fmt::Debug for RowIter<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Found").field("table", &self.table).finish_non_exhaustive()
    }
}
