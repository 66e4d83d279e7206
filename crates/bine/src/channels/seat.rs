//! The place of one task or thread among those that wait for channels.

use std::sync::Arc;
use std::task::Waker;

use bine_push::{View, WaitKind, WaitOptions, WaitPoint, Waiters};

use super::audience::{CROWD, Moment, SeatState, Seats, Waiting};
use super::clock::now;
use super::engine::Engine;

/// A place in the audience, left by being dropped.
pub(super) struct Seat {
    pub(super) engine: Arc<Engine>,
    number: usize,
}

impl Seat {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let mut seats = engine.audience.seats();
        let number = seats.vacant.pop().unwrap_or(seats.all.len());
        if number == seats.all.len() {
            seats.all.push(SeatState::default());
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
    pub(super) fn wait(&self, parking: &WaitPoint, moment: Moment, waker: &Waker) -> Waiting {
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
        let wait = WaitOptions { view: View::Raw, kind: WaitKind::Poll, deadline: u64::MAX };
        let Ok(key) = waiters.park(self.number as u64, parking, wait) else { return Waiting::Full };
        all[self.number] = SeatState { key: Some(key), waker: Some(waker.clone()) };
        Waiting::Begun
    }

    /// Waits no more, and is not woken.
    pub(super) fn rise(&self) {
        self.engine.audience.seats().rise(self.number);
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
