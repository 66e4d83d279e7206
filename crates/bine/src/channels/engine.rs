//! Journals channels in the store: the engine validates a command, appends its record, applies it
//! in the record's turn, and notifies all waiters.
//!
//! The hub is a single-threaded state machine under one briefly held lock. It receives records in
//! the order of the journal, so a restart reproduces the same hub.

mod error;
mod expiry;
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
    Applied, Command, Durability, Hub, Limits, MessageBatch, Preparation, Prepared, Publish,
    Publisher, Refused, SnapshotReader, Subscription, is_channel_record,
};
use bine_server::WakeHandle;
use bine_store::{Extension, Pending, RowId, SnapshotBlocks, Store, Sync};

use super::access::{ClientLimits, MAX_REVOKED, MemoryQuotas, QuotaTable};
use super::async_waiters::{AsyncWaiters, HubAccess};
use super::clock::now;
use super::presence::PresenceTracker;
use super::watched::{ChangedChannels, WatchedChannels};
use crate::node_directory::NodeDirectory;
use crate::signal_core::SignalCore;
pub use error::Error;
use parts::{COMPLETE, LongRecords, PART, PendingLongRecord};

/// The channels of a program, their journal and their waiters.
pub(crate) struct Engine {
    state: Mutex<HubState>,
    /// How the previous run ended.
    previous_run: Mutex<PreviousRun>,
    store: OnceLock<Store>,
    /// The bells of threads with waiters.
    bells: Mutex<Vec<WakeHandle>>,
    /// Whether the expiry thread has to look for holds that lost a right.
    have_rights_changed: AtomicBool,
    /// The tasks that wait.
    pub(super) async_waiters: AsyncWaiters,
    /// The sessions that are present.
    pub(super) presence_tracker: Arc<PresenceTracker>,
    /// Held requests, quotas and revocations.
    pub(crate) parties: Arc<QuotaTable>,
    /// The number of accepted messages.
    messages: AtomicU64,
    /// Wakes the thread that expires messages and channels.
    alarm: Condvar,
    is_over: AtomicBool,
    /// The next record number of an engine without a journal.
    transient: Option<AtomicU64>,
    /// Memory limits of the channels.
    memory_quotas: OnceLock<MemoryQuotas>,
    /// Records that are written in parts.
    long_records: LongRecords,
    /// The channels that live pages display.
    watched: WatchedChannels,
    /// The nodes that have the same channels; empty on one machine.
    nodes: OnceLock<Arc<dyn NodeDirectory>>,
}

/// A checked command, and the channels that it changes.
struct CheckedCommand {
    prepared: Prepared,
    changed: ChangedChannels,
}

/// Counts for the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ChannelMetrics {
    /// Existing channels.
    pub(crate) channels: usize,
    /// Bytes retained in them.
    pub(crate) bytes: u64,
    /// Messages accepted since the start.
    pub(crate) messages: u64,
    /// Held requests.
    pub(crate) holds: u32,
}

/// Facts about the previous run, from the journal.
#[derive(Clone, Copy, Default)]
struct PreviousRun {
    /// The operating system's boot during which it ran.
    boot: Option<[u8; 16]>,
    /// Whether it ended in order.
    is_clean: bool,
}

impl PreviousRun {
    /// Whether a crash of the system may have lost unsynced records. Their numbers will be used
    /// again, so a new epoch must invalidate old cursors.
    fn has_lost_records(self, boot: Option<[u8; 16]>) -> bool {
        !self.is_clean && self.boot.is_none_or(|previous| Some(previous) != boot)
    }
}

/// The state of the hub.
enum HubState {
    /// Before the first record.
    Empty,
    /// While a snapshot is read.
    SnapshotReader(Box<SnapshotReader>),
    /// After the snapshot, if any.
    Running(Box<Hub>),
}

/// A command in progress. Await it or, on a thread that may block, call
/// [`wait`](PendingCommand::wait).
#[must_use = "a command is acknowledged when it is awaited or, in a function that may block, waited for by `wait()`"]
pub struct PendingCommand(Progress);

enum Progress {
    /// Finished already, or rejected.
    Settled(Option<Result<Applied, Error>>),
    Journaled(Pending, Arc<SharedResult>),
    InParts(PendingLongRecord),
}

/// A revocation, which is already in effect. Once awaited or waited for, it also survives a
/// restart.
#[must_use = "a revocation outlives a restart when it is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Revocation(Result<Pending, Error>);

/// The result of a command, set when its record takes effect.
type SharedResult = Mutex<Option<Result<Applied, Refused>>>;

/// The first byte of a record that begins a new epoch of the data.
const EPOCH: u8 = 1;
/// The first byte of a record with the boot of the operating system, which applies to the records
/// that follow.
const BOOT: u8 = 2;
/// The first byte of the last record of a run that ended in order.
const CLEAN: u8 = 3;
/// The first byte of a record with a revocation: its time, its expiry, and the subject.
const REVOKED: u8 = 4;
/// The first byte of a record with the epoch of channels that several nodes share. The first such
/// record counts: nodes that start at the same time each write one.
const FIRST_EPOCH: u8 = 7;
/// The least first byte of records and blocks that belong to other parts of a program.
const FIRST_OF_OTHERS: u8 = 64;
/// Maximum bytes of a message that is not journaled.
const MAX_TRANSIENT: usize = 16 << 20;
/// Maximum memory of a message in addition to its body, in bytes.
const MESSAGE_OVERHEAD: usize = 16 << 10;
/// Maximum channels to expire while the lock is held.
const MAX_EXPIRED: usize = 256;

impl CheckedCommand {
    /// A command by which channels expire.
    const fn expired(prepared: Prepared) -> Self {
        Self { prepared, changed: ChangedChannels::All }
    }
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(HubState::Empty),
            previous_run: Mutex::default(),
            store: OnceLock::new(),
            bells: Mutex::default(),
            have_rights_changed: AtomicBool::new(false),
            async_waiters: AsyncWaiters::default(),
            presence_tracker: Arc::default(),
            parties: Arc::new(QuotaTable::new()),
            messages: AtomicU64::new(0),
            alarm: Condvar::new(),
            is_over: AtomicBool::new(false),
            transient: None,
            memory_quotas: OnceLock::new(),
            long_records: LongRecords::default(),
            watched: WatchedChannels::default(),
            nodes: OnceLock::new(),
        }
    }

    /// Sets the nodes that have the same channels. Only the first call has an effect.
    pub(crate) fn set_nodes(&self, nodes: Arc<dyn NodeDirectory>) {
        let _ = self.nodes.set(nodes);
    }

    /// Sets the memory limits. Only the first call has an effect.
    pub(crate) fn set_memory_quotas(&self, memory_quotas: MemoryQuotas) {
        let _ = self.memory_quotas.set(memory_quotas);
    }

    /// The memory limits: those that are set, or the default ones.
    pub(crate) fn memory_quotas(&self) -> &MemoryQuotas {
        self.memory_quotas.get_or_init(|| ClientLimits::default().memory_quotas())
    }

    fn limits(&self) -> Limits {
        let memory_quotas = self.memory_quotas();
        Limits {
            bytes: memory_quotas.bytes,
            channel_bytes: memory_quotas.per_channel,
            ..Limits::default()
        }
    }

    /// Creates an engine without a journal: commands take effect at once, messages stay, and the
    /// channels end with the program.
    pub(crate) fn passing() -> Self {
        let own = Self { transient: Some(AtomicU64::new(1)), ..Self::new() };
        let limits = Limits { body: MAX_TRANSIENT, publication: MAX_TRANSIENT, ..own.limits() };
        let mut hub = Hub::new(u32::from_be_bytes(random_epoch()), limits);
        hub.resume(now());
        *own.state() = HubState::Running(Box::new(hub));
        own
    }

    /// Reads the messages of a subscription. On several nodes, a client may have a cursor of a node that
    /// is ahead of this one by some messages; the second value is whether it has.
    pub(super) fn read(
        &self,
        hub: &Hub,
        subscription: &Subscription<'_>,
    ) -> (Result<MessageBatch, Refused>, bool) {
        let now = now();
        match hub.read(subscription, now) {
            Err(Refused::Ahead { watermark }) if self.is_shared() => {
                let batch = hub.read_ahead(subscription, now);
                let is_ahead = batch.is_some();
                (batch.ok_or(Refused::Ahead { watermark }), is_ahead)
            }
            read => (read, false),
        }
    }

    /// Whether several nodes share the store.
    pub(super) fn is_shared(&self) -> bool {
        self.store.get().is_some_and(Store::is_shared)
    }

    /// Starts to execute commands, after the store has replayed its journal.
    ///
    /// # Errors
    ///
    /// The replayed records are incomplete, or the store cannot write.
    pub(crate) fn begin(self: &Arc<Self>, store: &Store) -> Result<(), String> {
        self.begin_during(store, bine_store::disk::boot_id())
    }

    /// Starts during the given boot of the operating system.
    fn begin_during(self: &Arc<Self>, store: &Store, boot: Option<[u8; 16]>) -> Result<(), String> {
        if store.is_shared() {
            // The stream of the nodes loses no record, whatever happens to one of them.
            if self.hub(|_| ()).is_none() {
                self.append_own_record(store, &[&[FIRST_EPOCH], &random_epoch()[..]].concat())?;
            }
        } else {
            self.begin_run(store, boot)?;
        }
        self.hub(|hub| hub.resume(now()));
        // Called once.
        let _ = self.store.set(store.clone());
        let own = Arc::clone(self);
        let expiry_thread = thread::Builder::new().name("channels".to_owned());
        expiry_thread
            .spawn(move || own.run_expiry())
            .map_err(|error| format!("no thread: {error}"))?;
        Ok(())
    }

    /// Journals the begin of a run, during the given boot of the operating system.
    fn begin_run(self: &Arc<Self>, store: &Store, boot: Option<[u8; 16]>) -> Result<(), String> {
        if self.previous_run().has_lost_records(boot) {
            self.append_own_record(store, &[&[EPOCH], &random_epoch()[..]].concat())?;
        }
        self.append_own_record(store, &[&[BOOT], &boot.unwrap_or_default()[..]].concat())
    }

    /// Prepares channels that were read from a folder for a cluster, during the given boot of the
    /// operating system: begins a new epoch if the next start would. Returns whether it did.
    #[cfg(feature = "cluster")]
    pub(crate) fn settle_previous_run(&self, boot: Option<[u8; 16]>) -> bool {
        let has_lost_records = self.previous_run().has_lost_records(boot);
        let epoch = u32::from_be_bytes(random_epoch());
        has_lost_records && self.hub(|hub| hub.begin_epoch(epoch)).is_some()
    }

    /// Notes that no record is lost, so that a start from these channels keeps their cursors.
    #[cfg(feature = "cluster")]
    pub(crate) fn end_previous_run(&self) {
        self.previous_run().is_clean = true;
    }

    /// Removes the memory limits, so that a copy has every message whatever limits its server has.
    /// Call it before the first record is read.
    #[cfg(feature = "cluster")]
    pub(crate) fn lift_memory_quotas(&self) {
        let most = u64::MAX;
        self.set_memory_quotas(MemoryQuotas {
            bytes: most,
            per_channel: most,
            per_subject: most,
            local: most,
        });
    }

    /// The numbers of channels and of messages in all channels.
    #[cfg(feature = "cluster")]
    pub(crate) fn size(&self) -> (usize, usize) {
        let count = |hub: &mut Hub| {
            let names: Vec<_> = hub.names_after("").cloned().collect();
            let infos = names.iter().filter_map(|name| hub.describe(name, 0).ok());
            (names.len(), infos.map(|info| info.messages).sum())
        };
        self.hub(count).unwrap_or_default()
    }

    /// Journals one of the engine's own records.
    fn append_own_record(self: &Arc<Self>, store: &Store, record: &[u8]) -> Result<(), String> {
        let (own, bytes) = (Arc::clone(self), record.to_vec());
        let then = move |_| drop(own.apply_own_record(&bytes));
        let kept = store.append(record, Sync::Commit, then).and_then(Pending::wait);
        match kept {
            // Channels, like the store, start on a full disk.
            Err(bine_store::Error::Full) => {
                let (own, bytes) = (Arc::clone(self), record.to_vec());
                store.append_deferred(record, move |_| drop(own.apply_own_record(&bytes)))
            }
            kept => kept.map(drop),
        }
        .map_err(|error| error.to_string())
    }

    /// Executes a command of the program's start at once, and journals it when the disk has room.
    pub(super) fn execute_deferred(self: &Arc<Self>, command: Command) -> Result<(), Error> {
        if self.is_shared() {
            return self.execute(command).wait().map(drop);
        }
        let prepared = match self.hub(|hub| hub.prepare(command, now())) {
            Some(Ok(Preparation::Record(prepared))) => prepared,
            Some(Ok(Preparation::Done(_))) => return Ok(()),
            Some(Err(refused)) => return Err(Error::Refused(refused)),
            None => return Err(Error::Storage(bine_store::Error::Closed)),
        };
        let closed = Error::Storage(bine_store::Error::Closed);
        let store = self.store.get().ok_or(closed)?;
        let mut record = Vec::new();
        prepared.write(&mut record);
        let own = Arc::clone(self);
        let then = move |sequence| drop(own.hub(|hub| hub.apply(prepared, sequence)));
        store.append_deferred(&record, then).map_err(Error::Storage)
    }

    /// Applies one of the engine's own records.
    fn apply_own_record(&self, record: &[u8]) -> Result<(), String> {
        let mut previous_run = self.previous_run();
        previous_run.is_clean = false;
        match record {
            [EPOCH, bits @ ..] => {
                let bits = bits.try_into().map_err(|_| "an epoch has four bytes")?;
                let epoch = u32::from_be_bytes(bits);
                match &mut *self.state() {
                    HubState::Running(hub) => hub.begin_epoch(epoch),
                    state => *state = running(epoch, self.limits()),
                }
            }
            [FIRST_EPOCH, bits @ ..] => {
                let bits = bits.try_into().map_err(|_| "an epoch has four bytes")?;
                let mut state = self.state();
                if let HubState::Empty = *state {
                    *state = running(u32::from_be_bytes(bits), self.limits());
                }
            }
            [BOOT, id @ ..] => {
                let id = id.try_into().map_err(|_| "a run of the system has sixteen bytes")?;
                // All zeros: the boot could not be identified.
                previous_run.boot = Some(id).filter(|id| *id != [0; 16]);
                // An earlier run's incomplete records stay incomplete.
                self.long_records.forget_all();
            }
            [PART, rest @ ..] => {
                let (number, bytes) = rest.split_first_chunk().ok_or("a part has a number")?;
                self.long_records.read_part(u64::from_be_bytes(*number), bytes);
            }
            [CLEAN] => previous_run.is_clean = true,
            [REVOKED, rest @ ..] => {
                let (at, until, subject) = revoked(rest).ok_or("it revokes nothing")?;
                self.parties.revoke(subject, at, until);
            }
            _ => return Err("it is no record of channels".to_owned()),
        }
        Ok(())
    }

    /// Ends the channels: rejects further commands and wakes all waiters.
    pub(crate) fn end(self: &Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        drop(self.state());
        self.alarm.notify_all();
        self.async_waiters.end();
        if let Some(store) = self.store.get().filter(|store| !store.is_shared()) {
            // Without this record, the next start treats the run as crashed.
            let _ = self.append_own_record(store, &[CLEAN]);
        }
    }

    /// Returns the counts for the metrics.
    pub(crate) fn figures(&self) -> ChannelMetrics {
        let (channels, bytes) = self.hub(|hub| (hub.len(), hub.bytes())).unwrap_or_default();
        let messages = self.messages.load(Ordering::Relaxed);
        ChannelMetrics { channels, bytes, messages, holds: self.parties.holds() }
    }

    /// Whether the channels have ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn previous_run(&self) -> MutexGuard<'_, PreviousRun> {
        self.previous_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the bell of a thread with waiters.
    pub(crate) fn add_bell(&self, bell: WakeHandle) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).push(bell);
    }

    /// Accesses the hub, for reads and for changes that need no record. `None`: it has not started.
    pub(crate) fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T> {
        match &mut *self.state() {
            HubState::Running(hub) => Some(look(hub)),
            HubState::Empty | HubState::SnapshotReader(_) => None,
        }
    }

    /// Executes a command of the program.
    pub(crate) fn execute(self: &Arc<Self>, command: Command) -> PendingCommand {
        self.execute_for(command, None)
    }

    /// Executes a command that counts against a publisher's quota.
    pub(crate) fn execute_for(
        self: &Arc<Self>,
        command: Command,
        publisher: Option<&Publisher>,
    ) -> PendingCommand {
        let messages = match &command {
            Command::Publish(publish) => publish.messages.len(),
            Command::Create { first, .. } => first.len(),
            Command::Renew(_) | Command::SetExpiry { .. } | Command::Remove(_) => 0,
        };
        let changed = self.watched.changed_by(&command);
        let looked = self.hub(|hub| {
            let due = make_room(hub, &command);
            (due, hub.prepare_by(command, publisher, now()))
        });
        let (due, prepared) = looked.unzip();
        if let Some(due) = due.flatten() {
            // If this record fails, the next check expires the messages again.
            drop(self.journal(CheckedCommand::expired(due)));
        }
        match prepared {
            Some(Ok(Preparation::Done(applied))) => PendingCommand::settled(Ok(applied)),
            Some(Ok(Preparation::Record(prepared))) => {
                self.messages.fetch_add(messages as u64, Ordering::Relaxed);
                let is_long = prepared.body_bytes() > parts::MAX_SINGLE_RECORD;
                let checked = CheckedCommand { prepared, changed };
                // The program's own commands take effect in the order of the calls.
                if is_long && publisher.is_some() && self.writes_parts() {
                    return PendingCommand(Progress::InParts(self.journal_in_parts(checked)));
                }
                self.journal(checked)
            }
            Some(Err(refused)) => PendingCommand::settled(Err(Error::Refused(refused))),
            None => PendingCommand::settled(Err(Error::Storage(bine_store::Error::Closed))),
        }
    }

    /// Whether long records are written in parts. The stream of several nodes divides them itself.
    fn writes_parts(&self) -> bool {
        self.transient.is_none() && !self.is_shared()
    }

    /// Journals a prepared command, which takes effect in the record's turn.
    fn journal(self: &Arc<Self>, checked: CheckedCommand) -> PendingCommand {
        let closed = || PendingCommand::settled(Err(Error::Storage(bine_store::Error::Closed)));
        if let Some(next) = &self.transient {
            if self.is_over() {
                return closed();
            }
            let CheckedCommand { prepared, changed } = checked;
            // Numbered under the lock, so that commands take effect in the order of their numbers.
            let applied = self.hub(|hub| hub.apply(prepared, next.fetch_add(1, Ordering::Relaxed)));
            self.watched.notify(&changed);
            self.async_waiters.notify(&**self);
            self.ring_bells();
            return applied.map_or_else(closed, |applied| {
                PendingCommand::settled(applied.map_err(Error::Refused))
            });
        }
        let Some(store) = self.store.get() else { return closed() };
        let (mut record, durability) = (Vec::new(), checked.prepared.durability());
        checked.prepared.write(&mut record);
        let outcome = Arc::new(SharedResult::default());
        let apply = self.applier(checked, &outcome);
        let kept = self.append(store, &record, sync_of(durability), apply);
        match kept {
            Ok(pending) => PendingCommand(Progress::Journaled(pending, outcome)),
            Err(error) => PendingCommand::settled(Err(Error::Storage(error))),
        }
    }

    /// Returns the function that applies a command when its record has been written.
    fn applier(
        self: &Arc<Self>,
        checked: CheckedCommand,
        outcome: &Arc<SharedResult>,
    ) -> impl FnOnce(u64) + Send + use<> {
        let (own, outcome) = (Arc::clone(self), Arc::clone(outcome));
        let CheckedCommand { prepared, changed } = checked;
        move |sequence| {
            let applied = own.hub(|hub| {
                let previous_run = hub.bytes();
                (hub.apply(prepared, sequence), previous_run.saturating_sub(hub.bytes()))
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
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = applied;
            own.announce(&changed);
        }
    }

    /// Publishes messages that follow from a record of other data, which this node has just applied.
    pub(super) fn derive(&self, publish: Publish, time: u64, sequence: u64) {
        let names: Vec<Arc<str>> =
            publish.messages.iter().flat_map(|draft| &draft.channels).map(Arc::clone).collect();
        // Each node refuses what one of them refuses.
        if let Some(Ok(_)) = self.hub(|hub| hub.derive(publish, time, sequence)) {
            self.announce(&self.watched.changed(|| names));
        }
    }

    /// Tells all who wait for a change of the hub.
    fn announce(&self, changed: &ChangedChannels) {
        self.watched.notify(changed);
        self.alarm.notify_all();
        self.async_waiters.notify(self);
        self.ring_bells();
    }

    /// Appends a record unless the channels have ended.
    fn append(
        &self,
        store: &Store,
        record: &[u8],
        sync: Sync,
        then: impl FnOnce(u64) + Send + 'static,
    ) -> Result<Pending, bine_store::Error> {
        // `end` takes this lock too, so the record of the end follows all accepted ones.
        let _stage = self.state();
        if self.is_over() {
            return Err(bine_store::Error::Closed);
        }
        store.append(record, sync, then)
    }

    /// Revokes what a subject was granted until now, and journals the revocation.
    pub(crate) fn revoke(self: &Arc<Self>, subject: &str) -> Revocation {
        let at = now();
        let until = at + self.parties.revocation_memory();
        if !self.parties.revoke(subject, at, until) {
            let what = "revoked subjects, who are fewer where TokenVerifier::max_lifetime is less";
            let refused = Refused::LimitExceeded { quantity: what, limit: MAX_REVOKED as u64 };
            return Revocation(Err(Error::Refused(refused)));
        }
        self.async_waiters.wake_all();
        self.ring_bells();
        let Some(store) = self.store.get() else {
            return Revocation(Err(Error::Storage(bine_store::Error::Closed)));
        };
        let record = record_of_revoked(subject, at, until);
        // Already in effect; the record is for the next start.
        Revocation(store.append(&record, Sync::Commit, drop).map_err(Error::Storage))
    }

    /// Ends the held requests of logins that have ended: of these rows, or of all.
    pub(crate) fn end_logins(&self, rows: Option<&[RowId]>) {
        if self.parties.end_logins(rows) {
            self.async_waiters.wake_all();
            self.ring_bells();
        }
    }

    /// Makes the expiry thread end the held requests of clients that have lost a right to a
    /// channel. They get no message any more from now on, since each delivery checks the rights.
    /// The caller may hold the journal's lock.
    pub(crate) fn end_lost_rights(&self) {
        self.have_rights_changed.store(true, Ordering::Release);
        self.request_expiry();
    }

    /// The signal of a channel, for a page that displays it.
    #[cfg_attr(not(feature = "script"), allow(dead_code, reason = "for applications in TSX"))]
    pub(crate) fn watch(&self, name: &str) -> Arc<SignalCore> {
        self.watched.watch(name)
    }

    /// Wakes the threads with waiters.
    fn ring_bells(&self) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(WakeHandle::wake);
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubAccess for Engine {
    fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T> {
        Self::hub(self, look)
    }
}

impl Extension for Engine {
    fn owns(&self, first: u8) -> bool {
        first < FIRST_OF_OTHERS
    }

    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        let is_own = matches!(block, [BOOT | CLEAN | REVOKED | PART, ..]);
        if is_own && matches!(*self.state(), HubState::Empty) {
            return self.apply_own_record(block);
        }
        let mut state = self.state();
        if let HubState::Empty = *state {
            *state = HubState::SnapshotReader(Box::new(SnapshotReader::new(self.limits())));
        }
        match &mut *state {
            HubState::SnapshotReader(restoring) => {
                restoring.receive(block).map_err(|damaged| damaged.to_string())
            }
            HubState::Empty | HubState::Running(_) => Err("an image behind records".to_owned()),
        }
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        let mut state = self.state();
        finish_snapshot(&mut state)?;
        match (&mut *state, record) {
            (HubState::Running(hub), [first, ..]) if is_channel_record(*first) => {
                self.previous_run().is_clean = false;
                hub.replay(record, sequence).map_err(|damaged| damaged.to_string())
            }
            (HubState::Running(hub), [COMPLETE, rest @ ..]) => {
                self.previous_run().is_clean = false;
                let record =
                    self.long_records.record_of(rest).ok_or("parts of a record are missing")?;
                hub.replay(&record, sequence).map_err(|damaged| damaged.to_string())
            }
            _ => {
                drop(state);
                self.apply_own_record(record)
            }
        }
    }

    fn follow(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        // The record has numbers of channels, and a removed one loses its name.
        let names = || self.hub(|hub| hub.changed_by(record)).unwrap_or_default();
        let changed = self.watched.changed(names);
        self.replay(sequence, record)?;
        if let [REVOKED, ..] = record {
            self.async_waiters.wake_all();
        }
        self.announce(&changed);
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        self.long_records.forget_all();
        finish_snapshot(&mut self.state())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        let previous_run = *self.previous_run();
        let boot = [&[BOOT], &previous_run.boot.unwrap_or_default()[..]].concat();
        let revoked = self.parties.revoked(now()).into_iter();
        let revoked = revoked.map(|(subject, at, until)| record_of_revoked(&subject, at, until));
        let clean = previous_run.is_clean.then(|| vec![CLEAN]);
        let own =
            std::iter::once(boot).chain(revoked).chain(self.long_records.image()).chain(clean);
        match self.hub(|hub| hub.snapshot()) {
            Some(snapshot) => Box::new(own.chain(snapshot)),
            None => Box::new(std::iter::empty()),
        }
    }
}

fn running(epoch: u32, limits: Limits) -> HubState {
    HubState::Running(Box::new(Hub::new(epoch, limits)))
}

fn random_epoch() -> [u8; 4] {
    let mut bits = [0; 4];
    bine_store::disk::random(&mut bits);
    bits
}

fn record_of_revoked(subject: &str, at: u64, until: u64) -> Vec<u8> {
    [&[REVOKED], &at.to_be_bytes()[..], &until.to_be_bytes(), subject.as_bytes()].concat()
}

/// Decodes a revocation: its time, its expiry, and the subject.
fn revoked(rest: &[u8]) -> Option<(u64, u64, &str)> {
    let (at, rest) = rest.split_first_chunk()?;
    let (until, subject) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*at), u64::from_be_bytes(*until), str::from_utf8(subject).ok()?))
}

/// Converts a durability to the store's type.
const fn sync_of(durability: Durability) -> Sync {
    match durability {
        Durability::Memory => Sync::None,
        Durability::Interval => Sync::Interval(Duration::from_millis(100)),
        Durability::Commit => Sync::Commit,
    }
}

/// Completes a snapshot that was being read.
fn finish_snapshot(state: &mut HubState) -> Result<(), String> {
    match std::mem::replace(state, HubState::Empty) {
        HubState::SnapshotReader(restoring) => {
            let hub = restoring.finish().map_err(|damaged| damaged.to_string())?;
            *state = HubState::Running(Box::new(hub));
        }
        other => *state = other,
    }
    Ok(())
}

/// Expires messages if a command may need the room.
fn make_room(hub: &mut Hub, command: &Command) -> Option<Prepared> {
    let messages = match command {
        Command::Publish(publish) => &publish.messages,
        Command::Create { first, .. } => first,
        Command::Renew(_) | Command::SetExpiry { .. } | Command::Remove(_) => return None,
    };
    let bytes: usize =
        messages.iter().map(|draft| draft.content.body.len() + MESSAGE_OVERHEAD).sum();
    if hub.has_room(bytes as u64) { None } else { hub.expire(now(), MAX_EXPIRED) }
}

impl PendingCommand {
    const fn settled(outcome: Result<Applied, Error>) -> Self {
        Self(Progress::Settled(Some(outcome)))
    }

    /// Blocks until the command is acknowledged. Do not call it in an async function: it would
    /// block the other tasks of the thread.
    ///
    /// # Errors
    ///
    /// The command was not executed.
    pub fn wait(self) -> Result<Applied, Error> {
        match self.0 {
            Progress::Settled(outcome) => outcome.unwrap_or_else(already_polled),
            Progress::Journaled(pending, outcome) => outcome_of(pending.wait(), &outcome),
            Progress::InParts(promisee) => promisee.wait(),
        }
    }
}

impl Future for PendingCommand {
    type Output = Result<Applied, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Progress::Settled(outcome) => {
                Poll::Ready(outcome.take().unwrap_or_else(already_polled))
            }
            Progress::Journaled(pending, outcome) => {
                let kept = ready!(Pin::new(pending).poll(context));
                Poll::Ready(outcome_of(kept, outcome))
            }
            Progress::InParts(promisee) => Pin::new(promisee).poll(context),
        }
    }
}

impl Revocation {
    /// Blocks until the record is written. Do not call it in an async function: it would block the
    /// other tasks of the thread.
    ///
    /// # Errors
    ///
    /// The revocation is in effect but will not survive a restart.
    pub fn wait(self) -> Result<(), Error> {
        self.0?.wait().map(drop).map_err(Error::Storage)
    }
}

impl Future for Revocation {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(pending) => {
                let kept = ready!(Pin::new(pending).poll(context));
                Poll::Ready(kept.map(drop).map_err(Error::Storage))
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

fn outcome_of(
    kept: Result<u64, bine_store::Error>,
    outcome: &SharedResult,
) -> Result<Applied, Error> {
    kept.map_err(Error::Storage)?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    match outcome {
        Some(applied) => applied.map_err(Error::Refused),
        None => {
            log::error(format_args!("an order of channels was kept and not carried out"));
            Err(Error::Storage(bine_store::Error::Closed))
        }
    }
}

fn already_polled() -> Result<Applied, Error> {
    Err(Error::Storage(bine_store::Error::Closed))
}

impl fmt::Debug for PendingCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("PendingCommand")
    }
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
