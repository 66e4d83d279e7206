//! Decides in which order changes become true: checked against those before them, written together, and only then seen.
//!
//! A commit is checked and applied under one short lock, which makes the *head*; nobody but later commits sees it.
//! Whoever waits for its own commit writes all that are staged as one group, with one sync, and makes them visible; those
//! who come meanwhile are the next group. If that cannot be written, the head falls back to what is visible, and all
//! that were staged on it have failed.

mod room;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use room::{PROBE_INTERVAL, Room};

use crate::counts::{Counts, Figures};
use crate::error::Error;
use crate::guest::Then;
use crate::image::Kept;
use crate::journal::{self, Journal, LONGEST_GROUP};
use crate::reads::Changes;
use crate::record;
use crate::state::{Definitions, State};
use crate::transaction::{Parts, Transaction};

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// When it outlives the machine.
    #[default]
    Commit,
    /// When it is written, and so outlives the program; it outlives the machine within this time, which is taken for a
    /// millisecond if it is less, and for an hour if it is more.
    Interval(Duration),
    /// When it is written. The system decides when it outlives the machine.
    None,
}

/// Where commits meet.
pub(crate) struct Commits {
    pub(crate) definitions: Definitions,
    /// Beside the tables of the program, and about them.
    pub(crate) kept: Kept,
    counts: Counts,
    visible: ArcSwap<State>,
    head: Mutex<Head>,
    /// Whoever holds it writes for all.
    journal: Mutex<Box<dyn Journal>>,
    sync: Sync,
    /// Something is written that must outlive the machine before long.
    owes_sync: AtomicBool,
    /// The synced mark has changed and is to be synced before long.
    owes_mark: AtomicBool,
    room: Room,
    observers: RwLock<Vec<Observer>>,
    bell: Bell,
    /// No write waits for a disk: whoever polls may do it.
    is_instant: bool,
    /// What those had to leave undone who may not block. `None`: nobody comes for it any more.
    left: Mutex<Option<Vec<Action>>>,
}

/// Is told of each commit, in their order, as soon as it can be seen.
pub(crate) type Observer = Box<dyn Fn(&Arc<Changes>) + Send + std::marker::Sync>;

/// What a program wants done when its change is durable.
pub(crate) type Action = Box<dyn FnOnce() + Send>;

struct Head {
    /// With all that is staged.
    state: Arc<State>,
    /// One that was visible before, for the next to be made of: but for a few entries it has what that has, and nodes of
    /// its own on the way to them.
    spare: Option<Arc<State>>,
    /// What the last commits changed, the youngest last.
    recent: VecDeque<Arc<Changes>>,
    /// Bytes of these.
    recent_bytes: usize,
    staged: Vec<Staged>,
    /// Bytes of those behind the last that has a state.
    unmarked: usize,
    /// How often the head fell back.
    fallen: usize,
    /// For the last of these times, in order: to which sequence.
    fallbacks: VecDeque<u64>,
    /// Nothing more is taken.
    failure: Option<Error>,
}

/// A commit that is not yet written.
struct Staged {
    /// Empty for a transaction that wrote nothing, but saw what is not written yet.
    record: Vec<u8>,
    /// Of its record, or of the last it saw.
    sequence: u64,
    /// With all up to this one, where a group may end. If each had one, the next commit would copy every node on its
    /// way; so the commits of a group share what they copy.
    state: Option<Arc<State>>,
    sync: Sync,
    changes: Option<Arc<Changes>>,
    /// Of a guest's record.
    then: Option<Then>,
    slot: Arc<Slot>,
    after: Vec<Action>,
}

/// What becomes of one commit.
#[derive(Default)]
struct Slot {
    stand: Mutex<Stand>,
    changed: Condvar,
}

#[derive(Default)]
struct Stand {
    outcome: Option<Result<u64, Error>>,
    /// Whoever took it to write it settles it.
    is_taken: bool,
    /// Its thread waits.
    is_waiting: bool,
    /// Nobody writes, and its thread is asked to.
    is_called: bool,
    waker: Option<Waker>,
}

/// Calls the thread that writes for those who do not wait for it with a thread of their own.
#[derive(Default)]
struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Rung {
    #[default]
    No,
    Yes,
    /// Nothing is to be written now; a deadline has come up.
    Later,
    /// There is nothing more to come.
    Over,
}

/// A commit under way. Dropped, it is made all the same.
pub struct Pending {
    commits: Arc<Commits>,
    slot: Arc<Slot>,
}

/// A guest's record that is to outlive the machine before long does after this time, unless the store has its own.
const GUESTS_INTERVAL: Duration = Duration::from_millis(100);
/// Changes that can be compared with: a transaction that began before them is a conflict.
const MOST_RECENT: usize = 1 << 13;
/// The same in bytes, of which so many small ones have less.
const MOST_RECENT_BYTES: usize = 1 << 22;
/// A spare state follows no more of them at once.
const MOST_FOLLOWED: u64 = 1 << 8;
/// It keeps no more bytes of rows that are gone.
const MOST_GONE: usize = 1 << 20;
/// Commits that wait to be written.
const MOST_STAGED: usize = 1 << 14;
/// One commit, in bytes. A group has room for it, however it is framed.
const LONGEST_RECORD: usize = LONGEST_GROUP - 4096;
/// Commits that are written together, in bytes, if there are several.
const LONGEST_TOGETHER: usize = LONGEST_GROUP / 4;
/// A sync takes longer than this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
const LONGEST_INTERVAL: Duration = Duration::from_hours(1);
/// The synced mark is synced within this time. One sync a second costs a busy disk nothing to speak of, and after a power
/// failure no more than a second of acknowledged commits is unknown to the mark.
const MARK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a head that fell back is remembered. Nobody keeps a transaction open for so long.
const MOST_FALLBACKS: usize = 1 << 10;

impl Commits {
    pub(crate) fn new(
        definitions: Definitions,
        kept: Kept,
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
            unmarked: 0,
            fallen: 0,
            fallbacks: VecDeque::new(),
            failure: None,
        };
        Self {
            definitions,
            kept,
            counts: Counts::default(),
            visible: ArcSwap::new(state),
            head: Mutex::new(head),
            is_instant: journal.is_instant(),
            left: Mutex::new(Some(Vec::new())),
            journal: Mutex::new(journal),
            sync,
            owes_sync: AtomicBool::new(false),
            owes_mark: AtomicBool::new(false),
            room: Room::default(),
            observers: RwLock::default(),
            bell: Bell::default(),
        }
    }

    /// What everybody may see.
    pub(crate) fn visible(&self) -> Arc<State> {
        self.visible.load_full()
    }

    /// What is not written yet is in it too: for a transaction that is tried again, whose own commit comes behind.
    pub(crate) fn head_state(&self) -> Arc<State> {
        Arc::clone(&self.head().state)
    }

    pub(crate) fn observe(&self, observer: Observer) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Checks a transaction against all commits since it began, and takes it among those to be written.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], or nothing is taken any more.
    pub(crate) fn commit(self: &Arc<Self>, transaction: Transaction) -> Result<Pending, Error> {
        let Parts { base, own, reads, writes, after } = transaction.into_parts();
        let mut record = Vec::new();
        if !writes.is_empty() {
            record = record::rows(&writes, &self.kept.places);
        }
        if record.len() > LONGEST_RECORD {
            return Err(Error::TooLarge);
        }
        let slot = Arc::new(Slot::default());
        let mut head = self.head_for_more()?;
        if writes.is_empty() {
            let changes = None;
            if base.sequence <= self.visible.load().sequence && head.has(&base) {
                drop(head);
                run(after);
                slot.settle(Ok(base.sequence));
            } else if head.has(&base) {
                let (sequence, state) = (head.state.sequence, None);
                let (sync, then, slot) = (self.sync, None, Arc::clone(&slot));
                head.staged.push(Staged {
                    record,
                    sequence,
                    state,
                    sync,
                    changes,
                    then,
                    slot,
                    after,
                });
            } else {
                return Err(self.conflict());
            }
            return Ok(Pending { commits: Arc::clone(self), slot });
        }
        let is_next = Arc::ptr_eq(&base, &head.state);
        let fits = is_next
            || head.has(&base) && head.is_clear(&base, |changes| reads.is_touched_by(changes));
        if !fits {
            return Err(self.conflict());
        }
        // What was put into the change's own trees counts if nobody came between; else it is put into the head's.
        let changes = if let Some(own) = own.filter(|_| is_next) {
            let changes = Changes::of(&self.definitions, &head.state, &writes);
            head.advance(record.len(), Some(own));
            changes
        } else {
            let next = head.advance(record.len(), None);
            Changes::made(&self.definitions, next, &writes)
        };
        let changes = Arc::new(changes);
        head.note(&changes);
        let (sequence, state) = (changes.sequence, None);
        let (changes, then, own) = (Some(changes), None, Arc::clone(&slot));
        let sync = self.sync;
        head.staged.push(Staged { record, sequence, state, sync, changes, then, slot: own, after });
        drop(head);
        Ok(Pending { commits: Arc::clone(self), slot })
    }

    fn conflict(&self) -> Error {
        self.counts.conflicts.add(1);
        Error::Conflict
    }

    /// What it has done.
    pub(crate) fn figures(&self) -> Figures {
        let is_read_only = self.head().failure.is_some();
        self.counts.figures(is_read_only, self.is_full())
    }

    /// Takes a guest's record among those to be written, behind all commits until now.
    ///
    /// # Errors
    ///
    /// It is too long, or nothing is taken any more.
    pub(crate) fn keep(
        self: &Arc<Self>,
        record: Vec<u8>,
        sync: Sync,
        then: Then,
    ) -> Result<Pending, Error> {
        if record.len() > LONGEST_RECORD {
            return Err(Error::TooLarge);
        }
        let slot = Arc::new(Slot::default());
        let mut head = self.head_for_more()?;
        let (sequence, state) = (head.advance(record.len(), None).sequence, None);
        head.note(&Arc::new(Changes::none(sequence)));
        let (then, own) = (Some(then), Arc::clone(&slot));
        let (changes, after) = (None, Vec::new());
        head.staged.push(Staged { record, sequence, state, sync, changes, then, slot: own, after });
        drop(head);
        Ok(Pending { commits: Arc::clone(self), slot })
    }

    /// Writes for whoever does not wait with a thread, and syncs what is to be synced after a time, until
    /// [`Commits::close`].
    pub(crate) fn attend(self: &Arc<Self>) {
        let interval = match self.sync {
            Sync::Interval(interval) => interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL),
            Sync::Commit | Sync::None => GUESTS_INTERVAL,
        };
        let mut due: Option<Instant> = None;
        let mut mark_due: Option<Instant> = None;
        let mut room_due = self.is_full().then(|| Instant::now() + PROBE_INTERVAL);
        let mut image = None;
        loop {
            let next = due.into_iter().chain(mark_due).chain(room_due).min();
            let wait = next
                .map_or(LONGEST_INTERVAL, |next| next.saturating_duration_since(Instant::now()));
            let rung = self.bell.wait(wait);
            if rung != Rung::Later && !self.head().staged.is_empty() {
                run(self.lead(self.journal()));
            }
            let left = self.left().as_mut().map(std::mem::take);
            run(left.unwrap_or_default());
            if due.is_some_and(|due| Instant::now() >= due) {
                due = None;
                self.sync_now();
            }
            if due.is_none() && self.owes_sync.load(Ordering::Acquire) {
                due = Some(Instant::now() + interval);
            }
            if mark_due.is_some_and(|due| Instant::now() >= due) {
                mark_due = None;
                self.sync_mark();
            }
            if mark_due.is_none() && self.owes_mark.load(Ordering::Acquire) {
                mark_due = Some(Instant::now() + MARK_INTERVAL);
            }
            if room_due.is_some_and(|due| Instant::now() >= due) {
                room_due = None;
                self.look_for_room();
            }
            if room_due.is_none() && self.is_full() {
                room_due = Some(Instant::now() + PROBE_INTERVAL);
            }
            if rung == Rung::Over && self.head().staged.is_empty() {
                let left = self.left().take();
                run(left.unwrap_or_default());
                self.kept.give_up();
                // It holds the folder too. One that panicked has told of it.
                let _ = image.map(JoinHandle::join);
                // What is left is made durable however that was wished; a disk that failed has been told of.
                let _ = self.journal().close();
                return;
            }
            image = self.write_image_if_due().or(image);
        }
    }

    /// Takes nothing more. What is staged is still written.
    pub(crate) fn close(&self) {
        self.head().failure.get_or_insert(Error::Closed);
        self.bell.ring(Rung::Over);
    }

    #[cfg(test)]
    pub(crate) fn owes_sync(&self) -> bool {
        // One that is under way is waited for.
        let journal = self.journal();
        let owes = self.owes_sync.load(Ordering::Acquire);
        drop(journal);
        self.call_next();
        owes
    }

    fn sync_now(&self) {
        let mut journal = self.journal();
        self.owes_sync.store(false, Ordering::Release);
        let begun = Instant::now();
        match journal.sync() {
            Ok(_) => {
                self.counts.synced(begun);
                self.owes_mark.store(true, Ordering::Release);
            }
            Err(error) => self.fall_back(Vec::new(), &told(&error)),
        }
        drop(journal);
        self.call_next();
    }

    /// Makes the synced mark durable, while others may go on writing.
    fn sync_mark(&self) {
        let mut journal = self.journal();
        self.owes_mark.store(false, Ordering::Release);
        let mark = journal.unsynced_mark();
        drop(journal);
        self.call_next();
        // A mark that cannot be synced is an older one after a power failure.
        let _ = mark.map(|mark| mark.sync_data());
    }

    pub(crate) fn count_needless(&self, bytes: usize) {
        self.kept.grown(bytes);
        if self.kept.is_due() {
            self.bell.ring(Rung::Yes);
        }
    }

    /// Has all tables written beside the journal, if it has grown enough, and what that makes needless removed.
    fn write_image_if_due(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        if !self.kept.begin_if_due() {
            return None;
        }
        let mut journal = self.journal();
        // Nothing is written while the journal is held: this is all of it.
        let state = self.visible();
        // A guest that panics ends neither this thread nor all images to come.
        let guest = caught(|| Ok(self.kept.guest_image()));
        let writer = guest.and_then(|guest| Ok((guest, journal.snapshot(state.sequence)?)));
        drop(journal);
        self.call_next();
        let own = Arc::clone(self);
        let write = move || {
            let written = caught(|| {
                let (guest, mut writer) = writer?;
                own.kept.write(&own.definitions, &state, guest, &mut *writer)?;
                writer.finish()?;
                let compaction = own.journal().compaction(state.sequence);
                // Whoever came meanwhile does not wait until the files are removed.
                own.call_next();
                compaction?()
            });
            own.call_next();
            own.kept.end(written.err());
        };
        let thread = thread::Builder::new().name("store image".to_owned());
        let spawned = thread.spawn(write);
        spawned
            .inspect_err(|error| {
                self.kept.end(Some(journal::Error::Refused(format!("no thread: {error}"))));
            })
            .ok()
    }

    /// Writes all that is staged, and makes it visible. Has somebody else go on if there is more by then. Returns what is
    /// to be done behind that, which may block.
    fn lead(&self, mut journal: MutexGuard<'_, Box<dyn Journal>>) -> Vec<Action> {
        let (mut group, state) = self.head().next_group();
        for staged in &group {
            staged.slot.stand().is_taken = true;
        }
        let bytes: usize = group.iter().map(|staged| staged.record.len()).sum();
        let is_durable = group.iter().any(|staged| staged.sync == Sync::Commit);
        let is_owed = group.iter().any(|staged| matches!(staged.sync, Sync::Interval(_)));
        let mut records = group.iter().filter(|staged| !staged.record.is_empty());
        // Whatever happens, those whose records these are must hear of it.
        let written = caught(|| {
            self.room.write_owed(&mut **journal)?;
            records.try_for_each(|staged| journal.append(&staged.record).map(drop))?;
            let begun = Instant::now();
            let written = journal.write(is_durable)?;
            if is_durable {
                self.counts.synced(begun);
            }
            Ok(written)
        });
        if is_owed && !is_durable && !self.owes_sync.swap(true, Ordering::AcqRel) {
            self.bell.ring(Rung::Yes);
        }
        if is_durable && !self.is_instant && !self.owes_mark.swap(true, Ordering::AcqRel) {
            self.bell.ring(Rung::Later);
        }
        let (done, old) = match written {
            Ok(_) => {
                if bytes > 0 {
                    self.room.set_full(false);
                }
                self.kept.grown(bytes);
                let commits = group.iter().filter(|staged| staged.changes.is_some()).count();
                self.counts.wrote(commits, bytes);
                let old = self.publish(&mut group, state);
                (group, Some(old))
            }
            Err(error) => {
                self.fall_back(group, &told(&error));
                (Vec::new(), None)
            }
        };
        drop(journal);
        let _needless = old.map(|old| self.head().spare(old));
        // Waking many takes as long as a sync: the next group is written meanwhile.
        self.call_next();
        if self.kept.is_due() {
            self.bell.ring(Rung::Yes);
        }
        let mut after = Vec::new();
        for staged in done {
            staged.slot.settle(Ok(staged.sequence));
            after.extend(staged.after);
        }
        after
    }

    /// Has the store's own thread do this.
    fn leave(&self, after: Vec<Action>) {
        if after.is_empty() {
            return;
        }
        let mut left = self.left();
        if let Some(left) = &mut *left {
            left.extend(after);
            self.bell.ring(Rung::Yes);
        } else {
            // It is the end of the program, and that thread has gone.
            drop(left);
            run(after);
        }
    }

    /// Returns what was visible before: giving it up may take a while.
    fn publish(&self, group: &mut [Staged], state: Arc<State>) -> Arc<State> {
        let old = self.visible.swap(state);
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        for staged in group {
            if let Some(changes) = &staged.changes {
                for observer in observers.iter() {
                    // One that panics keeps nobody from hearing that it is done.
                    let _ = catch_unwind(AssertUnwindSafe(|| observer(changes)));
                }
            }
            if let Some(then) = staged.then.take() {
                let sequence = staged.sequence;
                // As above.
                let _ = catch_unwind(AssertUnwindSafe(|| then(sequence)));
            }
        }
        old
    }

    /// Nothing that was staged has happened.
    fn fall_back(&self, group: Vec<Staged>, error: &Error) {
        let visible = self.visible();
        let mut head = self.head();
        let later = std::mem::take(&mut head.staged);
        (head.unmarked, head.spare) = (0, None);
        while let Some(last) =
            head.recent.pop_back_if(|changes| changes.sequence > visible.sequence)
        {
            head.recent_bytes -= last.bytes();
        }
        if head.fallbacks.len() == MOST_FALLBACKS {
            head.fallbacks.pop_front();
        }
        head.fallbacks.push_back(visible.sequence);
        head.fallen += 1;
        match error {
            Error::Broken(_) => head.failure = Some(error.clone()),
            Error::Full => {
                self.room.set_full(true);
                self.bell.ring(Rung::Later);
            }
            _ => {}
        }
        let mut state = State::clone(&visible);
        state.epoch = head.fallen;
        head.state = Arc::new(state);
        // The same as before, but however often the head falls, whoever begins with it has not missed that.
        self.visible.store(Arc::clone(&head.state));
        drop(head);
        for staged in group.into_iter().chain(later) {
            staged.slot.settle(Err(error.clone()));
        }
    }

    /// Has somebody write what was staged while another had the journal: whoever gives it back calls this.
    fn call_next(&self) {
        let head = self.head();
        if head.staged.is_empty() {
            return;
        }
        for staged in &head.staged {
            let mut stand = staged.slot.stand();
            if stand.is_waiting {
                stand.is_called = true;
                staged.slot.changed.notify_one();
                return;
            }
        }
        self.bell.ring(Rung::Yes);
    }

    /// The head, if it takes more.
    fn head_for_more(&self) -> Result<MutexGuard<'_, Head>, Error> {
        let head = self.head();
        if let Some(failure) = &head.failure {
            return Err(failure.clone());
        }
        if head.staged.len() >= MOST_STAGED {
            return Err(Error::Busy);
        }
        Ok(head)
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, Option<Vec<Action>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Box<dyn Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: somebody writes.
    fn try_journal(&self) -> Option<MutexGuard<'_, Box<dyn Journal>>> {
        match self.journal.try_lock() {
            Ok(journal) => Some(journal),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What came of writing, which may panic.
fn caught<T>(write: impl FnOnce() -> Result<T, journal::Error>) -> Result<T, journal::Error> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
        let why = "writing panicked; what it said is in the log".to_owned();
        Err(journal::Error::Broken { why })
    })
}

/// What a program is told of it.
fn told(error: &journal::Error) -> Error {
    match error {
        journal::Error::Full { .. } => Error::Full,
        journal::Error::Broken { why } => Error::Broken(why.as_str().into()),
        other => Error::Broken(other.to_string().into()),
    }
}

impl Head {
    /// Goes on to the state that one more record, of so many bytes, makes: `own`, or what is still to be made of the
    /// one before.
    fn advance(&mut self, bytes: usize, own: Option<Arc<State>>) -> &mut State {
        let sequence = self.state.sequence + 1;
        if self.unmarked + bytes > LONGEST_TOGETHER
            && let Some(last) = self.staged.last_mut()
        {
            // With this one the group would be too long.
            last.state = Some(Arc::clone(&self.state));
            self.unmarked = 0;
        }
        self.unmarked += bytes;
        match own {
            Some(own) => self.state = own,
            None if Arc::get_mut(&mut self.state).is_none() => self.use_spare(),
            None => {}
        }
        let state = Arc::make_mut(&mut self.state);
        (state.sequence, state.epoch) = (sequence, self.fallen);
        state
    }

    /// Keeps what the record of the head has changed.
    fn note(&mut self, changes: &Arc<Changes>) {
        let bytes = changes.bytes();
        while self.recent.len() == MOST_RECENT || self.recent_bytes + bytes > MOST_RECENT_BYTES {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.bytes();
        }
        self.recent_bytes += bytes;
        self.recent.push_back(Arc::clone(changes));
    }

    /// Has the spare state take the place of the one that others have too, which would have to be copied.
    fn use_spare(&mut self) {
        let Some(mut spare) = self.spare.take() else { return };
        let Some(first) = self.few_since(spare.sequence) else { return };
        // Whoever still reads it keeps it.
        let Some(own) = Arc::get_mut(&mut spare) else { return };
        own.follow(&self.state, self.recent.range(first..).map(|changes| &**changes));
        self.state = spare;
    }

    /// Keeps a state that is not visible any more. Returns what is of no use any more.
    fn spare(&mut self, old: Arc<State>) -> [Option<Arc<State>>; 2] {
        let is_near = old.epoch == self.fallen && self.few_since(old.sequence).is_some();
        let (kept, needless) = if is_near { (Some(old), None) } else { (None, Some(old)) };
        [std::mem::replace(&mut self.spare, kept), needless]
    }

    /// Where the changes since that record begin, if they are few and small. Many would be as dear to follow as the state
    /// is to copy, and what large ones did away with must not be kept.
    fn few_since(&self, sequence: u64) -> Option<usize> {
        let count = self.state.sequence.checked_sub(sequence)?;
        let first = self.recent.len().checked_sub(usize::try_from(count).ok()?)?;
        let mut gone = 0;
        let is_small = |changes: &Arc<Changes>| {
            gone += changes.gone();
            changes.is_of_single_rows() && gone <= MOST_GONE
        };
        (count <= MOST_FOLLOWED && self.recent.range(first..).all(is_small)).then_some(first)
    }

    /// The oldest of what is staged, as much as is written together, and the state with all of it.
    fn next_group(&mut self) -> (Vec<Staged>, Arc<State>) {
        let mut marked = self.staged.iter_mut().enumerate();
        let end = marked.find_map(|(end, staged)| Some((end, staged.state.take()?)));
        if let Some((end, state)) = end {
            let later = self.staged.split_off(end + 1);
            return (std::mem::replace(&mut self.staged, later), state);
        }
        self.unmarked = 0;
        (std::mem::take(&mut self.staged), Arc::clone(&self.state))
    }

    /// Whether that state is one that came before the head, and not one that was given up.
    fn has(&self, base: &State) -> bool {
        let missed = self.fallen - base.epoch;
        let first = self.fallbacks.len().checked_sub(missed);
        first.is_some_and(|first| {
            self.fallbacks.get(first).is_none_or(|fallback| base.sequence <= *fallback)
        })
    }

    /// Whether no commit since `base` is `touching`.
    fn is_clear(&self, base: &State, touching: impl Fn(&Changes) -> bool) -> bool {
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

impl Slot {
    fn stand(&self) -> MutexGuard<'_, Stand> {
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, outcome: Result<u64, Error>) {
        let mut stand = self.stand();
        stand.outcome = Some(outcome);
        let waker = stand.waker.take();
        drop(stand);
        self.changed.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Bell {
    fn ring(&self, rung: Rung) {
        let mut own = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = match *own {
            Rung::No | Rung::Later => true,
            Rung::Yes => rung == Rung::Over,
            Rung::Over => false,
        };
        if is_news {
            *own = rung;
        }
        self.changed.notify_one();
    }

    /// Until it is rung, or so long has passed.
    fn wait(&self, time: Duration) -> Rung {
        let own = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(own, time, |rung| *rung == Rung::No);
        let mut own = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *own == Rung::Over { Rung::Over } else { std::mem::take(&mut *own) }
    }
}

impl Pending {
    /// Waits until it is acknowledged, and says which record of the journal it is. The calling thread may write for
    /// others meanwhile.
    ///
    /// # Errors
    ///
    /// It did not happen.
    pub fn wait(self) -> Result<u64, Error> {
        let commits = &self.commits;
        loop {
            let mut stand = self.slot.stand();
            if let Some(outcome) = stand.outcome.clone() {
                return outcome;
            }
            let journal = if stand.is_taken { None } else { commits.try_journal() };
            let Some(journal) = journal else {
                // Who has taken it settles it, and who holds the journal looks for whoever was staged meanwhile.
                stand.is_waiting = true;
                let is_idle = |stand: &mut Stand| stand.outcome.is_none() && !stand.is_called;
                let stand = self.slot.changed.wait_while(stand, is_idle);
                let mut stand = stand.unwrap_or_else(PoisonError::into_inner);
                (stand.is_waiting, stand.is_called) = (false, false);
                continue;
            };
            drop(stand);
            // They may commit something themselves.
            run(commits.lead(journal));
        }
    }
}

/// Acknowledged as by [`Pending::wait`], without a thread that waits.
impl Future for Pending {
    type Output = Result<u64, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let commits = &self.commits;
        let mut stand = self.slot.stand();
        if commits.is_instant
            && stand.outcome.is_none()
            && !stand.is_taken
            && let Some(journal) = commits.try_journal()
        {
            drop(stand);
            // To have a thread do it takes several times as long.
            commits.leave(commits.lead(journal));
            stand = self.slot.stand();
        }
        if let Some(outcome) = &stand.outcome {
            return Poll::Ready(outcome.clone());
        }
        stand.waker = Some(context.waker().clone());
        drop(stand);
        commits.bell.ring(Rung::Yes);
        Poll::Pending
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.slot.stand().outcome.is_none() {
            self.commits.bell.ring(Rung::Yes);
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pending")
            .field("outcome", &self.slot.stand().outcome)
            .finish_non_exhaustive()
    }
}

/// One that panics keeps no other from running: the commit has happened.
fn run(actions: Vec<Action>) {
    for action in actions {
        // The program's panic hook has told of it.
        let _ = catch_unwind(AssertUnwindSafe(action));
    }
}

#[cfg(test)]
mod tests;
