//! Decides how a program comes to its tables: which there are, and how they are read and changed.

use std::any::TypeId;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::change::{Change, RETRIES};
use crate::commit::{Commits, Pending, Sync};
use crate::counts::Figures;
use crate::disk::{self, RealFolder};
use crate::error::Error;
use crate::guest::{self, Guest, Seat};
use crate::id::{Id, Ids, RowId};
use crate::journal::{self, FileJournal, Journal, MemoryJournal};
use crate::load::{Begun, Loading, Warning};
use crate::reads::Changes;
use crate::recorder::Recorder;
use crate::schema::{Index, Schema, Stored, Table};
use crate::snapshot::Snapshot;
use crate::state::{Definition, Definitions};
use crate::transaction::Transaction;
use crate::value::Kind;

/// Tables, shared by all who use them.
#[derive(Clone)]
pub struct Store(Arc<Own>, Option<Recorder>);

struct Own {
    commits: Arc<Commits>,
    ids: Arc<dyn Fn() -> RowId + Send + std::marker::Sync>,
    /// Writes for those who do not wait.
    attendant: Mutex<Option<thread::JoinHandle<()>>>,
    warnings: Vec<Warning>,
}

/// Which tables a store has, and how it keeps them.
#[derive(Debug, Default)]
pub struct Options {
    tables: Vec<Declared>,
    sync: Sync,
    guest: Seat,
    pub(crate) journal: journal::Options,
}

#[derive(Debug)]
struct Declared {
    schema: Schema,
    rows: Option<TypeId>,
}

impl Options {
    /// No tables yet; a commit is acknowledged when it outlives the machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the table of `T`.
    #[must_use]
    pub fn table<T: Table>(mut self) -> Self {
        self.tables.push(Declared { schema: T::schema(), rows: Some(TypeId::of::<T>()) });
        self
    }

    /// When a commit is acknowledged.
    #[must_use]
    pub const fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// With somebody who keeps something in the same journal. What one has kept is refused without it.
    #[must_use]
    pub fn guest(mut self, guest: Arc<dyn Guest>) -> Self {
        self.guest = Seat(Some(guest));
        self
    }

    /// How many bytes a file of the journal has. When the journal has grown by four of them, and by as much as all
    /// tables take, these are written beside it.
    #[must_use]
    pub const fn segment(mut self, bytes: u64) -> Self {
        self.journal.segment = bytes;
        self
    }

    /// Joins the tables to those that are stored.
    pub(crate) fn join(self, stored: &[Stored]) -> Result<Joined, String> {
        let mut all = stored.to_vec();
        let (mut definitions, mut places) = (Vec::new(), Vec::new());
        for Declared { schema, rows } in self.tables {
            let known = all.iter().position(|stored| stored.name == schema.name);
            if known.is_some_and(|known| places.contains(&known)) {
                return Err(format!("there are two tables of the name `{}`", schema.name));
            }
            let (own, layout) = schema.join(known.map(|known| &all[known]))?;
            places.push(known.unwrap_or(all.len()));
            match known {
                Some(known) => all[known] = own,
                None => all.push(own),
            }
            let (referrers, references) = (Vec::new(), Vec::new());
            definitions.push(Definition { schema, layout, rows, referrers, references });
        }
        refer(&mut definitions)?;
        Ok(Joined { definitions: definitions.into(), places, stored: all })
    }
}

/// The program's tables, as they are from now on.
pub(crate) struct Joined {
    pub(crate) definitions: Definitions,
    pub(crate) places: Vec<usize>,
    pub(crate) stored: Vec<Stored>,
}

/// Is told how much of all that is to be read has been: bytes, of bytes.
pub type Progress<'p> = dyn FnMut(u64, u64) + 'p;

/// Finds out which tables name rows of which. A column that does so has an index, its own if no other begins with it,
/// by which it is seen who names a row that is to be removed.
fn refer(definitions: &mut [Definition]) -> Result<(), String> {
    for table in 0..definitions.len() {
        for column in 0..definitions[table].schema.columns.len() {
            let schema = &definitions[table].schema;
            let Kind::Reference(target) = &schema.columns[column].kind else { continue };
            let found = definitions.iter().position(|other| other.schema.name == *target);
            let Some(target) = found else {
                let column = &schema.columns[column].name;
                return Err(format!(
                    "`{}.{column}` names rows of `{target}`, and there is no such table",
                    schema.name
                ));
            };
            let index =
                schema.indexes.iter().position(|index| index.columns.first() == Some(&column));
            let index = index.unwrap_or_else(|| {
                let indexes = &mut definitions[table].schema.indexes;
                indexes.push(Index { columns: vec![column], is_unique: false });
                indexes.len() - 1
            });
            definitions[table].references.push((column, target));
            definitions[target].referrers.push((table, index));
        }
    }
    Ok(())
}

impl Store {
    /// A store that ends with the program.
    ///
    /// # Errors
    ///
    /// The tables do not fit together.
    pub fn in_memory(options: Options) -> Result<Self, String> {
        Self::with_journal(options, Box::new(MemoryJournal::new()))
    }

    /// The store in this folder, which is made if it is not there. `progress` is told while it is read.
    ///
    /// # Errors
    ///
    /// Another program has it, it is damaged, or what the program says of its tables cannot be joined to what is
    /// there. Nothing is changed then.
    pub fn open(
        folder: impl AsRef<Path>,
        options: Options,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let folder = RealFolder::open(folder).map_err(|error| error.to_string())?;
        Self::in_folder(Arc::new(folder), options, progress)
    }

    /// The store in any folder, a [simulated](disk::SimulatedFolder) one for example.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn in_folder(
        folder: Arc<dyn disk::Folder>,
        options: Options,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let own = Arc::clone(&folder);
        let mut loading = Loading::with_guest(options.guest.clone());
        let mut receive = |loaded: journal::Loaded<'_>| loading.receive(loaded, progress);
        let opened = FileJournal::open(folder, options.journal, &mut receive);
        let opened = opened.map_err(|error| error.to_string())?;
        options.guest.told_all()?;
        let mut journal = Box::new(opened.journal);
        let sync = options.sync;
        let mut begun = loading.finish(options, opened.last, &mut *journal)?;
        begun.warnings.extend(opened.warnings.into_iter().map(Warning::Journal));
        let store = Self::begin_with(begun, journal, sync)?;
        // What the file system does not say, the first change finds out.
        store.0.commits.expect_room(own.available().unwrap_or(u64::MAX));
        Ok(store)
    }

    /// A store that keeps what it is told by `journal`, which holds nothing yet.
    ///
    /// # Errors
    ///
    /// The tables do not fit together.
    pub(crate) fn with_journal(
        options: Options,
        mut journal: Box<dyn Journal>,
    ) -> Result<Self, String> {
        let sync = options.sync;
        let loading = Loading::with_guest(options.guest.clone());
        let begun = loading.finish(options, 0, &mut *journal)?;
        Self::begin_with(begun, journal, sync)
    }

    fn begin_with(begun: Begun, journal: Box<dyn Journal>, sync: Sync) -> Result<Self, String> {
        let Begun { definitions, kept, state, last, warnings, owed } = begun;
        let commits = Arc::new(Commits::new(definitions, kept, state, journal, sync));
        if let Some(tables) = owed {
            commits.owe_tables(tables);
        }
        let ids = Mutex::new(Ids::after(last, disk::random));
        let ids = move || ids.lock().unwrap_or_else(PoisonError::into_inner).next(now());
        let attended = Arc::clone(&commits);
        let attendant = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || attended.attend())
            .map_err(|error| format!("no thread for the store: {error}"))?;
        let attendant = Mutex::new(Some(attendant));
        Ok(Self(Arc::new(Own { commits, ids: Arc::new(ids), attendant, warnings }), None))
    }

    /// All tables as they are now.
    pub fn read(&self) -> Snapshot {
        let commits = &self.0.commits;
        let snapshot = Snapshot::new(&commits.definitions, commits.visible());
        match &self.1 {
            Some(recorder) => snapshot.told_to(recorder),
            None => snapshot,
        }
    }

    /// The same tables, for one run of a function: whatever is read by this, on any thread, is told to its recorder.
    #[must_use]
    pub fn told_to(&self, recorder: &Recorder) -> Self {
        Self(Arc::clone(&self.0), Some(recorder.clone()))
    }

    /// Changes tables. `action` sees all of them at one moment, and its own writes; if another has changed what it
    /// looked at, it is run again, up to three times. What it does beside the tables it may so do several times:
    /// [`Transaction::after_commit`] is for what must happen once.
    ///
    /// # Errors
    ///
    /// Those of [`Change::wait`].
    pub fn change<A, T, E>(&self, action: A) -> Change<A, T, E>
    where
        A: FnMut(&mut Transaction) -> Result<T, E>,
        E: From<Error>,
    {
        Change::new(self.clone(), RETRIES, action)
    }

    /// Changes tables as [`Store::change`] does, but runs `action` once: a conflict is an error.
    ///
    /// # Errors
    ///
    /// Those of [`Change::wait`].
    pub fn change_once<A, T, E>(
        &self,
        action: A,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<T, E> + use<A, T, E>, T, E>
    where
        A: FnOnce(&mut Transaction) -> Result<T, E>,
        E: From<Error>,
    {
        let mut action = Some(action);
        let once = move |change: &mut Transaction| match action.take() {
            Some(action) => action(change),
            // It is not tried again.
            None => Err(Error::Conflict.into()),
        };
        Change::new(self.clone(), 0, once)
    }

    /// Adds one row, with an id of its own.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::insert`] and [`Change::wait`].
    #[expect(
        clippy::type_complexity,
        reason = "a closure has no name, and the rest is one word each"
    )]
    pub fn insert<T: Table>(
        &self,
        mut row: T,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<Id<T>, Error> + use<T>, Id<T>, Error> {
        self.change(move |change| change.add(&mut row))
    }

    /// Changes one row.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::update`] and [`Change::wait`].
    pub fn update<T: Table, F: FnMut(&mut T)>(
        &self,
        id: Id<T>,
        mut change_row: F,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<(), Error> + use<T, F>, (), Error> {
        self.change(move |change| change.update(id, &mut change_row))
    }

    /// Removes one row; false: there was none.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::remove`] and [`Change::wait`].
    pub fn remove<T: Table>(
        &self,
        id: Id<T>,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<T>, bool, Error> {
        self.change(move |change| change.remove(id))
    }

    /// A change to be committed by [`Store::commit`].
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.read(), Arc::clone(&self.0.ids))
    }

    /// A change that sees what is staged, because it will be committed behind it.
    pub(crate) fn begin_at_head(&self) -> Transaction {
        let commits = &self.0.commits;
        let snapshot = Snapshot::new(&commits.definitions, commits.head_state());
        Transaction::new(snapshot, Arc::clone(&self.0.ids))
    }

    /// Commits a change. It is acknowledged when what is returned is waited for, with a thread or as a future.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], or nothing is taken any more.
    pub fn commit(&self, transaction: Transaction) -> Result<Pending, Error> {
        if let Some(recorder) = transaction.recorder().filter(|_| !transaction.writes.is_empty()) {
            recorder.note_write();
        }
        self.0.commits.commit(transaction)
    }

    /// Keeps a record of the store's guest, in its place among the commits. `then` is called with its sequence when it is
    /// kept as `sync` says, before what comes behind it is acknowledged, and in this order; never if it is not kept. It is
    /// called while others wait, so it must be quick, and must not commit.
    ///
    /// # Errors
    ///
    /// It is too long, or nothing is taken any more.
    pub fn keep(
        &self,
        record: &[u8],
        sync: Sync,
        then: impl FnOnce(u64) + Send + 'static,
    ) -> Result<Pending, Error> {
        self.0.commits.keep(guest::wrapped(record), sync, Box::new(then))
    }

    /// Counts a record of the store's guest as kept for which [`keep`](Self::keep) found no room, and calls `then` with
    /// its sequence at once. The record is written before the next commit, or as soon as the disk has room. For what a
    /// start must say before anything else: if the program ends before there is room, its next start says it again.
    ///
    /// # Errors
    ///
    /// Nothing is taken any more.
    pub fn owe(&self, record: &[u8], then: impl FnOnce(u64) + Send + 'static) -> Result<(), Error> {
        self.0.commits.owe(guest::wrapped(record), Box::new(then))
    }

    /// Has `observer` told when the disk has no room any more (true), and when it has some again. It is called while
    /// others wait, so it must be quick, and must not commit.
    pub fn observe_room(&self, observer: impl Fn(bool) + Send + std::marker::Sync + 'static) {
        self.0.commits.observe_room(Box::new(observer));
    }

    /// Looks at once whether a full disk has room again. The store does so by itself once a second.
    pub fn look_for_room(&self) {
        self.0.commits.look_for_room();
    }

    /// Counts bytes of the journal that the store's guest does not need any more, as if the journal had grown by them: an
    /// image, which gives their place on the disk back, is written the sooner.
    pub fn count_needless(&self, bytes: usize) {
        self.0.commits.count_needless(bytes);
    }

    /// Has `observer` told of each commit, in their order, as soon as it can be seen. It is called while others wait, so
    /// it must be quick, and must not commit.
    pub fn observe(&self, observer: impl Fn(&Arc<Changes>) + Send + std::marker::Sync + 'static) {
        self.0.commits.observe(Box::new(observer));
    }

    /// Why the last image of all tables could not be written beside the journal. Nothing is lost by that: the next start
    /// reads more.
    pub fn image_failure(&self) -> Option<String> {
        self.0.commits.kept.failure()
    }

    /// What it has done since it was opened.
    pub fn figures(&self) -> Figures {
        self.0.commits.figures()
    }

    /// What whoever runs the program should know of the start: what is lost, and what was put right.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    #[cfg(test)]
    pub(crate) fn owes_sync(&self) -> bool {
        self.0.commits.owes_sync()
    }

    /// Writes what is under way, takes nothing more, and leaves the folder to others. An image that is being written is
    /// given up: nothing is lost by that either.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Own {
    fn close(&self) {
        self.commits.close();
        let attendant = self.attendant.lock().unwrap_or_else(PoisonError::into_inner).take();
        // What is done after a commit may be the last to have the store, on the very thread that would be waited for.
        let attendant = attendant.filter(|own| own.thread().id() != thread::current().id());
        if let Some(attendant) = attendant {
            // It ends by itself; if by a panic, that has been told.
            let _ = attendant.join();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.commits.definitions.iter().map(|table| &table.schema.name);
        to.debug_list().entries(names).finish()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
