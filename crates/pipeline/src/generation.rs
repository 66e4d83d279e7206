//! Decides which settings a connection lives under: those that were in force when it came, until it
//! ends (document 002 section 6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::access::{AccessLog, AccessSettings};
use crate::clock::Clock;
use crate::connection::Context;
use crate::handler::{Bench, Handler, Responder};
use crate::listener::Listener;
use crate::settings::{Listen, Settings};

/// What a server can be given anew while it runs. All threads share one.
pub(crate) struct Generation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) listeners: Box<[Arc<Listener>]>,
    pub(crate) access: Option<AccessSettings>,
    handler: Arc<dyn Handler>,
    /// Readable, for ever, once another generation has come.
    superseded: OwnedFd,
}

impl Generation {
    /// Opens the addresses that `older` does not have; those that it has are shared with it.
    pub(crate) fn open(
        settings: Settings,
        handler: Arc<dyn Handler>,
        access: Option<AccessSettings>,
        older: Option<&Self>,
    ) -> io::Result<Self> {
        let kept = older.map_or_else(Vec::new, |older| older.kept_for(&settings.listeners));
        let open = |(place, wish): (usize, &Listen)| match kept.get(place).copied().flatten() {
            Some((listener, own)) if own == wish => Ok(Arc::clone(listener)),
            Some((listener, own)) => listener.under(wish, own).map(Arc::new),
            None => Listener::open(wish).map(Arc::new),
        };
        Ok(Self {
            listeners: settings
                .listeners
                .iter()
                .enumerate()
                .map(open)
                .collect::<io::Result<_>>()?,
            settings: Arc::new(settings),
            access,
            handler,
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

    /// The part of it that the calling thread has to itself.
    pub(crate) fn share(&self, clock: &std::rc::Rc<Clock>) -> Share {
        let bench = Bench { clock: std::rc::Rc::clone(clock), chunk_at: self.settings.chunk_at };
        Share {
            settings: Arc::clone(&self.settings),
            responder: self.handler.local(bench),
            access: AccessLog::new(self.access.clone()),
        }
    }
}

/// One thread's part of a generation.
pub(crate) struct Share {
    pub(crate) settings: Arc<Settings>,
    pub(crate) responder: Box<dyn Responder>,
    pub(crate) access: AccessLog,
}

/// Names a [`Share`] of a thread, as a connection remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Era(u16);

/// The shares of a thread that its connections still need. The one at hand is in the thread's
/// [`Context`] itself, so that a request costs one comparison and nothing more.
pub(crate) struct Eras {
    at_hand: Era,
    newest: Era,
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    connections: u32,
    /// `None`: at hand, or vacant.
    share: Option<Share>,
}

impl Eras {
    pub(crate) fn new() -> Self {
        Self { at_hand: Era(0), newest: Era(0), places: vec![Place::default()] }
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

impl Context {
    /// Puts `share` in force for the connections to come. False: older ones hold every place, and
    /// nothing has changed.
    pub(crate) fn begin_era(&mut self, share: Share) -> bool {
        let Some(era) = self.eras.vacancy() else { return false };
        self.make_scratch_for(&share.settings);
        self.eras.place(era).share = Some(share);
        let older = std::mem::replace(&mut self.eras.newest, era);
        self.turn_to(era);
        self.end_era(older);
        true
    }

    /// The era of a new connection, which [leaves](Self::leave) it once.
    pub(crate) fn enter(&mut self) -> Era {
        let era = self.eras.newest;
        self.eras.place(era).connections += 1;
        self.turn_to(era);
        era
    }

    /// A connection of this era is over.
    pub(crate) fn leave(&mut self, era: Era) {
        self.eras.place(era).connections -= 1;
        self.end_era(era);
    }

    /// Makes the settings, the responder and the access log those of `era`.
    pub(crate) fn turn_to(&mut self, era: Era) {
        if era != self.eras.at_hand {
            self.exchange(era);
        }
    }

    #[cold]
    fn exchange(&mut self, era: Era) {
        let Some(mut share) = self.eras.place(era).share.take() else { return };
        // Its lines would otherwise wait until one of its connections has a turn again.
        self.access.flush();
        std::mem::swap(&mut self.settings, &mut share.settings);
        std::mem::swap(&mut self.responder, &mut share.responder);
        std::mem::swap(&mut self.access, &mut share.access);
        let before = std::mem::replace(&mut self.eras.at_hand, era);
        self.eras.place(before).share = Some(share);
    }

    /// Frees an era that has no connection left and is not the one for the next.
    fn end_era(&mut self, era: Era) {
        if era == self.eras.newest || self.eras.place(era).connections > 0 {
            return;
        }
        self.turn_to(self.eras.newest);
        self.eras.place(era).share = None;
    }

    /// How many shares this thread holds.
    #[cfg(test)]
    fn shares(&self) -> usize {
        1 + self.eras.places.iter().filter(|place| place.share.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use bine_http::Head;

    use super::*;
    use crate::address::Peer;
    use crate::handler::{Answer, Incoming, Outgoing, Who};

    struct Named(&'static str);

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

    fn share(name: &'static str) -> Share {
        Share {
            settings: Arc::default(),
            responder: Box::new(Named(name)),
            access: AccessLog::new(None),
        }
    }

    fn context() -> Context {
        let Share { settings, responder, access } = share("first");
        Context::new(settings, Rc::new(Clock::told(0)), responder, access)
    }

    #[test]
    fn a_connection_keeps_its_era_and_newcomers_have_the_next() {
        let mut context = context();
        let old = context.enter();
        assert!(context.begin_era(share("second")));
        let new = context.enter();
        assert_eq!(context.responder.last(), "second");
        context.turn_to(old);
        assert_eq!(context.responder.last(), "first");
        context.turn_to(new);
        assert_eq!(context.responder.last(), "second");
    }

    #[test]
    fn an_era_ends_with_its_last_connection() {
        let mut context = context();
        let (one, other) = (context.enter(), context.enter());
        assert!(context.begin_era(share("second")));
        context.turn_to(one);
        context.leave(one);
        assert_eq!(context.shares(), 2);
        context.leave(other);
        assert_eq!((context.shares(), context.responder.last()), (1, "second"));
    }

    #[test]
    fn a_thousand_eras_need_the_places_of_two() {
        let mut context = context();
        let mut last = context.enter();
        for _ in 0..1000 {
            assert!(context.begin_era(share("next")));
            let next = context.enter();
            context.turn_to(last);
            context.leave(last);
            last = next;
        }
        assert_eq!(context.shares(), 1);
        assert!(context.eras.places.len() <= 3, "{}", context.eras.places.len());
    }
}
