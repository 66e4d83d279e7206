//! The shared state of this node: what it has entered itself, and the thread that tells the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bine_log as log;

use super::machine::{RosterChange, StateMachine, fits};
use super::record::{EntryChange, MAX_CHANGES, StateRecord, owns};
use crate::node_directory::NodeDirectory;
use crate::store::{self, Extension, Pending, SnapshotBlocks, Store, Sync};

/// The state of one run that several nodes share. On one machine it has no effect, and
/// [`is_shared`](Self::is_shared) is false.
#[derive(Clone, Default)]
pub(crate) struct SharedState(Arc<StateEngine>);

/// The entries at a place.
pub(crate) struct Roster {
    /// The number of all entries.
    pub(crate) count: usize,
    /// The first ones, as keys with their values.
    pub(crate) first: Vec<(Arc<str>, Arc<str>)>,
}

/// Learns of changes in the rosters of some places, in the order of the journal. The calls come under
/// the journal's lock: they must be quick and must not commit.
pub(crate) trait RosterObserver: Send + std::marker::Sync {
    /// The beginning of the places that it observes.
    fn prefix(&self) -> &'static str;

    /// A snapshot had this entry.
    fn load(&self, _entry: &RosterChange) {}

    /// A record has made these changes. `sequence` is its place in the journal, `time` comes from the
    /// record, in milliseconds since 1970. All nodes are called with the same arguments.
    fn follow(&self, sequence: u64, time: u64, changes: &[RosterChange]);
}

/// Gets the body of each message of a topic.
type Receiver = Box<dyn Fn(&str) + Send + std::marker::Sync>;

#[derive(Default)]
struct StateEngine {
    machine: Mutex<StateMachine>,
    observers: RwLock<Vec<Arc<dyn RosterObserver>>>,
    /// By topic.
    receivers: RwLock<HashMap<&'static str, Receiver>>,
    /// By the name of the value.
    watchers: RwLock<HashMap<Box<str>, Receiver>>,
    link: OnceLock<StateLink>,
    outbox: Mutex<StateOutbox>,
    /// Wakes the thread that sends.
    woken: Condvar,
    is_over: AtomicBool,
}

/// Where the records of this node go.
struct StateLink {
    store: Store,
    node: Arc<str>,
    directory: Arc<dyn NodeDirectory>,
}

/// What this node has entered, and what the others do not know yet.
#[derive(Default)]
struct StateOutbox {
    /// The entries of this node, by place and key.
    own: BTreeMap<EntryKey, Arc<str>>,
    /// The entries to send.
    dirty: BTreeSet<EntryKey>,
    /// The values to send.
    values: BTreeMap<Arc<str>, Arc<str>>,
    /// The messages to send.
    messages: Vec<StateRecord>,
    /// The values of this node that are sent and have not come back.
    sent_values: HashMap<Arc<str>, usize>,
}

type EntryKey = (Arc<str>, Arc<str>);

/// How long the thread waits after a failure. The store has logged why.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often the thread looks for nodes that have ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// How long a node must be missing until its entries are removed, in checks.
const MISSING_CHECKS: u32 = 2;
/// The most messages that wait for the thread.
const MAX_MESSAGES: usize = 10_000;
/// The most entries of this node. Further ones are not shared.
const MAX_OWN: usize = 1 << 20;

impl SharedState {
    /// Whether several nodes share the state.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.link.get().is_some()
    }

    /// The name of this node, once the state is shared.
    pub(crate) fn node(&self) -> Option<&Arc<str>> {
        self.0.link.get().map(|link| &link.node)
    }

    /// Adds an observer. Call it before the store is open.
    pub(crate) fn observe(&self, observer: Arc<dyn RosterObserver>) {
        self.0.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Sets the function that gets the messages of a topic, on the nodes that they are sent to. Call
    /// it before the store is open. The call comes under the journal's lock: the function must be
    /// quick and must not commit.
    pub(crate) fn receive(
        &self,
        topic: &'static str,
        receive: impl Fn(&str) + Send + std::marker::Sync + 'static,
    ) {
        let mut receivers = self.0.receivers.write().unwrap_or_else(PoisonError::into_inner);
        receivers.insert(topic, Box::new(receive));
    }

    /// Sets the function that gets the JSON of a value whenever a node has replaced it, this one
    /// included, and once at the start if a node has set it before. Call it before the store is open.
    pub(crate) fn watch_value(
        &self,
        name: &str,
        changed: impl Fn(&str) + Send + std::marker::Sync + 'static,
    ) {
        let mut watchers = self.0.watchers.write().unwrap_or_else(PoisonError::into_inner);
        watchers.insert(name.into(), Box::new(changed));
    }

    /// Enters a key with a value at a place, or replaces the value.
    pub(crate) fn enter(&self, place: &str, key: &str, value: &str) {
        if !self.is_shared() || !fits(place, key, value) {
            return;
        }
        let entry: EntryKey = (place.into(), key.into());
        let mut outbox = self.0.outbox();
        if outbox.own.len() >= MAX_OWN && !outbox.own.contains_key(&entry) {
            return;
        }
        outbox.own.insert(entry.clone(), value.into());
        outbox.dirty.insert(entry);
        drop(outbox);
        self.0.woken.notify_all();
    }

    /// Removes what this node has entered with a key at a place.
    pub(crate) fn leave(&self, place: &str, key: &str) {
        if !self.is_shared() {
            return;
        }
        let entry: EntryKey = (place.into(), key.into());
        let mut outbox = self.0.outbox();
        if outbox.own.remove(&entry).is_some() {
            outbox.dirty.insert(entry);
        }
        drop(outbox);
        self.0.woken.notify_all();
    }

    /// The number of entries at a place on all nodes, and the first keys with their values.
    pub(crate) fn roster(&self, place: &str, most: usize) -> Roster {
        let machine = self.0.machine();
        let first = machine.roster(place).take(most);
        let first = first.map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect();
        Roster { count: machine.count(place), first }
    }

    /// Sends a message to one node, or to all with this one. Returns at once; the message arrives once
    /// if no error is returned and this node is not cut off meanwhile.
    ///
    /// # Errors
    ///
    /// This node is cut off, or too many changes wait.
    pub(crate) fn send(
        &self,
        topic: &str,
        to: Option<&str>,
        body: &str,
    ) -> Result<(), store::Error> {
        let Some(link) = self.0.link.get() else { return Err(store::Error::Closed) };
        let (topic, to, body) = (topic.into(), to.map(Arc::from), body.into());
        self.0.append(link, StateRecord::Message { topic, to, body }).map(drop)
    }

    /// Sends a message from a function that [receives](Self::receive) one. It is lost if this node is
    /// cut off, or if too many wait.
    pub(crate) fn send_later(&self, topic: &str, to: Option<&str>, body: &str) {
        let mut outbox = self.0.outbox();
        if outbox.messages.len() < MAX_MESSAGES {
            let (topic, to, body) = (topic.into(), to.map(Arc::from), body.into());
            outbox.messages.push(StateRecord::Message { topic, to, body });
            drop(outbox);
            self.0.woken.notify_all();
        }
    }

    /// Replaces a value. The last record in the journal decides between two nodes.
    pub(crate) fn set_value(&self, name: &str, json: &str) {
        if self.is_shared() {
            self.0.outbox().values.insert(name.into(), json.into());
            self.0.woken.notify_all();
        }
    }

    /// The extension that keeps the state in the store's journal.
    pub(super) fn extension(&self) -> Arc<dyn Extension> {
        Arc::clone(&self.0) as _
    }

    /// Begins to share the state, if the store is shared. Removes what an earlier process of this node
    /// has left.
    ///
    /// # Errors
    ///
    /// The stream cannot be written, or no thread can start.
    pub(super) fn begin(
        &self,
        store: &Store,
        directory: Option<Arc<dyn NodeDirectory>>,
    ) -> Result<(), String> {
        let Some(directory) = directory.filter(|_| store.is_shared()) else { return Ok(()) };
        let Some(node) = directory.own_name() else { return Ok(()) };
        let link = StateLink { store: store.clone(), node, directory };
        while self.0.machine().has_entries_of(&link.node) {
            let end = StateRecord::End { node: Arc::clone(&link.node), time: now() };
            let ended = self.0.append(&link, end).and_then(Pending::wait);
            ended.map_err(|error| error.to_string())?;
        }
        // Called once.
        let _ = self.0.link.set(link);
        let own = Arc::clone(&self.0);
        thread::Builder::new()
            .name("shared state".to_owned())
            .spawn(move || own.run())
            .map_err(|error| format!("no thread: {error}"))?;
        Ok(())
    }

    /// Removes the entries of this node, and ends the thread.
    pub(super) fn end(&self) {
        self.0.is_over.store(true, Ordering::Release);
        drop(self.0.outbox());
        self.0.woken.notify_all();
        let Some(link) = self.0.link.get() else { return };
        while self.0.machine().has_entries_of(&link.node) {
            let end = StateRecord::End { node: Arc::clone(&link.node), time: now() };
            if self.0.append(link, end).and_then(Pending::wait).is_err() {
                // The others notice that the node is missing.
                return;
            }
        }
    }
}

impl StateEngine {
    fn machine(&self) -> MutexGuard<'_, StateMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outbox(&self) -> MutexGuard<'_, StateOutbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observers(&self) -> RwLockReadGuard<'_, Vec<Arc<dyn RosterObserver>>> {
        self.observers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record to the journal.
    fn append(
        self: &Arc<Self>,
        link: &StateLink,
        record: StateRecord,
    ) -> Result<Pending, store::Error> {
        let bytes = record.encode();
        let own = Arc::clone(self);
        link.store.append(&bytes, Sync::None, move |sequence| own.apply(sequence, record))
    }

    /// Applies a record in its turn.
    fn apply(&self, sequence: u64, record: StateRecord) {
        match record {
            StateRecord::Roster { node, time, place, changes } => {
                let changes = self.machine().change(&node, &place, changes);
                self.report(sequence, time, &changes);
            }
            StateRecord::End { node, time } => {
                let changes = self.machine().end(&node);
                self.report(sequence, time, &changes);
                if self.link.get().is_some_and(|link| link.node == node) {
                    // Another node has missed this one for a while.
                    let mut outbox = self.outbox();
                    let own: Vec<_> = outbox.own.keys().cloned().collect();
                    outbox.dirty.extend(own);
                    drop(outbox);
                    self.woken.notify_all();
                }
            }
            StateRecord::Value { node, name, json } => {
                // Settled even if the value is beyond a bound, so that later ones of other nodes count.
                let is_settled = self.is_settled(&node, &name);
                let is_kept = self.machine().set(Arc::clone(&name), Arc::clone(&json));
                if is_settled
                    && is_kept
                    && let Some(changed) = self.watchers().get(&*name)
                {
                    changed(&json);
                }
            }
            StateRecord::Message { topic, to, body } => {
                // During the start no client listens.
                let Some(link) = self.link.get() else { return };
                let receivers = self.receivers.read().unwrap_or_else(PoisonError::into_inner);
                if to.is_none_or(|to| to == link.node)
                    && let Some(receive) = receivers.get(&*topic)
                {
                    receive(&body);
                }
            }
        }
    }

    /// Whether no value of this node is under way: the last one in the journal is the current one.
    fn is_settled(&self, node: &Arc<str>, name: &Arc<str>) -> bool {
        let mut outbox = self.outbox();
        if self.link.get().is_some_and(|link| link.node == *node) {
            outbox.settle_value(name);
        }
        !outbox.values.contains_key(name) && !outbox.sent_values.contains_key(name)
    }

    fn watchers(&self) -> RwLockReadGuard<'_, HashMap<Box<str>, Receiver>> {
        self.watchers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports changes to the observers of their places.
    fn report(&self, sequence: u64, time: u64, changes: &[RosterChange]) {
        for observer in &*self.observers() {
            let is_own = |change: &&RosterChange| change.place.starts_with(observer.prefix());
            let own: Vec<RosterChange> = changes.iter().filter(is_own).cloned().collect();
            if !own.is_empty() {
                observer.follow(sequence, time, &own);
            }
        }
    }

    /// Sends what the others do not know, and removes entries of nodes that have ended.
    fn run(self: &Arc<Self>) {
        let Some(link) = self.link.get() else { return };
        let mut missing = HashMap::new();
        let mut last_check = Instant::now();
        while !self.is_over.load(Ordering::Acquire) {
            let is_sent = self.send_all(link);
            if last_check.elapsed() >= CHECK_INTERVAL {
                self.remove_ended(link, &mut missing);
                last_check = Instant::now();
            }
            let outbox = self.outbox();
            let is_idle =
                outbox.dirty.is_empty() && outbox.values.is_empty() && outbox.messages.is_empty();
            if (is_idle || !is_sent) && !self.is_over.load(Ordering::Acquire) {
                let wait = if is_idle { CHECK_INTERVAL } else { RETRY_INTERVAL };
                drop(self.woken.wait_timeout(outbox, wait));
            }
        }
    }

    /// Sends all dirty entries and values, and waits for them. Returns false after a failure; what was
    /// not sent stays in the outbox.
    fn send_all(self: &Arc<Self>, link: &StateLink) -> bool {
        let (mut roster, values, messages) = {
            let mut outbox = self.outbox();
            let StateOutbox { own, dirty, values, messages, sent_values } = &mut *outbox;
            let mut roster: BTreeMap<Arc<str>, Vec<EntryChange>> = BTreeMap::new();
            for _ in 0..MAX_CHANGES {
                let Some(entry) = dirty.pop_first() else { break };
                let value = own.get(&entry).cloned();
                roster.entry(entry.0).or_default().push((entry.1, value));
            }
            let values = mem::take(values);
            for name in values.keys() {
                *sent_values.entry(Arc::clone(name)).or_default() += 1;
            }
            (roster, values, mem::take(messages))
        };
        let (node, time) = (&link.node, now());
        let mut sent = Vec::new();
        for message in messages {
            // The sender has not asked for an outcome.
            let _ = self.append(link, message);
        }
        for (place, changes) in &mut roster {
            let (node, place, changes) = (Arc::clone(node), Arc::clone(place), changes.clone());
            sent.push(self.append(link, StateRecord::Roster { node, time, place, changes }));
        }
        for (name, json) in &values {
            let (node, name, json) = (Arc::clone(node), Arc::clone(name), Arc::clone(json));
            sent.push(self.append(link, StateRecord::Value { node, name, json }));
        }
        let mut outcomes = sent.into_iter().map(|pending| pending.and_then(Pending::wait).is_ok());
        let mut is_sent = true;
        for (place, changes) in roster {
            if outcomes.next() != Some(true) {
                is_sent = false;
                let keys = changes.into_iter().map(|(key, _)| (Arc::clone(&place), key));
                self.outbox().dirty.extend(keys);
            }
        }
        for (name, json) in values {
            if outcomes.next() != Some(true) {
                is_sent = false;
                let mut outbox = self.outbox();
                outbox.settle_value(&name);
                // A later value stays.
                outbox.values.entry(name).or_insert(json);
            }
        }
        is_sent
    }

    /// Removes the entries of nodes that are missing for a while.
    fn remove_ended(self: &Arc<Self>, link: &StateLink, missing: &mut HashMap<Arc<str>, u32>) {
        let Some(present) = link.directory.names() else {
            missing.clear();
            return;
        };
        let with_entries = self.machine().nodes();
        missing.retain(|node, _| with_entries.contains(node));
        for node in with_entries {
            if node == link.node || present.iter().any(|name| **name == *node) {
                missing.remove(&node);
                continue;
            }
            let checks = missing.entry(Arc::clone(&node)).or_default();
            *checks += 1;
            if *checks >= MISSING_CHECKS {
                log::notice(format_args!("node {node} has ended: its clients are not present"));
                while self.machine().has_entries_of(&node) {
                    let end = StateRecord::End { node: Arc::clone(&node), time: now() };
                    if self.append(link, end).and_then(Pending::wait).is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl StateOutbox {
    /// Notes that a value which was sent has come back, or never will.
    fn settle_value(&mut self, name: &Arc<str>) {
        if let Some(sent) = self.sent_values.get_mut(name) {
            *sent -= 1;
            if *sent == 0 {
                self.sent_values.remove(name);
            }
        }
    }
}

impl Extension for StateEngine {
    fn owns(&self, first: u8) -> bool {
        owns(first)
    }

    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        self.machine().load(block).ok_or_else(|| "a block of shared state is damaged".to_owned())
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        let record = StateRecord::decode(record).ok_or("a record of shared state is damaged")?;
        self.apply(sequence, record);
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        let machine = self.machine();
        for observer in &*self.observers() {
            let all = machine.all().into_iter();
            all.filter(|entry| entry.place.starts_with(observer.prefix()))
                .for_each(|entry| observer.load(&entry));
        }
        for (name, changed) in &*self.watchers() {
            if let Some(json) = machine.value(name) {
                changed(json);
            }
        }
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        Box::new(self.machine().blocks().into_iter())
    }
}

impl fmt::Debug for SharedState {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SharedState")
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
