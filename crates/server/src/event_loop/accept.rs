//! Accepting connections: which loop serves a new connection, and when a loop pauses accepting.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bine_log as log;
use bine_profile::{self as profile, Stage};

use crate::address::ClientAddress;
use crate::arrival::turn_away;
use crate::connection::Connection;
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::lifecycle::State;
use crate::limits::Full;
use crate::listener::Listener;
use crate::mailbox::Letter;
use crate::memory_stream::StreamArrival;
use crate::next::Next;
use crate::refusal::{NO_MEMORY, TOO_MANY};
use crate::slab::Token;
use crate::stages;
use crate::system::{is_exhaustion, transmit_now};
use crate::time::{Hook, Tick};

/// The connections that one turn accepts from one listener at most.
const SLICE: usize = 16;
/// How long a loop does not accept when there is no descriptor or no room for one more connection.
const PAUSE: Duration = Duration::from_millis(100);
/// A loop hands new connections over when it has more than 5/4 of the mean plus this.
const SLACK: usize = 8;
/// The connections that a loop accepts from one listener at most when the listener closes.
const MAX_PENDING: usize = 4096;

/// Whether this loop accepts connections, and when it resumes after a pause.
pub(crate) struct LoopAcceptor {
    /// Whether a listener had more connections in this turn than one slice.
    pub(super) has_backlog: bool,
    is_listening: bool,
    resume_at: Option<Tick>,
    /// The pause began because the server had its maximum of connections.
    waits_for_room: bool,
}

impl LoopAcceptor {
    pub(crate) const fn new() -> Self {
        Self { has_backlog: false, is_listening: false, resume_at: None, waits_for_room: false }
    }

    /// Corrects the end of the pause.
    pub(super) fn catch_up(&mut self, corrected: impl FnOnce(Tick) -> Tick) {
        self.resume_at = self.resume_at.map(corrected);
    }

    /// When the current pause ends.
    pub(super) const fn resumes_at(&self) -> Option<Tick> {
        self.resume_at
    }
}

impl<D: Driver> EventLoop<D> {
    /// Watches every listener. All loops share the listening sockets, and a new connection wakes
    /// one loop (`EPOLLEXCLUSIVE`). So no connection waits in the queue of a loop that has ended.
    pub(super) fn start_accepting(&mut self) -> io::Result<()> {
        for (number, listener) in self.view.generation.listeners.iter().enumerate() {
            self.driver.watch_listener(listener, number)?;
        }
        self.acceptor = LoopAcceptor { is_listening: true, ..LoopAcceptor::new() };
        Ok(())
    }

    pub(super) fn stop_accepting(&mut self) {
        if self.acceptor.is_listening {
            for listener in &self.view.generation.listeners {
                self.driver.forget_listener(listener);
            }
        }
        self.acceptor = LoopAcceptor::new();
    }

    /// Stops accepting for good. The loop first accepts the connections in the kernel's queues,
    /// since these clients believe that they are connected. Then the kernel refuses new ones.
    pub(super) fn close_listeners(&mut self) {
        self.stop_accepting();
        let generation = Arc::clone(&self.view.generation);
        generation.listeners.iter().for_each(|listener| self.accept_all_pending(listener));
        self.server.refuse_connections();
    }

    /// Accepts all connections that wait in the queue of a listener that closes.
    fn accept_all_pending(&mut self, listener: &Listener) {
        for _ in 0..MAX_PENDING {
            match self.driver.accept(listener) {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => break,
            }
        }
    }

    /// Applies a new configuration, if there is one: to new connections and to the listeners.
    pub(super) fn apply_new_config(&mut self) {
        let was_listening = self.acceptor.is_listening;
        if !self.view.is_old(&self.server) {
            return;
        }
        // Before the view changes: `stop_accepting` needs the old listeners.
        if was_listening {
            self.stop_accepting();
        }
        let Some(older) = self.view.keep_up(&self.server, &mut self.context) else {
            return self.resume_if(was_listening);
        };
        self.resume_if(was_listening);
        let newer = Arc::clone(&self.view.generation);
        for listener in older.removed_in(&newer) {
            self.accept_all_pending(listener);
            listener.refuse();
        }
    }

    fn resume_if(&mut self, was_listening: bool) {
        if was_listening {
            self.listen();
        }
    }

    /// Starts accepting, or tries again after a pause.
    fn listen(&mut self) {
        if let Err(error) = self.start_accepting() {
            log::warn(format_args!(
                "cannot accept connections: {error}; trying again every {PAUSE:?}"
            ));
            self.acceptor = LoopAcceptor { is_listening: true, ..LoopAcceptor::new() };
            self.pause_accepting();
        }
    }

    /// Resumes accepting when the pause is over.
    pub(super) fn resume_accepting(&mut self) {
        let now = self.context.clock.now();
        if self.acceptor.resume_at.is_some_and(|moment| moment.has_come(now)) {
            // `may_accept` runs the guards, which may close idle connections and so make room.
            if !self.may_accept() || self.is_full() {
                self.acceptor.resume_at = Some(now.after(PAUSE));
            } else {
                self.listen();
            }
        }
    }

    /// Resumes accepting before the end of the pause if connections have closed since the server was
    /// full. Otherwise it would serve at most its maximum of connections in each pause.
    pub(super) fn resume_with_room(&mut self) {
        if self.acceptor.waits_for_room && self.server.census.has_ample_room() && self.may_accept()
        {
            self.listen();
        }
    }

    /// Stops accepting for [`PAUSE`], or until connections have closed.
    fn pause_for_room(&mut self) {
        self.pause_accepting();
        self.acceptor.waits_for_room = self.acceptor.resume_at.is_some();
    }

    /// Stops accepting for [`PAUSE`]. New connections wait in the kernel's queue, and the loop does
    /// not spin on their events.
    fn pause_accepting(&mut self) {
        self.stop_accepting();
        if self.server.state() == State::Serving {
            let now = self.context.clock.now();
            let resume_at = now.after(PAUSE);
            self.acceptor.resume_at = Some(resume_at);
            self.timer.arm(resume_at, now);
        }
    }

    /// Accepts up to a slice of connections from listener `number`.
    pub(super) fn accept(&mut self, number: usize) {
        if self.acceptor.is_listening && !self.may_accept() {
            return self.pause_accepting();
        }
        let most_waiting = (self.view.generation.settings.handshakes / 2).max(1);
        if self.context.tls_buffers.queue().is_crowded(most_waiting) {
            // The next turn begins at once, and its events have this listener again.
            self.acceptor.has_backlog = true;
            return;
        }
        for _ in 0..SLICE {
            if !self.acceptor.is_listening {
                return;
            }
            if self.is_full() {
                return self.pause_for_room();
            }
            let Some(listener) = self.view.generation.listeners.get(number) else { return };
            match self.driver.accept(listener) {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_exhaustion(&error) => {
                    log::warn(format_args!(
                        "cannot accept connections: {error}; trying again in {PAUSE:?}; \
                         if descriptors are short, raise `ulimit -n` or lower `connections`"
                    ));
                    return self.pause_accepting();
                }
                // This connection failed before it was accepted (accept(2): for example
                // ECONNABORTED).
                Err(_) => {}
            }
        }
        self.acceptor.has_backlog = true;
    }

    fn admit(&mut self, socket: OwnedFd, peer: ClientAddress) {
        let _stage = profile::enter(Stage::Accept);
        if self.server.guard.refuses() {
            self.server.guard.note_newcomer();
            return turn_away(&socket, peer, NO_MEMORY.response());
        }
        match self.server.census.enter(peer) {
            Ok(()) => {}
            Err(Full::ForAddress) => {
                // The reply is optional, since the connection closes. With TLS it would need a
                // handshake.
                if !peer.is_secure() {
                    transmit_now(&socket, TOO_MANY.response());
                }
                return;
            }
            Err(Full::Everywhere) => return,
        }
        match self.less_busy_loop() {
            Some(other) => {
                let neighbor = &self.server.loops[other];
                // Counted here, or all connections of a burst would go to the same loop.
                neighbor.connections.fetch_add(1, Ordering::Relaxed);
                neighbor.mailbox.post(Letter::Adopt(socket, peer));
            }
            None => self.adopt(socket, peer),
        }
    }

    /// Serves an accepted connection, which the census has counted.
    pub(super) fn adopt(&mut self, socket: OwnedFd, peer: ClientAddress) {
        // After the accept, so that a client that connects after a reload gets the new
        // configuration.
        self.apply_new_config();
        let driver = &self.driver;
        let transport = |session| driver.transport(socket, session);
        let connection = Connection::new(transport, peer, &mut self.context);
        self.serve(connection);
    }

    /// Serves one stream of a connection of HTTP/2. It counts as a connection, so the quotas of its
    /// client hold for it. Without room the stream is dropped, and its client may try again.
    pub(super) fn adopt_stream(&mut self, StreamArrival { transport, peer }: StreamArrival) {
        // Short memory is no reason to refuse it: its connection is open, and the client may be known.
        if self.server.census.enter(peer).is_err() {
            return;
        }
        self.apply_new_config();
        let transport = self.driver.stream(transport);
        let connection = Connection::of_stream(transport, peer, &mut self.context);
        if let Some(token) = self.serve(connection) {
            // Its request has arrived with it.
            self.drive(token, Next::Request);
        }
    }

    /// Adds the connection to the slab. Returns `None` if it cannot be served.
    fn serve(&mut self, mut connection: Connection<D::Transport>) -> Option<Token> {
        if self.context.stopping {
            let grace = self.context.clock.now().after(stages::GRACE);
            connection.deadline = connection.deadline.earlier(grace);
        }
        let deadline = connection.deadline;
        let entry = Entry { connection, hook: Hook::new(), watches_room: false };
        let token = self.slab.insert(entry);
        self.server.loops[self.index].connections.store(self.load(), Ordering::Relaxed);
        let Entry { connection, .. } = self.slab.get(token)?;
        if let Err(error) = self.driver.watch(&connection.transport, token) {
            log::warn(format_args!("closing a connection that epoll cannot watch: {error}"));
            self.remove(token);
            return None;
        }
        self.watch_deadline(token.index, deadline);
        Some(token)
    }

    /// The loop that should serve the next connection, if this one has clearly more than the mean.
    fn less_busy_loop(&self) -> Option<usize> {
        let loops = &self.server.loops;
        // While the server stops, a loop keeps its connections: other loops may have ended already.
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
