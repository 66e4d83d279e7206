//! Decides who comes in, to which loop, and when the door stays shut for a while.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bine_log as log;

use crate::address::Peer;
use crate::arrival::{NO_MEMORY, TOO_MANY, turn_away};
use crate::connection::Connection;
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::lifecycle::State;
use crate::limits::Full;
use crate::listener::Listener;
use crate::mailbox::Letter;
use crate::stages;
use crate::system::{is_exhaustion, transmit_now};
use crate::time::{Hook, Tick};

/// Accepts of one listener in one turn (DESIGN: slices).
const SLICE: usize = 16;
/// How long the door stays shut when there is no descriptor or no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);
/// A loop this many connections above the mean, and a quarter above it, hands new ones on.
const SLACK: usize = 8;
/// Connections that a loop takes out of one listener's queue when the server stops.
const MOST_WAITING: usize = 4096;

/// Whether this loop accepts.
pub(crate) struct Door {
    /// A listener had more than a slice in this turn.
    pub(super) is_crowded: bool,
    open: bool,
    reopen: Option<Tick>,
}

impl Door {
    pub(crate) const fn new() -> Self {
        Self { is_crowded: false, open: false, reopen: None }
    }

    /// Its pause ends when `caught` says so.
    pub(super) fn catch_up(&mut self, caught: impl FnOnce(Tick) -> Tick) {
        self.reopen = self.reopen.map(caught);
    }

    /// When it opens again after a pause.
    pub(super) const fn reopens(&self) -> Option<Tick> {
        self.reopen
    }
}

impl<D: Driver> EventLoop<D> {
    /// Watches every listener. The sockets are shared by all loops and wake one of them each
    /// (EPOLLEXCLUSIVE), so a connection is never stuck in the queue of a loop that has gone.
    pub(super) fn open_door(&mut self) -> io::Result<()> {
        for (number, listener) in self.view.generation.listeners.iter().enumerate() {
            self.driver.watch_listener(listener, number)?;
        }
        self.door = Door { open: true, ..Door::new() };
        Ok(())
    }

    pub(super) fn close_door(&mut self) {
        if self.door.open {
            for listener in &self.view.generation.listeners {
                self.driver.forget_listener(listener);
            }
        }
        self.door = Door::new();
    }

    /// Whoever has connected already still comes in: the kernel took them at their word. Only then
    /// does it refuse the rest.
    pub(super) fn close_for_good(&mut self) {
        self.close_door();
        let generation = Arc::clone(&self.view.generation);
        generation.listeners.iter().for_each(|listener| self.take_in_all(listener));
        self.server.refuse_connections();
    }

    /// Whoever waits at a listener that goes.
    fn take_in_all(&mut self, listener: &Listener) {
        for _ in 0..MOST_WAITING {
            match self.driver.accept(listener) {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => break,
            }
        }
    }

    /// Goes over to the newest settings, if they have changed: connections to come have them, and
    /// the door has its addresses.
    pub(super) fn keep_up(&mut self) {
        let was_open = self.door.open;
        // Still with the listeners that it was opened with.
        if !self.view.is_old(&self.server) {
            return;
        }
        if was_open {
            self.close_door();
        }
        let Some(older) = self.view.keep_up(&self.server, &mut self.context) else {
            return self.reopen(was_open);
        };
        self.reopen(was_open);
        let newer = Arc::clone(&self.view.generation);
        for listener in older.gone_in(&newer) {
            self.take_in_all(listener);
            listener.refuse();
        }
    }

    fn reopen(&mut self, was_open: bool) {
        if was_open && let Err(error) = self.open_door() {
            log::warn(format_args!("cannot accept for a moment: {error}"));
            self.door = Door { open: true, ..Door::new() };
            self.pause();
        }
    }

    /// Opens the door again when its pause is over.
    pub(super) fn keep_door(&mut self) {
        let now = self.context.clock.now();
        if self.door.reopen.is_some_and(|moment| moment.has_come(now)) {
            // The guards look first: they may have room made.
            if !self.may_accept() || self.lacks_room() {
                self.door.reopen = Some(now.after(PAUSE));
            } else if let Err(error) = self.open_door() {
                log::warn(format_args!("cannot accept again yet: {error}"));
                self.door = Door { open: true, ..Door::new() };
                self.pause();
            }
        }
    }

    /// Connections stay in the kernel's queue for a moment, and the loop does not spin on them.
    fn pause(&mut self) {
        self.close_door();
        if self.server.state() == State::Serving {
            let now = self.context.clock.now();
            let reopen = now.after(PAUSE);
            self.door.reopen = Some(reopen);
            self.alarm.ring_by(reopen, now);
        }
    }

    pub(super) fn accept(&mut self, number: usize) {
        if self.door.open && !self.may_accept() {
            return self.pause();
        }
        for _ in 0..SLICE {
            if !self.door.open {
                return;
            }
            if self.lacks_room() {
                return self.pause();
            }
            let Some(listener) = self.view.generation.listeners.get(number) else { return };
            match self.driver.accept(listener) {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_exhaustion(&error) => {
                    log::warn(format_args!("cannot accept: {error}; pausing for {PAUSE:?}"));
                    return self.pause();
                }
                // That one connection failed before we had it (accept(2), ECONNABORTED and kin).
                Err(_) => {}
            }
        }
        self.door.is_crowded = true;
    }

    fn admit(&mut self, socket: OwnedFd, peer: Peer) {
        if self.server.guard.refuses() {
            self.server.guard.note_newcomer();
            return turn_away(&socket, peer, NO_MEMORY.told());
        }
        match self.server.census.enter(peer) {
            Ok(()) => {}
            Err(Full::ForAddress) => {
                // Whether or not it is read, the connection closes; in secret it would need a handshake.
                if !peer.is_secure() {
                    transmit_now(&socket, TOO_MANY.told());
                }
                return;
            }
            Err(Full::Everywhere) => return,
        }
        match self.less_busy_loop() {
            Some(other) => {
                let neighbor = &self.server.loops[other];
                // Counted at once, or a burst would all go to the same neighbor.
                neighbor.connections.fetch_add(1, Ordering::Relaxed);
                neighbor.mailbox.post(Letter::Adopt(socket, peer));
            }
            None => self.adopt(socket, peer),
        }
    }

    /// Takes in a connection that the census has counted.
    pub(super) fn adopt(&mut self, socket: OwnedFd, peer: Peer) {
        // Looked at behind the accept: whoever comes after a change is served under it.
        self.keep_up();
        let driver = &self.driver;
        let transport = |session| driver.transport(socket, session);
        let mut connection = Connection::new(transport, peer, &mut self.context);
        if self.context.stopping {
            let grace = self.context.clock.now().after(stages::GRACE);
            connection.deadline = connection.deadline.earlier(grace);
        }
        let deadline = connection.deadline;
        let entry = Entry { connection, hook: Hook::new(), watches_room: false };
        let token = self.slab.insert(entry);
        self.server.loops[self.index].connections.store(self.load(), Ordering::Relaxed);
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if let Err(error) = self.driver.watch(&connection.transport, token) {
            log::warn(format_args!("a connection cannot be watched and is closed: {error}"));
            return self.remove(token);
        }
        self.watch_deadline(token.index, deadline);
    }

    /// The loop that should have the next connection, when this one has clearly more than its share.
    fn less_busy_loop(&self) -> Option<usize> {
        let loops = &self.server.loops;
        // At the end every loop keeps its own: a neighbor may have gone already.
        if loops.len() == 1 || self.context.stopping {
            return None;
        }
        let counts = || loops.iter().map(|each| each.connections.load(Ordering::Relaxed));
        let mean = counts().sum::<usize>() / loops.len();
        if self.slab.len() <= mean + mean / 4 + SLACK {
            return None;
        }
        let (index, _) = counts().enumerate().min_by_key(|(_, count)| *count)?;
        (index != self.index).then_some(index)
    }
}
