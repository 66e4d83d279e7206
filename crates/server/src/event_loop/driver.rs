//! The boundary between a loop and the system: readiness events, accepted sockets and one timer.
//!
//! A loop is generic over its [`Driver`]. The server uses [`Kernel`]; every call is dispatched
//! statically, so the boundary costs nothing. The tests replace it by a simulation, which runs the
//! same loop against scripted peers and a clock of its own.

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

use crate::address::Peer;
use crate::event_loop::alarm::{KernelTimer, Timer};
use crate::event_loop::{ALARM, BELL, LISTENER, WATCHED};
use crate::handler::{ReceiveBuffer, Wire};
use crate::listener::Listener;
use crate::mailbox::Mailbox;
use crate::slab::Token;
use crate::tls::Session;
use crate::transport::{Nonblocking, Transport};

/// The system calls of a loop.
pub(crate) trait Driver: Sized {
    /// The server's end of a connection.
    type Transport: Transport;
    type Timer: Timer;
    type Nested: Nested;

    /// Reports letters in `mailbox` as [`BELL`], for as long as there are any.
    fn watch_mailbox(&self, mailbox: &Mailbox) -> io::Result<()>;

    /// A timer whose expiry is reported once as [`ALARM`].
    fn timer(&self) -> io::Result<Self::Timer>;

    /// Reports newcomers at `listener` as [`LISTENER`] plus `number`, for as long as there are any.
    fn watch_listener(&self, listener: &Listener, number: usize) -> io::Result<()>;

    fn forget_listener(&self, listener: &Listener);

    /// The next newcomer at `listener`.
    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, Peer)>;

    /// The transport over an accepted socket, encrypted if there is a `session`.
    fn transport(&self, socket: OwnedFd, session: Option<Box<Session>>) -> Self::Transport;

    /// Reports each change of `transport`'s readiness once (rule 1): input and the end of the stream.
    fn watch(&self, transport: &Self::Transport, token: Token) -> io::Result<()>;

    /// From here on also reports when there is room to send.
    fn watch_room(&self, transport: &Self::Transport, token: Token) -> io::Result<()>;

    fn forget(&self, transport: &Self::Transport);

    /// Fills `batch` up to its capacity. An interruption is an empty batch.
    fn wait(&self, batch: &mut Vec<epoll::Event>, wait: Wait) -> io::Result<()>;

    /// Lets the runtime watch for events.
    fn nest(&self) -> io::Result<Self::Nested>;

    /// Gives the connection to the owner of the protocol that its peer speaks.
    fn depart(transport: Self::Transport, peer: Peer);

    /// Has the runtime watch the socket of a connection that was upgraded.
    fn wire(
        transport: Self::Transport,
        received: Vec<u8>,
        space: ReceiveBuffer,
    ) -> io::Result<Wire>;
}

/// How the runtime learns that [`Driver::wait`] has events.
pub(crate) trait Nested {
    type Ready<'n>
    where
        Self: 'n;

    /// Waits until there were events since the last [`clear`](Self::clear).
    async fn readable(&self) -> io::Result<Self::Ready<'_>>;

    /// Nothing is left: waits for the next event from here on.
    fn clear(ready: Self::Ready<'_>);
}

/// How long a look for events may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Only what is there already.
    Never,
    /// Until something is; the alarm is something too.
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
        Ok(epoll::add(&self.epoll, mailbox, EventData::new_u64(BELL), EventFlags::IN)?)
    }

    fn timer(&self) -> io::Result<KernelTimer> {
        let timer = KernelTimer::new()?;
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &timer, EventData::new_u64(ALARM), edges)?;
        Ok(timer)
    }

    fn watch_listener(&self, listener: &Listener, number: usize) -> io::Result<()> {
        let data = EventData::new_u64(LISTENER + number as u64);
        Ok(epoll::add(&self.epoll, listener, data, EventFlags::IN | EventFlags::EXCLUSIVE)?)
    }

    fn forget_listener(&self, listener: &Listener) {
        // It was added, and lives as long as its generation; there is nothing to go wrong.
        let _ = epoll::delete(&self.epoll, listener);
    }

    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, Peer)> {
        listener.accept(SocketFlags::NONBLOCK)
    }

    fn transport(&self, socket: OwnedFd, session: Option<Box<Session>>) -> Nonblocking {
        Nonblocking::new(socket, session)
    }

    fn watch(&self, transport: &Nonblocking, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, transport, EventData::new_u64(token.bits()), WATCHED)?)
    }

    fn watch_room(&self, transport: &Nonblocking, token: Token) -> io::Result<()> {
        let data = EventData::new_u64(token.bits());
        Ok(epoll::modify(&self.epoll, transport, data, WATCHED | EventFlags::OUT)?)
    }

    fn forget(&self, transport: &Nonblocking) {
        // It was added when it came; there is nothing to go wrong.
        let _ = epoll::delete(&self.epoll, transport);
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
        // SAFETY: the descriptor behind the `Rc` is the same at every call, and stays open as long
        // as the registration holds its share of it.
        let nested =
            unsafe { AsyncFd::register_with_interest(Rc::clone(&self.epoll), Interest::READABLE) };
        Ok(nested?)
    }

    fn depart(transport: Nonblocking, peer: Peer) {
        transport.depart(peer);
    }

    fn wire(transport: Nonblocking, received: Vec<u8>, space: ReceiveBuffer) -> io::Result<Wire> {
        Wire::new(transport, received, space)
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
