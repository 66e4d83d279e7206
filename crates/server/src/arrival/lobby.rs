//! Decides where connections wait that one thread has accepted, or has left between two stages, and
//! another is to go on with: a queue with a bound, in the order they came.

use std::collections::VecDeque;
use std::io;
use std::iter::from_fn;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::arrival::refusal::NO_THREAD;
use crate::arrival::{Arrival, Entrance};
use crate::quota::Shares;

/// Taken in between two looks at who has waited too long, however many more come meanwhile.
const CROWD: usize = 1024;

/// One block of addresses has this part of the places to wait.
const PART_OF_BLOCK: usize = 4;

/// The queue. Threads without a connection rest here; those whose connection is idle may watch it.
pub(crate) struct Lobby {
    inside: Mutex<Inside>,
    arrived: Condvar,
    /// Readable while somebody waits whom no resting thread will take.
    bell: OwnedFd,
    /// The same, for whoever only wants to know.
    is_pressed: AtomicBool,
    most: usize,
}

#[derive(Default)]
struct Inside {
    waiting: VecDeque<(Instant, Arrival)>,
    /// Of these, those of each block of addresses.
    shares: Shares,
    /// Threads without a connection.
    resting: usize,
    has_rung: bool,
    is_closed: bool,
    /// Counts calls of everybody, so that none is missed.
    calls: u32,
}

/// Why a thread no longer rests.
pub(crate) enum Called {
    To(Arrival),
    /// To look at the settings, and come back.
    Look,
    /// To end.
    Off,
}

impl Lobby {
    /// With room for `most`.
    pub(crate) fn new(most: usize) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            inside: Mutex::default(),
            arrived: Condvar::new(),
            bell,
            is_pressed: AtomicBool::new(false),
            most: most.max(1),
        })
    }

    /// Lets everybody wait who comes to `entrance` within `wait`, and tells who finds no room.
    pub(crate) fn fill(&self, entrance: &mut Entrance, wait: Option<Duration>) -> io::Result<()> {
        let first = entrance.accept_within(wait)?;
        if entrance.is_called() {
            // Resting threads should know of it too.
            self.call_all();
        }
        let others = from_fn(|| entrance.accept_now()).take(CROWD);
        for arrival in first.into_iter().chain(others) {
            if let Err(arrival) = self.enter(arrival) {
                arrival.refuse(NO_THREAD.told());
            }
        }
        Ok(())
    }

    /// Lets `arrival` wait, or gives it back when there is no room.
    fn enter(&self, arrival: Arrival) -> Result<(), Arrival> {
        let inside = self.lock();
        let (count, resting) = (inside.waiting.len(), inside.resting);
        if count >= self.most.saturating_add(resting) {
            return Err(arrival);
        }
        // One address leaves room for others, unless a thread is free for it.
        let block = arrival.peer().block();
        let share = (self.most / PART_OF_BLOCK).max(1) as u64;
        if count >= resting && !block.is_local() && inside.shares.held(block) >= share {
            return Err(arrival);
        }
        self.push(inside, arrival);
        Ok(())
    }

    /// Lets a connection wait for its next stage. The calling thread takes another in its place, so that no more
    /// than it are ever beyond the bound.
    pub(crate) fn put_back(&self, arrival: Arrival) {
        self.push(self.lock(), arrival);
    }

    /// Somebody waits whom no resting thread will take.
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// Rests until there is a connection for the calling thread, or something else to do.
    pub(crate) fn rest(&self) -> Called {
        let mut inside = self.lock();
        let calls = inside.calls;
        inside.resting += 1;
        let called = loop {
            if let Some(arrival) = self.next(&mut inside) {
                break Called::To(arrival);
            }
            if inside.is_closed {
                break Called::Off;
            }
            if inside.calls != calls {
                break Called::Look;
            }
            inside = self.arrived.wait(inside).unwrap_or_else(PoisonError::into_inner);
        };
        inside.resting -= 1;
        called
    }

    /// Who has waited longest, for a thread whose connection gives way.
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.next(&mut self.lock())
    }

    /// Has those go who have waited for `limit`; when the next one will have, if somebody waits.
    pub(crate) fn turn_away(&self, limit: Duration) -> Option<Duration> {
        loop {
            match self.take_late(limit) {
                Ok(late) => late.refuse(NO_THREAD.told()),
                Err(wait) => return wait,
            }
        }
    }

    /// One who has waited for `limit`.
    ///
    /// # Errors
    ///
    /// When the next one will have, if somebody waits.
    pub(crate) fn take_late(&self, limit: Duration) -> Result<Arrival, Option<Duration>> {
        let mut inside = self.lock();
        let waiting = &mut inside.waiting;
        let place = waiting.iter().position(|(_, arrival)| arrival.may_be_turned_away());
        let place = place.ok_or(None)?;
        let waited = waiting[place].0.elapsed();
        if waited < limit {
            return Err(Some(limit.saturating_sub(waited)));
        }
        let late = waiting.remove(place).ok_or(None)?;
        inside.shares.give_back(late.1.peer().block(), 1);
        self.relax(&mut inside);
        Ok(late.1)
    }

    /// Has every resting thread look at the settings.
    fn call_all(&self) {
        let mut inside = self.lock();
        inside.calls = inside.calls.wrapping_add(1);
        drop(inside);
        self.arrived.notify_all();
    }

    /// Ends the rest of all; who waits is still taken in.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn next(&self, inside: &mut Inside) -> Option<Arrival> {
        let (_, arrival) = inside.waiting.pop_front()?;
        inside.shares.give_back(arrival.peer().block(), 1);
        self.relax(inside);
        Some(arrival)
    }

    fn push(&self, mut inside: MutexGuard<'_, Inside>, arrival: Arrival) {
        inside.shares.add(arrival.peer().block(), 1);
        inside.waiting.push_back((Instant::now(), arrival));
        if inside.waiting.len() > inside.resting && !inside.has_rung {
            inside.has_rung = true;
            self.is_pressed.store(true, Ordering::Relaxed);
            // One at most is ever in the counter.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
        drop(inside);
        self.arrived.notify_one();
    }

    /// Somebody waits no more.
    fn relax(&self, inside: &mut Inside) {
        if inside.has_rung && inside.waiting.is_empty() {
            inside.has_rung = false;
            self.is_pressed.store(false, Ordering::Relaxed);
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing under it can panic half-way.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Lobby {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
