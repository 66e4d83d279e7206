//! Decides how one connection is kept secret: what is received is decrypted in the thread's TLS buffers, what is
//! sent is encrypted there, and between two turns only a record that is not yet whole stays behind.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use bine_log as log;
use rustls::server::{Accepted, Acceptor, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::buffers::{PIECE, TlsBuffers};
use super::handshakes::{Handshake, Handshakes};
use super::{Departure, Tls};
use crate::address::{AddressBlock, Peer};
use crate::system::{Transfer, socket};
use crate::time::monotonic_milliseconds;

/// The TLS of one connection, on top of a socket that is passed to each call.
pub(crate) struct Session {
    stage: Stage,
    tls_buffers: Rc<TlsBuffers>,
    /// Received, and no whole record yet, or no whole message of the handshake.
    kept: Vec<u8>,
    /// Encrypted, from `sent` on, and too much for the socket.
    unsent: Vec<u8>,
    sent: usize,
    /// The last receive emptied the socket.
    has_emptied: bool,
    /// The peer has said that nothing more will come.
    has_ended: bool,
    /// Whoever holds the connection knows that it is over.
    fault_is_told: bool,
    /// It has its place among the handshakes until it is done.
    handshake: Option<Handshake>,
}

/// A session on its way to another thread: all of it but the buffers. Not for one in its handshake,
/// which has a place among those of its thread.
pub(crate) struct DetachedSession {
    stage: Stage,
    kept: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
    has_emptied: bool,
    has_ended: bool,
    fault_is_told: bool,
}

impl DetachedSession {
    /// Goes on with the buffers of another thread.
    pub(crate) fn attach(self, tls_buffers: Rc<TlsBuffers>) -> Session {
        let Self { stage, kept, unsent, sent, has_emptied, has_ended, fault_is_told } = self;
        let handshake = None;
        Session {
            stage,
            tls_buffers,
            kept,
            unsent,
            sent,
            has_emptied,
            has_ended,
            fault_is_told,
            handshake,
        }
    }
}

enum Stage {
    /// The `ClientHello` is on its way. Nothing is done for a peer that has not sent it all.
    Hello { tls: Arc<Tls>, handshakes: Arc<Handshakes>, block: AddressBlock },
    /// The handshake, and all that follows it.
    Open(Box<UnbufferedServerConnection>),
    /// It goes to somebody else.
    Departing(Box<(Accepted, Arc<Tls>)>),
    /// Nothing more is understood.
    Over,
}

/// The kind of a record that holds a handshake's message (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
/// Kind, version and length of a record.
const RECORD_HEAD: usize = 5;
/// Told to a peer that speaks HTTP without TLS.
const NOT_PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\n\
    This address speaks HTTPS; ask it with https://\n";

/// What came of looking at received bytes.
#[derive(Default)]
struct Understood {
    /// Bytes of content, in the caller's space.
    content: usize,
    /// Bytes to be sent, in the buffers.
    answer: usize,
    /// Bytes that are done with.
    used: usize,
    /// Nothing more will come.
    ended: bool,
    fault: Option<rustls::Error>,
}

impl Session {
    /// For a connection from `block` that has just come, with a place among `handshakes` when it begins one.
    pub(crate) fn new(
        tls: Arc<Tls>,
        tls_buffers: Rc<TlsBuffers>,
        handshakes: Arc<Handshakes>,
        block: AddressBlock,
    ) -> Self {
        Self {
            stage: Stage::Hello { tls, handshakes, block },
            tls_buffers,
            kept: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            has_emptied: false,
            has_ended: false,
            fault_is_told: false,
            handshake: None,
        }
    }

    /// Leaves its buffers.
    pub(crate) fn detach(self) -> DetachedSession {
        debug_assert!(self.handshake.is_none(), "a handshake has its place on this thread");
        let Self { stage, kept, unsent, sent, has_emptied, has_ended, fault_is_told, .. } = self;
        DetachedSession { stage, kept, unsent, sent, has_emptied, has_ended, fault_is_told }
    }

    /// Receives content into `space`. `Again` says too that what came has none.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, space: &mut [u8]) -> Transfer {
        if let Err(held_up) = self.flush_all(socket) {
            return held_up;
        }
        match self.stage {
            Stage::Over if !self.fault_is_told => {
                self.fault_is_told = true;
                return Transfer::Fault;
            }
            // Nobody looks at it.
            Stage::Over => {
                let transfer = socket::receive(socket, space);
                self.has_emptied =
                    matches!(transfer, Transfer::Moved(count) if count < space.len());
                return transfer;
            }
            Stage::Departing(_) => return Transfer::Ended,
            Stage::Hello { .. } | Stage::Open(_) if self.has_ended => return Transfer::Ended,
            Stage::Hello { .. } | Stage::Open(_) => {}
        }
        let tls_buffers = Rc::clone(&self.tls_buffers);
        let mut buffers = tls_buffers.buffers();
        let (incoming, outgoing) = buffers.both();
        loop {
            // Content is never longer than the records it came in, so that all of it has room.
            let most = space.len().min(incoming.len());
            let kept = self.kept.len();
            if kept >= most {
                log::debug(format_args!("a TLS message of more than {most} bytes"));
                return Transfer::Broken;
            }
            let count = match socket::receive(socket, &mut incoming[kept..most]) {
                Transfer::Moved(count) => count,
                other => return other,
            };
            incoming[..kept].copy_from_slice(&self.kept);
            self.has_emptied = count < most - kept;
            let received = &mut incoming[..kept + count];
            if let Some(end) = self.meet(socket, received) {
                return end;
            }
            let understood = self.understand(received, space, outgoing);
            self.keep(&received[understood.used..]);
            self.answer(socket, &outgoing[..understood.answer]);
            if let Some(fault) = &understood.fault {
                log::debug(format_args!("TLS: {fault}"));
                self.stage = Stage::Over;
            }
            if understood.ended {
                // What came before is still used; the next receive tells the end.
                self.has_ended = true;
                self.has_emptied = false;
            }
            match understood.content {
                0 if understood.fault.is_some() => {
                    self.fault_is_told = true;
                    return Transfer::Fault;
                }
                0 if understood.ended => return Transfer::Ended,
                0 if self.has_emptied => return Transfer::Again,
                0 => {}
                count => return Transfer::Moved(count),
            }
        }
    }

    /// Sends from `bytes`. `Moved` says that they are encrypted; what the socket did not take of
    /// that is [held back](Self::holds_back).
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8], more: bool) -> Transfer {
        if let Err(held_up) = self.flush_all(socket) {
            return held_up;
        }
        let tls_buffers = Rc::clone(&self.tls_buffers);
        let mut buffers = tls_buffers.buffers();
        let (_, outgoing) = buffers.both();
        let count = bytes.len().min(PIECE);
        self.send_piece(socket, &bytes[..count], outgoing, more || count < bytes.len())
    }

    /// Sends from a file, by way of the buffers.
    pub(crate) fn send_file(
        &mut self,
        socket: &OwnedFd,
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
    ) -> Transfer {
        if let Err(held_up) = self.flush_all(socket) {
            return held_up;
        }
        let tls_buffers = Rc::clone(&self.tls_buffers);
        let mut buffers = tls_buffers.buffers();
        let (incoming, outgoing) = buffers.both();
        let most = count.min(PIECE);
        match rustix::io::pread(file, &mut incoming[..most], offset) {
            // As with `sendfile`: the file became shorter than was announced.
            Ok(0) | Err(_) => Transfer::Broken,
            Ok(read) => self.send_piece(socket, &incoming[..read], outgoing, read < count),
        }
    }

    /// Sends what is held back.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Transfer {
        let transfer = socket::transmit(socket, &self.unsent[self.sent..], false);
        if let Transfer::Moved(count) = transfer {
            self.sent += count;
            if self.sent == self.unsent.len() {
                // Given back, since most connections are never held back again.
                self.unsent = Vec::new();
                self.sent = 0;
            }
        }
        transfer
    }

    fn flush_all(&mut self, socket: &OwnedFd) -> Result<(), Transfer> {
        while self.holds_back() {
            match self.flush(socket) {
                Transfer::Moved(_) => {}
                other => return Err(other),
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing more will be sent (RFC 8446 section 6.1), if there is room for that.
    pub(crate) fn farewell(&mut self, socket: &OwnedFd) {
        let Stage::Open(connection) = &mut self.stage else { return };
        if self.sent < self.unsent.len() || connection.is_handshaking() {
            return;
        }
        let UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(mut traffic)), .. } =
            connection.process_tls_records(&mut self.kept)
        else {
            return;
        };
        let mut alert = [0; 64];
        if let Ok(length) = traffic.queue_close_notify(&mut alert) {
            socket::transmit_now(socket, &alert[..length]);
        }
    }

    /// Encrypted bytes wait for room in the socket.
    pub(crate) const fn holds_back(&self) -> bool {
        self.sent < self.unsent.len()
    }

    /// The last receive emptied the socket.
    pub(crate) const fn has_emptied(&self) -> bool {
        self.has_emptied
    }

    pub(crate) const fn is_shaking_hands(&self) -> bool {
        matches!(self.stage, Stage::Hello { .. }) || self.handshake.is_some()
    }

    /// Its handshake has taken so long that a newer one has its place.
    pub(crate) fn is_evicted(&self) -> bool {
        self.handshake.as_ref().is_some_and(Handshake::is_evicted)
    }

    /// The peer wants a protocol that is not ours.
    pub(crate) const fn departs(&self) -> bool {
        matches!(self.stage, Stage::Departing(_))
    }

    /// Gives the connection to whoever speaks its protocol.
    pub(crate) fn depart(self, socket: OwnedFd, peer: Peer) {
        let Stage::Departing(departing) = self.stage else { return };
        let (accepted, tls) = *departing;
        let Some(taker) = tls.taker(&accepted.client_hello()).map(Arc::clone) else { return };
        let config = Arc::clone(&tls.config);
        taker.take(Departure { socket, peer, accepted, config });
    }

    /// What is done once the `ClientHello` is there. `Some`: it goes no further for now, or at all.
    fn meet(&mut self, socket: &OwnedFd, received: &[u8]) -> Option<Transfer> {
        let Stage::Hello { tls, handshakes, block } = &self.stage else { return None };
        if received[0] != HANDSHAKE {
            self.stage = Stage::Over;
            if received[0].is_ascii_uppercase() {
                socket::transmit_now(socket, NOT_PLAIN);
            }
            self.fault_is_told = true;
            return Some(Transfer::Fault);
        }
        let is_whole = received.get(3..RECORD_HEAD).is_some_and(|length| {
            received.len() >= RECORD_HEAD + usize::from(u16::from_be_bytes([length[0], length[1]]))
        });
        if !is_whole {
            self.keep_new(received);
            return Some(Transfer::Again);
        }
        if tls.hand_over.is_some()
            && let Some(accepted) = offer(tls, received)
        {
            self.stage = Stage::Departing(Box::new((accepted, Arc::clone(tls))));
            return Some(Transfer::Ended);
        }
        self.handshake =
            handshakes.begin(*block, &self.tls_buffers.owner(), monotonic_milliseconds());
        if self.handshake.is_none() {
            return Some(Transfer::Broken);
        }
        match UnbufferedServerConnection::new(Arc::clone(&tls.config)) {
            Ok(connection) => self.stage = Stage::Open(Box::new(connection)),
            Err(error) => {
                log::error(format_args!("TLS cannot be spoken: {error}"));
                return Some(Transfer::Broken);
            }
        }
        None
    }

    /// Decrypts what is whole of `received` into `space`, and writes into the buffers what the handshake has to
    /// say.
    fn understand(
        &mut self,
        received: &mut [u8],
        space: &mut [u8],
        outgoing: &mut [u8],
    ) -> Understood {
        let mut known = Understood::default();
        let Stage::Open(connection) = &mut self.stage else { return known };
        loop {
            let UnbufferedStatus { mut discard, state } =
                connection.process_tls_records(&mut received[known.used..]);
            let mut waits = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let Ok(record) = record else { break };
                        discard += record.discard;
                        let end = known.content + record.payload.len();
                        space[known.content..end].copy_from_slice(record.payload);
                        known.content = end;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    match data.encode(&mut outgoing[known.answer..]) {
                        Ok(count) => known.answer += count,
                        // No flight of a handshake is that long.
                        Err(_) => (known.ended, waits) = (true, true),
                    }
                    // That was the alert, and it is the last: what is wrong would be found wrong again.
                    waits |= known.fault.is_some();
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    // It is offered when nothing whole is left. Looking again would try again to decrypt what a peer
                    // sends before it may (0-RTT, which is refused), and of that only so much is put up with.
                    waits = connection.is_handshaking();
                }
                Ok(ConnectionState::PeerClosed) => known.ended = true,
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    waits = true;
                }
                Ok(_) => (known.ended, waits) = (true, true),
                // Asked again after a fault, it has the alert that tells the peer of it, or none.
                Err(error) => {
                    waits = known.fault.replace(error).is_some();
                    known.ended = true;
                }
            }
            known.used += discard;
            if waits {
                break;
            }
        }
        if !connection.is_handshaking() {
            self.handshake = None;
        }
        known
    }

    fn send_piece(
        &mut self,
        socket: &OwnedFd,
        piece: &[u8],
        outgoing: &mut [u8],
        more: bool,
    ) -> Transfer {
        let Some(length) = self.encrypt(piece, outgoing) else { return Transfer::Broken };
        let moved = match socket::transmit(socket, &outgoing[..length], more) {
            Transfer::Moved(count) => count,
            Transfer::Again => 0,
            other => return other,
        };
        self.unsent.extend_from_slice(&outgoing[moved..length]);
        Transfer::Moved(piece.len())
    }

    /// How long `piece` has become in `outgoing`. `None`: nothing can be said on this connection any more.
    fn encrypt(&mut self, piece: &[u8], outgoing: &mut [u8]) -> Option<usize> {
        let Stage::Open(connection) = &mut self.stage else { return None };
        let mut length = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                connection.process_tls_records(&mut self.kept);
            let mut is_whole = false;
            match state.ok()? {
                // An answer to the peer's new key goes first.
                ConnectionState::EncodeTlsData(mut data) => {
                    length += data.encode(&mut outgoing[length..]).ok()?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    length += traffic.encrypt(piece, &mut outgoing[length..]).ok()?;
                    is_whole = true;
                }
                _ => return None,
            }
            self.kept.drain(..discard);
            if is_whole {
                return Some(length);
            }
        }
    }

    /// Sends what the handshake has to say; that never waits, and the deadline of the handshake stands.
    fn answer(&mut self, socket: &OwnedFd, bytes: &[u8]) {
        if !bytes.is_empty() {
            let sent = socket::transmit_now(socket, bytes);
            self.unsent.extend_from_slice(&bytes[sent..]);
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Given back: most of the time nothing is kept.
            self.kept = Vec::new();
        } else {
            self.kept.clear();
            self.kept.extend_from_slice(rest);
        }
    }

    /// What has come behind what was kept before.
    fn keep_new(&mut self, received: &[u8]) {
        let known = self.kept.len();
        self.kept.extend_from_slice(&received[known..]);
    }
}

/// The peer's offer, if it is for somebody else.
fn offer(tls: &Tls, mut hello: &[u8]) -> Option<Accepted> {
    let mut acceptor = Acceptor::default();
    while !hello.is_empty() {
        acceptor.read_tls(&mut hello).ok()?;
    }
    // What is no ClientHello, or not all of it, is answered as if there was nobody else.
    let accepted = acceptor.accept().ok()??;
    tls.taker(&accepted.client_hello()).is_some().then_some(accepted)
}
