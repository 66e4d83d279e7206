//! Reload: a connection keeps the configuration with which it was accepted until it closes (Marlow,
//! "Developing a High-Performance Web Server in Concurrent Haskell", 2002, section 6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bine_admission::Admission;

use crate::access::{AccessLog, AccessSettings};
use crate::discard::discard;
use crate::handler::{Handler, HandlerContext, Responder};
use crate::limits::Budgets;
use crate::listener::Listener;
use crate::listener_watch::ListenerWatch;
use crate::settings::{Listen, Settings};
use crate::system::event_counter;
use crate::time::Clock;

/// The part of a server that a reload replaces. All threads share one.
pub(crate) struct Generation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) listeners: Box<[Arc<Listener>]>,
    pub(crate) snapshot: Arc<ConfigSnapshot>,
    /// Becomes readable, for good, when a newer generation replaces this one.
    superseded: OwnedFd,
    /// Created when the first thread that blocks waits for a connection.
    watch: OnceLock<ListenerWatch>,
}

impl Generation {
    /// Opens the listeners of `snapshot`. Listeners that `older` has too are shared with it.
    pub(crate) fn open(snapshot: ConfigSnapshot, older: Option<&Self>) -> io::Result<Self> {
        let settings = Arc::clone(&snapshot.settings);
        let kept = older.map_or_else(Vec::new, |older| older.match_listeners(&settings.listeners));
        let has_equal_proxies =
            older.is_none_or(|older| older.settings.proxies == settings.proxies);
        let open = |(index, listen): (usize, &Listen)| match kept.get(index).copied().flatten() {
            Some((listener, old)) if old == listen && has_equal_proxies => Ok(Arc::clone(listener)),
            Some((listener, old)) => listener.under(listen, old, &settings.proxies).map(Arc::new),
            None => Listener::open(listen, &settings.proxies).map(Arc::new),
        };
        let listeners =
            settings.listeners.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        Ok(Self {
            settings,
            listeners,
            snapshot: Arc::new(snapshot),
            superseded: event_counter()?,
            watch: OnceLock::new(),
        })
    }

    /// For each requested listener, an open listener with its options: one with equal options
    /// if possible, else one for the same address. No listener is used twice, since the kernel may
    /// choose the port of several requests.
    fn match_listeners(&self, requested: &[Listen]) -> Vec<Option<(&Arc<Listener>, &Listen)>> {
        let mut open: Vec<_> = self.listeners.iter().zip(&self.settings.listeners).collect();
        let mut kept = vec![None; requested.len()];
        let matches: [fn(&Listen, &Listen) -> bool; 2] =
            [|old, new| old == new, |old, new| old.address == new.address];
        for matches in matches {
            for (new, kept) in requested.iter().zip(&mut kept) {
                if kept.is_none()
                    && let Some(index) = open.iter().position(|(_, old)| matches(old, new))
                {
                    *kept = Some(open.remove(index));
                }
            }
        }
        kept
    }

    /// The listeners whose addresses `newer` does not have.
    pub(crate) fn removed_in<'g>(&'g self, newer: &'g Self) -> impl Iterator<Item = &'g Listener> {
        let is_kept =
            |old: &Arc<Listener>| newer.listeners.iter().any(|new| old.address() == new.address());
        self.listeners.iter().filter(move |old| !is_kept(old)).map(|old| &**old)
    }

    /// Wakes the threads that wait for a newer generation.
    pub(crate) fn supersede(&self) {
        // Cannot fail: the counter is written once, so it does not overflow.
        let _ = rustix::io::write(&self.superseded, &1u64.to_ne_bytes());
    }

    /// The watch of the listeners, by which threads that block wait. `stop_bell` and a newer generation
    /// end their waits.
    pub(crate) fn watch(&self, stop_bell: BorrowedFd<'_>) -> io::Result<&ListenerWatch> {
        if let Some(watch) = self.watch.get() {
            return Ok(watch);
        }
        match ListenerWatch::new(&self.listeners, [stop_bell, self.superseded()]) {
            // Of two threads that create one at the same time, the second one drops its own.
            Ok(watch) => Ok(self.watch.get_or_init(|| watch)),
            // Another thread may have had the last descriptor for it.
            Err(error) => self.watch.get().ok_or(error),
        }
    }

    pub(crate) fn superseded(&self) -> BorrowedFd<'_> {
        self.superseded.as_fd()
    }
}

/// The configuration of all connections of one generation. A connection that moves between
/// threads takes its snapshot along, since a [`SnapshotId`] is valid on one thread only.
pub(crate) struct ConfigSnapshot {
    pub(crate) settings: Arc<Settings>,
    pub(crate) access: Option<AccessSettings>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) budgets: Arc<Budgets>,
}

impl ConfigSnapshot {
    /// Creates the calling thread's own part of the snapshot.
    fn for_thread(&self, clock: &Rc<Clock>) -> ThreadSnapshot {
        let handler_context = HandlerContext {
            clock: Rc::clone(clock),
            chunk_at: self.settings.chunk_at,
            admission: Arc::clone(&self.admission),
            is_internal: false,
        };
        ThreadSnapshot {
            settings: Arc::clone(&self.settings),
            responder: self.handler.local(handler_context),
            access: AccessLog::new(self.access.clone()),
        }
    }
}

/// One thread's part of a [`ConfigSnapshot`].
struct ThreadSnapshot {
    settings: Arc<Settings>,
    responder: Box<dyn Responder>,
    access: AccessLog,
}

/// The index of a snapshot in the [`ThreadConfig`] of a thread. Each connection stores one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotId(u16);

/// A thread's configuration: the snapshot of the current connection, and all other snapshots that
/// connections of the thread use. A request costs one comparison.
pub(crate) struct ThreadConfig {
    /// The settings, the responder and the access log belong to the current snapshot.
    pub(crate) settings: Arc<Settings>,
    pub(crate) responder: Box<dyn Responder>,
    pub(crate) access: AccessLog,
    current: SnapshotId,
    newest: SnapshotId,
    slots: Vec<SnapshotSlot>,
}

/// A snapshot with the number of connections that use it, or a free slot.
#[derive(Default)]
struct SnapshotSlot {
    connections: u32,
    /// `None`: the slot is free.
    snapshot: Option<Arc<ConfigSnapshot>>,
    /// `None`: the snapshot is current, or the slot is free.
    thread_snapshot: Option<ThreadSnapshot>,
}

impl ThreadConfig {
    /// A configuration without a snapshot, for tests.
    pub(crate) fn new(
        settings: Arc<Settings>,
        responder: Box<dyn Responder>,
        access: AccessLog,
    ) -> Self {
        let slots = vec![SnapshotSlot::default()];
        Self { settings, responder, access, current: SnapshotId(0), newest: SnapshotId(0), slots }
    }

    /// A configuration whose first connections use `snapshot`.
    pub(crate) fn with_snapshot(snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> Self {
        let ThreadSnapshot { settings, responder, access } = snapshot.for_thread(clock);
        let mut config = Self::new(settings, responder, access);
        config.slots[0].snapshot = Some(Arc::clone(snapshot));
        config
    }

    /// Makes new connections use `snapshot`. Returns false, without a change, if older snapshots
    /// occupy every slot.
    pub(crate) fn adopt(&mut self, snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> bool {
        let Some(snapshot_id) = self.id_for(snapshot, clock) else { return false };
        let older = std::mem::replace(&mut self.newest, snapshot_id);
        self.switch_to(snapshot_id);
        self.release(older);
        true
    }

    /// Registers a connection from a different thread, which uses `snapshot`, and returns the id of
    /// the snapshot on this thread. Call [`leave`](Self::leave) once for it. `None`: every slot is
    /// occupied.
    pub(crate) fn enter_with(
        &mut self,
        snapshot: &Arc<ConfigSnapshot>,
        clock: &Rc<Clock>,
    ) -> Option<SnapshotId> {
        let snapshot_id = self.id_for(snapshot, clock)?;
        self.slot(snapshot_id).connections += 1;
        self.switch_to(snapshot_id);
        Some(snapshot_id)
    }

    /// The snapshot with this id, while a connection uses it.
    pub(crate) fn snapshot(&self, snapshot_id: SnapshotId) -> Option<&Arc<ConfigSnapshot>> {
        self.slots[usize::from(snapshot_id.0)].snapshot.as_ref()
    }

    /// The id of `snapshot` on this thread. Assigns an id to a new snapshot.
    fn id_for(&mut self, snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> Option<SnapshotId> {
        let is_same = |slot: &SnapshotSlot| {
            slot.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot))
        };
        if let Some(number) = self.slots.iter().position(is_same) {
            return u16::try_from(number).ok().map(SnapshotId);
        }
        let snapshot_id = self.free_slot()?;
        let thread_snapshot = snapshot.for_thread(clock);
        let slot = self.slot(snapshot_id);
        (slot.snapshot, slot.thread_snapshot) = (Some(Arc::clone(snapshot)), Some(thread_snapshot));
        Some(snapshot_id)
    }

    /// Registers a new connection and returns the id of its snapshot. Call [`leave`](Self::leave)
    /// once for it.
    pub(crate) fn enter(&mut self) -> SnapshotId {
        let snapshot_id = self.newest;
        self.slot(snapshot_id).connections += 1;
        self.switch_to(snapshot_id);
        snapshot_id
    }

    /// Records that a connection with this snapshot has ended.
    pub(crate) fn leave(&mut self, snapshot_id: SnapshotId) {
        self.slot(snapshot_id).connections -= 1;
        self.release(snapshot_id);
    }

    /// Makes this snapshot the current one.
    pub(crate) fn switch_to(&mut self, snapshot_id: SnapshotId) {
        if snapshot_id != self.current {
            self.exchange(snapshot_id);
        }
    }

    #[cold]
    fn exchange(&mut self, snapshot_id: SnapshotId) {
        let Some(mut thread_snapshot) = self.slot(snapshot_id).thread_snapshot.take() else {
            return;
        };
        // Otherwise its lines would wait until this snapshot is current again.
        self.access.flush();
        std::mem::swap(&mut self.settings, &mut thread_snapshot.settings);
        std::mem::swap(&mut self.responder, &mut thread_snapshot.responder);
        std::mem::swap(&mut self.access, &mut thread_snapshot.access);
        let before = std::mem::replace(&mut self.current, snapshot_id);
        self.slot(before).thread_snapshot = Some(thread_snapshot);
    }

    /// Drops a snapshot that no connection uses and that is not the newest.
    fn release(&mut self, snapshot_id: SnapshotId) {
        if snapshot_id == self.newest || self.slot(snapshot_id).connections > 0 {
            return;
        }
        self.switch_to(self.newest);
        let slot = self.slot(snapshot_id);
        discard((slot.snapshot.take(), slot.thread_snapshot.take()));
    }

    /// The number of snapshots that this thread has.
    #[cfg(test)]
    pub(crate) fn snapshot_count(&self) -> usize {
        1 + self.slots.iter().filter(|slot| slot.thread_snapshot.is_some()).count()
    }

    fn slot(&mut self, snapshot_id: SnapshotId) -> &mut SnapshotSlot {
        &mut self.slots[usize::from(snapshot_id.0)]
    }

    /// A free slot. `None`: all 65 536 are in use, each by a reload whose connections are still
    /// open.
    fn free_slot(&mut self) -> Option<SnapshotId> {
        let is_free = |(number, slot): &(usize, &SnapshotSlot)| {
            slot.connections == 0
                && slot.thread_snapshot.is_none()
                && *number != usize::from(self.current.0)
                && *number != usize::from(self.newest.0)
        };
        if let Some((number, _)) = self.slots.iter().enumerate().find(is_free) {
            return u16::try_from(number).ok().map(SnapshotId);
        }
        let number = u16::try_from(self.slots.len()).ok()?;
        self.slots.push(SnapshotSlot::default());
        Some(SnapshotId(number))
    }
}

#[cfg(test)]
mod tests {
    use bine_http::Head;

    use super::*;
    use crate::address::ClientAddress;
    use crate::handler::{Answer, Identity, Incoming, Outgoing};
    use bine_admission::AdmissionSettings;

    struct Named(&'static str);

    impl Handler for Named {
        fn local(&self, _bench: HandlerContext) -> Box<dyn Responder> {
            Box::new(Self(self.0))
        }
    }

    impl Responder for Named {
        fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
            Identity::Anonymous
        }

        fn respond(&mut self, _request: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
            Answer::Written { close: false }
        }

        fn last(&self) -> &'static str {
            self.0
        }
    }

    fn snapshot(name: &'static str) -> Arc<ConfigSnapshot> {
        let admission = Arc::new(Admission::new(AdmissionSettings::default(), 1));
        let handler = Arc::new(Named(name));
        let (settings, budgets) = (Arc::default(), Arc::default());
        Arc::new(ConfigSnapshot { settings, access: None, handler, admission, budgets })
    }

    fn clock() -> Rc<Clock> {
        Rc::new(Clock::told(0))
    }

    fn config() -> ThreadConfig {
        ThreadConfig::with_snapshot(&snapshot("first"), &clock())
    }

    #[test]
    fn shares_listeners_with_equal_options_only() {
        let listen = |nodelay| {
            let address = "127.0.0.1:0".parse().unwrap();
            Listen { nodelay, ..Listen::on(address) }
        };
        let open = |listeners: Vec<Listen>, older: Option<&Generation>| {
            let settings = Arc::new(Settings { listeners, ..Settings::default() });
            let snapshot = Arc::into_inner(snapshot("any")).unwrap();
            Generation::open(ConfigSnapshot { settings, ..snapshot }, older).unwrap()
        };
        let first = open(vec![listen(true), listen(false)], None);
        let same = open(vec![listen(false), listen(true)], Some(&first));
        assert!(Arc::ptr_eq(&first.listeners[0], &same.listeners[1]));
        assert!(Arc::ptr_eq(&first.listeners[1], &same.listeners[0]));
        assert_eq!(first.removed_in(&same).count(), 0);
        // The same socket with other options.
        let changed = open(vec![listen(false), listen(false)], Some(&first));
        assert!(!Arc::ptr_eq(&first.listeners[0], &changed.listeners[1]));
        assert_eq!(first.listeners[0].address(), changed.listeners[1].address());
        assert_eq!(first.removed_in(&changed).count(), 0);
        let fewer = open(vec![listen(true)], Some(&first));
        let removed: Vec<_> = first.removed_in(&fewer).map(Listener::address).collect();
        assert_eq!(removed, [first.listeners[1].address()]);
        let more = open(vec![listen(true), listen(true)], Some(&fewer));
        assert!(Arc::ptr_eq(&fewer.listeners[0], &more.listeners[0]));
        assert_ne!(more.listeners[0].address(), more.listeners[1].address());
    }

    #[test]
    fn keeps_the_snapshot_of_a_connection_after_reloads() {
        let mut config = config();
        let old = config.enter();
        assert!(config.adopt(&snapshot("second"), &clock()));
        let new = config.enter();
        assert_eq!(config.responder.last(), "second");
        config.switch_to(old);
        assert_eq!(config.responder.last(), "first");
        config.switch_to(new);
        assert_eq!(config.responder.last(), "second");
    }

    #[test]
    fn keeps_each_snapshot_that_has_a_connection() {
        let mut config = config();
        let names = ["first", "second", "third", "fourth"];
        let ids: Vec<SnapshotId> = (0..names.len())
            .map(|number| {
                if number > 0 {
                    assert!(config.adopt(&snapshot(names[number]), &clock()));
                }
                config.enter()
            })
            .collect();
        for (id, name) in ids.into_iter().zip(names).rev() {
            config.switch_to(id);
            assert_eq!(config.responder.last(), name);
            // The slot of the snapshot in use is empty, and is not free.
            assert!(config.adopt(&snapshot("newest"), &clock()));
            config.switch_to(id);
            assert_eq!(config.responder.last(), name);
        }
    }

    #[test]
    fn drops_a_snapshot_with_its_last_connection() {
        let mut config = config();
        let (one, other) = (config.enter(), config.enter());
        assert!(config.adopt(&snapshot("second"), &clock()));
        config.switch_to(one);
        config.leave(one);
        assert_eq!(config.snapshot_count(), 2);
        config.leave(other);
        assert_eq!((config.snapshot_count(), config.responder.last()), (1, "second"));
    }

    #[test]
    fn reuses_the_slots_of_dropped_snapshots() {
        let mut config = config();
        let mut last = config.enter();
        for _ in 0..1000 {
            assert!(config.adopt(&snapshot("next"), &clock()));
            let next = config.enter();
            config.switch_to(last);
            config.leave(last);
            last = next;
        }
        assert_eq!(config.snapshot_count(), 1);
        assert!(config.slots.len() <= 3, "{}", config.slots.len());
    }

    #[test]
    fn gives_a_snapshot_from_another_thread_one_id() {
        let mut config = config();
        let (one, next) = (snapshot("one"), snapshot("next"));
        let old = config.enter_with(&one, &clock()).unwrap();
        assert_eq!(
            (config.enter_with(&one, &clock()), config.responder.last()),
            (Some(old), "one")
        );
        // A connection may bring a snapshot before this thread has adopted it.
        let early = config.enter_with(&next, &clock()).unwrap();
        assert!(config.adopt(&next, &clock()));
        assert_eq!((config.enter(), config.snapshot_count()), (early, 2));
        config.leave(old);
        config.leave(old);
        assert_eq!((config.snapshot_count(), config.snapshot(old).is_some()), (1, false));
    }
}
