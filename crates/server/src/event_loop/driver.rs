//! The boundary between a loop and the system: readiness events, accepted sockets and one timer.
//!
//! A loop is generic over its [`Driver`]. The server uses [`Kernel`]; every call is dispatched
//! statically, so the boundary has no cost. The tests replace it with a simulation, which runs the
//! same loop with scripted clients and its own clock.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use crate::address::ClientAddress;
use crate::event_loop::timer::{KernelTimer, Timer};
use crate::event_loop::{FIRST_LISTENER, MAILBOX, TIMER, WATCHED};
use crate::handler::{ReceiveBuffer, UpgradedConnection};
use crate::listener::Listener;
use crate::mailbox::Mailbox;
use crate::memory_stream::MemoryTransport;
use crate::slab::Token;
use crate::tls::Session;
use crate::transport::{Nonblocking, Transport};

/// The timer has an event only when it expires again.
const EDGES: EventFlags = EventFlags::IN.union(EventFlags::ET);
/// A new connection wakes one of the loops that watch its listener.
const ONE_LOOP: EventFlags = EventFlags::IN.union(EventFlags::EXCLUSIVE);

/// The system calls of an event loop.
pub(crate) trait Driver: Sized {
    /// The server's end of a connection.
    type Transport: Transport;
    type Timer: Timer;
    type Nested: Nested;

    /// Reports [`MAILBOX`] while `mailbox` contains letters.
    fn watch_mailbox(&self, mailbox: &Mailbox) -> io::Result<()>;

    /// Creates a timer whose expiry is reported once, as [`TIMER`].
    fn timer(&self) -> io::Result<Self::Timer>;

    /// Reports [`FIRST_LISTENER`] plus `number` while `listener` has connections to accept.
    fn watch_listener(&self, listener: &Listener, number: usize) -> io::Result<()>;

    /// Stops reporting connections of `listener`.
    fn forget_listener(&self, listener: &Listener);

    /// Accepts the next connection of `listener`.
    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, ClientAddress)>;

    /// Creates the transport over an accepted socket: TLS if there is a `session`, else plain.
    fn transport(&self, socket: OwnedFd, session: Option<Box<Session>>) -> Self::Transport;

    /// Creates the transport over one stream of a connection of HTTP/2.
    fn stream(&self, stream: MemoryTransport) -> Self::Transport;

    /// Reports each change of `transport`'s readiness once (rule 1): input and the end of the
    /// stream.
    fn watch(&self, transport: &Self::Transport, token: Token) -> io::Result<()>;

    /// Also reports when `transport` is writable, from now on.
    fn watch_room(&self, transport: &Self::Transport, token: Token) -> io::Result<()>;

    /// Stops reporting events of `transport`.
    fn forget(&self, transport: &Self::Transport);

    /// Fills `batch` up to its capacity. A signal that interrupts the call makes the batch empty.
    fn wait(&self, batch: &mut Vec<epoll::Event>, wait: Wait) -> io::Result<()>;

    /// Registers this driver with the runtime, which then reports when there are events.
    fn nest(&self) -> io::Result<Self::Nested>;

    /// Gives the connection to the owner of the protocol that its client has selected.
    fn depart(transport: Self::Transport, peer: ClientAddress);

    /// Moves the socket of an upgraded connection to the runtime.
    fn wire(
        transport: Self::Transport,
        received: Vec<u8>,
        space: ReceiveBuffer,
    ) -> io::Result<UpgradedConnection>;
}

/// How the runtime learns that [`Driver::wait`] has events.
pub(crate) trait Nested {
    type Ready<'n>
    where
        Self: 'n;

    /// Waits for an event, if there was none since the last [`clear`](Self::clear).
    async fn readable(&self) -> io::Result<Self::Ready<'_>>;

    /// Clears the readiness, after all events were read. [`readable`](Self::readable) then waits
    /// for the next event.
    fn clear(ready: Self::Ready<'_>);
}

/// Whether [`Driver::wait`] may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Returns at once, with the events that are ready.
    Never,
    /// Blocks until an event is ready. The timer is an event too.
    Long,
}

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// An epoll instance.
pub(crate) struct Kernel {
    epoll: Rc<OwnedFd>,
}

impl Kernel {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { epoll: Rc::new(epoll::create(CreateFlags::CLOEXEC)?) })
    }
}

impl Driver for Kernel {
    type Transport = Nonblocking;
    type Timer = KernelTimer;
    type Nested = AsyncFd<Rc<OwnedFd>>;

    fn watch_mailbox(&self, mailbox: &Mailbox) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, mailbox, EventData::new_u64(MAILBOX), EventFlags::IN)?)
    }

    fn timer(&self) -> io::Result<KernelTimer> {
        let timer = KernelTimer::new()?;
        epoll::add(&self.epoll, &timer, EventData::new_u64(TIMER), EDGES)?;
        Ok(timer)
    }

    fn watch_listener(&self, listener: &Listener, number: usize) -> io::Result<()> {
        let data = EventData::new_u64(FIRST_LISTENER + number as u64);
        Ok(epoll::add(&self.epoll, listener, data, ONE_LOOP)?)
    }

    fn forget_listener(&self, listener: &Listener) {
        // Cannot fail: the listener was added, and is open as long as its generation exists.
        let _ = epoll::delete(&self.epoll, listener);
    }

    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, ClientAddress)> {
        listener.accept(SocketFlags::NONBLOCK)
    }

    fn transport(&self, socket: OwnedFd, session: Option<Box<Session>>) -> Nonblocking {
        Nonblocking::new(socket, session)
    }

    fn stream(&self, stream: MemoryTransport) -> Nonblocking {
        Nonblocking::stream(stream)
    }

    fn watch(&self, transport: &Nonblocking, token: Token) -> io::Result<()> {
        match transport.descriptor() {
            Ok(socket) => {
                let data = EventData::new_u64(token.bits());
                Ok(epoll::add(&self.epoll, socket, data, WATCHED)?)
            }
            Err(stream) => {
                stream.watch(token);
                Ok(())
            }
        }
    }

    fn watch_room(&self, transport: &Nonblocking, token: Token) -> io::Result<()> {
        // A stream reports room without being asked.
        let Ok(socket) = transport.descriptor() else { return Ok(()) };
        let data = EventData::new_u64(token.bits());
        Ok(epoll::modify(&self.epoll, socket, data, WATCHED.union(EventFlags::OUT))?)
    }

    fn forget(&self, transport: &Nonblocking) {
        match transport.descriptor() {
            // Cannot fail: the socket was added when it was accepted, and is open.
            Ok(socket) => drop(epoll::delete(&self.epoll, socket)),
            Err(stream) => stream.forget(),
        }
    }

    fn wait(&self, batch: &mut Vec<epoll::Event>, wait: Wait) -> io::Result<()> {
        let timeout = match wait {
            Wait::Never => Some(&NOW),
            Wait::Long => None,
        };
        match epoll::wait(&*self.epoll, spare_capacity(batch), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn nest(&self) -> io::Result<Self::Nested> {
        // SAFETY: the `Rc` always returns the same descriptor, and the descriptor is open while the
        // registration holds its clone of the `Rc`.
        let nested =
            unsafe { AsyncFd::register_with_interest(Rc::clone(&self.epoll), Interest::READABLE) };
        Ok(nested?)
    }

    fn depart(transport: Nonblocking, peer: ClientAddress) {
        transport.depart(peer);
    }

    fn wire(
        transport: Nonblocking,
        received: Vec<u8>,
        space: ReceiveBuffer,
    ) -> io::Result<UpgradedConnection> {
        UpgradedConnection::new(transport, received, space)
    }
}

impl Nested for AsyncFd<Rc<OwnedFd>> {
    type Ready<'n> = AsyncFdReadyGuard<'n, Rc<OwnedFd>>;

    async fn readable(&self) -> io::Result<Self::Ready<'_>> {
        Self::readable(self).await
    }

    fn clear(mut ready: Self::Ready<'_>) {
        ready.clear_ready();
    }
}
