//! Decides which settings a connection lives under: those that were in force when it came, until it
//! ends (document 002 section 6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use bine_admission::Admission;
use rustix::event::{EventfdFlags, eventfd};

use crate::access::{AccessLog, AccessSettings};
use crate::discard::discard;
use crate::handler::{Bench, Handler, Responder};
use crate::limits::Budgets;
use crate::listener::Listener;
use crate::settings::{Listen, Settings};
use crate::time::Clock;

/// What a server can be given anew while it runs. All threads share one.
pub(crate) struct Generation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) listeners: Box<[Arc<Listener>]>,
    pub(crate) snapshot: Arc<ConfigSnapshot>,
    /// Readable, for ever, once another generation has come.
    superseded: OwnedFd,
}

impl Generation {
    /// Opens the addresses that `older` does not have; those that it has are shared with it.
    pub(crate) fn open(snapshot: ConfigSnapshot, older: Option<&Self>) -> io::Result<Self> {
        let settings = Arc::clone(&snapshot.settings);
        let kept = older.map_or_else(Vec::new, |older| older.kept_for(&settings.listeners));
        let open = |(place, wish): (usize, &Listen)| match kept.get(place).copied().flatten() {
            Some((listener, own)) if own == wish => Ok(Arc::clone(listener)),
            Some((listener, own)) => listener.under(wish, own).map(Arc::new),
            None => Listener::open(wish).map(Arc::new),
        };
        let listeners =
            settings.listeners.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        Ok(Self {
            settings,
            listeners,
            snapshot: Arc::new(snapshot),
            superseded: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// For each of these wishes the listener that serves it, and what was wished of that: the same, else another for the
    /// same address. None is given twice, since several wishes may leave their port to the kernel.
    fn kept_for(&self, wishes: &[Listen]) -> Vec<Option<(&Arc<Listener>, &Listen)>> {
        let mut left: Vec<_> = self.listeners.iter().zip(&self.settings.listeners).collect();
        let mut kept = vec![None; wishes.len()];
        let fits: [fn(&Listen, &Listen) -> bool; 2] =
            [|own, wish| own == wish, |own, wish| own.address == wish.address];
        for fits in fits {
            for (wish, kept) in wishes.iter().zip(&mut kept) {
                if kept.is_none()
                    && let Some(place) = left.iter().position(|(_, own)| fits(own, wish))
                {
                    *kept = Some(left.remove(place));
                }
            }
        }
        kept
    }

    /// Listeners for addresses that `newer` does not have.
    pub(crate) fn gone_in<'g>(&'g self, newer: &'g Self) -> impl Iterator<Item = &'g Listener> {
        let kept =
            |own: &Arc<Listener>| newer.listeners.iter().any(|new| own.address() == new.address());
        self.listeners.iter().filter(move |own| !kept(own)).map(|own| &**own)
    }

    /// Wakes those who wait for it.
    pub(crate) fn supersede(&self) {
        // Written once: it cannot overflow.
        let _ = rustix::io::write(&self.superseded, &1u64.to_ne_bytes());
    }

    pub(crate) fn superseded(&self) -> BorrowedFd<'_> {
        self.superseded.as_fd()
    }
}

/// What the connections of one generation live under. A connection that changes threads takes it
/// along, since it means the same to each of them, as an [`SnapshotId`] does not.
pub(crate) struct ConfigSnapshot {
    pub(crate) settings: Arc<Settings>,
    pub(crate) access: Option<AccessSettings>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) budgets: Arc<Budgets>,
}

impl ConfigSnapshot {
    /// The part of it that the calling thread has to itself.
    fn share(&self, clock: &Rc<Clock>) -> Share {
        let bench = Bench {
            clock: Rc::clone(clock),
            chunk_at: self.settings.chunk_at,
            admission: Arc::clone(&self.admission),
        };
        Share {
            settings: Arc::clone(&self.settings),
            responder: self.handler.local(bench),
            access: AccessLog::new(self.access.clone()),
        }
    }
}

/// One thread's part of a generation.
struct Share {
    settings: Arc<Settings>,
    responder: Box<dyn Responder>,
    access: AccessLog,
}

/// Names a [`Share`] of a thread, as a connection remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotId(u16);

/// The calling thread's configuration: that of the connection at hand, and those that other connections of the
/// thread still need. A request costs one comparison and nothing more.
pub(crate) struct ThreadConfig {
    /// Settings, responder and access log are those of the connection at hand.
    pub(crate) settings: Arc<Settings>,
    pub(crate) responder: Box<dyn Responder>,
    pub(crate) access: AccessLog,
    at_hand: SnapshotId,
    newest: SnapshotId,
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    connections: u32,
    /// Whose share it is; `None`: vacant.
    snapshot: Option<Arc<ConfigSnapshot>>,
    /// `None`: at hand, or vacant.
    share: Option<Share>,
}

impl ThreadConfig {
    /// A configuration without a snapshot, for tests.
    pub(crate) fn new(
        settings: Arc<Settings>,
        responder: Box<dyn Responder>,
        access: AccessLog,
    ) -> Self {
        let places = vec![Place::default()];
        Self { settings, responder, access, at_hand: SnapshotId(0), newest: SnapshotId(0), places }
    }

    /// A configuration whose first connections keep `snapshot`.
    pub(crate) fn under(snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> Self {
        let Share { settings, responder, access } = snapshot.share(clock);
        let mut own = Self::new(settings, responder, access);
        own.places[0].snapshot = Some(Arc::clone(snapshot));
        own
    }

    /// Puts `snapshot` in force for the connections to come. False: older ones hold every place, and
    /// nothing has changed.
    pub(crate) fn adopt(&mut self, snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> bool {
        let Some(snapshot_id) = self.id_of(snapshot, clock) else { return false };
        let older = std::mem::replace(&mut self.newest, snapshot_id);
        self.turn_to(snapshot_id);
        self.release(older);
        true
    }

    /// The id here of the snapshot of a connection from another thread, which [leaves](Self::leave) it
    /// once. `None`: other connections hold every place.
    pub(crate) fn enter_under(
        &mut self,
        snapshot: &Arc<ConfigSnapshot>,
        clock: &Rc<Clock>,
    ) -> Option<SnapshotId> {
        let snapshot_id = self.id_of(snapshot, clock)?;
        self.place(snapshot_id).connections += 1;
        self.turn_to(snapshot_id);
        Some(snapshot_id)
    }

    /// The snapshot with this id, while a connection keeps it.
    pub(crate) fn snapshot(&self, snapshot_id: SnapshotId) -> Option<&Arc<ConfigSnapshot>> {
        self.places[usize::from(snapshot_id.0)].snapshot.as_ref()
    }

    /// The id of `snapshot` on this thread, which is given one if it has none.
    fn id_of(&mut self, snapshot: &Arc<ConfigSnapshot>, clock: &Rc<Clock>) -> Option<SnapshotId> {
        let is_it =
            |place: &Place| place.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot));
        if let Some(number) = self.places.iter().position(is_it) {
            return u16::try_from(number).ok().map(SnapshotId);
        }
        let snapshot_id = self.vacancy()?;
        let share = snapshot.share(clock);
        let place = self.place(snapshot_id);
        (place.snapshot, place.share) = (Some(Arc::clone(snapshot)), Some(share));
        Some(snapshot_id)
    }

    /// The id of the snapshot that a new connection keeps. The connection [leaves](Self::leave) it once.
    pub(crate) fn enter(&mut self) -> SnapshotId {
        let snapshot_id = self.newest;
        self.place(snapshot_id).connections += 1;
        self.turn_to(snapshot_id);
        snapshot_id
    }

    /// A connection that kept this snapshot is over.
    pub(crate) fn leave(&mut self, snapshot_id: SnapshotId) {
        self.place(snapshot_id).connections -= 1;
        self.release(snapshot_id);
    }

    /// Makes the settings, the responder and the access log those of this snapshot.
    pub(crate) fn turn_to(&mut self, snapshot_id: SnapshotId) {
        if snapshot_id != self.at_hand {
            self.exchange(snapshot_id);
        }
    }

    #[cold]
    fn exchange(&mut self, snapshot_id: SnapshotId) {
        let Some(mut share) = self.place(snapshot_id).share.take() else { return };
        // Its lines would otherwise wait until one of its connections has a turn again.
        self.access.flush();
        std::mem::swap(&mut self.settings, &mut share.settings);
        std::mem::swap(&mut self.responder, &mut share.responder);
        std::mem::swap(&mut self.access, &mut share.access);
        let before = std::mem::replace(&mut self.at_hand, snapshot_id);
        self.place(before).share = Some(share);
    }

    /// Drops a snapshot that no connection keeps and that is not the newest.
    fn release(&mut self, snapshot_id: SnapshotId) {
        if snapshot_id == self.newest || self.place(snapshot_id).connections > 0 {
            return;
        }
        self.turn_to(self.newest);
        let place = self.place(snapshot_id);
        discard((place.snapshot.take(), place.share.take()));
    }

    /// How many shares this thread holds.
    #[cfg(test)]
    pub(crate) fn shares(&self) -> usize {
        1 + self.places.iter().filter(|place| place.share.is_some()).count()
    }

    fn place(&mut self, snapshot_id: SnapshotId) -> &mut Place {
        &mut self.places[usize::from(snapshot_id.0)]
    }

    /// A place that nobody needs; `None` when 65 536 are in use, one for each reload that has left
    /// connections behind.
    fn vacancy(&mut self) -> Option<SnapshotId> {
        let is_vacant = |(number, place): &(usize, &Place)| {
            place.connections == 0
                && place.share.is_none()
                && *number != usize::from(self.at_hand.0)
                && *number != usize::from(self.newest.0)
        };
        if let Some((number, _)) = self.places.iter().enumerate().find(is_vacant) {
            return u16::try_from(number).ok().map(SnapshotId);
        }
        let number = u16::try_from(self.places.len()).ok()?;
        self.places.push(Place::default());
        Some(SnapshotId(number))
    }
}

#[cfg(test)]
mod tests {
    use bine_http::Head;

    use super::*;
    use crate::address::Peer;
    use crate::handler::{Answer, Incoming, Outgoing, Who};
    use bine_admission::Terms;

    struct Named(&'static str);

    impl Handler for Named {
        fn local(&self, _bench: Bench) -> Box<dyn Responder> {
            Box::new(Self(self.0))
        }
    }

    impl Responder for Named {
        fn admit(&mut self, _head: &Head<'_>, _peer: Peer) -> Who {
            Who::Anonymous
        }

        fn respond(&mut self, _request: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
            Answer::Written { close: false }
        }

        fn last(&self) -> &'static str {
            self.0
        }
    }

    fn snapshot(name: &'static str) -> Arc<ConfigSnapshot> {
        let admission = Arc::new(Admission::new(Terms::default(), 1));
        let handler = Arc::new(Named(name));
        let (settings, budgets) = (Arc::default(), Arc::default());
        Arc::new(ConfigSnapshot { settings, access: None, handler, admission, budgets })
    }

    fn clock() -> Rc<Clock> {
        Rc::new(Clock::told(0))
    }

    fn config() -> ThreadConfig {
        ThreadConfig::under(&snapshot("first"), &clock())
    }

    #[test]
    fn keeps_the_snapshot_of_a_connection_when_newer_ones_come() {
        let mut config = config();
        let old = config.enter();
        assert!(config.adopt(&snapshot("second"), &clock()));
        let new = config.enter();
        assert_eq!(config.responder.last(), "second");
        config.turn_to(old);
        assert_eq!(config.responder.last(), "first");
        config.turn_to(new);
        assert_eq!(config.responder.last(), "second");
    }

    #[test]
    fn drops_a_snapshot_with_its_last_connection() {
        let mut config = config();
        let (one, other) = (config.enter(), config.enter());
        assert!(config.adopt(&snapshot("second"), &clock()));
        config.turn_to(one);
        config.leave(one);
        assert_eq!(config.shares(), 2);
        config.leave(other);
        assert_eq!((config.shares(), config.responder.last()), (1, "second"));
    }

    #[test]
    fn a_thousand_snapshots_need_the_places_of_two() {
        let mut config = config();
        let mut last = config.enter();
        for _ in 0..1000 {
            assert!(config.adopt(&snapshot("next"), &clock()));
            let next = config.enter();
            config.turn_to(last);
            config.leave(last);
            last = next;
        }
        assert_eq!(config.shares(), 1);
        assert!(config.places.len() <= 3, "{}", config.places.len());
    }

    #[test]
    fn gives_a_snapshot_from_another_thread_one_id() {
        let mut config = config();
        let (one, next) = (snapshot("one"), snapshot("next"));
        let old = config.enter_under(&one, &clock()).unwrap();
        assert_eq!(
            (config.enter_under(&one, &clock()), config.responder.last()),
            (Some(old), "one")
        );
        // It is known here before the thread itself has taken note of it.
        let early = config.enter_under(&next, &clock()).unwrap();
        assert!(config.adopt(&next, &clock()));
        assert_eq!((config.enter(), config.shares()), (early, 2));
        config.leave(old);
        config.leave(old);
        assert_eq!((config.shares(), config.snapshot(old).is_some()), (1, false));
    }
}
