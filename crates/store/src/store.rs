//! The store's public interface: opening, reading, committing, closing.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::commit::{Committer, DeclareError, Pending, Sync};
use crate::disk::{self, RealFolder};
use crate::error::Error;
use crate::extension;
use crate::id::{Ids, RowId};
use crate::journal::{self, FileJournal, Journal, MemoryJournal};
use crate::load::{LoadedStore, Loader, Progress, Warning};
use crate::options::Options;
use crate::reads::Changes;
use crate::recorder::Recorder;
use crate::schema::Schema;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::stats::{Activity, Stats};
use crate::transaction::Transaction;

/// A set of tables. Clones share the same tables.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    recorder: Option<Recorder>,
}

struct Inner {
    committer: Arc<Committer>,
    ids: Arc<dyn Fn() -> RowId + Send + std::marker::Sync>,
    /// Writes commits that no thread waits for, and syncs on a timer.
    worker: Mutex<Option<thread::JoinHandle<()>>>,
    warnings: Vec<Warning>,
}

impl Store {
    /// Creates a store in memory, without a journal on disk.
    ///
    /// # Errors
    ///
    /// The tables contradict each other.
    pub fn in_memory(options: Options) -> Result<Self, String> {
        Self::with_journal(options, Box::new(MemoryJournal::new()))
    }

    /// Opens the store in a folder, and creates the folder if it is missing. Calls `progress`
    /// during the read.
    ///
    /// # Errors
    ///
    /// The folder is locked by a different program, it is damaged, or the program's tables cannot
    /// be merged with the stored ones. A failed open changes nothing.
    pub fn open(
        folder: impl AsRef<Path>,
        options: Options,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let folder = RealFolder::open(folder).map_err(|error| error.to_string())?;
        Self::in_folder(Arc::new(folder), options, progress)
    }

    /// Opens the store in any folder, for example a [simulated](disk::SimulatedFolder) one.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn in_folder(
        folder: Arc<dyn disk::Folder>,
        options: Options,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let disk = Arc::clone(&folder);
        let mut loader = Loader::for_extension(options.extension.clone());
        let mut receive = |loaded: journal::RecoveryEvent<'_>| loader.receive(loaded, progress);
        let opened = FileJournal::open(folder, options.journal, &mut receive);
        let opened = opened.map_err(|error| error.to_string())?;
        options.extension.finish_load()?;
        let mut journal = Box::new(opened.journal);
        let sync = options.sync;
        let mut loaded = loader.finish(options, opened.last, &mut *journal)?;
        loaded.warnings.extend(opened.warnings.into_iter().map(Warning::Journal));
        let store = Self::start(loaded, journal, sync)?;
        // Unknown free space counts as enough: the first change finds out.
        store.inner.committer.check_free_space(disk.available().unwrap_or(u64::MAX));
        Ok(store)
    }

    /// Creates a store with an empty journal.
    ///
    /// # Errors
    ///
    /// The tables contradict each other.
    pub(crate) fn with_journal(
        options: Options,
        mut journal: Box<dyn Journal>,
    ) -> Result<Self, String> {
        let sync = options.sync;
        let loader = Loader::for_extension(options.extension.clone());
        let loaded = loader.finish(options, 0, &mut *journal)?;
        Self::start(loaded, journal, sync)
    }

    fn start(loaded: LoadedStore, journal: Box<dyn Journal>, sync: Sync) -> Result<Self, String> {
        let LoadedStore { checkpointer, state, last, warnings, deferred_tables } = loaded;
        let committer = Arc::new(Committer::new(checkpointer, state, journal, sync));
        if let Some(tables) = deferred_tables {
            committer.defer_tables(tables);
        }
        Self::run(committer, last, warnings)
    }

    /// The store of a committer, with the highest id of all rows.
    pub(crate) fn of(
        committer: Committer,
        last: RowId,
        warnings: Vec<Warning>,
    ) -> Result<Self, String> {
        Self::run(Arc::new(committer), last, warnings)
    }

    fn run(committer: Arc<Committer>, last: RowId, warnings: Vec<Warning>) -> Result<Self, String> {
        let ids = Mutex::new(Ids::after(last, disk::random));
        let ids = move || ids.lock().unwrap_or_else(PoisonError::into_inner).next(now());
        let worker_committer = Arc::clone(&committer);
        let worker = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker_committer.run_worker())
            .map_err(|error| format!("cannot start the thread of the store: {error}"))?;
        let worker = Mutex::new(Some(worker));
        Ok(Self {
            inner: Arc::new(Inner { committer, ids: Arc::new(ids), worker, warnings }),
            recorder: None,
        })
    }

    pub(crate) fn committer(&self) -> &Arc<Committer> {
        &self.inner.committer
    }

    /// A snapshot of all tables.
    pub fn read(&self) -> Snapshot {
        self.snapshot(self.inner.committer.visible())
    }

    fn snapshot(&self, state: Arc<State>) -> Snapshot {
        let snapshot = Snapshot::new(state);
        match &self.recorder {
            Some(recorder) => snapshot.with_recorder(recorder),
            None => snapshot,
        }
    }

    /// Returns a handle with a recorder: all reads through it, on any thread, are noted there too.
    #[must_use]
    pub fn with_recorder(&self, recorder: &Recorder) -> Self {
        Self { inner: Arc::clone(&self.inner), recorder: Some(recorder.clone()) }
    }

    /// Begins a transaction. [`Store::commit`] commits it.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.read(), Arc::clone(&self.inner.ids))
    }

    /// Begins the transaction of a change. On a store of its own it sees staged commits, so that it
    /// conflicts only with commits during its action.
    pub(crate) fn begin_change(&self) -> Transaction {
        if self.is_shared() { self.begin() } else { self.begin_at_head() }
    }

    /// Begins a transaction that sees staged commits, because its own commit will follow them.
    pub(crate) fn begin_at_head(&self) -> Transaction {
        let snapshot = self.snapshot(self.inner.committer.head_state());
        Transaction::new(snapshot, Arc::clone(&self.inner.ids))
    }

    /// Commits a transaction. The returned [`Pending`] resolves when the store acknowledges the
    /// commit: wait for it or await it.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], or the store rejects commits.
    pub fn commit(&self, transaction: Transaction) -> Result<Pending, Error> {
        if let Some(recorder) = transaction.recorder().filter(|_| !transaction.writes.is_empty()) {
            recorder.note_write();
        }
        self.inner.committer.commit(transaction)
    }

    /// Declares tables while the store is open, for example those of a script. The store merges them
    /// with the stored tables as at its start. A table that an earlier call declared is replaced:
    /// its rows, and those that an earlier run has stored, remain. Once the returned [`Pending`]
    /// resolves, [`read`](Self::read) sees the tables, and they are as durable as a commit.
    ///
    /// The tables of a call take effect all at once or not at all. They may refer to each other and
    /// to tables that are declared already. Snapshots and transactions keep the tables they began
    /// with; a transaction that has written to a replaced table, or read it, conflicts. Tables that
    /// later calls omit stay declared until the store is closed, and keep their rows.
    ///
    /// The call builds the indexes of these tables on the calling thread, during other commits.
    ///
    /// # Errors
    ///
    /// The tables contradict each other or the stored ones, or the store rejects commits.
    ///
    /// ```
    /// use bine_store::{Column, Field, Options, Schema, Store, Value};
    ///
    /// let store = Store::in_memory(Options::new())?;
    /// let mut note = Schema::new("note");
    /// note.columns.push(Column::of::<String>("text"));
    /// store.declare(&[note])?.wait()?;
    /// let insert = store.change(|change| change.insert_values("note", &[Value::Text("hello")]));
    /// let id = insert.wait()?;
    /// let now = store.read();
    /// let row = now.table_named("note").unwrap().row(id).unwrap();
    /// assert_eq!(row.values(), [Value::Text("hello")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn declare(&self, tables: &[Schema]) -> Result<Pending, DeclareError> {
        self.inner.committer.declare(tables)
    }

    /// Appends a record of the store's extension, in order with the commits. `then` receives the
    /// record's sequence once the record is as durable as `sync` asks, before later records are
    /// acknowledged. The store never calls it if the write fails. The callback runs under the
    /// journal's lock: it must be quick and must not commit.
    ///
    /// # Errors
    ///
    /// The record is too long, or the store rejects commits.
    pub fn append(
        &self,
        record: &[u8],
        sync: Sync,
        then: impl FnOnce(u64) + Send + 'static,
    ) -> Result<Pending, Error> {
        self.inner.committer.append(extension::with_marker(record), sync, Box::new(then))
    }

    /// Accepts a record of the store's extension, for which [`append`](Self::append) found no room,
    /// and calls `then` with its sequence at once. The store writes the record before the next
    /// commit or as soon as the disk has room. Use it only for records that each start writes
    /// first: if the program ends before the write, its next start must submit the record again.
    ///
    /// # Errors
    ///
    /// The store rejects commits.
    pub fn append_deferred(
        &self,
        record: &[u8],
        then: impl FnOnce(u64) + Send + 'static,
    ) -> Result<(), Error> {
        self.inner.committer.append_deferred(extension::with_marker(record), Box::new(then))
    }

    /// Whether several nodes share the tables: the store of a [`Replica`](crate::Replica).
    pub fn is_shared(&self) -> bool {
        self.inner.committer.shared().is_some()
    }

    /// Registers a callback for disk space: true when the disk becomes full, false when it has room
    /// again. The callback runs under a lock: it must be quick and must not commit.
    pub fn observe_disk_space(&self, observer: impl Fn(bool) + Send + std::marker::Sync + 'static) {
        self.inner.committer.observe_disk_space(Box::new(observer));
    }

    /// Checks at once whether a full disk has room again. The store does so by itself once a
    /// second.
    pub fn probe_disk_space(&self) {
        self.inner.committer.probe_disk_space();
    }

    /// Counts journal bytes that the store's extension no longer needs, as if the journal had grown
    /// by them. The next checkpoint, which frees their space, runs sooner.
    pub fn count_obsolete(&self, bytes: usize) {
        self.inner.committer.count_obsolete(bytes);
    }

    /// Registers a callback for commits. It runs for each commit, in order, as soon as the commit
    /// is visible, under the journal's lock: it must be quick and must not commit.
    pub fn observe(&self, observer: impl Fn(&Arc<Changes>) + Send + std::marker::Sync + 'static) {
        self.inner.committer.observe(Box::new(observer));
    }

    /// The error of the last checkpoint, if it failed. No data is lost: the next start only replays
    /// more of the journal.
    pub fn checkpoint_failure(&self) -> Option<String> {
        self.inner.committer.checkpointer.failure()
    }

    /// Counters of the store's work since it was opened.
    pub fn stats(&self) -> Stats {
        self.inner.committer.stats()
    }

    /// The work that the store does now. Does not wait for the disk.
    pub fn activity(&self) -> Activity {
        self.inner.committer.activity()
    }

    /// Warnings for the operator from the start: data that is lost, and what was repaired.
    pub fn warnings(&self) -> &[Warning] {
        &self.inner.warnings
    }

    #[cfg(test)]
    pub(crate) fn needs_sync(&self) -> bool {
        self.inner.committer.needs_sync()
    }

    /// Closes the store: writes staged commits, rejects new ones, and unlocks the folder. A
    /// checkpoint that is running is abandoned, which loses no data.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn close(&self) {
        self.committer.close();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An `after_commit` action may drop the last handle on this very thread, which must not
        // join itself.
        let worker = worker.filter(|own| own.thread().id() != thread::current().id());
        if let Some(worker) = worker {
            // If the thread panicked, the panic hook has reported it.
            let _ = worker.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.committer.visible();
        let names = state.definitions.iter().map(|table| &table.schema.name);
        to.debug_list().entries(names).finish()
    }
}

/// The time of the system's clock, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
