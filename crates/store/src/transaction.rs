//! Transactions: a snapshot with uncommitted writes on top.

use std::any::TypeId;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::checkpoint::MAX_ROW_LENGTH;
use crate::error::Error;
use crate::id::{Id, RowId};
use crate::reads::Read;
use crate::recorder::Recorder;
use crate::removal::Removal;
use crate::schema::{InvalidValue, Table, ValueFault};
use crate::snapshot::{Snapshot, table_of};
use crate::state::{Definitions, State, Write};
use crate::value::Value;

/// A transaction. It reads all tables as of its begin, plus its own writes, which become visible to
/// readers at the commit.
///
/// A write is applied to the trees only when the transaction reads again. Most transactions only
/// write, and the commit would have to apply the writes to a newer state anyway.
pub struct Transaction {
    definitions: Definitions,
    /// The snapshot with all writes applied.
    applied_snapshot: OnceCell<Snapshot>,
    /// The snapshot without the writes from `applied_count` on, while `applied_snapshot` is empty.
    pending_snapshot: Cell<Option<Snapshot>>,
    applied_count: Cell<usize>,
    /// The state at the begin.
    pub(crate) base: Arc<State>,
    pub(crate) writes: Vec<Write>,
    pub(crate) after_commit: Vec<Action>,
    ids: Arc<dyn Fn() -> RowId + Send + Sync>,
    recorder: Option<Recorder>,
}

/// An action that runs once a change is durable.
pub(crate) type Action = Box<dyn FnOnce() + Send>;

impl Transaction {
    pub(crate) fn new(snapshot: Snapshot, ids: Arc<dyn Fn() -> RowId + Send + Sync>) -> Self {
        Self {
            definitions: Arc::clone(&snapshot.definitions),
            recorder: snapshot.recorder.clone(),
            base: Arc::clone(&snapshot.state),
            applied_snapshot: snapshot.into(),
            pending_snapshot: Cell::default(),
            applied_count: Cell::default(),
            writes: Vec::new(),
            after_commit: Vec::new(),
            ids,
        }
    }

    /// Inserts a row, assigns its id, and returns that id.
    ///
    /// # Errors
    ///
    /// A value is invalid, duplicates a unique one, or refers to a missing row.
    pub fn insert<T: Table>(&mut self, mut row: T) -> Result<Id<T>, Error> {
        self.add(&mut row)
    }

    /// Inserts a row that the caller may need again, for a retry.
    pub(crate) fn add<T: Table>(&mut self, row: &mut T) -> Result<Id<T>, Error> {
        let id = self.new_id();
        row.set_id(id);
        self.put(row)?;
        Ok(Id::of(id))
    }

    /// Replaces the row with the same id.
    ///
    /// # Errors
    ///
    /// The row is missing, or a value is invalid, duplicates a unique one, or refers to a missing
    /// row.
    pub fn replace<T: Table>(&mut self, row: &T) -> Result<(), Error> {
        let (table, id) = (self.table::<T>(), row.id());
        self.require_row(table, id)?;
        self.put(row)
    }

    /// Updates a row.
    ///
    /// # Errors
    ///
    /// The row is missing, or a value is invalid, duplicates a unique one, or refers to a missing
    /// row.
    pub fn update<T: Table>(
        &mut self,
        id: Id<T>,
        change: impl FnOnce(&mut T),
    ) -> Result<(), Error> {
        let table = self.table::<T>();
        let Some(mut row) = self.get(id) else {
            return Err(self.no_such_row(table, id.row()));
        };
        change(&mut row);
        row.set_id(id.row());
        self.put(&row)
    }

    /// Removes a row. Returns false if the row does not exist. Rows that refer to it by a column
    /// with [`OnRemove::Cascade`](crate::OnRemove) are removed too, and so on; a reference with
    /// [`OnRemove::SetNone`](crate::OnRemove) becomes null.
    ///
    /// # Errors
    ///
    /// Other rows refer to it, or all that changes exceeds the limit of a transaction.
    pub fn remove<T: Table>(&mut self, id: Id<T>) -> Result<bool, Error> {
        self.remove_at(self.table::<T>(), id.row())
    }

    /// Removes a row of the table at this position, as [`Transaction::remove`] does.
    pub(crate) fn remove_at(&mut self, table: usize, id: RowId) -> Result<bool, Error> {
        self.note(Read::Row { table, id });
        if self.row(table, id).is_none() {
            return Ok(false);
        }
        for write in Removal::of(self, table, id)?.into_writes(self)? {
            self.write(write);
        }
        Ok(true)
    }

    /// Whether the transaction has writes.
    pub const fn has_written(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Runs `action` once the commit is durable, and never if the commit fails.
    pub fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(action));
    }

    /// Runs a part of the transaction. If it fails, its writes and actions are taken back, and the
    /// transaction may go on. Its reads remain, because the failure may depend on them.
    ///
    /// # Errors
    ///
    /// The error of `part`.
    pub fn attempt<T, E>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (writes, actions) = (self.writes.len(), self.after_commit.len());
        let outcome = part(self);
        if outcome.is_err() {
            self.after_commit.truncate(actions);
            self.forget_writes_from(writes);
        }
        outcome
    }

    /// Drops the writes from this one on.
    fn forget_writes_from(&mut self, count: usize) {
        if self.writes.len() <= count {
            return;
        }
        let mut snapshot = self.take();
        if self.applied_count.get() > count {
            // A tree cannot take back a write, so the remaining ones are applied again.
            snapshot.state = Arc::clone(&self.base);
            self.applied_count.set(0);
        }
        self.pending_snapshot.set(Some(snapshot));
        self.writes.truncate(count);
    }

    /// The recorder of this transaction's reads.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.recorder.clone()
    }

    /// Drops the writes and actions and keeps the reads, so that a failed action can wait for the
    /// data it read.
    pub(crate) fn forget_writes(&mut self) {
        let mut snapshot = self.take();
        snapshot.state = Arc::clone(&self.base);
        self.applied_snapshot = snapshot.into();
        self.writes.clear();
        self.applied_count.set(0);
        self.after_commit.clear();
    }

    fn put<T: Table>(&mut self, row: &T) -> Result<(), Error> {
        let (table, id) = (self.table::<T>(), row.id());
        let definition = &self.definitions[table];
        debug_assert_eq!(definition.row_type, Some(TypeId::of::<T>()));
        let mut values = Vec::with_capacity(definition.schema.columns.len());
        row.values(&mut values);
        self.put_values(table, id, &values)
    }

    /// Writes a row with these values, after all checks of its table.
    pub(crate) fn put_values(
        &mut self,
        table: usize,
        id: RowId,
        values: &[Value<'_>],
    ) -> Result<(), Error> {
        let definitions = Arc::clone(&self.definitions);
        let definition = &definitions[table];
        let mut invalid = definition.schema.check(values);
        if invalid.is_empty() {
            for &(column, target) in &definition.references {
                if let Value::Id(referenced) = values[column]
                    && (target, referenced) != (table, id)
                {
                    self.require_row(target, referenced)?;
                }
            }
        }
        self.find_duplicates(table, id, values, &mut invalid);
        if !invalid.is_empty() {
            return Err(Error::InvalidValues(invalid));
        }
        let mut before = None;
        if definition.layout.has_unknown {
            self.note(Read::Row { table, id });
            before = self.row(table, id);
        }
        let row = definition.layout.write_over(values, before);
        if row.len() > MAX_ROW_LENGTH {
            return Err(Error::TooLarge);
        }
        self.write(Write { table, id, row: Some(row) });
        Ok(())
    }

    /// Adds each unique index in which another row has the same values. Skips indexes over columns
    /// that are invalid already.
    fn find_duplicates(
        &self,
        table: usize,
        id: RowId,
        values: &[Value<'_>],
        invalid: &mut Vec<InvalidValue>,
    ) {
        let definition = &self.definitions[table];
        for (index, index_schema) in definition.schema.indexes.iter().enumerate() {
            let mut columns =
                index_schema.columns.iter().map(|place| &definition.schema.columns[*place]);
            // As in SQL, null equals no other null.
            let is_partial = index_schema.columns.iter().any(|place| values[*place] == Value::Null);
            let is_invalid = |name: &str| invalid.iter().any(|other| other.column == name);
            if !index_schema.is_unique
                || is_partial
                || columns.clone().any(|column| is_invalid(&column.name))
            {
                continue;
            }
            let key = definition.key(index, values);
            let is_duplicate = self.ids(table, index, &key).any(|other| other != id);
            self.note(Read::Prefix { table, index, key });
            if let Some(first) = columns.next().filter(|_| is_duplicate) {
                let with = columns.map(|column| column.name.clone()).collect();
                invalid.push(first.invalid(ValueFault::Duplicate { with }));
            }
        }
    }

    fn require_row(&self, table: usize, id: RowId) -> Result<(), Error> {
        self.note(Read::Row { table, id });
        match self.row(table, id) {
            Some(_) => Ok(()),
            None => Err(self.no_such_row(table, id)),
        }
    }

    fn no_such_row(&self, table: usize, id: RowId) -> Error {
        Error::NoSuchRow { table: self.definitions[table].schema.name.clone(), id }
    }

    /// A new id for a row.
    pub(crate) fn new_id(&self) -> RowId {
        (self.ids)()
    }

    pub(crate) fn write(&mut self, write: Write) {
        let snapshot = self.take();
        self.pending_snapshot.set(Some(snapshot));
        self.writes.push(write);
    }

    #[inline]
    fn table<T: Table>(&self) -> usize {
        table_of::<T>(&self.definitions)
    }

    /// Takes the snapshot, which has the first `applied_count` writes.
    fn take(&mut self) -> Snapshot {
        self.applied_snapshot
            .take()
            .or_else(|| self.pending_snapshot.take())
            .expect("it is in one of the two")
    }

    pub(crate) fn into_parts(mut self) -> CommitParts {
        let Snapshot { state, reads, has_unnoted_reads, .. } = self.take();
        let applied_count = self.applied_count.get();
        let Self { definitions, base, writes, after_commit, .. } = self;
        CommitParts {
            definitions,
            base,
            state,
            applied_count,
            reads: reads.into_inner(),
            has_unnoted_reads: has_unnoted_reads.get(),
            writes,
            after_commit,
        }
    }
}

/// The parts of a transaction that a commit needs.
pub(crate) struct CommitParts {
    pub(crate) definitions: Definitions,
    pub(crate) base: Arc<State>,
    /// The base with the first `applied_count` writes.
    pub(crate) state: Arc<State>,
    pub(crate) applied_count: usize,
    pub(crate) reads: crate::reads::ReadSet,
    /// Whether it has also read what `reads` does not have.
    pub(crate) has_unnoted_reads: bool,
    pub(crate) writes: Vec<Write>,
    pub(crate) after_commit: Vec<Action>,
}

impl Deref for Transaction {
    type Target = Snapshot;

    #[inline]
    fn deref(&self) -> &Snapshot {
        self.applied_snapshot.get_or_init(|| {
            let mut snapshot = self.pending_snapshot.take().expect("it is in one of the two");
            let state = Arc::make_mut(&mut snapshot.state);
            for write in &self.writes[self.applied_count.replace(self.writes.len())..] {
                state.apply(&self.definitions, write);
            }
            snapshot
        })
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Transaction").field("writes", &self.writes.len()).finish_non_exhaustive()
    }
}
