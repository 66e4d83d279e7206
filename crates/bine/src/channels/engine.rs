//! Decides how channels live in the store's journal: an order is checked, kept, made true in its place, and told to all
//! who wait.
//!
//! The hub is a machine for one thread; it lives here under one short lock. What it is told comes from the journal in
//! the order of all records, so that a restart leads to the same hub.

mod parts;

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use bine_log as log;
use bine_push::{
    Applied, Command, Durability, Hub, Limits, Preparation, Prepared, Publisher, Refused,
    SnapshotReader, is_channel_record,
};
use bine_server::Bell;
use bine_store::{Extension, Pending, RowId, SnapshotBlocks, Store, Sync};

use super::access::{Caps, MOST_REVOKED, Parties, Quotas};
use super::audience::{Audience, HubAccess};
use super::clock::now;
use super::presence::Attendance;
use parts::{LongRecords, PART, Promisee, WHOLE};

/// All channels of a program.
pub(crate) struct Engine {
    stage: Mutex<Stage>,
    /// How the run before this one ended.
    before: Mutex<Before>,
    store: OnceLock<Store>,
    /// Of the threads that have waiters.
    bells: Mutex<Vec<Bell>>,
    /// The tasks that wait.
    pub(super) audience: Audience,
    /// Who is present where that is counted.
    pub(super) attendance: Arc<Attendance>,
    /// Who waits, and whose grants were revoked.
    pub(crate) parties: Arc<Parties>,
    /// Messages that were taken.
    messages: AtomicU64,
    /// Wakes the thread that looks what is due.
    alarm: Condvar,
    is_over: AtomicBool,
    /// Of one that keeps nothing, the number of the next record.
    passing: Option<AtomicU64>,
    /// How much memory its channels may take.
    quotas: OnceLock<Quotas>,
    /// Records that are written in parts.
    long: LongRecords,
}

/// What channels tell of themselves in figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Figures {
    /// Channels there are.
    pub(crate) channels: usize,
    /// Bytes that are retained in them.
    pub(crate) bytes: u64,
    /// Messages that were taken since the start.
    pub(crate) messages: u64,
    /// Whatever waits at this moment for messages.
    pub(crate) holds: u32,
}

/// What the journal tells of the run before.
#[derive(Clone, Copy, Default)]
struct Before {
    /// The system's run that it was in.
    boot: Option<[u8; 16]>,
    /// It ended in order.
    is_clean: bool,
}

/// How far the hub is.
enum Stage {
    /// Nothing was read yet.
    Empty,
    /// An image is being read.
    SnapshotReader(Box<SnapshotReader>),
    /// It is there.
    Running(Box<Hub>),
}

/// Why an order was not carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// It cannot be.
    Refused(Refused),
    /// It could not be kept.
    NotKept(bine_store::Error),
}

/// An order under way, to be awaited or, where a thread may block, [waited](Ordered::wait) for.
#[must_use = "an order is acknowledged when it is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Ordered(Way);

enum Way {
    /// It was done before, or cannot be done.
    Settled(Option<Result<Applied, Error>>),
    Kept(Pending, Arc<Outcome>),
    InParts(Promisee),
}

/// A revocation, which is true already. Awaited, or waited for where a thread may block, it also outlives a restart.
#[must_use = "a revocation outlives a restart when it is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Revocation(Result<Pending, Error>);

/// What came of an order when its turn had come.
type Outcome = Mutex<Option<Result<Applied, Refused>>>;

/// The first byte of the record that says which life of the data this is.
const EPOCH: u8 = 1;
/// Of the one that says in which run of the system the records behind it were written.
const BOOT: u8 = 2;
/// Of the one that says that nothing comes behind it in this run.
const CLEAN: u8 = 3;
/// Of the one that says whose grants were revoked, when, and until when it must be known.
const REVOKED: u8 = 4;
/// What is due is looked for at least so often.
const LOOK: Duration = Duration::from_secs(30);
/// Bytes of a message that is not kept, at most.
const MOST_PASSING: usize = 16 << 20;
/// Bytes that a message takes beside its body, at most.
const SPARE: usize = 16 << 10;
/// Channels that are looked at without a pause.
const MOST_DUE: usize = 256;

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Empty),
            before: Mutex::default(),
            store: OnceLock::new(),
            bells: Mutex::default(),
            audience: Audience::default(),
            attendance: Arc::default(),
            parties: Arc::new(Parties::new()),
            messages: AtomicU64::new(0),
            alarm: Condvar::new(),
            is_over: AtomicBool::new(false),
            passing: None,
            quotas: OnceLock::new(),
            long: LongRecords::default(),
        }
    }

    /// Says how much memory its channels may take. There is one program, which says it once.
    pub(crate) fn settle(&self, quotas: Quotas) {
        let _ = self.quotas.set(quotas);
    }

    fn limits(&self) -> Limits {
        let quotas = self.quotas.get_or_init(|| Caps::default().quotas());
        Limits { bytes: quotas.bytes, channel_bytes: quotas.per_channel, ..Limits::default() }
    }

    /// One whose channels end with the program: what it is told is true at once, and nothing goes by itself.
    pub(crate) fn passing() -> Self {
        let mut bits = [0; 4];
        bine_store::disk::random(&mut bits);
        let own = Self { passing: Some(AtomicU64::new(1)), ..Self::new() };
        let limits = Limits { body: MOST_PASSING, publication: MOST_PASSING, ..own.limits() };
        let mut hub = Hub::new(u32::from_be_bytes(bits), limits);
        hub.resume(now());
        *own.stage() = Stage::Running(Box::new(hub));
        own
    }

    /// Begins to serve, with what the store has given back.
    ///
    /// # Errors
    ///
    /// What was read is not whole, or nothing can be kept.
    pub(crate) fn begin(self: &Arc<Self>, store: &Store) -> Result<(), String> {
        self.begin_in(store, bine_store::disk::boot_id())
    }

    /// The same in a run of the system that is so named.
    fn begin_in(self: &Arc<Self>, store: &Store, boot: Option<[u8; 16]>) -> Result<(), String> {
        let before = *self.before();
        // What was not synced before the system went down is gone, and its numbers come again.
        let may_lack = !before.is_clean && before.boot.is_none_or(|before| Some(before) != boot);
        if may_lack {
            let mut bits = [0; 4];
            bine_store::disk::random(&mut bits);
            self.note(store, &[&[EPOCH], &bits[..]].concat())?;
        }
        self.note(store, &[&[BOOT], &boot.unwrap_or_default()[..]].concat())?;
        self.hub(|hub| hub.resume(now()));
        // There is one start.
        let _ = self.store.set(store.clone());
        let own = Arc::clone(self);
        let looks = thread::Builder::new().name("channels".to_owned());
        looks.spawn(move || own.look()).map_err(|error| format!("no thread: {error}"))?;
        Ok(())
    }

    /// Keeps a record of the engine's own.
    fn note(self: &Arc<Self>, store: &Store, record: &[u8]) -> Result<(), String> {
        let (own, bytes) = (Arc::clone(self), record.to_vec());
        let then = move |_| drop(own.heed(&bytes));
        let kept = store.append(record, Sync::Commit, then).and_then(Pending::wait);
        match kept {
            // The store opens on a full disk, and so do channels.
            Err(bine_store::Error::Full) => {
                let (own, bytes) = (Arc::clone(self), record.to_vec());
                store.append_deferred(record, move |_| drop(own.heed(&bytes)))
            }
            kept => kept.map(drop),
        }
        .map_err(|error| error.to_string())
    }

    /// Has an order of the program's start carried out at once, and kept as soon as the disk has room.
    pub(super) fn owe(self: &Arc<Self>, order: Command) -> Result<(), Error> {
        let prepared = match self.hub(|hub| hub.prepare(order, now())) {
            Some(Ok(Preparation::Record(prepared))) => prepared,
            Some(Ok(Preparation::Done(_))) => return Ok(()),
            Some(Err(refused)) => return Err(Error::Refused(refused)),
            None => return Err(Error::NotKept(bine_store::Error::Closed)),
        };
        let closed = Error::NotKept(bine_store::Error::Closed);
        let store = self.store.get().ok_or(closed)?;
        let mut record = Vec::new();
        prepared.write(&mut record);
        let own = Arc::clone(self);
        let then = move |sequence| drop(own.hub(|hub| hub.apply(prepared, sequence)));
        store.append_deferred(&record, then).map_err(Error::NotKept)
    }

    /// Makes a record of the engine's own true.
    fn heed(&self, record: &[u8]) -> Result<(), String> {
        let mut before = self.before();
        before.is_clean = false;
        match record {
            [EPOCH, bits @ ..] => {
                let bits = bits.try_into().map_err(|_| "an epoch has four bytes")?;
                let epoch = u32::from_be_bytes(bits);
                match &mut *self.stage() {
                    Stage::Running(hub) => hub.begin_epoch(epoch),
                    stage => *stage = running(epoch, self.limits()),
                }
            }
            [BOOT, id @ ..] => {
                let id = id.try_into().map_err(|_| "a run of the system has sixteen bytes")?;
                // All zeros: it could not be told.
                before.boot = Some(id).filter(|id| *id != [0; 16]);
                // Parts that an earlier run has begun are never completed.
                self.long.forget_all();
            }
            [PART, rest @ ..] => {
                let (number, bytes) = rest.split_first_chunk().ok_or("a part has a number")?;
                self.long.read_part(u64::from_be_bytes(*number), bytes);
            }
            [CLEAN] => before.is_clean = true,
            [REVOKED, rest @ ..] => {
                let (at, until, subject) = revoked(rest).ok_or("it revokes nothing")?;
                self.parties.revoke(subject, at, until);
            }
            _ => return Err("it is no record of channels".to_owned()),
        }
        Ok(())
    }

    /// Nothing is due any more, and nothing more is to come.
    pub(crate) fn end(self: &Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        drop(self.stage());
        self.alarm.notify_all();
        self.audience.end();
        if let Some(store) = self.store.get() {
            // If it cannot be said, the next start takes this run for one that was cut.
            let _ = self.note(store, &[CLEAN]);
        }
    }

    /// What there is, and what was done.
    pub(crate) fn figures(&self) -> Figures {
        let (channels, bytes) = self.hub(|hub| (hub.len(), hub.bytes())).unwrap_or_default();
        let messages = self.messages.load(Ordering::Relaxed);
        Figures { channels, bytes, messages, holds: self.parties.holds() }
    }

    /// Whether nothing more is to come.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn before(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread's waiters told of what happens from now on.
    pub(crate) fn add_bell(&self, bell: Bell) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).push(bell);
    }

    /// Looks at the hub, or takes something from it that only this program knows of. `None`: there is none yet.
    pub(crate) fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T> {
        match &mut *self.stage() {
            Stage::Running(hub) => Some(look(hub)),
            Stage::Empty | Stage::SnapshotReader(_) => None,
        }
    }

    /// Has an order of the program's own carried out.
    pub(crate) fn order(self: &Arc<Self>, order: Command) -> Ordered {
        self.order_by(order, None)
    }

    /// Has an order carried out that counts against a publisher's quota.
    pub(crate) fn order_by(
        self: &Arc<Self>,
        order: Command,
        publisher: Option<&Publisher>,
    ) -> Ordered {
        let messages = match &order {
            Command::Publish(publish) => publish.messages.len(),
            Command::Create { first, .. } => first.len(),
            Command::Renew(_) | Command::SetExpiry { .. } | Command::Remove(_) => 0,
        };
        let looked = self.hub(|hub| {
            let due = make_room(hub, &order);
            (due, hub.prepare_by(order, publisher, now()))
        });
        let (due, prepared) = looked.unzip();
        if let Some(due) = due.flatten() {
            // What is due is looked for again if this is not kept.
            drop(self.keep(due));
        }
        match prepared {
            Some(Ok(Preparation::Done(applied))) => Ordered::settled(Ok(applied)),
            Some(Ok(Preparation::Record(prepared))) => {
                self.messages.fetch_add(messages as u64, Ordering::Relaxed);
                let is_long = prepared.body_bytes() > parts::LONGEST_IN_ONE;
                // The program's own keep the order in which they were given, whoever waits for them.
                if is_long && publisher.is_some() && self.passing.is_none() {
                    return Ordered(Way::InParts(self.keep_in_parts(prepared)));
                }
                self.keep(prepared)
            }
            Some(Err(refused)) => Ordered::settled(Err(Error::Refused(refused))),
            None => Ordered::settled(Err(Error::NotKept(bine_store::Error::Closed))),
        }
    }

    /// Writes down what was prepared; in its turn it becomes true.
    fn keep(self: &Arc<Self>, prepared: Prepared) -> Ordered {
        let closed = || Ordered::settled(Err(Error::NotKept(bine_store::Error::Closed)));
        if let Some(next) = &self.passing {
            if self.is_over() {
                return closed();
            }
            // Numbered under the lock, so that they are true in their order.
            let applied = self.hub(|hub| hub.apply(prepared, next.fetch_add(1, Ordering::Relaxed)));
            self.audience.tell(&**self);
            self.ring();
            return applied
                .map_or_else(closed, |applied| Ordered::settled(applied.map_err(Error::Refused)));
        }
        let Some(store) = self.store.get() else { return closed() };
        let (mut record, durability) = (Vec::new(), prepared.durability());
        prepared.write(&mut record);
        let outcome = Arc::new(Outcome::default());
        let apply = self.applying(prepared, &outcome);
        let kept = self.place(store, &record, sync_of(durability), apply);
        match kept {
            Ok(pending) => Ordered(Way::Kept(pending, outcome)),
            Err(error) => Ordered::settled(Err(Error::NotKept(error))),
        }
    }

    /// What is done when the record of an order is kept, with its sequence: the order becomes true.
    fn applying(
        self: &Arc<Self>,
        prepared: Prepared,
        outcome: &Arc<Outcome>,
    ) -> impl FnOnce(u64) + Send + use<> {
        let (own, told) = (Arc::clone(self), Arc::clone(outcome));
        move |sequence| {
            let applied = own.hub(|hub| {
                let before = hub.bytes();
                (hub.apply(prepared, sequence), before.saturating_sub(hub.bytes()))
            });
            let (applied, freed) = applied.unzip();
            if let (
                Some(Ok(Applied::Removed | Applied::Expired(_))),
                Some(freed @ 1..),
                Some(store),
            ) = (&applied, freed, own.store.get())
            {
                store.count_obsolete(usize::try_from(freed).unwrap_or(usize::MAX));
            }
            *told.lock().unwrap_or_else(PoisonError::into_inner) = applied;
            own.alarm.notify_all();
            own.audience.tell(&*own);
            own.ring();
        }
    }

    /// Has a record take its place in the journal, unless the end has been said.
    fn place(
        &self,
        store: &Store,
        record: &[u8],
        sync: Sync,
        then: impl FnOnce(u64) + Send + 'static,
    ) -> Result<Pending, bine_store::Error> {
        // Whoever ends takes the lock in between: what is said then comes behind all that was taken.
        let _stage = self.stage();
        if self.is_over() {
            return Err(bine_store::Error::Closed);
        }
        store.append(record, sync, then)
    }

    /// Ends what a subject was granted until now, and keeps that it was.
    pub(crate) fn revoke(self: &Arc<Self>, subject: &str) -> Revocation {
        let at = now();
        let until = at + self.parties.memory();
        if !self.parties.revoke(subject, at, until) {
            let what = "revoked subjects, who are fewer where Tokens::longest is less";
            let refused = Refused::LimitExceeded { quantity: what, limit: MOST_REVOKED as u64 };
            return Revocation(Err(Error::Refused(refused)));
        }
        self.audience.wake();
        self.ring();
        let Some(store) = self.store.get() else {
            return Revocation(Err(Error::NotKept(bine_store::Error::Closed)));
        };
        let record = record_of_revoked(subject, at, until);
        // It is true already; in its place in the journal it is for the next start.
        Revocation(store.append(&record, Sync::Commit, drop).map_err(Error::NotKept))
    }

    /// Ends what waits by logins that have ended, of these rows or of all.
    pub(crate) fn end_logins(&self, rows: Option<&[RowId]>) {
        if self.parties.end(rows) {
            self.audience.wake();
            self.ring();
        }
    }

    /// Has those on each thread look who wait there.
    fn ring(&self) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Bell::ring);
    }

    /// Has what is due by time carried out, until the end.
    fn look(self: &Arc<Self>) {
        while !self.is_over() {
            let due = self.hub(|hub| (hub.expire(now(), MOST_DUE), hub.next_due()));
            let Some((prepared, next)) = due else { return };
            if let Some(prepared) = prepared {
                // A disk that is full or fails has been told of by others; this is tried again.
                let _ = self.keep(prepared).wait();
            }
            let next =
                next.into_iter().chain(self.attendance.look(|order| drop(self.order(order)))).min();
            let wait = next.map_or(LOOK, |next| Duration::from_millis(next.saturating_sub(now())));
            let stage = self.stage();
            if !self.is_over() && !self.attendance.was_stirred() {
                let wait = wait.clamp(Duration::from_millis(10), LOOK);
                drop(self.alarm.wait_timeout(stage, wait));
            }
        }
    }

    /// Has what is due looked for at once. Not under the lock of the stage.
    pub(super) fn stir(&self) {
        drop(self.stage());
        self.alarm.notify_all();
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What others than tables have kept in the store.
impl HubAccess for Engine {
    fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T> {
        Self::hub(self, look)
    }
}

impl Extension for Engine {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        let is_own = matches!(block, [BOOT | CLEAN | REVOKED | PART, ..]);
        if is_own && matches!(*self.stage(), Stage::Empty) {
            return self.heed(block);
        }
        let mut stage = self.stage();
        if let Stage::Empty = *stage {
            *stage = Stage::SnapshotReader(Box::new(SnapshotReader::new(self.limits())));
        }
        match &mut *stage {
            Stage::SnapshotReader(restoring) => {
                restoring.receive(block).map_err(|damaged| damaged.to_string())
            }
            Stage::Empty | Stage::Running(_) => Err("an image behind records".to_owned()),
        }
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        let mut stage = self.stage();
        settle(&mut stage)?;
        match (&mut *stage, record) {
            (Stage::Running(hub), [first, ..]) if is_channel_record(*first) => {
                self.before().is_clean = false;
                hub.replay(record, sequence).map_err(|damaged| damaged.to_string())
            }
            (Stage::Running(hub), [WHOLE, rest @ ..]) => {
                self.before().is_clean = false;
                let record = self.long.record_of(rest).ok_or("parts of a record are missing")?;
                hub.replay(&record, sequence).map_err(|damaged| damaged.to_string())
            }
            _ => {
                drop(stage);
                self.heed(record)
            }
        }
    }

    fn finish_load(&self) -> Result<(), String> {
        self.long.forget_all();
        settle(&mut self.stage())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        let before = *self.before();
        let boot = [&[BOOT], &before.boot.unwrap_or_default()[..]].concat();
        let revoked = self.parties.revoked(now()).into_iter();
        let revoked = revoked.map(|(subject, at, until)| record_of_revoked(&subject, at, until));
        let clean = before.is_clean.then(|| vec![CLEAN]);
        let own = std::iter::once(boot).chain(revoked).chain(self.long.image()).chain(clean);
        match self.hub(|hub| hub.snapshot()) {
            Some(snapshot) => Box::new(own.chain(snapshot)),
            None => Box::new(std::iter::empty()),
        }
    }
}

fn running(epoch: u32, limits: Limits) -> Stage {
    Stage::Running(Box::new(Hub::new(epoch, limits)))
}

fn record_of_revoked(subject: &str, at: u64, until: u64) -> Vec<u8> {
    [&[REVOKED], &at.to_be_bytes()[..], &until.to_be_bytes(), subject.as_bytes()].concat()
}

/// When, until when it must be known, and whose.
fn revoked(rest: &[u8]) -> Option<(u64, u64, &str)> {
    let (at, rest) = rest.split_first_chunk()?;
    let (until, subject) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*at), u64::from_be_bytes(*until), str::from_utf8(subject).ok()?))
}

/// How the store keeps a record.
const fn sync_of(durability: Durability) -> Sync {
    match durability {
        Durability::Memory => Sync::None,
        Durability::Interval => Sync::Interval(Duration::from_millis(100)),
        Durability::Commit => Sync::Commit,
    }
}

/// An image that was read is a hub.
fn settle(stage: &mut Stage) -> Result<(), String> {
    match std::mem::replace(stage, Stage::Empty) {
        Stage::SnapshotReader(restoring) => {
            let hub = restoring.finish().map_err(|damaged| damaged.to_string())?;
            *stage = Stage::Running(Box::new(hub));
        }
        other => *stage = other,
    }
    Ok(())
}

/// Drops what is too old in any channel, if an order might need its room.
fn make_room(hub: &mut Hub, order: &Command) -> Option<Prepared> {
    let messages = match order {
        Command::Publish(publish) => &publish.messages,
        Command::Create { first, .. } => first,
        Command::Renew(_) | Command::SetExpiry { .. } | Command::Remove(_) => return None,
    };
    let bytes: usize = messages.iter().map(|draft| draft.content.body.len() + SPARE).sum();
    if hub.has_room(bytes as u64) { None } else { hub.expire(now(), MOST_DUE) }
}

impl Ordered {
    const fn settled(outcome: Result<Applied, Error>) -> Self {
        Self(Way::Settled(Some(outcome)))
    }

    /// Waits until it is acknowledged. Not for an async function: the others of its thread would wait too.
    ///
    /// # Errors
    ///
    /// It was not carried out.
    pub fn wait(self) -> Result<Applied, Error> {
        match self.0 {
            Way::Settled(outcome) => outcome.unwrap_or_else(already_told),
            Way::Kept(pending, outcome) => outcome_of(pending.wait(), &outcome),
            Way::InParts(promisee) => promisee.wait(),
        }
    }
}

impl Future for Ordered {
    type Output = Result<Applied, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Way::Settled(outcome) => Poll::Ready(outcome.take().unwrap_or_else(already_told)),
            Way::Kept(pending, outcome) => {
                let kept = ready!(Pin::new(pending).poll(context));
                Poll::Ready(outcome_of(kept, outcome))
            }
            Way::InParts(promisee) => Pin::new(promisee).poll(context),
        }
    }
}

impl Revocation {
    /// Waits until it is kept. Not for an async function: the others of its thread would wait too.
    ///
    /// # Errors
    ///
    /// It is true, and could not be kept.
    pub fn wait(self) -> Result<(), Error> {
        self.0?.wait().map(drop).map_err(Error::NotKept)
    }
}

impl Future for Revocation {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(pending) => {
                let kept = ready!(Pin::new(pending).poll(context));
                Poll::Ready(kept.map(drop).map_err(Error::NotKept))
            }
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

impl fmt::Debug for Revocation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Revocation")
    }
}

fn outcome_of(kept: Result<u64, bine_store::Error>, outcome: &Outcome) -> Result<Applied, Error> {
    kept.map_err(Error::NotKept)?;
    let told = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    match told {
        Some(applied) => applied.map_err(Error::Refused),
        None => {
            log::error(format_args!("an order of channels was kept and not carried out"));
            Err(Error::NotKept(bine_store::Error::Closed))
        }
    }
}

fn already_told() -> Result<Applied, Error> {
    Err(Error::NotKept(bine_store::Error::Closed))
}

impl fmt::Debug for Ordered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Ordered")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(to),
            Self::NotKept(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
