//! Decides in which order changes become true: checked against those before them, written together, and only then seen.
//!
//! A commit is checked and applied under one short lock, which makes the *head*; nobody but later commits sees it.
//! Whoever waits for its own commit writes all that are staged as one group, with one sync, and makes them visible; those
//! who come meanwhile are the next group. If that cannot be written, the head falls back to what is visible, and all
//! that were staged on it have failed.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::error::Error;
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
    /// When it is written, and so outlives the program; it outlives the machine within this time.
    Interval(Duration),
    /// When it is written. The system decides when it outlives the machine.
    None,
}

/// Where commits meet.
pub(crate) struct Commits {
    pub(crate) definitions: Definitions,
    /// Beside the tables of the program, and about them.
    pub(crate) kept: Kept,
    visible: ArcSwap<State>,
    head: Mutex<Head>,
    /// Whoever holds it writes for all.
    journal: Mutex<Box<dyn Journal>>,
    sync: Sync,
    observers: RwLock<Vec<Observer>>,
    bell: Bell,
}

/// Is told of each commit, in their order, as soon as it can be seen.
pub(crate) type Observer = Box<dyn Fn(&Changes) + Send + std::marker::Sync>;

/// What a program wants done when its change is durable.
pub(crate) type Action = Box<dyn FnOnce() + Send>;

struct Head {
    /// With all that is staged.
    state: Arc<State>,
    /// What the last commits changed, the youngest last.
    recent: VecDeque<Arc<Changes>>,
    staged: Vec<Staged>,
    /// Bytes of those behind the last that has a state.
    unmarked: usize,
    /// For each time the head fell back, in order: to which sequence.
    fallbacks: Vec<u64>,
    /// Nothing more is taken.
    failure: Option<Error>,
}

/// A commit that is not yet written.
struct Staged {
    /// Empty for a transaction that wrote nothing, but saw what is not written yet.
    record: Vec<u8>,
    /// Of its record, or of the last it saw.
    sequence: u64,
    /// With all up to this one, where a group may end. A state for each commit would have the next one copy every node
    /// on its way; so the commits of a group share them.
    state: Option<Arc<State>>,
    changes: Option<Arc<Changes>>,
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
    /// There is nothing more to come.
    Over,
}

/// A commit under way. Dropped, it is made all the same.
pub struct Pending {
    commits: Arc<Commits>,
    slot: Arc<Slot>,
}

/// Changes that can be compared with: a transaction that began before them is a conflict.
const MOST_RECENT: usize = 1 << 16;
/// Commits that wait to be written.
const MOST_STAGED: usize = 1 << 14;
/// One commit, in bytes. A group has room for it, however it is framed.
const LONGEST_RECORD: usize = LONGEST_GROUP - 4096;
/// Commits that are written together, in bytes, if there are several.
const LONGEST_TOGETHER: usize = LONGEST_GROUP / 4;
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
            recent: VecDeque::new(),
            staged: Vec::new(),
            unmarked: 0,
            fallbacks: Vec::new(),
            failure: None,
        };
        Self {
            definitions,
            kept,
            visible: ArcSwap::new(state),
            head: Mutex::new(head),
            journal: Mutex::new(journal),
            sync,
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
        let mut head = self.head();
        if let Some(failure) = &head.failure {
            return Err(failure.clone());
        }
        if head.staged.len() >= MOST_STAGED {
            return Err(Error::Busy);
        }
        if writes.is_empty() {
            let changes = None;
            if base.sequence <= self.visible.load().sequence && head.has(&base) {
                drop(head);
                run(after);
                slot.settle(Ok(base.sequence));
            } else if head.has(&base) {
                let (sequence, state) = (head.state.sequence, None);
                let slot = Arc::clone(&slot);
                head.staged.push(Staged { record, sequence, state, changes, slot, after });
            } else {
                return Err(Error::Conflict);
            }
            return Ok(Pending { commits: Arc::clone(self), slot });
        }
        let is_next = Arc::ptr_eq(&base, &head.state);
        let fits = is_next
            || head.has(&base) && head.is_clear(&base, |changes| reads.is_touched_by(changes));
        if !fits {
            return Err(Error::Conflict);
        }
        let changes = Arc::new(Changes::of(&self.definitions, &head.state, &writes));
        let sequence = head.state.sequence + 1;
        let epoch = head.fallbacks.len();
        head.mark_if_long(record.len());
        let next = match own.filter(|_| is_next) {
            Some(own) => {
                head.state = own;
                Arc::make_mut(&mut head.state)
            }
            None => {
                let next = Arc::make_mut(&mut head.state);
                for write in &writes {
                    next.apply(&self.definitions, write);
                }
                next
            }
        };
        (next.sequence, next.epoch) = (sequence, epoch);
        if head.recent.len() == MOST_RECENT {
            head.recent.pop_front();
        }
        head.recent.push_back(Arc::clone(&changes));
        let changes = Some(changes);
        let state = None;
        head.staged.push(Staged {
            record,
            sequence,
            state,
            changes,
            slot: Arc::clone(&slot),
            after,
        });
        drop(head);
        Ok(Pending { commits: Arc::clone(self), slot })
    }

    /// Writes for whoever does not wait with a thread, and syncs what is to be synced after a time, until
    /// [`Commits::close`].
    pub(crate) fn attend(self: &Arc<Self>) {
        let interval = match self.sync {
            Sync::Interval(interval) => interval,
            Sync::Commit | Sync::None => Duration::from_hours(1),
        };
        let mut due = Instant::now() + interval;
        loop {
            let rung = self.bell.wait(due.saturating_duration_since(Instant::now()));
            if !self.head().staged.is_empty() {
                self.lead(self.journal());
            }
            if Instant::now() >= due {
                due = Instant::now() + interval;
                self.sync_if_due();
            }
            if rung == Rung::Over && self.head().staged.is_empty() {
                // What is left is made durable however that was wished; a disk that failed has been told of.
                let _ = self.journal().close();
                return;
            }
            self.write_image_if_due();
        }
    }

    /// Takes nothing more. What is staged is still written.
    pub(crate) fn close(&self) {
        self.head().failure.get_or_insert(Error::Closed);
        self.bell.ring(Rung::Over);
    }

    fn sync_if_due(&self) {
        if !matches!(self.sync, Sync::Interval(_)) {
            return;
        }
        let mut journal = self.journal();
        if let Err(error) = journal.sync() {
            self.fall_back(Vec::new(), &told(&error));
        }
        drop(journal);
        self.call_next();
    }

    /// Has all tables written beside the journal, if it has grown enough, and what that makes needless removed.
    fn write_image_if_due(self: &Arc<Self>) {
        if !self.kept.begin_if_due() {
            return;
        }
        let mut journal = self.journal();
        // Nothing is written while the journal is held: this is all of it.
        let state = self.visible();
        let writer = journal.snapshot(state.sequence);
        drop(journal);
        self.call_next();
        let own = Arc::clone(self);
        let write = move || {
            let written = writer.and_then(|mut writer| {
                own.kept.write(&own.definitions, &state, &mut *writer)?;
                writer.finish()?;
                own.journal().compact(state.sequence)
            });
            own.call_next();
            own.kept.end(written.err());
        };
        let thread = std::thread::Builder::new().name("store image".to_owned());
        if let Err(error) = thread.spawn(write) {
            self.kept.end(Some(journal::Error::Refused(format!("no thread: {error}"))));
        }
    }

    /// Writes all that is staged, and makes it visible. Has somebody else go on if there is more by then.
    fn lead(&self, mut journal: MutexGuard<'_, Box<dyn Journal>>) {
        let (group, state) = self.head().next_group();
        for staged in &group {
            staged.slot.stand().is_taken = true;
        }
        let bytes: usize = group.iter().map(|staged| staged.record.len()).sum();
        let mut records = group.iter().filter(|staged| !staged.record.is_empty());
        let appended = records.try_for_each(|staged| journal.append(&staged.record).map(drop));
        let written = appended.and_then(|()| journal.write(self.sync == Sync::Commit));
        let (done, _old) = match written {
            Ok(_) => {
                self.kept.grown(bytes);
                let old = self.publish(&group, state);
                (group, Some(old))
            }
            Err(error) => {
                self.fall_back(group, &told(&error));
                (Vec::new(), None)
            }
        };
        drop(journal);
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
        // They may commit something themselves.
        run(after);
    }

    /// Returns what was visible before: giving it up may take a while.
    fn publish(&self, group: &[Staged], state: Arc<State>) -> Arc<State> {
        let old = self.visible.swap(state);
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        for changes in group.iter().filter_map(|staged| staged.changes.as_ref()) {
            for observer in observers.iter() {
                // One that panics keeps nobody from hearing that it is done.
                let _ = catch_unwind(AssertUnwindSafe(|| observer(changes)));
            }
        }
        old
    }

    /// Nothing that was staged has happened.
    fn fall_back(&self, group: Vec<Staged>, error: &Error) {
        let visible = self.visible();
        let mut head = self.head();
        let later = std::mem::take(&mut head.staged);
        head.unmarked = 0;
        while head.recent.back().is_some_and(|changes| changes.sequence > visible.sequence) {
            head.recent.pop_back();
        }
        head.fallbacks.push(visible.sequence);
        if matches!(error, Error::Broken(_)) {
            head.failure = Some(error.clone());
        }
        let mut state = State::clone(&visible);
        state.epoch = head.fallbacks.len();
        head.state = Arc::new(state);
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

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Box<dyn Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    /// Marks where a group may end before a commit of so many bytes that the next group would be too long with it.
    fn mark_if_long(&mut self, bytes: usize) {
        if self.unmarked + bytes > LONGEST_TOGETHER
            && let Some(last) = self.staged.last_mut()
        {
            last.state = Some(Arc::clone(&self.state));
            self.unmarked = 0;
        }
        self.unmarked += bytes;
    }

    /// The oldest of what is staged, as much as is written together, and the state with all of it.
    fn next_group(&mut self) -> (Vec<Staged>, Arc<State>) {
        let end = self.staged.iter().position(|staged| staged.state.is_some());
        if let Some(end) = end
            && let Some(state) = self.staged[end].state.take()
        {
            let later = self.staged.split_off(end + 1);
            return (std::mem::replace(&mut self.staged, later), state);
        }
        self.unmarked = 0;
        (std::mem::take(&mut self.staged), Arc::clone(&self.state))
    }

    /// Whether that state is one that came before the head, and not one that was given up.
    fn has(&self, base: &State) -> bool {
        let fallback = self.fallbacks.get(base.epoch);
        self.fallbacks.len() - base.epoch <= MOST_FALLBACKS
            && fallback.is_none_or(|fallback| base.sequence <= *fallback)
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
        if *own != Rung::Over {
            *own = rung;
        }
        self.changed.notify_one();
    }

    /// Until it is rung, or so long has passed.
    fn wait(&self, time: Duration) -> Rung {
        let own = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(own, time, |rung| *rung == Rung::No);
        let mut own = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *own == Rung::Yes { std::mem::take(&mut *own) } else { *own }
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
            let journal = if stand.is_taken {
                None
            } else {
                match commits.journal.try_lock() {
                    Ok(journal) => Some(journal),
                    Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                    Err(TryLockError::WouldBlock) => None,
                }
            };
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
            commits.lead(journal);
        }
    }
}

/// Acknowledged as by [`Pending::wait`], without a thread that waits.
impl Future for Pending {
    type Output = Result<u64, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stand = self.slot.stand();
        if let Some(outcome) = &stand.outcome {
            return Poll::Ready(outcome.clone());
        }
        stand.waker = Some(context.waker().clone());
        drop(stand);
        self.commits.bell.ring(Rung::Yes);
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
