//! Decides which tasks are woken by a publication: those that follow one of its channels, and no others.
//!
//! A held reply is told by the waiters of its loop, which know what to send. A task only wants to be woken, and reads by
//! itself; it may be on any thread, so all tasks wait in one place, under a lock of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bine_push::{AfterDelivery, Hub, WaiterKey, WaiterLimits, Waiters};

/// Tasks and threads that wait for channels.
#[derive(Default)]
pub(super) struct Audience(Mutex<Seats>);

#[derive(Default)]
pub(super) struct Seats {
    /// Who is owed what; made when the first waits.
    pub(super) waiters: Option<Waiters>,
    /// Up to this position of the ring all who waited were told.
    pub(super) told: u64,
    pub(super) all: Vec<SeatState>,
    pub(super) vacant: Vec<usize>,
}

/// What is known of who has a seat.
#[derive(Default)]
pub(super) struct SeatState {
    /// Its name among the waiters, while it waits there.
    pub(super) key: Option<WaiterKey>,
    pub(super) waker: Option<Waker>,
}

/// Where the ring and the hub were when a reader read that there is nothing for it.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) ring: u64,
    pub(super) epoch: u32,
}

/// What came of the wish to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// It will be woken.
    Begun,
    /// Something happened since: it must read again.
    Late,
    /// As many wait as may.
    Full,
}

/// Waiters at once, and their channels added up.
pub(super) const CROWD: WaiterLimits = WaiterLimits { waiters: 1 << 20, subscriptions: 1 << 22 };

/// Lends the hub to whoever asks for it, if it runs.
pub(super) trait HubAccess {
    fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T>;
}

impl Audience {
    /// Wakes those to whom something has happened that the hub tells by its ring.
    pub(super) fn tell(&self, engine: &impl HubAccess) {
        let mut woken = Vec::new();
        let mut seats = self.seats();
        let Seats { waiters, told, all, .. } = &mut *seats;
        let Some(crowd) = waiters.as_mut().filter(|crowd| !crowd.is_empty()) else {
            *waiters = None;
            // Whoever read before this and is about to wait must read again.
            *told = engine.hub(|hub| hub.ring().position()).unwrap_or(*told);
            return;
        };
        loop {
            let _ = engine.hub(|hub| crowd.receive(hub.ring()));
            crowd.advance(usize::MAX, |delivery| {
                let taken = &mut all[delivery.token as usize];
                taken.key = None;
                woken.extend(taken.waker.take());
                AfterDelivery::Remove
            });
            match engine.hub(|hub| (crowd.is_behind(hub.ring()), hub.ring().position())) {
                Some((true, _)) => {}
                Some((false, position)) => break *told = position,
                None => break,
            }
        }
        drop(seats);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all, to look whether they may still be here.
    pub(super) fn wake(&self) {
        let woken: Vec<Waker> =
            self.seats().all.iter().filter_map(|taken| taken.waker.clone()).collect();
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all: the channels end.
    pub(super) fn end(&self) {
        let mut seats = self.seats();
        seats.waiters = None;
        let woken: Vec<Waker> = seats
            .all
            .iter_mut()
            .filter_map(|taken| {
                taken.key = None;
                taken.waker.take()
            })
            .collect();
        drop(seats);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(super) fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    pub(super) fn rise(&mut self, number: usize) {
        let taken = std::mem::take(&mut self.all[number]);
        if let (Some(waiters), Some(key)) = (&mut self.waiters, taken.key) {
            waiters.cancel(key);
        }
    }
}
