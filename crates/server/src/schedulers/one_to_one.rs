//! Decides that each connection has a thread of its own, made for it (document 000 section 2.4, figure 3).
//!
//! ```text
//! acceptor:                   accept, start a thread -> accept ...
//! a thread a connection:      request -> response -> reply -> request -> ... -> end
//! ```
//!
//! The kernel allows so many threads. When all of them have a connection, a newcomer takes the thread of one that is
//! idle; where none is, it is told at once to come again.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;

use crate::arrival::{Arrival, Entrance, NO_THREAD};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::schedulers::row::Row;
use crate::schedulers::threads::{outlast, start};
use crate::server::Server;

/// At full load who comes has this long to be taken in by a thread whose connection is idle: a little longer than such
/// a thread needs to see that the load is full.
const CHANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
/// Refusals are logged once in this time, with their number.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// An acceptor, and a thread for each connection.
pub struct OneToOne {
    /// What was wished for.
    wished: usize,
    /// What is allowed: less, once the kernel has refused a thread.
    most: AtomicUsize,
    threads: AtomicUsize,
    refused: AtomicU64,
    /// Readable once a thread has ended.
    freed: OwnedFd,
}

impl OneToOne {
    /// With at most `most` threads for connections at one time.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new(most: usize) -> io::Result<Self> {
        let wished = most.max(1);
        Ok(Self {
            wished,
            most: AtomicUsize::new(wished),
            threads: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            freed: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    fn admit(
        self: &Arc<Self>,
        server: &Arc<Server>,
        lives: &Sender<io::Result<()>>,
    ) -> io::Result<()> {
        let mut entrance = Entrance::new(server);
        let mut lines = Lines { last: None, told: 0 };
        while server.state() == State::Serving {
            if self.is_full() {
                entrance.await_somebody(self.freed.as_fd());
                if !self.await_end(server) && self.is_full() {
                    // Nobody was idle.
                    while let Some(arrival) = entrance.accept_now() {
                        self.turn_away(arrival);
                    }
                    lines.tell(self);
                }
            } else if let Some(arrival) = entrance.accept()?
                && let Err(arrival) = self.employ(server, lives, arrival)
            {
                self.turn_away(arrival);
                lines.tell(self);
            }
        }
        Ok(())
    }

    /// Starts a thread for `arrival`, or gives it back when there is none to be had.
    fn employ(
        self: &Arc<Self>,
        server: &Arc<Server>,
        lives: &Sender<io::Result<()>>,
        arrival: Arrival,
    ) -> Result<(), Arrival> {
        let count = self.threads.fetch_add(1, Ordering::AcqRel);
        let (own, server, lives) = (Arc::clone(self), Arc::clone(server), lives.clone());
        // So that it comes back from a thread that never was.
        let place = Arc::new(Mutex::new(Some(arrival)));
        let given = Arc::clone(&place);
        let started = Builder::new().name("bine connection".to_owned()).spawn(move || {
            let end = End(own);
            let own = &*end.0;
            let mut next = take(&given);
            let mut conversations = Conversations::new(&server, own);
            while let Some(arrival) = next {
                conversations.hold(arrival);
                next = conversations.take_newcomer();
            }
            drop(conversations);
            drop(end);
            // The server goes before its end is told.
            drop(server);
            drop(lives);
        });
        if started.is_ok() {
            return Ok(());
        }
        self.on_end();
        self.most.store(count.max(1), Ordering::Relaxed);
        take(&place).map_or(Ok(()), Err)
    }

    fn on_end(&self) {
        let left = self.threads.fetch_sub(1, Ordering::AcqRel) - 1;
        if left <= self.most.load(Ordering::Relaxed) / 2 {
            // Much has changed: the kernel may allow more again.
            self.most.store(self.wished, Ordering::Relaxed);
        }
        // A counter that is full is readable.
        let _ = rustix::io::write(&self.freed, &1u64.to_ne_bytes());
    }

    /// Waits a moment for a thread to end. False: none has.
    fn await_end(&self, server: &Server) -> bool {
        let bell = server.stop_bell();
        let mut wanted =
            [PollFd::new(&bell, PollFlags::IN), PollFd::new(&self.freed, PollFlags::IN)];
        // Interrupted or not, the descriptors say it all.
        let _ = poll(&mut wanted, Some(&CHANCE));
        rustix::io::read(&self.freed, &mut [0; 8]).is_ok()
    }

    fn turn_away(&self, arrival: Arrival) {
        arrival.refuse(NO_THREAD.told());
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.threads.load(Ordering::Acquire) >= self.most.load(Ordering::Relaxed)
    }
}

/// A thread's end, however it comes.
struct End(Arc<OneToOne>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.on_end();
    }
}

fn take(place: &Mutex<Option<Arrival>>) -> Option<Arrival> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What the log has been told of refusals.
struct Lines {
    last: Option<Instant>,
    told: u64,
}

impl Lines {
    fn tell(&mut self, scheduler: &OneToOne) {
        let refused = scheduler.refused.load(Ordering::Relaxed);
        if refused > self.told && self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES) {
            let most = scheduler.most.load(Ordering::Relaxed);
            log::warn(format_args!(
                "{} connections were refused: each of {most} threads has one already",
                refused - self.told
            ));
            *self = Self { last: Some(Instant::now()), told: refused };
        }
    }
}

impl Row for OneToOne {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (end, ends): (_, Receiver<_>) = channel();
        let (shared, lives) = (Arc::clone(server), end.clone());
        let name = "bine acceptor".to_owned();
        if let Err(error) = start(server, name, &end, move || self.admit(&shared, &lives)) {
            server.stop();
            return Err(error);
        }
        drop(end);
        outlast(server, &ends)
    }

    fn load(&self) -> f32 {
        let (threads, most) =
            (self.threads.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed));
        (threads as f32 / most as f32).min(1.0)
    }

    fn status(&self) -> String {
        let (threads, most, refused) = (
            self.threads.load(Ordering::Relaxed),
            self.most.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        );
        format!("{threads} of at most {most} connections have a thread, {refused} found none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_is_no_lasting_lesson_of_a_kernel_that_had_no_more() {
        let scheduler = OneToOne::new(8).unwrap();
        scheduler.most.store(1, Ordering::Relaxed);
        scheduler.threads.store(1, Ordering::Relaxed);
        assert!(scheduler.is_full());
        scheduler.on_end();
        assert_eq!(scheduler.most.load(Ordering::Relaxed), 8);
    }
}
