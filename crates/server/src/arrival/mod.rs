//! Decides how a connection comes in before any thread has it: one thread may accept it and another
//! hold it.

mod lobby;
mod refusal;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bine_log as log;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketFlags, recv, shutdown};
use rustix::time::Timespec;

use crate::address::Peer;
use crate::connection::DetachedConnection;
use crate::lifecycle::State;
use crate::limits::Full;
use crate::listener::Listener;
use crate::next::Next;
use crate::server::{Server, View};
use crate::system::{is_exhaustion, transmit_now};
use crate::time::monotonic_milliseconds;

pub(crate) use lobby::{Called, Lobby};
pub(crate) use refusal::{NO_MEMORY, NO_THREAD, TOO_MANY};

/// Marks what is no listener.
const CALL: u64 = u64::MAX;
/// How long a thread waits before it tries again to accept when there was no room.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A connection that is no thread's yet, or for the moment. The server counts it; dropped, it closes and is
/// counted no more.
pub struct Arrival {
    pub(crate) progress: Progress,
    pub(crate) peer: Peer,
    pub(crate) counted: Counted,
}

/// How far it has come.
pub(crate) enum Progress {
    /// It was accepted.
    New(OwnedFd),
    /// A thread has left it between two stages.
    Between(Box<DetachedConnection>),
}

impl Arrival {
    /// Who has come.
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Whoever has waited too long may be told so; a reply that is made already is sent in any case.
    pub(crate) fn may_be_turned_away(&self) -> bool {
        !matches!(&self.progress, Progress::Between(detached) if detached.next() == Next::Reply)
    }

    /// Closes it with `reply`, a whole response, if there is room for that at once. A peer that came in
    /// secret would need a handshake first: it is told nothing. Neither is one that has had replies already.
    pub fn refuse(self, reply: &[u8]) {
        self.counted.count_refusal();
        let Progress::New(socket) = self.progress else { return };
        turn_away(&socket, self.peer, reply);
    }
}

/// Sends a newcomer `reply` who is let in no further, and nothing to one who came in secret.
pub(crate) fn turn_away(socket: &OwnedFd, peer: Peer, reply: &[u8]) {
    if peer.is_secure() {
        return;
    }
    transmit_now(socket, reply);
    // What the peer has sent already is taken, or the close would be a reset that may overtake the reply.
    let _ = shutdown(socket, Shutdown::Write);
    let _ = recv(socket, &mut [0; 4096], RecvFlags::DONTWAIT);
}

/// One connection in the server's count.
pub(crate) struct Counted {
    server: Arc<Server>,
    peer: Peer,
}

impl Counted {
    /// It goes without what it came for.
    pub(crate) fn count_refusal(&self) {
        self.server.census.refuse_for_scheduler();
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.server.census.leave(self.peer);
    }
}

/// The one connection that gives way at this moment: with several, all would leave for one newcomer.
pub(crate) struct MakingRoom(Arc<Server>);

impl MakingRoom {
    /// `None`: another does.
    pub(crate) fn begin(server: &Arc<Server>) -> Option<Self> {
        server.census.begin_making_room().then(|| Self(Arc::clone(server)))
    }
}

impl Drop for MakingRoom {
    fn drop(&mut self) {
        self.0.census.end_making_room();
    }
}

/// Where connections come in, for one thread that blocks. Any number of threads may have one each.
pub struct Entrance {
    server: Arc<Server>,
    view: View,
    /// Made for the first wait under these settings.
    watch: Option<OwnedFd>,
}

/// What came of a look at the door.
pub(crate) enum Looked {
    In(Arrival),
    Nobody,
    /// No descriptor is left, or no place: somebody must leave first.
    NoRoom,
}

impl Entrance {
    /// The way into `server`.
    pub fn new(server: &Arc<Server>) -> Self {
        Self { server: Arc::clone(server), view: server.view(), watch: None }
    }

    /// Waits for the next connection; `None` when the server stops.
    ///
    /// # Errors
    ///
    /// The system's, when it cannot wait.
    pub fn accept(&mut self) -> io::Result<Option<Arrival>> {
        loop {
            match self.accept_within(None) {
                Ok(None) if self.server.state() == State::Serving => {}
                outcome => return outcome,
            }
        }
    }

    /// Takes a connection that waits already, without a wait.
    pub fn accept_now(&mut self) -> Option<Arrival> {
        self.keep_up();
        match self.look() {
            Looked::In(arrival) => Some(arrival),
            Looked::Nobody | Looked::NoRoom => None,
        }
    }

    /// The next connection; `None` when the server stops, or has other settings, or after `wait`.
    ///
    /// Of all threads that wait here the kernel wakes one (EPOLLEXCLUSIVE): with `poll` a connection woke hundreds. The listeners are
    /// watched during the wait alone, since the kernel goes through all that are.
    pub(crate) fn accept_within(&mut self, wait: Option<Duration>) -> io::Result<Option<Arrival>> {
        self.keep_up();
        let watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.new_watch()?,
        };
        let mut accepted = Ok(None);
        let mut watched = 0;
        for (number, listener) in self.listeners().iter().enumerate() {
            let data = EventData::new_u64(number as u64);
            accepted =
                epoll::add(&watch, &**listener, data, EventFlags::IN | EventFlags::EXCLUSIVE)
                    .map(|()| None)
                    .map_err(io::Error::from);
            if accepted.is_err() {
                break;
            }
            watched += 1;
        }
        if accepted.is_ok() {
            accepted = self.accept_watched(&watch, wait);
        }
        for listener in &self.listeners()[..watched] {
            // It was added, and is still open; there is nothing to go wrong.
            let _ = epoll::delete(&watch, &**listener);
        }
        self.watch = Some(watch);
        accepted
    }

    fn accept_watched(
        &self,
        watch: &OwnedFd,
        wait: Option<Duration>,
    ) -> io::Result<Option<Arrival>> {
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut events = Vec::with_capacity(1);
        loop {
            events.clear();
            match epoll::wait(watch, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if self.is_called() {
                return Ok(None);
            }
            let Some(event) = events.first() else { return Ok(None) };
            let number = event.data.u64() as usize;
            let Some(listener) = self.listeners().get(number) else { continue };
            match admit(&self.server, listener) {
                Looked::In(arrival) => return Ok(Some(arrival)),
                Looked::Nobody => {}
                Looked::NoRoom => {
                    let bell = self.server.stop_bell();
                    let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&PAUSE));
                }
            }
        }
    }

    /// Watches what calls a thread away from its wait.
    fn new_watch(&self) -> io::Result<OwnedFd> {
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        let (bell, superseded) = (self.server.stop_bell(), self.view.generation.superseded());
        for each in [bell, superseded] {
            watch_call(&watch, each)?;
        }
        Ok(watch)
    }

    /// Returns when somebody waits to come in, or `other` has something to say, or the server does.
    pub(crate) fn await_somebody(&mut self, other: BorrowedFd<'_>) {
        self.keep_up();
        let (bell, superseded) = (self.server.stop_bell(), self.view.generation.superseded());
        let mut wanted: Vec<PollFd<'_>> = self.doors().collect();
        wanted.extend([&bell, &superseded, &other].map(|each| PollFd::new(each, PollFlags::IN)));
        // Interrupted or not, the caller looks again.
        let _ = poll(&mut wanted, None);
    }

    /// Whoever waits at any listener.
    pub(crate) fn look(&self) -> Looked {
        for listener in self.listeners() {
            match admit(&self.server, listener) {
                Looked::Nobody => {}
                found => return found,
            }
        }
        Looked::Nobody
    }

    /// Whether the server stops or has other settings.
    pub(crate) fn is_called(&self) -> bool {
        self.server.state() != State::Serving || self.view.is_old(&self.server)
    }

    /// Whether somebody waits at a listener.
    pub(crate) fn is_somebody_there(&self) -> bool {
        let mut doors: Vec<PollFd<'_>> = self.doors().collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Interrupted, nobody has been seen; who waits is seen at the next look.
        poll(&mut doors, Some(&now)).is_ok_and(|seen| seen > 0)
    }

    /// Goes over to the newest addresses, if they have changed. Who waits at one that goes is refused with
    /// it: a thread that has a connection cannot take in others.
    pub(crate) fn keep_up(&mut self) {
        if self.view.is_old(&self.server) {
            let older = std::mem::replace(&mut self.view, self.server.view());
            // With the descriptor that there is: another might not be had.
            let (old, new) = (older.generation.superseded(), self.view.generation.superseded());
            self.watch.take_if(|watch| rewatch(watch, old, new).is_err());
            older.generation.gone_in(&self.view.generation).for_each(Listener::refuse);
        }
    }

    /// What becomes readable when somebody comes.
    pub(crate) fn doors(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.listeners().iter().map(|listener| PollFd::new(&**listener, PollFlags::IN))
    }

    fn listeners(&self) -> &[Arc<Listener>] {
        &self.view.generation.listeners
    }
}

fn watch_call(watch: &OwnedFd, call: BorrowedFd<'_>) -> io::Result<()> {
    Ok(epoll::add(watch, call, EventData::new_u64(CALL), EventFlags::IN)?)
}

fn rewatch(watch: &OwnedFd, old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> io::Result<()> {
    epoll::delete(watch, old)?;
    watch_call(watch, new)
}

/// Whoever waits at `listener`, which itself never blocks: another thread may have been quicker.
fn admit(server: &Arc<Server>, listener: &Listener) -> Looked {
    if server.guard.is_due(monotonic_milliseconds()) {
        // Idle connections give way by themselves where each has a thread.
        server.judge(&server.generation().settings);
    }
    if !server.census.has_room() || server.guard.pauses() {
        return Looked::NoRoom;
    }
    let (socket, peer) = match listener.accept(SocketFlags::empty()) {
        Ok(accepted) => accepted,
        Err(error) if is_exhaustion(&error) => {
            log::warn(format_args!("no descriptor for another connection"));
            return Looked::NoRoom;
        }
        // Or a connection that failed on its way.
        Err(_) => return Looked::Nobody,
    };
    if server.guard.refuses() {
        server.guard.note_newcomer();
        turn_away(&socket, peer, NO_MEMORY.told());
        return Looked::Nobody;
    }
    match server.census.enter(peer) {
        Ok(()) => {
            let counted = Counted { server: Arc::clone(server), peer };
            Looked::In(Arrival { progress: Progress::New(socket), peer, counted })
        }
        Err(full) => {
            if full == Full::ForAddress && !peer.is_secure() {
                // A new socket has room for it; whether or not it is read, the socket closes.
                transmit_now(&socket, TOO_MANY.told());
            }
            Looked::Nobody
        }
    }
}
