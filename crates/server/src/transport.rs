//! The transport of bytes: one trait over blocking and nonblocking sockets, plain or TLS, so that
//! the stages exist once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};

use crate::address::{AddressBlock, ClientAddress};
use crate::memory_stream::MemoryTransport;
use crate::system::{Transfer, receive, receive_part, transmit, transmit_file};
use crate::tls::{DetachedSession, Session, TlsBuffers};

/// The direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// One end of a byte stream.
pub trait Transport {
    /// Whether calls wait. A transport that waits never returns [`Transfer::Again`].
    const BLOCKS: bool;

    /// Receives into `space`, which is not empty.
    fn receive(&mut self, space: &mut [u8]) -> Transfer;

    /// Receives a part of the header that precedes TLS and HTTP, as `system::receive_part` does. A
    /// transport that no proxy uses has none.
    fn receive_preface(
        &mut self,
        _space: &mut [u8],
        _kept: usize,
        _part: impl FnOnce(&[u8]) -> usize,
    ) -> Transfer {
        Transfer::Broken
    }

    /// Counts the handshake, which has not begun, against `block`.
    fn count_handshake_for(&mut self, _block: AddressBlock) {}

    /// Sends from `bytes`, which is not empty. `more` announces that further bytes follow at once,
    /// so that a small segment waits for them.
    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer;

    /// Sends up to `count` bytes of `file` from `offset` without a copy in user space.
    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer;

    /// Closes the sending half. The client can still send.
    fn finish(&mut self);

    /// Limits how long later calls in one direction may wait. A nonblocking transport ignores it.
    fn wait_at_most(&mut self, _way: Direction, _duration: Duration) {}

    /// Whether the last receive emptied the socket. It returned `count` bytes and had space for
    /// `room`.
    fn has_emptied(&self, count: usize, room: usize) -> bool {
        count < room
    }

    /// Whether bytes that were sent are still in the transport's own buffer.
    fn holds_back(&self) -> bool {
        false
    }

    /// Sends the bytes in the transport's own buffer.
    fn flush(&mut self) -> Transfer {
        Transfer::Ended
    }

    /// Whether the handshake is not complete.
    fn is_shaking_hands(&self) -> bool {
        false
    }

    /// Whether the handshake waits until other handshakes of the thread have begun.
    fn awaits_turn(&self) -> bool {
        false
    }

    /// Whether the handshake was evicted, because it has taken long and new ones need its place.
    fn is_evicted(&self) -> bool {
        false
    }

    /// Whether the client offered a protocol other than HTTP/1.1, for which the program has a
    /// receiver.
    fn departs(&self) -> bool {
        false
    }

    /// Whether the client and the TLS session have agreed on HTTP/2.
    fn selects_http2(&self) -> bool {
        false
    }

    /// Whether this is one stream of a connection of HTTP/2.
    fn is_stream(&self) -> bool {
        false
    }

    /// Sends the closing message of the protocol without waiting.
    fn farewell(&mut self) {}
}

/// A socket and its TLS session, if it has one.
struct Socket {
    descriptor: OwnedFd,
    session: Option<Box<Session>>,
}

impl Socket {
    fn count_handshake_for(&mut self, block: AddressBlock) {
        if let Some(session) = &mut self.session {
            session.count_for(block);
        }
    }

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
        // An error means that the connection is closed already.
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

    fn awaits_turn(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.awaits_turn())
    }

    fn is_evicted(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_evicted())
    }

    fn departs(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.departs())
    }

    fn selects_http2(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.selects_http2())
    }

    fn depart(self, peer: ClientAddress) {
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

/// A nonblocking transport, for event loops: a socket, or one stream of a connection of HTTP/2.
pub(crate) struct Nonblocking(Carrier);

enum Carrier {
    Socket(Socket),
    Stream(MemoryTransport),
}

impl Nonblocking {
    /// Encrypted if there is a `session`.
    pub(crate) const fn new(descriptor: OwnedFd, session: Option<Box<Session>>) -> Self {
        Self(Carrier::Socket(Socket { descriptor, session }))
    }

    /// One stream of a connection.
    pub(crate) const fn stream(stream: MemoryTransport) -> Self {
        Self(Carrier::Stream(stream))
    }

    /// Hands the connection to the receiver for the protocol that the client offered.
    pub(crate) fn depart(self, peer: ClientAddress) {
        if let Carrier::Socket(socket) = self.0 {
            socket.depart(peer);
        }
    }

    /// The socket, or the stream that has none.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>, &MemoryTransport> {
        match &self.0 {
            Carrier::Socket(socket) => Ok(socket.descriptor.as_fd()),
            Carrier::Stream(stream) => Err(stream),
        }
    }

    const fn socket(&self) -> Option<&Socket> {
        match &self.0 {
            Carrier::Socket(socket) => Some(socket),
            Carrier::Stream(_) => None,
        }
    }
}

impl Transport for Nonblocking {
    const BLOCKS: bool = false;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        match &mut self.0 {
            Carrier::Socket(socket) => socket.receive(space),
            Carrier::Stream(stream) => stream.receive(space),
        }
    }

    fn receive_preface(
        &mut self,
        space: &mut [u8],
        kept: usize,
        part: impl FnOnce(&[u8]) -> usize,
    ) -> Transfer {
        match &mut self.0 {
            Carrier::Socket(socket) => receive_part(&socket.descriptor, space, kept, part),
            // The header is before the first stream.
            Carrier::Stream(_) => Transfer::Broken,
        }
    }

    fn count_handshake_for(&mut self, block: AddressBlock) {
        if let Carrier::Socket(socket) = &mut self.0 {
            socket.count_handshake_for(block);
        }
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        match &mut self.0 {
            Carrier::Socket(socket) => socket.send(bytes, more),
            Carrier::Stream(stream) => stream.send(bytes),
        }
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        match &mut self.0 {
            Carrier::Socket(socket) => socket.send_file(file, offset, count),
            Carrier::Stream(stream) => stream.send_file(file, offset, count),
        }
    }

    fn finish(&mut self) {
        match &mut self.0 {
            Carrier::Socket(socket) => socket.finish(),
            Carrier::Stream(stream) => stream.finish(),
        }
    }

    fn has_emptied(&self, count: usize, room: usize) -> bool {
        match &self.0 {
            Carrier::Socket(socket) => socket.has_emptied(count, room),
            Carrier::Stream(stream) => stream.has_emptied(),
        }
    }

    fn holds_back(&self) -> bool {
        self.socket().is_some_and(Socket::holds_back)
    }

    fn flush(&mut self) -> Transfer {
        match &mut self.0 {
            Carrier::Socket(socket) => socket.flush(),
            Carrier::Stream(_) => Transfer::Ended,
        }
    }

    fn is_shaking_hands(&self) -> bool {
        self.socket().is_some_and(Socket::is_shaking_hands)
    }

    fn awaits_turn(&self) -> bool {
        self.socket().is_some_and(Socket::awaits_turn)
    }

    fn is_evicted(&self) -> bool {
        self.socket().is_some_and(Socket::is_evicted)
    }

    fn departs(&self) -> bool {
        self.socket().is_some_and(Socket::departs)
    }

    fn selects_http2(&self) -> bool {
        self.socket().is_some_and(Socket::selects_http2)
    }

    fn is_stream(&self) -> bool {
        self.socket().is_none()
    }

    fn farewell(&mut self) {
        if let Carrier::Socket(socket) = &mut self.0 {
            socket.farewell();
        }
    }
}

/// A blocking socket, for a thread per connection.
pub(crate) struct Blocking {
    socket: Socket,
    /// The timeouts that are set in the kernel, so that an unchanged timeout costs no system call.
    wait_in: Duration,
    wait_out: Duration,
}

impl Blocking {
    /// Encrypted if there is a `session`.
    pub(crate) const fn new(descriptor: OwnedFd, session: Option<Box<Session>>) -> Self {
        let socket = Socket { descriptor, session };
        Self { socket, wait_in: Duration::MAX, wait_out: Duration::MAX }
    }

    /// Hands the connection to the receiver for the protocol that the client offered.
    pub(crate) fn depart(self, peer: ClientAddress) {
        self.socket.depart(peer);
    }
}

/// A blocking socket that moves between threads.
pub(crate) struct DetachedTransport {
    descriptor: OwnedFd,
    session: Option<DetachedSession>,
    wait_in: Duration,
    wait_out: Duration,
}

impl Blocking {
    /// Detaches the socket from its thread. The handshake must be complete.
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
    /// Attaches the socket to the calling thread, whose TLS buffers it uses from now on.
    pub(crate) fn attach(self, tls_buffers: &Rc<TlsBuffers>) -> Blocking {
        let Self { descriptor, session, wait_in, wait_out } = self;
        let session = session.map(|packed| Box::new(packed.attach(Rc::clone(tls_buffers))));
        Blocking { socket: Socket { descriptor, session }, wait_in, wait_out }
    }
}

impl From<Blocking> for Nonblocking {
    /// If the socket cannot become nonblocking, it is shut down; the next call reports the end.
    fn from(transport: Blocking) -> Self {
        let socket = transport.socket;
        if rustix::io::ioctl_fionbio(&socket.descriptor, true).is_err() {
            let _ = shutdown(&socket.descriptor, Shutdown::Both);
        }
        Self(Carrier::Socket(socket))
    }
}

impl Transport for Blocking {
    const BLOCKS: bool = true;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        as_timeout(self.socket.receive(space))
    }

    fn receive_preface(
        &mut self,
        space: &mut [u8],
        kept: usize,
        part: impl FnOnce(&[u8]) -> usize,
    ) -> Transfer {
        as_timeout(receive_part(&self.socket.descriptor, space, kept, part))
    }

    fn count_handshake_for(&mut self, block: AddressBlock) {
        self.socket.count_handshake_for(block);
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        as_timeout(self.socket.send(bytes, more))
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        as_timeout(self.socket.send_file(file, offset, count))
    }

    fn finish(&mut self) {
        self.socket.finish();
    }

    fn wait_at_most(&mut self, way: Direction, duration: Duration) {
        // Zero would mean no timeout (socket(7), SO_RCVTIMEO).
        let duration = duration.max(Duration::from_millis(1));
        // The caller compares deadlines at each call. A timeout up to 250 ms shorter than the
        // current one is not set, which saves a system call per request on a kept connection.
        let slack = Duration::from_millis(250);
        let (current, direction) = match way {
            Direction::In => (&mut self.wait_in, sockopt::Timeout::Recv),
            Direction::Out => (&mut self.wait_out, sockopt::Timeout::Send),
        };
        if (duration..=duration + slack).contains(current) {
            return;
        }
        *current = duration;
        if sockopt::set_socket_timeout(&self.socket.descriptor, direction, Some(duration)).is_err()
        {
            // If the timeout cannot be set, the socket is shut down; the next call reports the end.
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
        as_timeout(self.socket.flush())
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

impl AsFd for Blocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.descriptor.as_fd()
    }
}

/// With `SO_RCVTIMEO` or `SO_SNDTIMEO`, the kernel reports a timeout as EAGAIN.
fn as_timeout(transfer: Transfer) -> Transfer {
    match transfer {
        Transfer::Again => Transfer::TimedOut,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::test_support::{received, sockets};
    use crate::tls::test_support::{TlsPair, tls};

    #[test]
    fn encrypts_with_a_session_only() {
        let (socket, mut client) = sockets();
        let mut plain = Nonblocking::new(socket, None);
        client.write_all(b"plain").unwrap();
        let mut space = [0; 8];
        assert_eq!(plain.receive(&mut space), Transfer::Moved(5));
        assert!(plain.has_emptied(5, 8) && !plain.has_emptied(8, 8));
        assert_eq!(plain.send(b"reply", false), Transfer::Moved(5));
        assert!(!plain.is_shaking_hands() && !plain.is_evicted() && !plain.departs());
        assert_eq!((plain.holds_back(), plain.flush()), (false, Transfer::Ended));
        plain.farewell();
        plain.finish();
        assert_eq!(received(client), "reply", "the sending half is closed");
    }

    #[test]
    fn reports_the_state_of_its_session() {
        let mut pair = TlsPair::new(tls(), &[]);
        pair.send_all();
        let TlsPair { session, socket, mut client, stream, handshakes } = pair;
        let mut transport = Nonblocking::new(socket, Some(Box::new(session)));
        assert!(transport.is_shaking_hands() && !transport.departs());
        let mut space = vec![0; 20_000];
        assert_eq!(transport.receive(&mut space), Transfer::Again);
        assert!(transport.is_shaking_hands() && !transport.is_evicted());
        // Newer handshakes of the same block.
        let owner = crate::quota::Owner::default();
        let block = ClientAddress::UNIX.block();
        let newer: Vec<_> = (0..16).map(|_| handshakes.begin(block, &owner, 5, || false)).collect();
        assert!(transport.is_evicted());
        drop(newer);
        assert!(client.wants_read());
        client.send_close_notify();
        drop((transport, stream));
    }

    #[test]
    fn sends_the_rest_of_encrypted_bytes_first() {
        let pair = TlsPair::open();
        let TlsPair { session, socket, client, stream, handshakes } = pair;
        let mut transport = Nonblocking::new(socket, Some(Box::new(session)));
        assert!(!transport.is_shaking_hands() && !transport.holds_back());
        let content = vec![b'x'; 60_000];
        let mut count = 0;
        while let Transfer::Moved(moved) = transport.send(&content, false) {
            count += moved;
        }
        assert!(transport.holds_back());
        assert_eq!(transport.flush(), Transfer::Again);
        let Nonblocking(Carrier::Socket(Socket { descriptor, session })) = transport else {
            panic!()
        };
        let mut pair = TlsPair {
            session: *session.unwrap(),
            socket: descriptor.try_clone().unwrap(),
            client,
            stream,
            handshakes,
        };
        let mut received = pair.client_reads().unwrap().len();
        let mut transport = Nonblocking::new(descriptor, Some(Box::new(pair.session)));
        while transport.holds_back() {
            assert!(matches!(transport.flush(), Transfer::Moved(_)));
        }
        transport.farewell();
        let Nonblocking(Carrier::Socket(Socket { session, .. })) = transport else { panic!() };
        pair.session = *session.unwrap();
        received += pair.client_reads().unwrap().len();
        assert_eq!(received, count);
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed(), "with a farewell");
    }

    #[test]
    fn reports_a_full_or_empty_blocking_socket_as_a_timeout() {
        let (socket, mut client) = sockets();
        let mut transport = Blocking::new(socket, None);
        transport.wait_at_most(Direction::In, Duration::ZERO);
        transport.wait_at_most(Direction::Out, Duration::ZERO);
        assert_eq!(transport.receive(&mut [0; 8]), Transfer::TimedOut);
        while let Transfer::Moved(_) = transport.send(&vec![0; 100_000], false) {}
        assert_eq!(transport.send(b"more", false), Transfer::TimedOut);
        client.write_all(b"bytes").unwrap();
        assert_eq!(transport.receive(&mut [0; 8]), Transfer::Moved(5));
        assert_eq!(transport.flush(), Transfer::Ended);
        drop(client);
        assert_eq!(transport.send(b"more", false), Transfer::Broken);
    }

    /// A timeout that is up to 250 ms shorter than the current one costs no system call.
    #[test]
    fn sets_timeouts_only_when_they_change_enough() {
        let (socket, _client) = sockets();
        let mut transport = Blocking::new(socket, None);
        let ms = Duration::from_millis;
        let read = |transport: &Blocking, way| {
            sockopt::socket_timeout(&transport.socket.descriptor, way).unwrap()
        };
        for (wanted, expected) in [
            (5000, 5000),
            (4750, 5000),
            (4749, 4749),
            (4999, 4999),
            (4800, 4999),
            (0, 1),
            (60_000, 60_000),
        ] {
            transport.wait_at_most(Direction::In, ms(wanted));
            let set = read(&transport, sockopt::Timeout::Recv).unwrap();
            // The kernel rounds it up to its own ticks.
            assert!(set >= ms(expected) && set < ms(expected + 20), "{wanted}: {set:?}");
        }
        assert_eq!(read(&transport, sockopt::Timeout::Send), None);
        transport.wait_at_most(Direction::Out, ms(7000));
        assert_eq!(read(&transport, sockopt::Timeout::Send), Some(ms(7000)));
        assert_eq!(read(&transport, sockopt::Timeout::Recv), Some(ms(60_000)));
        // It keeps them when it moves to another thread.
        let moved = transport.detach().attach(&Rc::default());
        assert_eq!((moved.wait_in, moved.wait_out), (ms(60_000), ms(7000)));
    }

    #[test]
    fn blocking_reports_the_state_of_its_session() {
        let mut plain = Blocking::new(sockets().0, None);
        assert!(plain.has_emptied(5, 8) && !plain.has_emptied(8, 8));
        assert!(!plain.is_shaking_hands() && !plain.is_evicted() && !plain.departs());
        assert!(!plain.holds_back());
        plain.farewell();
        let pair = TlsPair::new(tls(), &[]);
        let secure = Blocking::new(pair.socket, Some(Box::new(pair.session)));
        assert!(secure.is_shaking_hands());
        let mut pair = TlsPair::open();
        let mut secure =
            Blocking::new(pair.socket.try_clone().unwrap(), Some(Box::new(pair.session)));
        assert!(!secure.is_shaking_hands());
        secure.farewell();
        pair.session = *secure.socket.session.unwrap();
        pair.client_reads().unwrap();
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
    }

    #[test]
    fn becomes_nonblocking_for_a_reply_without_a_wait() {
        let (socket, _client) = sockets();
        let mut transport = Nonblocking::from(Blocking::new(socket, None));
        assert_eq!(transport.receive(&mut [0; 8]), Transfer::Again);
    }
}
