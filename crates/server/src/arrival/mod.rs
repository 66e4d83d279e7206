//! Accepts connections for threads that block. One thread may accept a connection and another serve
//! it.

mod queue;
#[cfg(test)]
pub(crate) mod test_support;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketFlags, recv, shutdown};
use rustix::time::Timespec;

use crate::address::ClientAddress;
use crate::connection::DetachedConnection;
use crate::lifecycle::State;
use crate::limits::Full;
use crate::listener::Listener;
use crate::listener_watch::WaitOutcome;
use crate::next::Next;
use crate::refusal::{NO_MEMORY, TOO_MANY};
use crate::server::{Server, View};
use crate::system::{is_exhaustion, transmit_now};
use crate::time::monotonic_milliseconds;

pub(crate) use queue::{ArrivalQueue, NextArrival};

/// How long a thread waits before it tries again to accept when there was no room.
const PAUSE: Duration = Duration::from_millis(100);
/// The interval at which it looks meanwhile whether another connection has closed.
const STEP: Duration = Duration::from_millis(5);

/// An accepted connection that no thread serves at the moment. The server counts it. Dropping it
/// closes the connection and ends the count.
pub struct Arrival {
    pub(crate) progress: Progress,
    pub(crate) peer: ClientAddress,
    pub(crate) counted: CountGuard,
}

/// The progress of an arrival.
pub(crate) enum Progress {
    /// Accepted, without any stage run.
    New(OwnedFd),
    /// Detached from a thread between two stages.
    Between(Box<DetachedConnection>),
}

impl Arrival {
    /// Returns the address of the client.
    pub const fn peer(&self) -> ClientAddress {
        self.peer
    }

    /// Whether the server may refuse the connection when it has waited too long. A connection whose
    /// response is ready may not be refused.
    pub(crate) fn may_be_turned_away(&self) -> bool {
        !matches!(&self.progress, Progress::Between(detached) if detached.next() == Next::Reply)
    }

    /// Sends `reply`, a complete response, if the socket accepts it at once, and closes the
    /// connection. The response is omitted for TLS, which would need a handshake first, and for
    /// connections that have served a request already.
    pub fn refuse(self, reply: &[u8]) {
        self.counted.count_refusal();
        let Progress::New(socket) = self.progress else { return };
        turn_away(&socket, self.peer, reply);
    }
}

/// Refuses a new connection: sends `reply` unless the connection uses TLS.
pub(crate) fn turn_away(socket: &OwnedFd, peer: ClientAddress, reply: &[u8]) {
    if peer.is_secure() {
        return;
    }
    transmit_now(socket, reply);
    // Read the bytes that the client has sent already. Otherwise the close would send a reset,
    // which could reach the client before the response.
    let _ = shutdown(socket, Shutdown::Write);
    let _ = recv(socket, &mut [0; 4096], RecvFlags::DONTWAIT);
}

/// One connection in the server's count. Dropping it ends the count.
pub(crate) struct CountGuard {
    server: Arc<Server>,
    peer: ClientAddress,
}

impl CountGuard {
    /// Records that the connection counts as one of `peer`.
    pub(crate) const fn note_client(&mut self, peer: ClientAddress) {
        self.peer = peer;
    }

    /// Counts the connection as refused.
    pub(crate) fn count_refusal(&self) {
        self.server.census.refuse_for_scheduler();
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.server.census.leave(self.peer);
    }
}

/// The permit to close one connection in order to make room. Without it, several idle connections
/// would close for one new connection.
pub(crate) struct RoomPermit(Arc<Server>);

impl RoomPermit {
    /// Takes the permit, or returns `None` when another connection has it.
    pub(crate) fn begin(server: &Arc<Server>) -> Option<Self> {
        server.census.begin_making_room().then(|| Self(Arc::clone(server)))
    }
}

impl Drop for RoomPermit {
    fn drop(&mut self) {
        self.0.census.end_making_room();
    }
}

/// Accepts connections for one blocking thread. Each thread has its own.
pub struct Acceptor {
    server: Arc<Server>,
    view: View,
    /// Whether it has switched to new settings since the last
    /// [`take_switch`](Self::take_switch).
    has_switched: bool,
}

/// The result of one attempt to accept.
pub(crate) enum AcceptOutcome {
    Accepted(Arrival),
    NonePending,
    /// The connections are at their limit: another one must close first.
    Full,
    /// The descriptors or the memory are at their limit.
    NoRoom,
}

impl Acceptor {
    /// Creates an acceptor for the listeners of `server`.
    pub fn new(server: &Arc<Server>) -> Self {
        Self { server: Arc::clone(server), view: server.view(), has_switched: false }
    }

    /// Waits for the next connection; returns `None` when the server stops.
    ///
    /// # Errors
    ///
    /// Returns the error of the system when it cannot wait.
    pub fn accept(&mut self) -> io::Result<Option<Arrival>> {
        loop {
            match self.accept_within(None) {
                Ok(None) if self.server.state() == State::Serving => {}
                outcome => return outcome,
            }
        }
    }

    /// Accepts a pending connection, without waiting.
    pub fn accept_now(&mut self) -> Option<Arrival> {
        self.apply_new_settings();
        match self.try_accept() {
            AcceptOutcome::Accepted(arrival) => Some(arrival),
            AcceptOutcome::NonePending | AcceptOutcome::Full | AcceptOutcome::NoRoom => None,
        }
    }

    /// Waits for the next connection; returns `None` when the server stops or has new settings, or
    /// after `wait`. May return `None` earlier, too, so that the caller can do what is due.
    ///
    /// The kernel wakes one of the waiting threads; with `poll` each connection woke hundreds.
    pub(crate) fn accept_within(&mut self, wait: Option<Duration>) -> io::Result<Option<Arrival>> {
        self.apply_new_settings();
        let Ok(watch) = self.view.generation.watch(self.server.stop_bell()) else {
            // There is no descriptor left for the watch of new settings.
            return Ok(self.accept_polled(wait));
        };
        let WaitOutcome::Pending(number) = watch.wait(wait)? else { return Ok(None) };
        let Some(listener) = self.listeners().get(number) else { return Ok(None) };
        // While this thread pauses, no other one tries in vain.
        let _disabled = watch.disabled(listener, number);
        if self.is_interrupted() {
            return Ok(None);
        }
        Ok(self.taken(admit(&self.server, listener)))
    }

    /// Waits without a descriptor of its own, and accepts a pending connection.
    fn accept_polled(&self, wait: Option<Duration>) -> Option<Arrival> {
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let (bell, superseded) = (self.server.stop_bell(), self.view.generation.superseded());
        let mut wanted: Vec<PollFd<'_>> = self.listener_polls().collect();
        wanted.extend([&bell, &superseded].map(|each| PollFd::new(each, PollFlags::IN)));
        if matches!(poll(&mut wanted, wait.as_ref()), Err(error) if error != Errno::INTR) {
            // The kernel has too little memory.
            self.pause(PAUSE);
        }
        // Otherwise the result is not needed: each condition is checked again.
        if self.is_interrupted() { None } else { self.taken(self.try_accept()) }
    }

    /// The accepted connection. If there is no room for one, waits for a while.
    fn taken(&self, outcome: AcceptOutcome) -> Option<Arrival> {
        match outcome {
            AcceptOutcome::Accepted(arrival) => return Some(arrival),
            AcceptOutcome::NonePending => {}
            AcceptOutcome::Full => self.await_room(PAUSE),
            AcceptOutcome::NoRoom => self.pause(PAUSE),
        }
        None
    }

    /// Waits until the server may have one more connection, or for `most`.
    fn await_room(&self, most: Duration) {
        let begun = Instant::now();
        while !self.server.census.has_room() && !self.is_interrupted() && begun.elapsed() < most {
            self.pause(STEP);
        }
    }

    /// Waits for this time, or until the server stops.
    fn pause(&self, time: Duration) {
        let bell = self.server.stop_bell();
        let time = Timespec::try_from(time).ok();
        let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], time.as_ref());
    }

    /// Waits until a connection is pending, `other` is readable, or the server stops or has new
    /// settings.
    pub(crate) fn wait_for_pending(&mut self, other: BorrowedFd<'_>) {
        self.apply_new_settings();
        let (bell, superseded) = (self.server.stop_bell(), self.view.generation.superseded());
        let mut wanted: Vec<PollFd<'_>> = self.listener_polls().collect();
        wanted.extend([&bell, &superseded, &other].map(|each| PollFd::new(each, PollFlags::IN)));
        // The result is not needed: the caller checks each condition again.
        let _ = poll(&mut wanted, None);
    }

    /// Accepts a pending connection of any listener.
    pub(crate) fn try_accept(&self) -> AcceptOutcome {
        for listener in self.listeners() {
            match admit(&self.server, listener) {
                AcceptOutcome::NonePending => {}
                found => return found,
            }
        }
        AcceptOutcome::NonePending
    }

    /// Whether the server stops or has new settings.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.server.state() != State::Serving || self.view.is_old(&self.server)
    }

    /// Whether a connection is pending at a listener.
    pub(crate) fn has_pending(&self) -> bool {
        let mut polls: Vec<PollFd<'_>> = self.listener_polls().collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // After an interruption the next call sees the pending connection.
        poll(&mut polls, Some(&now)).is_ok_and(|seen| seen > 0)
    }

    /// Switches to the newest listeners if the settings have changed. Connections that wait at a
    /// removed listener are refused with it, because a thread that serves a connection cannot
    /// accept others.
    pub(crate) fn apply_new_settings(&mut self) {
        if self.view.is_old(&self.server) {
            self.has_switched = true;
            let older = std::mem::replace(&mut self.view, self.server.view());
            older.generation.removed_in(&self.view.generation).for_each(Listener::refuse);
        }
    }

    /// Whether it has switched to new settings since the last call.
    pub(crate) const fn take_switch(&mut self) -> bool {
        std::mem::replace(&mut self.has_switched, false)
    }

    /// Returns the listeners, which are readable while a connection is pending.
    pub(crate) fn listener_polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.listeners().iter().map(|listener| PollFd::new(&**listener, PollFlags::IN))
    }

    fn listeners(&self) -> &[Arc<Listener>] {
        &self.view.generation.listeners
    }
}

/// Accepts a pending connection of `listener`. The listener never blocks, since another thread may
/// have accepted the connection first.
fn admit(server: &Arc<Server>, listener: &Listener) -> AcceptOutcome {
    if server.guard.is_due(monotonic_milliseconds()) {
        // The returned room is not needed: where each connection has a thread, idle ones close on
        // their own.
        server.judge(&server.generation().settings);
    }
    if !server.census.has_room() {
        return AcceptOutcome::Full;
    }
    if server.guard.pauses() {
        return AcceptOutcome::NoRoom;
    }
    let (socket, peer) = match listener.accept(SocketFlags::empty()) {
        Ok(accepted) => accepted,
        Err(error) if is_exhaustion(&error) => {
            log::warn(format_args!(
                "cannot accept connections: {error}; \
                 if descriptors are short, raise `ulimit -n` or lower `connections`"
            ));
            return AcceptOutcome::NoRoom;
        }
        // No connection is pending, or the pending one has failed already.
        Err(_) => return AcceptOutcome::NonePending,
    };
    if server.guard.refuses() {
        server.guard.note_newcomer();
        turn_away(&socket, peer, NO_MEMORY.response());
        return AcceptOutcome::NonePending;
    }
    match server.census.enter(peer) {
        Ok(()) => {
            let counted = CountGuard { server: Arc::clone(server), peer };
            AcceptOutcome::Accepted(Arrival { progress: Progress::New(socket), peer, counted })
        }
        Err(full) => {
            if full == Full::ForAddress && !peer.is_secure() {
                // The empty send buffer of a new socket has room for the response.
                transmit_now(&socket, TOO_MANY.response());
            }
            AcceptOutcome::NonePending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::address::Address;
    use crate::settings::{Guards, Listen, Settings};
    use crate::test_support::{NoContent, received, server, sockets};

    const HOUR: Duration = Duration::from_hours(1);

    fn address(server: &Server) -> SocketAddr {
        let Some(Address::Tcp(address)) = server.addresses().next() else { panic!("no TCP") };
        address
    }

    /// Connects a client and waits until the connection is pending.
    fn connect(server: &Arc<Server>, acceptor: &mut Acceptor) -> TcpStream {
        let client = TcpStream::connect(address(server)).unwrap();
        let (never, _other) = sockets();
        acceptor.wait_for_pending(never.as_fd());
        client
    }

    fn read_all(mut client: TcpStream) -> String {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut client, &mut text).unwrap();
        text
    }

    const fn name(outcome: &AcceptOutcome) -> &'static str {
        match outcome {
            AcceptOutcome::Accepted(_) => "accepted",
            AcceptOutcome::NonePending => "none",
            AcceptOutcome::Full => "full",
            AcceptOutcome::NoRoom => "no room",
        }
    }

    #[test]
    fn accepts_pending_connections_up_to_the_limit() {
        let server = server(Settings { connections: Some(1), ..Settings::default() });
        let mut acceptor = Acceptor::new(&server);
        assert_eq!((name(&acceptor.try_accept()), acceptor.has_pending()), ("none", false));
        let _first = connect(&server, &mut acceptor);
        assert!(acceptor.has_pending());
        let arrival = acceptor.accept_now().unwrap();
        assert!(arrival.may_be_turned_away());
        assert_eq!((server.census.filled().0, acceptor.has_pending()), (1, false));
        let _second = connect(&server, &mut acceptor);
        assert_eq!((name(&acceptor.try_accept()), acceptor.has_pending()), ("full", true));
        assert!(acceptor.accept_now().is_none());
        // The wait ends when the first connection closes.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| acceptor.await_room(HOUR));
            drop(arrival);
            waits.join().unwrap();
        });
        assert_eq!(server.census.filled().0, 0);
        assert_eq!(name(&acceptor.try_accept()), "accepted");
    }

    /// Without a descriptor for the shared watch, `poll` takes its place.
    #[test]
    fn accepts_by_both_ways_of_waiting_until_the_server_stops() {
        let server = server(Settings::default());
        let mut acceptor = Acceptor::new(&server);
        let now = Some(Duration::ZERO);
        let watched = |acceptor: &mut Acceptor, wait| acceptor.accept_within(wait).unwrap();
        let polled = |acceptor: &mut Acceptor, wait| acceptor.accept_polled(wait);
        for accept in [watched, polled] {
            assert!(accept(&mut acceptor, now).is_none());
            let _clients = [(); 2].map(|()| TcpStream::connect(address(&server)).unwrap());
            assert!(accept(&mut acceptor, None).is_some());
            assert!(accept(&mut acceptor, None).is_some());
            assert!(accept(&mut acceptor, now).is_none());
        }
        let _pending = connect(&server, &mut acceptor);
        server.stop();
        for accept in [watched, polled] {
            assert!(accept(&mut acceptor, None).is_none());
        }
    }

    #[test]
    fn tells_an_address_at_its_limit_why_it_is_refused() {
        let server = server(Settings {
            connections: Some(9),
            connections_local: Some(1),
            ..Settings::default()
        });
        let mut acceptor = Acceptor::new(&server);
        let _first = connect(&server, &mut acceptor);
        let _held = acceptor.accept_now().unwrap();
        let second = connect(&server, &mut acceptor);
        assert_eq!((name(&acceptor.try_accept()), acceptor.has_pending()), ("none", false));
        let text = read_all(second);
        assert!(text.ends_with("Too many connections from your address\n"), "{text}");
        assert_eq!(server.census.refused()[1], ("address", 1));
        // A refused connection ends the wait, since a queued one may be late meanwhile.
        let _third = connect(&server, &mut acceptor);
        assert!(acceptor.accept_within(Some(HOUR)).unwrap().is_none());
    }

    /// A response in plain text would confuse a client that begins a TLS handshake.
    #[test]
    fn closes_a_tls_connection_beyond_the_limit_without_a_response() {
        let mut listen = Listen::on("127.0.0.1:0".parse().unwrap());
        listen.tls = true;
        let settings = Settings {
            listeners: vec![listen],
            tls: Some(Arc::new(crate::tls::test_support::tls())),
            connections: Some(9),
            connections_local: Some(1),
            ..Settings::default()
        };
        let server = Arc::new(Server::open(settings, Arc::new(NoContent), None).unwrap());
        let mut acceptor = Acceptor::new(&server);
        let _first = connect(&server, &mut acceptor);
        let held = acceptor.accept_now().unwrap();
        assert!(held.peer().is_secure());
        let second = connect(&server, &mut acceptor);
        assert_eq!(name(&acceptor.try_accept()), "none");
        assert_eq!(read_all(second), "");
        assert_eq!(server.census.refused()[1], ("address", 1));
    }

    #[test]
    fn refuses_or_pauses_while_memory_is_short() {
        let _messages = log::test_support::capture();
        let memory = Guards { memory: Some(1), ..Guards::OFF };
        let guards = Guards { memory_refuses: Some(50), ..memory.clone() };
        let server = server(Settings { guards, ..Settings::default() });
        let mut acceptor = Acceptor::new(&server);
        let client = connect(&server, &mut acceptor);
        assert_eq!(name(&acceptor.try_accept()), "none");
        assert!(read_all(client).ends_with("the server is busy; try again in a moment\n"));
        assert_eq!((server.guards().newcomers, server.census.filled().0), (1, 0));
        let guards = Guards { memory_pauses: Some(50), ..memory };
        let server = crate::test_support::server(Settings { guards, ..Settings::default() });
        let mut acceptor = Acceptor::new(&server);
        let _client = connect(&server, &mut acceptor);
        assert_eq!((name(&acceptor.try_accept()), acceptor.has_pending()), ("no room", true));
    }

    #[test]
    fn ends_a_wait_for_a_stop_or_new_settings() {
        let server = server(Settings::default());
        let mut acceptor = Acceptor::new(&server);
        assert!(acceptor.accept_within(Some(Duration::ZERO)).unwrap().is_none());
        assert!(!acceptor.is_interrupted());
        let old = address(&server);
        let listeners = vec![Listen::on("127.0.0.1:0".parse().unwrap())];
        let settings = Settings { listeners, ..Settings::default() };
        server.replace(settings, Arc::new(NoContent), None).unwrap();
        assert!(acceptor.is_interrupted());
        acceptor.apply_new_settings();
        assert!(!acceptor.is_interrupted());
        assert_eq!(acceptor.listener_polls().count(), 1);
        assert!(old == address(&server) || TcpStream::connect(old).is_err());
        // Only the new settings end a wait of the same epoll instance now.
        let _client = connect(&server, &mut acceptor);
        assert!(acceptor.accept_within(None).unwrap().is_some());
        server.stop();
        assert!(acceptor.is_interrupted() && acceptor.accept().unwrap().is_none());
    }

    #[test]
    fn sends_a_refusal_without_tls_only_and_counts_each() {
        let server = server(Settings::default());
        let arrival = |peer: ClientAddress| {
            let (socket, client) = sockets();
            (test_support::arrival(&server, socket, peer), client)
        };
        let (plain, mut client) = arrival(ClientAddress::UNIX);
        std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\n").unwrap();
        plain.refuse(b"no");
        // A close with unread bytes would be an error here.
        assert_eq!(received(client), "no");
        let (secure, client) = arrival(ClientAddress::UNIX.secured());
        secure.refuse(b"no");
        assert_eq!(received(client), "");
        assert_eq!(server.census.refused()[2], ("scheduler", 2));
        assert_eq!(server.census.filled().0, 0);
    }

    #[test]
    fn gives_one_permit_to_make_room_at_a_time() {
        let server = server(Settings::default());
        let permit = RoomPermit::begin(&server);
        assert!(permit.is_some() && RoomPermit::begin(&server).is_none());
        drop(permit);
        assert!(RoomPermit::begin(&server).is_some());
    }
}
