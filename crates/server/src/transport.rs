//! Decides how bytes get to a peer and back: one trait over sockets that block and sockets that
//! answer "not now", so that the stages are written once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};

use crate::address::Peer;
use crate::system::{Transfer, receive, transmit, transmit_file};
use crate::tls::{DetachedSession, Session, TlsBuffers};

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// One end of a byte stream.
pub trait Transport {
    /// True when calls wait; such a transport never says [`Transfer::Again`].
    const BLOCKS: bool;

    /// Receives into `space`, which is not empty.
    fn receive(&mut self, space: &mut [u8]) -> Transfer;

    /// Sends from `bytes`, which is not empty. `more` says that something follows at once, so a
    /// small segment should wait for it.
    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer;

    /// Sends up to `count` bytes of `file` from `offset` without a copy in user space.
    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer;

    /// Tells the peer that nothing more will come; what it still sends can be received.
    fn finish(&mut self);

    /// How long the calls of one way that follow may wait; a transport that does not block has nothing
    /// to set.
    fn wait_at_most(&mut self, _way: Way, _duration: Duration) {}

    /// Whether the last receive, which brought `count` bytes into this much room, left nothing behind.
    fn has_emptied(&self, count: usize, room: usize) -> bool {
        count < room
    }

    /// Some of what was sent is still here.
    fn holds_back(&self) -> bool {
        false
    }

    /// Sends what is held back.
    fn flush(&mut self) -> Transfer {
        Transfer::Ended
    }

    /// Nothing can be said before both ends have agreed how.
    fn is_shaking_hands(&self) -> bool {
        false
    }

    /// Both ends have tried for so long to agree how to speak that others need the place.
    fn is_evicted(&self) -> bool {
        false
    }

    /// The peer speaks a protocol that somebody else understands.
    fn departs(&self) -> bool {
        false
    }

    /// Tells the peer that the connection ends, without a wait.
    fn farewell(&mut self) {}
}

/// A socket, and what keeps it secret.
struct Socket {
    descriptor: OwnedFd,
    session: Option<Box<Session>>,
}

impl Socket {
    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        match &mut self.session {
            None => receive(&self.descriptor, space),
            Some(session) => session.receive(&self.descriptor, space),
        }
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        match &mut self.session {
            None => transmit(&self.descriptor, bytes, more),
            Some(session) => session.send(&self.descriptor, bytes, more),
        }
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        match &mut self.session {
            None => transmit_file(&self.descriptor, file, offset, count),
            Some(session) => session.send_file(&self.descriptor, file, offset, count),
        }
    }

    fn finish(&mut self) {
        self.farewell();
        // A connection that is gone already has nothing to be told.
        let _ = shutdown(&self.descriptor, Shutdown::Write);
    }

    fn has_emptied(&self, count: usize, room: usize) -> bool {
        self.session.as_ref().map_or(count < room, |session| session.has_emptied())
    }

    fn holds_back(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.holds_back())
    }

    fn flush(&mut self) -> Transfer {
        match &mut self.session {
            None => Transfer::Ended,
            Some(session) => session.flush(&self.descriptor),
        }
    }

    fn is_shaking_hands(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_shaking_hands())
    }

    fn is_evicted(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_evicted())
    }

    fn departs(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.departs())
    }

    fn depart(self, peer: Peer) {
        if let Some(session) = self.session
            && rustix::io::ioctl_fionbio(&self.descriptor, true).is_ok()
        {
            session.depart(self.descriptor, peer);
        }
    }

    fn farewell(&mut self) {
        if let Some(session) = &mut self.session {
            session.farewell(&self.descriptor);
        }
    }
}

/// A socket that never waits: the event loop's.
pub(crate) struct Nonblocking(Socket);

impl Nonblocking {
    /// Secret if there is a `session`.
    pub(crate) const fn new(descriptor: OwnedFd, session: Option<Box<Session>>) -> Self {
        Self(Socket { descriptor, session })
    }

    /// Gives it to whoever understands its peer.
    pub(crate) fn depart(self, peer: Peer) {
        self.0.depart(peer);
    }
}

impl Transport for Nonblocking {
    const BLOCKS: bool = false;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        self.0.receive(space)
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        self.0.send(bytes, more)
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        self.0.send_file(file, offset, count)
    }

    fn finish(&mut self) {
        self.0.finish();
    }

    fn has_emptied(&self, count: usize, room: usize) -> bool {
        self.0.has_emptied(count, room)
    }

    fn holds_back(&self) -> bool {
        self.0.holds_back()
    }

    fn flush(&mut self) -> Transfer {
        self.0.flush()
    }

    fn is_shaking_hands(&self) -> bool {
        self.0.is_shaking_hands()
    }

    fn is_evicted(&self) -> bool {
        self.0.is_evicted()
    }

    fn departs(&self) -> bool {
        self.0.departs()
    }

    fn farewell(&mut self) {
        self.0.farewell();
    }
}

/// A socket whose calls wait: a thread's own.
pub(crate) struct Blocking {
    socket: Socket,
    /// What the kernel was last told, so that an unchanged wait costs no system call.
    wait_in: Duration,
    wait_out: Duration,
}

impl Blocking {
    /// Secret if there is a `session`.
    pub(crate) const fn new(descriptor: OwnedFd, session: Option<Box<Session>>) -> Self {
        let socket = Socket { descriptor, session };
        Self { socket, wait_in: Duration::MAX, wait_out: Duration::MAX }
    }

    /// Gives it to whoever understands its peer.
    pub(crate) fn depart(self, peer: Peer) {
        self.socket.depart(peer);
    }
}

/// A socket that blocks, on its way from one thread to another.
pub(crate) struct DetachedTransport {
    descriptor: OwnedFd,
    session: Option<DetachedSession>,
    wait_in: Duration,
    wait_out: Duration,
}

impl Blocking {
    /// Leaves its thread. Not for one that shakes hands.
    pub(crate) fn detach(self) -> DetachedTransport {
        let Self { socket: Socket { descriptor, session }, wait_in, wait_out } = self;
        DetachedTransport {
            descriptor,
            session: session.map(|session| session.detach()),
            wait_in,
            wait_out,
        }
    }
}

impl DetachedTransport {
    /// Goes on with the TLS buffers of another thread.
    pub(crate) fn attach(self, tls_buffers: &Rc<TlsBuffers>) -> Blocking {
        let Self { descriptor, session, wait_in, wait_out } = self;
        let session = session.map(|packed| Box::new(packed.attach(Rc::clone(tls_buffers))));
        Blocking { socket: Socket { descriptor, session }, wait_in, wait_out }
    }
}

impl From<Blocking> for Nonblocking {
    /// A socket that cannot be told so is of no use; the next call says that it is gone.
    fn from(transport: Blocking) -> Self {
        let socket = transport.socket;
        if rustix::io::ioctl_fionbio(&socket.descriptor, true).is_err() {
            let _ = shutdown(&socket.descriptor, Shutdown::Both);
        }
        Self(socket)
    }
}

impl Transport for Blocking {
    const BLOCKS: bool = true;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        timed(self.socket.receive(space))
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        timed(self.socket.send(bytes, more))
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        timed(self.socket.send_file(file, offset, count))
    }

    fn finish(&mut self) {
        self.socket.finish();
    }

    fn wait_at_most(&mut self, way: Way, duration: Duration) {
        // Zero would mean for ever (socket(7), SO_RCVTIMEO).
        let duration = duration.max(Duration::from_millis(1));
        // Deadlines are compared at every call anyway; a quarter second of slack saves a system
        // call for each request of a kept connection.
        let slack = Duration::from_millis(250);
        let (told, direction) = match way {
            Way::In => (&mut self.wait_in, sockopt::Timeout::Recv),
            Way::Out => (&mut self.wait_out, sockopt::Timeout::Send),
        };
        if (duration..=duration + slack).contains(told) {
            return;
        }
        *told = duration;
        if sockopt::set_socket_timeout(&self.socket.descriptor, direction, Some(duration)).is_err()
        {
            // A socket that takes no timeout is of no use here; the next call says it is gone.
            let _ = shutdown(&self.socket.descriptor, Shutdown::Both);
        }
    }

    fn has_emptied(&self, count: usize, room: usize) -> bool {
        self.socket.has_emptied(count, room)
    }

    fn holds_back(&self) -> bool {
        self.socket.holds_back()
    }

    fn flush(&mut self) -> Transfer {
        timed(self.socket.flush())
    }

    fn is_shaking_hands(&self) -> bool {
        self.socket.is_shaking_hands()
    }

    fn is_evicted(&self) -> bool {
        self.socket.is_evicted()
    }

    fn departs(&self) -> bool {
        self.socket.departs()
    }

    fn farewell(&mut self) {
        self.socket.farewell();
    }
}

impl AsFd for Nonblocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }
}

impl AsFd for Blocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.descriptor.as_fd()
    }
}

/// With `SO_RCVTIMEO` or `SO_SNDTIMEO` the kernel says EAGAIN when the time is over.
fn timed(transfer: Transfer) -> Transfer {
    match transfer {
        Transfer::Again => Transfer::TimedOut,
        other => other,
    }
}
