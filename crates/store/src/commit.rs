//! Group commit: checks transactions for conflicts, writes staged commits together, and then makes
//! them visible.
//!
//! A commit is checked and applied under one short lock. The result is the *head*, which only later
//! changes see: they begin there, because their own commits will follow it. Beginning at the visible
//! state would have most changes of a busy table conflict with the commits that wait for the disk.
//!
//! A thread that waits for its own commit becomes the leader: it writes all staged commits as one
//! group with one sync, and makes them visible. Commits that arrive meanwhile form the next group. If
//! the write fails, the head falls back to the visible state, and all commits staged on it fail.

mod activity;
mod declare;
mod disk_space;
mod notifier;
mod pending;
mod shared;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
pub use declare::DeclareError;
use disk_space::{DiskSpace, PROBE_INTERVAL};
use notifier::{Notifier, Wakeup};
use pending::Completion;
pub use pending::Pending;
pub use shared::Delivered;
pub(crate) use shared::{Shared, SharedSnapshot};

use crate::checkpoint::Checkpointer;
use crate::error::Error;
use crate::extension::OnDurable;
use crate::journal::{self, Journal, MAX_GROUP_LENGTH};
use crate::reads::{Changes, ReadSet};
use crate::record;
use crate::state::State;
use crate::stats::{Counters, Stats};
use crate::transaction::{Action, CommitParts, Transaction};

/// When a commit is acknowledged, and so how durable an acknowledged commit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// Once it survives a power failure.
    #[default]
    Commit,
    /// Once it is written, and so survives a crash of the program. It survives a power failure
    /// after at most this interval, which is clamped to the range from one millisecond to one hour.
    Interval(Duration),
    /// Once it is written. The operating system decides when it survives a power failure.
    None,
}

/// The commit queue and the state that it leads to.
pub(crate) struct Committer {
    pub(crate) checkpointer: Checkpointer,
    counts: Counters,
    visible: ArcSwap<State>,
    head: Mutex<Head>,
    /// The thread that holds this lock is the leader: it writes for all.
    journal: Mutex<Box<dyn Journal>>,
    sync: Sync,
    /// Whether written records wait for a sync within the interval.
    needs_sync: AtomicBool,
    /// Whether the synced mark has changed and waits for its own sync.
    needs_mark_sync: AtomicBool,
    disk_space: DiskSpace,
    observers: RwLock<Vec<Observer>>,
    notifier: Notifier,
    /// Whether writes never wait for a disk, so that `poll` may write on the caller's thread.
    is_instant: bool,
    /// Actions after a commit that `poll` may not run, because they may block. `None` once the
    /// store's thread has ended.
    pending_actions: Mutex<Option<Vec<Action>>>,
    /// The stream of several nodes, which replaces the journal.
    shared: Option<Shared>,
}

/// A callback that receives each commit, in order, as soon as it is visible.
pub(crate) type Observer = Box<dyn Fn(&Arc<Changes>) + Send + std::marker::Sync>;

struct Head {
    /// The state with all staged commits applied.
    state: Arc<State>,
    /// An earlier visible state, reused for the next one: it differs by a few entries only, and
    /// owns its nodes on the path to them.
    spare: Option<Arc<State>>,
    /// The changes of the last commits, the latest last.
    recent: VecDeque<Arc<Changes>>,
    /// Memory of `recent` in bytes.
    recent_bytes: usize,
    staged: Vec<Staged>,
    /// Bytes of the records after the last one with a `state`.
    unmarked_bytes: usize,
    /// How many times the head fell back, and why it last did.
    fallback_count: usize,
    last_failure: Option<Error>,
    /// The sequences that the last fallbacks returned to, in order.
    fallbacks: VecDeque<u64>,
    /// Why commits are rejected, if they are.
    failure: Option<Error>,
}

/// A commit that waits to be written.
struct Staged {
    /// Empty for a transaction that wrote no rows but read staged ones.
    record: Vec<u8>,
    /// The record's sequence, or the latest sequence that a read-only transaction saw.
    sequence: u64,
    /// The state up to this commit, present where a group may end. The commits of a group share the
    /// nodes that they copy; a state for each commit would have the next one copy every node on its
    /// path again.
    state: Option<Arc<State>>,
    sync: Sync,
    changes: Option<Arc<Changes>>,
    /// The callback of an extension's record.
    on_durable: Option<OnDurable>,
    completion: Arc<Completion>,
    after_commit: Vec<Action>,
}

/// How soon an extension's record with `Sync::Interval` is synced, unless the store has its own
/// interval.
const EXTENSION_SYNC_INTERVAL: Duration = Duration::from_millis(100);
/// Changes kept for conflict checks: a transaction that began before the oldest one conflicts.
const MAX_RECENT: usize = 1 << 13;
/// The memory limit of the recent changes in bytes, which `MAX_RECENT` small changes do not reach.
const MAX_RECENT_BYTES: usize = 1 << 22;
/// A spare state that is further away than this is dropped, because following more changes costs
/// about as much as a copy.
const MAX_FOLLOWED: u64 = 1 << 8;
/// The bytes of deleted rows that a spare state may keep in memory.
const MAX_REMOVED_BYTES: usize = 1 << 20;
/// Staged commits; more are rejected as [`Error::Busy`].
const MAX_STAGED: usize = 1 << 14;
/// The longest record of one commit. A group has room for it with its framing.
const MAX_RECORD_LENGTH: usize = MAX_GROUP_LENGTH - 4096;
/// The length of a group with more than one commit.
const MAX_SHARED_GROUP_LENGTH: usize = MAX_GROUP_LENGTH / 4;
/// The shortest sync interval: a sync takes longer than this.
const MIN_SYNC_INTERVAL: Duration = Duration::from_millis(1);
const MAX_SYNC_INTERVAL: Duration = Duration::from_hours(1);
/// The time within which the synced mark is synced. One sync a second costs a busy disk next to no
/// throughput, and after a power failure the mark misses at most the last second of acknowledged
/// commits.
const MARK_INTERVAL: Duration = Duration::from_secs(1);
/// Fallbacks that are remembered. A transaction that began before the oldest one conflicts.
const MAX_FALLBACKS: usize = 1 << 10;

impl Committer {
    pub(crate) fn new(
        checkpointer: Checkpointer,
        state: State,
        journal: Box<dyn Journal>,
        sync: Sync,
    ) -> Self {
        let state = Arc::new(state);
        let head = Head {
            state: Arc::clone(&state),
            spare: None,
            recent: VecDeque::new(),
            recent_bytes: 0,
            staged: Vec::new(),
            unmarked_bytes: 0,
            fallback_count: 0,
            last_failure: None,
            fallbacks: VecDeque::new(),
            failure: None,
        };
        Self {
            checkpointer,
            counts: Counters::default(),
            visible: ArcSwap::new(state),
            head: Mutex::new(head),
            is_instant: journal.is_instant(),
            pending_actions: Mutex::new(Some(Vec::new())),
            journal: Mutex::new(journal),
            sync,
            needs_sync: AtomicBool::new(false),
            needs_mark_sync: AtomicBool::new(false),
            disk_space: DiskSpace::default(),
            observers: RwLock::default(),
            notifier: Notifier::default(),
            shared: None,
        }
    }

    /// The state that readers see.
    pub(crate) fn visible(&self) -> Arc<State> {
        self.visible.load_full()
    }

    /// Why commits after the one with this epoch have failed, if some have.
    pub(crate) fn failure_since(&self, epoch: usize) -> Option<Error> {
        let head = self.head();
        head.last_failure.clone().filter(|_| head.fallback_count > epoch)
    }

    /// The state with all staged commits, for a transaction whose commit will follow them.
    pub(crate) fn head_state(&self) -> Arc<State> {
        Arc::clone(&self.head().state)
    }

    pub(crate) fn observe(&self, observer: Observer) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Checks a transaction against all commits since it began, and stages it.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], or the store rejects commits.
    pub(crate) fn commit(self: &Arc<Self>, transaction: Transaction) -> Result<Pending, Error> {
        if let Some(shared) = &self.shared {
            return self.commit_shared(shared, transaction);
        }
        let parts = transaction.into_parts();
        if parts.writes.is_empty() {
            return self.commit_reads(parts);
        }
        let CommitParts { definitions, base, state, applied_count, reads, writes, .. } = parts;
        let record = record::rows(&writes, &definitions.positions);
        if record.len() > MAX_RECORD_LENGTH {
            return Err(Error::TooLarge);
        }
        let completion = Arc::new(Completion::default());
        let mut head = self.open_head()?;
        let is_next = Arc::ptr_eq(&base, &head.state);
        let fits = is_next
            || head.is_ancestor(&base)
                && head.has_no_conflict(&base, |changes| {
                    reads.is_touched_by(changes) || changes.redefines(&writes)
                });
        if !fits {
            return Err(self.conflict());
        }
        // Freeing many nodes takes long, so other states are dropped after the lock.
        let mut kept = Some((state, base));
        // The transaction's own trees become the head if it has applied writes to them and no commit
        // intervened. Otherwise its writes are applied to the head. If the catalog was replaced
        // meanwhile, it has the same definitions of the tables written.
        let changes = if is_next && applied_count > 0 {
            let changes = Changes::of(&definitions, &head.state, &writes);
            let next = head.advance(record.len(), kept.take().map(|(state, _)| state));
            for write in &writes[applied_count..] {
                next.apply(&definitions, write);
            }
            changes
        } else {
            if is_next {
                // The head may be shared with this transaction alone: it owns its trees again.
                drop(kept.take());
            }
            let next = head.advance(record.len(), None);
            Changes::apply(&definitions, next, &writes)
        };
        let changes = Arc::new(changes);
        head.remember(&changes);
        head.staged.push(Staged {
            record,
            sequence: changes.sequence,
            state: None,
            sync: self.sync,
            changes: Some(changes),
            on_durable: None,
            completion: Arc::clone(&completion),
            after_commit: parts.after_commit,
        });
        drop(head);
        Ok(Pending { committer: Arc::clone(self), completion })
    }

    /// Commits a transaction that has written nothing. It completes at once if all that it has read is
    /// durable, and otherwise with the commits so far.
    fn commit_reads(self: &Arc<Self>, parts: CommitParts) -> Result<Pending, Error> {
        let CommitParts { base, reads, has_unnoted_reads, after_commit, .. } = parts;
        let completion = Arc::new(Completion::default());
        let mut head = self.open_head()?;
        if !head.is_ancestor(&base) {
            return Err(self.conflict());
        }
        let visible = self.visible.load().sequence;
        let is_durable = base.sequence <= visible
            || !has_unnoted_reads && head.is_untouched_between(visible, base.sequence, &reads);
        if is_durable {
            drop(head);
            run_actions(after_commit);
            completion.settle(Ok(base.sequence.min(visible)));
        } else {
            let sequence = head.state.sequence;
            head.staged.push(Staged {
                record: Vec::new(),
                sequence,
                state: None,
                sync: self.sync,
                changes: None,
                on_durable: None,
                completion: Arc::clone(&completion),
                after_commit,
            });
            drop(head);
        }
        Ok(Pending { committer: Arc::clone(self), completion })
    }

    fn conflict(&self) -> Error {
        self.counts.conflicts.add(1);
        Error::Conflict
    }

    /// The counters since the start.
    pub(crate) fn stats(&self) -> Stats {
        let is_cut_off = self.shared.as_ref().is_some_and(Shared::is_rejecting);
        let is_read_only = self.head().failure.is_some() || is_cut_off;
        self.counts.stats(is_read_only, self.is_full())
    }

    /// Stages an extension's record after all commits so far.
    ///
    /// # Errors
    ///
    /// The record is too long, or the store rejects commits.
    pub(crate) fn append(
        self: &Arc<Self>,
        record: Vec<u8>,
        sync: Sync,
        on_durable: OnDurable,
    ) -> Result<Pending, Error> {
        if record.len() > MAX_RECORD_LENGTH {
            return Err(Error::TooLarge);
        }
        if let Some(shared) = &self.shared {
            return self.append_shared(shared, &record, on_durable);
        }
        let completion = Arc::new(Completion::default());
        let mut head = self.open_head()?;
        let sequence = head.advance(record.len(), None).sequence;
        head.remember(&Arc::new(Changes::empty(sequence)));
        head.staged.push(Staged {
            record,
            sequence,
            state: None,
            sync,
            changes: None,
            on_durable: Some(on_durable),
            completion: Arc::clone(&completion),
            after_commit: Vec::new(),
        });
        drop(head);
        Ok(Pending { committer: Arc::clone(self), completion })
    }

    /// Runs the store's thread until [`Committer::close`]: writes commits that no thread waits for,
    /// syncs after an interval, and starts checkpoints.
    pub(crate) fn run_worker(self: &Arc<Self>) {
        let interval = match self.sync {
            Sync::Interval(interval) => interval.clamp(MIN_SYNC_INTERVAL, MAX_SYNC_INTERVAL),
            Sync::Commit | Sync::None => EXTENSION_SYNC_INTERVAL,
        };
        let mut sync_due: Option<Instant> = None;
        let mut mark_due: Option<Instant> = None;
        let mut disk_check_due = self.is_full().then(|| Instant::now() + PROBE_INTERVAL);
        let mut checkpoint = None;
        loop {
            let next = sync_due.into_iter().chain(mark_due).chain(disk_check_due).min();
            let wait = next
                .map_or(MAX_SYNC_INTERVAL, |next| next.saturating_duration_since(Instant::now()));
            let wakeup = self.notifier.wait(wait);
            if wakeup != Wakeup::Deadline && !self.head().staged.is_empty() {
                run_actions(self.write_next_group(self.journal()));
            }
            let pending_actions = self.pending_actions().as_mut().map(std::mem::take);
            run_actions(pending_actions.unwrap_or_default());
            if sync_due.is_some_and(|sync_due| Instant::now() >= sync_due) {
                sync_due = None;
                self.sync_now();
            }
            if sync_due.is_none() && self.needs_sync.load(Ordering::Acquire) {
                sync_due = Some(Instant::now() + interval);
            }
            if mark_due.is_some_and(|sync_due| Instant::now() >= sync_due) {
                mark_due = None;
                self.sync_mark();
            }
            if mark_due.is_none() && self.needs_mark_sync.load(Ordering::Acquire) {
                mark_due = Some(Instant::now() + MARK_INTERVAL);
            }
            if disk_check_due.is_some_and(|sync_due| Instant::now() >= sync_due) {
                disk_check_due = None;
                self.probe_disk_space();
            }
            if disk_check_due.is_none() && self.is_full() {
                disk_check_due = Some(Instant::now() + PROBE_INTERVAL);
            }
            if wakeup == Wakeup::Close && self.head().staged.is_empty() {
                if let Some(shared) = &self.shared {
                    shared.cut_off(Error::Closed, &Error::Closed);
                }
                let pending_actions = self.pending_actions().take();
                run_actions(pending_actions.unwrap_or_default());
                self.checkpointer.cancel();
                // The thread uses the folder too. A panic in it has been reported.
                let _ = checkpoint.map(JoinHandle::join);
                // Closing syncs the journal whatever the sync policy; a disk failure has been
                // reported.
                let _ = self.journal().close();
                return;
            }
            checkpoint = self.checkpoint_if_due().or(checkpoint);
        }
    }

    /// Rejects new commits. Staged ones are still written.
    pub(crate) fn close(&self) {
        self.head().failure.get_or_insert(Error::Closed);
        self.notifier.notify(Wakeup::Close);
    }

    #[cfg(test)]
    pub(crate) fn needs_sync(&self) -> bool {
        // Waits for a sync in progress.
        let journal = self.journal();
        let is_needed = self.needs_sync.load(Ordering::Acquire);
        drop(journal);
        self.wake_next_leader();
        is_needed
    }

    fn sync_now(&self) {
        let mut journal = self.journal();
        self.needs_sync.store(false, Ordering::Release);
        let begun = Instant::now();
        match journal.sync() {
            Ok(_) => {
                self.counts.count_sync(begun);
                self.needs_mark_sync.store(true, Ordering::Release);
            }
            Err(error) => self.fall_back(Vec::new(), &commit_error(&error)),
        }
        drop(journal);
        self.wake_next_leader();
    }

    /// Syncs the synced mark without the journal's lock.
    fn sync_mark(&self) {
        let mut journal = self.journal();
        self.needs_mark_sync.store(false, Ordering::Release);
        let mark = journal.unsynced_mark();
        drop(journal);
        self.wake_next_leader();
        // A failed sync is harmless: an older mark is valid too.
        let _ = mark.map(|mark| mark.sync_data());
    }

    pub(crate) fn count_obsolete(&self, bytes: usize) {
        self.checkpointer.add_growth(bytes);
        if self.checkpointer.is_due() {
            self.notifier.notify(Wakeup::Work);
        }
    }

    /// Starts a checkpoint on a separate thread if one is due, and removes the journal files that
    /// it replaces.
    fn checkpoint_if_due(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        if !self.checkpointer.start_if_due() {
            return None;
        }
        let mut journal = self.journal();
        // The visible state is complete: no write runs while this thread holds the journal.
        let state = self.visible();
        // A panic of the extension must not end this thread or later checkpoints.
        let extension = catch_panic(|| Ok(self.checkpointer.extension_snapshot()));
        let writer =
            extension.and_then(|extension| Ok((extension, journal.snapshot(state.sequence)?)));
        drop(journal);
        self.wake_next_leader();
        let committer = Arc::clone(self);
        let write = move || {
            let written = catch_panic(|| {
                let (extension, mut writer) = writer?;
                committer.checkpointer.write(&state, extension, &mut *writer)?;
                writer.finish()?;
                let compaction = committer.journal().compaction(state.sequence);
                // Waiting commits go on before the files are removed.
                committer.wake_next_leader();
                compaction?()
            });
            committer.wake_next_leader();
            committer.checkpointer.finish(written.err());
        };
        let thread = thread::Builder::new().name("store image".to_owned());
        let spawned = thread.spawn(write);
        spawned
            .inspect_err(|error| {
                self.checkpointer.finish(Some(journal::Error::Refused(format!(
                    "cannot start a thread: {error}"
                ))));
            })
            .ok()
    }

    /// Writes the next group and makes it visible. Wakes another leader if commits were staged
    /// meanwhile. Returns the group's `after_commit` actions, which may block.
    fn write_next_group(&self, mut journal: MutexGuard<'_, Box<dyn Journal>>) -> Vec<Action> {
        let (mut group, state) = self.head().next_group();
        for staged in &group {
            staged.completion.status().is_claimed = true;
        }
        let bytes: usize = group.iter().map(|staged| staged.record.len()).sum();
        let is_durable = group.iter().any(|staged| staged.sync == Sync::Commit);
        let needs_later_sync = group.iter().any(|staged| matches!(staged.sync, Sync::Interval(_)));
        let mut records = group.iter().filter(|staged| !staged.record.is_empty());
        // Every commit of the group must get an outcome, even after a panic.
        let written = catch_panic(|| {
            self.disk_space.write_deferred(&mut **journal)?;
            records.try_for_each(|staged| journal.append(&staged.record).map(drop))?;
            let begun = Instant::now();
            let written = journal.write(is_durable)?;
            if is_durable {
                self.counts.count_sync(begun);
            }
            Ok(written)
        });
        if needs_later_sync && !is_durable && !self.needs_sync.swap(true, Ordering::AcqRel) {
            self.notifier.notify(Wakeup::Work);
        }
        if is_durable && !self.is_instant && !self.needs_mark_sync.swap(true, Ordering::AcqRel) {
            self.notifier.notify(Wakeup::Deadline);
        }
        let (done, old) = match written {
            Ok(_) => {
                if bytes > 0 {
                    self.disk_space.set_full(false);
                }
                self.checkpointer.add_growth(bytes);
                let commits = group.iter().filter(|staged| staged.changes.is_some()).count();
                self.counts.count_group(commits, bytes);
                let old = self.publish(&mut group, state);
                (group, Some(old))
            }
            Err(error) => {
                self.fall_back(group, &commit_error(&error));
                (Vec::new(), None)
            }
        };
        drop(journal);
        let _dropped = old.map(|old| self.head().keep_spare(old));
        // Waking many threads takes about the time of a sync, during which the next leader writes.
        self.wake_next_leader();
        if self.checkpointer.is_due() {
            self.notifier.notify(Wakeup::Work);
        }
        let mut after_commit = Vec::new();
        for staged in done {
            staged.completion.settle(Ok(staged.sequence));
            after_commit.extend(staged.after_commit);
        }
        after_commit
    }

    /// Runs actions on the store's thread.
    fn enqueue_actions(&self, after_commit: Vec<Action>) {
        if after_commit.is_empty() {
            return;
        }
        let mut pending_actions = self.pending_actions();
        if let Some(pending_actions) = &mut *pending_actions {
            pending_actions.extend(after_commit);
            self.notifier.notify(Wakeup::Work);
        } else {
            // The store is closed and its thread has ended.
            drop(pending_actions);
            run_actions(after_commit);
        }
    }

    /// Makes a state visible and returns the one before, which the caller drops outside of the lock
    /// because that may take long.
    fn publish(&self, group: &mut [Staged], state: Arc<State>) -> Arc<State> {
        let old = self.visible.swap(state);
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        for staged in group {
            if let Some(changes) = &staged.changes {
                for observer in observers.iter() {
                    // A panicking observer must not stop the acknowledgment.
                    let _ = catch_unwind(AssertUnwindSafe(|| observer(changes)));
                }
            }
            if let Some(on_durable) = staged.on_durable.take() {
                let sequence = staged.sequence;
                // The callback may panic too.
                let _ = catch_unwind(AssertUnwindSafe(|| on_durable(sequence)));
            }
        }
        old
    }

    /// Rolls the head back to the visible state and fails all staged commits.
    fn fall_back(&self, group: Vec<Staged>, error: &Error) {
        let visible = self.visible();
        let mut head = self.head();
        let later = std::mem::take(&mut head.staged);
        head.unmarked_bytes = 0;
        head.spare = None;
        while let Some(last) =
            head.recent.pop_back_if(|changes| changes.sequence > visible.sequence)
        {
            head.recent_bytes -= last.bytes();
        }
        if head.fallbacks.len() == MAX_FALLBACKS {
            head.fallbacks.pop_front();
        }
        head.fallbacks.push_back(visible.sequence);
        head.fallback_count += 1;
        head.last_failure = Some(error.clone());
        match error {
            Error::Broken(_) => head.failure = Some(error.clone()),
            Error::Full => {
                self.disk_space.set_full(true);
                self.notifier.notify(Wakeup::Deadline);
            }
            _ => {}
        }
        let mut state = State::clone(&visible);
        state.epoch = head.fallback_count;
        head.state = Arc::new(state);
        // Unchanged data with a new epoch: a transaction that begins with it has missed no
        // fallback.
        self.visible.store(Arc::clone(&head.state));
        drop(head);
        for staged in group.into_iter().chain(later) {
            staged.completion.settle(Err(error.clone()));
        }
    }

    /// Wakes a waiting thread, or the store's own, to write the commits that were staged while the
    /// caller held the journal. Every holder calls this after it released the lock.
    fn wake_next_leader(&self) {
        let head = self.head();
        if head.staged.is_empty() {
            return;
        }
        for staged in &head.staged {
            let mut status = staged.completion.status();
            if status.is_waiting {
                status.is_asked = true;
                staged.completion.changed.notify_one();
                return;
            }
        }
        self.notifier.notify(Wakeup::Work);
    }

    /// Locks the head to stage one more commit, or fails if the store rejects commits.
    fn open_head(&self) -> Result<MutexGuard<'_, Head>, Error> {
        let head = self.head();
        if let Some(failure) = &head.failure {
            return Err(failure.clone());
        }
        if head.staged.len() >= MAX_STAGED {
            return Err(Error::Busy);
        }
        Ok(head)
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_actions(&self) -> MutexGuard<'_, Option<Vec<Action>>> {
        self.pending_actions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Box<dyn Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while a leader writes.
    fn try_journal(&self) -> Option<MutexGuard<'_, Box<dyn Journal>>> {
        match self.journal.try_lock() {
            Ok(journal) => Some(journal),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Runs a write and turns a panic into an error.
fn catch_panic<T>(write: impl FnOnce() -> Result<T, journal::Error>) -> Result<T, journal::Error> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
        let why = "a write panicked; the log has the message".to_owned();
        Err(journal::Error::Broken { why })
    })
}

/// The error that a program receives for a failed write.
fn commit_error(error: &journal::Error) -> Error {
    match error {
        journal::Error::Full { .. } => Error::Full,
        journal::Error::Broken { why } => Error::Broken(why.as_str().into()),
        other => Error::Broken(other.to_string().into()),
    }
}

impl Head {
    /// Advances to the next sequence, for a record of this length. Without `new_state`, the caller
    /// changes a copy of the last state.
    fn advance(&mut self, bytes: usize, new_state: Option<Arc<State>>) -> &mut State {
        let sequence = self.state.sequence + 1;
        if self.unmarked_bytes + bytes > MAX_SHARED_GROUP_LENGTH
            && let Some(last) = self.staged.last_mut()
        {
            // The group would be too long with this record: it ends before it.
            last.state = Some(Arc::clone(&self.state));
            self.unmarked_bytes = 0;
        }
        self.unmarked_bytes += bytes;
        match new_state {
            Some(new_state) => self.state = new_state,
            None if Arc::get_mut(&mut self.state).is_none() => self.use_spare(),
            None => {}
        }
        let state = Arc::make_mut(&mut self.state);
        (state.sequence, state.epoch) = (sequence, self.fallback_count);
        state
    }

    /// Remembers the changes of the head's last record for conflict checks.
    fn remember(&mut self, changes: &Arc<Changes>) {
        let bytes = changes.bytes();
        while self.recent.len() == MAX_RECENT || self.recent_bytes + bytes > MAX_RECENT_BYTES {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.bytes();
        }
        self.recent_bytes += bytes;
        self.recent.push_back(Arc::clone(changes));
    }

    /// Replaces a head that is shared, and would be copied, by the spare state.
    fn use_spare(&mut self) {
        let Some(mut spare) = self.spare.take() else { return };
        let Some(first) = self.few_changes_since(spare.sequence) else { return };
        // A reader still holds the spare state.
        let Some(state) = Arc::get_mut(&mut spare) else { return };
        let changes = self.recent.range(first..);
        state.follow(&self.state, changes.flat_map(|changes| changes.single_rows()));
        self.state = spare;
    }

    /// Keeps a state that is no longer visible as the spare. Returns the states to drop.
    fn keep_spare(&mut self, old: Arc<State>) -> [Option<Arc<State>>; 2] {
        let is_near =
            old.epoch == self.fallback_count && self.few_changes_since(old.sequence).is_some();
        let (kept, dropped) = if is_near { (Some(old), None) } else { (None, Some(old)) };
        [std::mem::replace(&mut self.spare, kept), dropped]
    }

    /// The index of the first change after a sequence, if the changes since are few and small.
    /// Following many changes would cost about the same as a copy, and a spare state would keep
    /// large deleted rows in memory.
    fn few_changes_since(&self, sequence: u64) -> Option<usize> {
        let count = self.state.sequence.checked_sub(sequence)?;
        let first = self.recent.len().checked_sub(usize::try_from(count).ok()?)?;
        let mut removed_bytes = 0;
        let is_small = |changes: &Arc<Changes>| {
            removed_bytes += changes.removed_bytes();
            changes.has_single_rows() && removed_bytes <= MAX_REMOVED_BYTES
        };
        (count <= MAX_FOLLOWED && self.recent.range(first..).all(is_small)).then_some(first)
    }

    /// Takes the oldest staged commits, at most one group, and the state that includes them.
    fn next_group(&mut self) -> (Vec<Staged>, Arc<State>) {
        let mut marked = self.staged.iter_mut().enumerate();
        let end = marked.find_map(|(end, staged)| Some((end, staged.state.take()?)));
        if let Some((end, state)) = end {
            let later = self.staged.split_off(end + 1);
            return (std::mem::replace(&mut self.staged, later), state);
        }
        self.unmarked_bytes = 0;
        (std::mem::take(&mut self.staged), Arc::clone(&self.state))
    }

    /// Whether a state is an ancestor of the head. A state that a fallback dropped is not.
    fn is_ancestor(&self, base: &State) -> bool {
        let missed = self.fallback_count - base.epoch;
        let first = self.fallbacks.len().checked_sub(missed);
        first.is_some_and(|first| {
            self.fallbacks.get(first).is_none_or(|fallback| base.sequence <= *fallback)
        })
    }

    /// Whether no commit after `first`, up to `last`, may have changed what was read, or a definition
    /// of a table.
    fn is_untouched_between(&self, first: u64, last: u64, reads: &ReadSet) -> bool {
        let oldest = self.state.sequence - self.recent.len() as u64;
        first >= oldest
            && self
                .recent
                .iter()
                .rev()
                .skip_while(|changes| changes.sequence > last)
                .take_while(|changes| changes.sequence > first)
                .all(|changes| !changes.has_redefined() && !reads.is_touched_by(changes))
    }

    /// Whether no commit since `base` satisfies `touching`.
    fn has_no_conflict(&self, base: &State, touching: impl Fn(&Changes) -> bool) -> bool {
        let oldest = self.state.sequence - self.recent.len() as u64;
        base.sequence >= oldest
            && self
                .recent
                .iter()
                .rev()
                .take_while(|changes| changes.sequence > base.sequence)
                .all(|changes| !touching(changes))
    }
}

/// Runs actions. A panic in one stops no later one: the commit has succeeded.
fn run_actions(actions: Vec<Action>) {
    for action in actions {
        // The program's panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(action));
    }
}

#[cfg(test)]
mod fallback_tests;
#[cfg(test)]
mod tests;
