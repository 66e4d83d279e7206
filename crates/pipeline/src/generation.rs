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
    pub(crate) charter: Arc<Charter>,
    /// Readable, for ever, once another generation has come.
    superseded: OwnedFd,
}

impl Generation {
    /// Opens the addresses that `older` does not have; those that it has are shared with it.
    pub(crate) fn open(charter: Charter, older: Option<&Self>) -> io::Result<Self> {
        let settings = Arc::clone(&charter.settings);
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
            charter: Arc::new(charter),
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
/// along, since it means the same to each of them, as an [`Era`] does not.
pub(crate) struct Charter {
    pub(crate) settings: Arc<Settings>,
    pub(crate) access: Option<AccessSettings>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) budgets: Arc<Budgets>,
}

impl Charter {
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
pub(crate) struct Era(u16);

/// The calling thread's configuration: that of the connection at hand, and those that other connections of the
/// thread still need. A request costs one comparison and nothing more.
pub(crate) struct ThreadConfig {
    /// Settings, responder and access log are those of the connection at hand.
    pub(crate) settings: Arc<Settings>,
    pub(crate) responder: Box<dyn Responder>,
    pub(crate) access: AccessLog,
    at_hand: Era,
    newest: Era,
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    connections: u32,
    /// Whose share it is; `None`: vacant.
    charter: Option<Arc<Charter>>,
    /// `None`: at hand, or vacant.
    share: Option<Share>,
}

impl ThreadConfig {
    /// A configuration that belongs to no charter.
    pub(crate) fn new(
        settings: Arc<Settings>,
        responder: Box<dyn Responder>,
        access: AccessLog,
    ) -> Self {
        let places = vec![Place::default()];
        Self { settings, responder, access, at_hand: Era(0), newest: Era(0), places }
    }

    /// A configuration whose first connections come under `charter`.
    pub(crate) fn under(charter: &Arc<Charter>, clock: &Rc<Clock>) -> Self {
        let Share { settings, responder, access } = charter.share(clock);
        let mut own = Self::new(settings, responder, access);
        own.places[0].charter = Some(Arc::clone(charter));
        own
    }

    /// Puts `charter` in force for the connections to come. False: older ones hold every place, and
    /// nothing has changed.
    pub(crate) fn begin_era(&mut self, charter: &Arc<Charter>, clock: &Rc<Clock>) -> bool {
        let Some(era) = self.era_of(charter, clock) else { return false };
        let older = std::mem::replace(&mut self.newest, era);
        self.turn_to(era);
        self.end_era(older);
        true
    }

    /// The era here of a connection that comes from another thread, which [leaves](Self::leave) it
    /// once. `None`: other connections hold every place.
    pub(crate) fn enter_under(&mut self, charter: &Arc<Charter>, clock: &Rc<Clock>) -> Option<Era> {
        let era = self.era_of(charter, clock)?;
        self.place(era).connections += 1;
        self.turn_to(era);
        Some(era)
    }

    /// What the connections of `era` live under.
    pub(crate) fn charter(&self, era: Era) -> Option<&Arc<Charter>> {
        self.places[usize::from(era.0)].charter.as_ref()
    }

    /// The era of `charter` on this thread, which may begin with this.
    fn era_of(&mut self, charter: &Arc<Charter>, clock: &Rc<Clock>) -> Option<Era> {
        let is_it =
            |place: &Place| place.charter.as_ref().is_some_and(|own| Arc::ptr_eq(own, charter));
        if let Some(number) = self.places.iter().position(is_it) {
            return u16::try_from(number).ok().map(Era);
        }
        let era = self.vacancy()?;
        let share = charter.share(clock);
        let place = self.place(era);
        (place.charter, place.share) = (Some(Arc::clone(charter)), Some(share));
        Some(era)
    }

    /// The era of a new connection, which [leaves](Self::leave) it once.
    pub(crate) fn enter(&mut self) -> Era {
        let era = self.newest;
        self.place(era).connections += 1;
        self.turn_to(era);
        era
    }

    /// A connection of this era is over.
    pub(crate) fn leave(&mut self, era: Era) {
        self.place(era).connections -= 1;
        self.end_era(era);
    }

    /// Makes the settings, the responder and the access log those of `era`.
    pub(crate) fn turn_to(&mut self, era: Era) {
        if era != self.at_hand {
            self.exchange(era);
        }
    }

    #[cold]
    fn exchange(&mut self, era: Era) {
        let Some(mut share) = self.place(era).share.take() else { return };
        // Its lines would otherwise wait until one of its connections has a turn again.
        self.access.flush();
        std::mem::swap(&mut self.settings, &mut share.settings);
        std::mem::swap(&mut self.responder, &mut share.responder);
        std::mem::swap(&mut self.access, &mut share.access);
        let before = std::mem::replace(&mut self.at_hand, era);
        self.place(before).share = Some(share);
    }

    /// Frees an era that has no connection left and is not the one for the next.
    fn end_era(&mut self, era: Era) {
        if era == self.newest || self.place(era).connections > 0 {
            return;
        }
        self.turn_to(self.newest);
        let place = self.place(era);
        discard((place.charter.take(), place.share.take()));
    }

    /// How many shares this thread holds.
    #[cfg(test)]
    pub(crate) fn shares(&self) -> usize {
        1 + self.places.iter().filter(|place| place.share.is_some()).count()
    }

    fn place(&mut self, era: Era) -> &mut Place {
        &mut self.places[usize::from(era.0)]
    }

    /// A place that nobody needs; `None` when 65 536 are in use, one for each reload that has left
    /// connections behind.
    fn vacancy(&mut self) -> Option<Era> {
        let is_vacant = |(number, place): &(usize, &Place)| {
            place.connections == 0
                && place.share.is_none()
                && *number != usize::from(self.at_hand.0)
                && *number != usize::from(self.newest.0)
        };
        if let Some((number, _)) = self.places.iter().enumerate().find(is_vacant) {
            return u16::try_from(number).ok().map(Era);
        }
        let number = u16::try_from(self.places.len()).ok()?;
        self.places.push(Place::default());
        Some(Era(number))
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

    fn charter(name: &'static str) -> Arc<Charter> {
        let admission = Arc::new(Admission::new(Terms::default(), 1));
        let handler = Arc::new(Named(name));
        let (settings, budgets) = (Arc::default(), Arc::default());
        Arc::new(Charter { settings, access: None, handler, admission, budgets })
    }

    fn clock() -> Rc<Clock> {
        Rc::new(Clock::told(0))
    }

    fn config() -> ThreadConfig {
        ThreadConfig::under(&charter("first"), &clock())
    }

    #[test]
    fn a_connection_keeps_its_era_and_newcomers_have_the_next() {
        let mut config = config();
        let old = config.enter();
        assert!(config.begin_era(&charter("second"), &clock()));
        let new = config.enter();
        assert_eq!(config.responder.last(), "second");
        config.turn_to(old);
        assert_eq!(config.responder.last(), "first");
        config.turn_to(new);
        assert_eq!(config.responder.last(), "second");
    }

    #[test]
    fn an_era_ends_with_its_last_connection() {
        let mut config = config();
        let (one, other) = (config.enter(), config.enter());
        assert!(config.begin_era(&charter("second"), &clock()));
        config.turn_to(one);
        config.leave(one);
        assert_eq!(config.shares(), 2);
        config.leave(other);
        assert_eq!((config.shares(), config.responder.last()), (1, "second"));
    }

    #[test]
    fn a_thousand_eras_need_the_places_of_two() {
        let mut config = config();
        let mut last = config.enter();
        for _ in 0..1000 {
            assert!(config.begin_era(&charter("next"), &clock()));
            let next = config.enter();
            config.turn_to(last);
            config.leave(last);
            last = next;
        }
        assert_eq!(config.shares(), 1);
        assert!(config.places.len() <= 3, "{}", config.places.len());
    }

    #[test]
    fn a_charter_from_another_thread_has_one_era_here() {
        let mut config = config();
        let (one, next) = (charter("one"), charter("next"));
        let old = config.enter_under(&one, &clock()).unwrap();
        assert_eq!(
            (config.enter_under(&one, &clock()), config.responder.last()),
            (Some(old), "one")
        );
        // It is known here before the thread itself has taken note of it.
        let early = config.enter_under(&next, &clock()).unwrap();
        assert!(config.begin_era(&next, &clock()));
        assert_eq!((config.enter(), config.shares()), (early, 2));
        config.leave(old);
        config.leave(old);
        assert_eq!((config.shares(), config.charter(old).is_some()), (1, false));
    }
}
