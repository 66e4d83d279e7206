//! The bounded queue in which accepted connections, and connections between two stages, wait for a
//! thread in order of arrival.

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

/// Maximum number of connections accepted between two checks for expired waits.
const CROWD: usize = 1024;

/// One address block may use this fraction (1/4) of the queue.
const PART_OF_BLOCK: usize = 4;

/// The queue of waiting connections. Threads without a connection wait on it; threads whose
/// connection is idle poll its descriptor.
pub(crate) struct Lobby {
    inside: Mutex<Inside>,
    arrived: Condvar,
    /// Event descriptor, readable from when connections outnumber idle threads until the queue is
    /// empty.
    bell: OwnedFd,
    /// Same condition as `bell`, readable without a system call.
    is_pressed: AtomicBool,
    most: usize,
}

#[derive(Default)]
struct Inside {
    waiting: VecDeque<(Instant, Arrival)>,
    /// Number of waiting connections per address block.
    shares: Shares,
    /// Idle threads, which have no connection.
    resting: usize,
    has_rung: bool,
    is_closed: bool,
    /// Number of calls to all idle threads, so that a thread detects a call made since it began to
    /// wait.
    calls: u32,
}

/// The reason for which an idle thread continues.
pub(crate) enum Called {
    To(Arrival),
    /// To check the settings and wait again.
    Look,
    /// To end.
    Off,
}

impl Lobby {
    /// Creates a queue for `most` connections.
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

    /// Queues the connections that `entrance` accepts within `wait`, and refuses those beyond the
    /// bound.
    pub(crate) fn fill(&self, entrance: &mut Entrance, wait: Option<Duration>) -> io::Result<()> {
        let first = entrance.accept_within(wait)?;
        if entrance.is_called() {
            // Idle threads must react to the stop or the new settings too.
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

    /// Queues `arrival`, or returns it when the queue is full.
    fn enter(&self, arrival: Arrival) -> Result<(), Arrival> {
        let inside = self.lock();
        let (count, resting) = (inside.waiting.len(), inside.resting);
        if count >= self.most.saturating_add(resting) {
            return Err(arrival);
        }
        // One address block may not fill the queue, unless a thread is free for the connection.
        let block = arrival.peer().block();
        let share = (self.most / PART_OF_BLOCK).max(1) as u64;
        if count >= resting && !block.is_local() && inside.shares.held(block) >= share {
            return Err(arrival);
        }
        self.push(inside, arrival);
        Ok(())
    }

    /// Queues a connection for its next stage without a check of the bound. The calling thread then
    /// takes a waiting connection, so each thread exceeds the bound by at most one.
    pub(crate) fn put_back(&self, arrival: Arrival) {
        self.push(self.lock(), arrival);
    }

    /// Whether connections have outnumbered idle threads since the queue was last empty.
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// Waits for a connection, a call to check the settings, or the end.
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

    /// Takes the oldest connection, for a thread whose idle connection gives way.
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.next(&mut self.lock())
    }

    /// Refuses the connections that have waited for `limit`. Returns the time until the next one
    /// will have, if any waits.
    pub(crate) fn turn_away(&self, limit: Duration) -> Option<Duration> {
        loop {
            match self.take_late(limit) {
                Ok(late) => late.refuse(NO_THREAD.told()),
                Err(wait) => return wait,
            }
        }
    }

    /// Takes a connection that has waited for `limit`.
    ///
    /// # Errors
    ///
    /// Returns the time until the next connection will have waited for `limit`, if any waits.
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

    /// Makes every idle thread check the settings.
    fn call_all(&self) {
        let mut inside = self.lock();
        inside.calls = inside.calls.wrapping_add(1);
        drop(inside);
        self.arrived.notify_all();
    }

    /// Closes the queue: threads take the remaining connections and then end.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Returns the number of waiting connections.
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
            // Cannot overflow: `has_rung` keeps the counter at 1 or below.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
        drop(inside);
        self.arrived.notify_one();
    }

    /// Clears the event descriptor when the queue has become empty.
    fn relax(&self, inside: &mut Inside) {
        if inside.has_rung && inside.waiting.is_empty() {
            inside.has_rung = false;
            self.is_pressed.store(false, Ordering::Relaxed);
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Lobby {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
