//! Decides what a change sees and what it may do, until it is committed: nobody else sees any of it.

use std::any::TypeId;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::commit::Action;
use crate::error::Error;
use crate::id::{Id, RowId};
use crate::image::LONGEST_ROW;
use crate::reads::Read;
use crate::recorder::Recorder;
use crate::schema::Table;
use crate::snapshot::{Snapshot, table_of};
use crate::state::{Definitions, State, Write};
use crate::value::Value;

/// A change under way: it reads all tables as they were when it began, and its own writes.
///
/// A write is put into the trees when somebody looks: most changes only write, and the commit would have to put it into
/// younger trees once more.
pub struct Transaction {
    definitions: Definitions,
    /// With all writes.
    seen: OnceCell<Snapshot>,
    /// Without those from `applied` on, while `seen` is empty.
    unseen: Cell<Option<Snapshot>>,
    applied: Cell<usize>,
    /// As it began.
    pub(crate) base: Arc<State>,
    pub(crate) writes: Vec<Write>,
    pub(crate) after: Vec<Action>,
    ids: Arc<dyn Fn() -> RowId + Send + Sync>,
    recorder: Option<Recorder>,
}

impl Transaction {
    pub(crate) fn new(snapshot: Snapshot, ids: Arc<dyn Fn() -> RowId + Send + Sync>) -> Self {
        Self {
            definitions: Arc::clone(&snapshot.definitions),
            recorder: snapshot.recorder.clone(),
            base: Arc::clone(&snapshot.state),
            seen: snapshot.into(),
            unseen: Cell::default(),
            applied: Cell::default(),
            writes: Vec::new(),
            after: Vec::new(),
            ids,
        }
    }

    /// Adds a row, with an id of its own, which is returned.
    ///
    /// # Errors
    ///
    /// A value is wrong, taken, or names a row that is not there.
    pub fn insert<T: Table>(&mut self, mut row: T) -> Result<Id<T>, Error> {
        self.add(&mut row)
    }

    /// The same with a row that may be wanted again.
    pub(crate) fn add<T: Table>(&mut self, row: &mut T) -> Result<Id<T>, Error> {
        let id = (self.ids)();
        row.set_id(id);
        self.put(row)?;
        Ok(Id::of(id))
    }

    /// Puts a row in the place of the one that has its id.
    ///
    /// # Errors
    ///
    /// There is none, or a value is wrong, taken, or names a row that is not there.
    pub fn replace<T: Table>(&mut self, row: &T) -> Result<(), Error> {
        let (table, id) = (self.table::<T>(), row.id());
        self.must_be_there(table, id)?;
        self.put(row)
    }

    /// Changes a row.
    ///
    /// # Errors
    ///
    /// There is none, or a value is wrong, taken, or names a row that is not there.
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

    /// Removes a row; false: there was none.
    ///
    /// # Errors
    ///
    /// Others name it.
    pub fn remove<T: Table>(&mut self, id: Id<T>) -> Result<bool, Error> {
        let (table, id) = (self.table::<T>(), id.row());
        self.note(Read::Row { table, id });
        if self.row(table, id).is_none() {
            return Ok(false);
        }
        let definitions = Arc::clone(&self.definitions);
        for &(referrer, index) in &definitions[table].referrers {
            let mut key = crate::key::Key::default();
            key.push(Value::Id(id));
            let named = self.ids(referrer, index, &key).any(|own| (referrer, own) != (table, id));
            self.note(Read::Prefix { table: referrer, index, key });
            if named {
                return Err(Error::StillNamed { by: definitions[referrer].schema.name.clone() });
            }
        }
        self.write(Write { table, id, row: None });
        Ok(true)
    }

    /// Whether it would change anything.
    pub const fn has_written(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Has `action` run when this change is durable, and never if it is not.
    pub fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after.push(Box::new(action));
    }

    /// Who is told of what it looks at.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.recorder.clone()
    }

    /// Leaves what it has seen, to be waited for.
    pub(crate) fn forget_writes(&mut self) {
        let mut snapshot = self.take();
        snapshot.state = Arc::clone(&self.base);
        self.seen = snapshot.into();
        self.writes.clear();
        self.applied.set(0);
        self.after.clear();
    }

    fn put<T: Table>(&mut self, row: &T) -> Result<(), Error> {
        let (table, id) = (self.table::<T>(), row.id());
        let definitions = Arc::clone(&self.definitions);
        let definition = &definitions[table];
        debug_assert_eq!(definition.rows, Some(TypeId::of::<T>()));
        let mut values = Vec::with_capacity(definition.schema.columns.len());
        row.values(&mut values);
        definition.schema.check(&values)?;
        for &(column, target) in &definition.references {
            if let Value::Id(named) = values[column]
                && (target, named) != (table, id)
            {
                self.must_be_there(target, named)?;
            }
        }
        for (index, own) in definition.schema.indexes.iter().enumerate() {
            // Nothing is not the same as nothing.
            let is_partial = own.columns.iter().any(|column| values[*column] == Value::Null);
            if !own.is_unique || is_partial {
                continue;
            }
            let key = definition.key(index, &values);
            let is_taken = self.ids(table, index, &key).any(|other| other != id);
            self.note(Read::Prefix { table, index, key });
            if is_taken {
                let names =
                    own.columns.iter().map(|column| &definition.schema.columns[*column].name);
                let columns = names.cloned().collect();
                return Err(Error::Taken { table: definition.schema.name.clone(), columns });
            }
        }
        let row = definition.layout.write(&values);
        if row.len() > LONGEST_ROW {
            return Err(Error::TooLarge);
        }
        self.write(Write { table, id, row: Some(row) });
        Ok(())
    }

    fn must_be_there(&self, table: usize, id: RowId) -> Result<(), Error> {
        self.note(Read::Row { table, id });
        match self.row(table, id) {
            Some(_) => Ok(()),
            None => Err(self.no_such_row(table, id)),
        }
    }

    fn no_such_row(&self, table: usize, id: RowId) -> Error {
        Error::NoSuchRow { table: self.definitions[table].schema.name.clone(), id }
    }

    pub(crate) fn write(&mut self, write: Write) {
        let snapshot = self.take();
        self.unseen.set(Some(snapshot));
        self.writes.push(write);
    }

    #[inline]
    fn table<T: Table>(&self) -> usize {
        table_of::<T>(&self.definitions)
    }

    /// The snapshot, with `applied` of the writes.
    fn take(&mut self) -> Snapshot {
        self.seen.take().or_else(|| self.unseen.take()).expect("it is in one of the two")
    }

    pub(crate) fn into_parts(mut self) -> Parts {
        let snapshot = self.take();
        let is_whole = self.applied.get() == self.writes.len();
        let own = is_whole.then_some(snapshot.state);
        let reads = snapshot.reads.into_inner();
        let Self { base, writes, after, .. } = self;
        Parts { base, own, reads, writes, after }
    }
}

/// What is left of a transaction that is to be committed.
pub(crate) struct Parts {
    pub(crate) base: Arc<State>,
    /// The base with all writes, if somebody has looked at it.
    pub(crate) own: Option<Arc<State>>,
    pub(crate) reads: crate::reads::ReadSet,
    pub(crate) writes: Vec<Write>,
    pub(crate) after: Vec<Action>,
}

impl Deref for Transaction {
    type Target = Snapshot;

    #[inline]
    fn deref(&self) -> &Snapshot {
        self.seen.get_or_init(|| {
            let mut snapshot = self.unseen.take().expect("it is in one of the two");
            let state = Arc::make_mut(&mut snapshot.state);
            for write in &self.writes[self.applied.replace(self.writes.len())..] {
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
