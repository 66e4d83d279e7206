//! Decides which tasks are woken by a publication: those that follow one of its channels, and no others.
//!
//! A held reply is told by the waiters of its loop, which know what to send. A task only wants to be woken, and reads by
//! itself; it may be on any thread, so all tasks wait in one place, under a lock of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bine_push::{Crowd, Kind, Parking, Then, View, Wait, WaiterKey, Waiters};

use super::engine::{Engine, now};

/// Tasks and threads that wait for channels.
#[derive(Default)]
pub(super) struct Audience(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    /// Who is owed what; made when the first waits.
    waiters: Option<Waiters>,
    /// Up to this position of the ring all who waited were told.
    told: u64,
    all: Vec<Taken>,
    vacant: Vec<usize>,
}

/// What is known of who has a seat.
#[derive(Default)]
struct Taken {
    /// Its name among the waiters, while it waits there.
    key: Option<WaiterKey>,
    waker: Option<Waker>,
}

/// A place in the audience, left by being dropped.
pub(super) struct Seat {
    pub(super) engine: Arc<Engine>,
    number: usize,
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
pub(super) const CROWD: Crowd = Crowd { waiters: 1 << 20, places: 1 << 22 };

impl Audience {
    /// Wakes those to whom something has happened that the hub tells by its ring.
    pub(super) fn tell(&self, engine: &Engine) {
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
                Then::Leave
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

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let mut seats = engine.audience.seats();
        let number = seats.vacant.pop().unwrap_or(seats.all.len());
        if number == seats.all.len() {
            seats.all.push(Taken::default());
        }
        drop(seats);
        Self { engine, number }
    }

    /// Whether it waits still; then `waker` is woken instead of the one before.
    pub(super) fn waits(&self, waker: &Waker) -> bool {
        let mut seats = self.engine.audience.seats();
        let taken = &mut seats.all[self.number];
        if taken.key.is_some() {
            taken.waker = Some(waker.clone());
        }
        taken.key.is_some()
    }

    /// Waits for what its reader has not seen, who has read everything up to `parking` at that moment.
    pub(super) fn wait(&self, parking: &Parking, moment: Moment, waker: &Waker) -> Waiting {
        let mut seats = self.engine.audience.seats();
        let Seats { waiters, told, all, .. } = &mut *seats;
        if self.engine.is_over() {
            return Waiting::Late;
        }
        if *told > moment.ring {
            return Waiting::Late;
        }
        let waiters = waiters.get_or_insert_with(|| {
            *told = moment.ring;
            Waiters::new(moment.epoch, CROWD, moment.ring, now())
        });
        // It reads by itself; the view that costs least is the one of bodies.
        let wait = Wait { view: View::Raw, kind: Kind::Poll, until: u64::MAX };
        let Ok(key) = waiters.park(self.number as u64, parking, wait) else { return Waiting::Full };
        all[self.number] = Taken { key: Some(key), waker: Some(waker.clone()) };
        Waiting::Begun
    }

    /// Waits no more, and is not woken.
    pub(super) fn rise(&self) {
        self.engine.audience.seats().rise(self.number);
    }
}

impl Seats {
    fn rise(&mut self, number: usize) {
        let taken = std::mem::take(&mut self.all[number]);
        if let (Some(waiters), Some(key)) = (&mut self.waiters, taken.key) {
            waiters.cancel(key);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.engine.audience.seats();
        seats.rise(self.number);
        seats.vacant.push(self.number);
        if seats.vacant.len() == seats.all.len() {
            // A crowd that has gone leaves no memory behind.
            *seats = Seats::default();
        }
    }
}
