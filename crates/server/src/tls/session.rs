//! The TLS session of one connection. The session decrypts and encrypts in the thread's TLS
//! buffers. Between two events it keeps only incomplete records and bytes that the socket did not
//! accept.

use std::cell::LazyCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use bine_log as log;
use rustls::server::{Accepted, Acceptor, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::buffers::{PIECE, TlsBuffers};
use super::client_hello::{HANDSHAKE, RECORD_HEAD};
use super::handshake_queue::{QueuedHandshake, Verdict};
use super::handshakes::{Handshake, Handshakes};
use super::{Departure, HTTP_2, Tls};
use crate::address::{AddressBlock, ClientAddress};
use crate::system::{Transfer, socket};
use crate::time::monotonic_milliseconds;

/// The TLS session of one connection. The caller passes the socket to each call.
pub(crate) struct Session {
    stage: Stage,
    tls_buffers: Rc<TlsBuffers>,
    /// Received bytes of an incomplete record or handshake message.
    kept: Vec<u8>,
    /// Encrypted bytes. Those from `sent` on wait for room in the socket.
    unsent: Vec<u8>,
    sent: usize,
    /// Whether the last receive emptied the socket.
    has_emptied: bool,
    /// Whether the client has closed its direction of the session.
    has_ended: bool,
    /// Whether the caller has learned of a fatal error of the session.
    is_fault_reported: bool,
    /// The place among the handshakes in progress, until the handshake completes.
    handshake: Option<Handshake>,
    /// The place of the handshake in the queue of the thread, until it begins. Few sessions have one.
    queued: Option<Box<QueuedHandshake>>,
}

/// A session without buffers, to be moved to a different thread. A session cannot be detached
/// during the handshake, which is registered with the old thread.
pub(crate) struct DetachedSession {
    stage: Stage,
    kept: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
    has_emptied: bool,
    has_ended: bool,
    is_fault_reported: bool,
}

impl DetachedSession {
    /// Continues the session with the buffers of the current thread.
    pub(crate) fn attach(self, tls_buffers: Rc<TlsBuffers>) -> Session {
        let Self { stage, kept, unsent, sent, has_emptied, has_ended, is_fault_reported } = self;
        let (handshake, queued) = (None, None);
        Session {
            stage,
            tls_buffers,
            kept,
            unsent,
            sent,
            has_emptied,
            has_ended,
            is_fault_reported,
            handshake,
            queued,
        }
    }
}

enum Stage {
    /// Waiting for the complete `ClientHello`. The server allocates no TLS state before.
    Hello { tls: Arc<Tls>, handshakes: Arc<Handshakes>, block: AddressBlock, offers_http2: bool },
    /// During the handshake and after it.
    Open(Box<UnbufferedServerConnection>),
    /// To be handed over, for a protocol other than HTTP/1.1.
    Departing(Box<(Accepted, Arc<Tls>)>),
    /// Failed. Received bytes are no longer decrypted.
    Over,
}

/// Response to a client that speaks HTTP without TLS.
const HTTPS_REQUIRED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\n\
    This address speaks HTTPS; ask it with https://\n";

/// The result of processing received bytes.
#[derive(Default)]
struct RecordOutcome {
    /// Decrypted bytes in the caller's buffer.
    content: usize,
    /// Bytes to send, in the output buffer.
    answer: usize,
    /// Processed bytes of the input.
    used: usize,
    /// Whether the session receives no more data.
    ended: bool,
    fault: Option<rustls::Error>,
}

impl Session {
    /// Creates the session of a new connection from `block`, which registers with `handshakes` when
    /// its handshake begins. `offers_http2`: the client may select HTTP/2.
    pub(crate) fn new(
        (tls, offers_http2): (Arc<Tls>, bool),
        tls_buffers: Rc<TlsBuffers>,
        handshakes: Arc<Handshakes>,
        block: AddressBlock,
    ) -> Self {
        Self {
            stage: Stage::Hello { tls, handshakes, block, offers_http2 },
            tls_buffers,
            kept: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            has_emptied: false,
            has_ended: false,
            is_fault_reported: false,
            handshake: None,
            queued: None,
        }
    }

    /// Counts the handshake against `client`, unless it has begun.
    pub(crate) fn count_for(&mut self, client: AddressBlock) {
        if let Stage::Hello { block, .. } = &mut self.stage {
            *block = client;
        }
    }

    /// Detaches the session from the buffers of the current thread.
    pub(crate) fn detach(self) -> DetachedSession {
        debug_assert!(self.handshake.is_none(), "a handshake belongs to this thread");
        let Self { stage, kept, unsent, sent, has_emptied, has_ended, is_fault_reported, .. } =
            self;
        DetachedSession { stage, kept, unsent, sent, has_emptied, has_ended, is_fault_reported }
    }

    /// Receives and decrypts content into `space`. Returns `Again` also when the received records
    /// held no content.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, space: &mut [u8]) -> Transfer {
        if let Err(blocked) = self.flush_all(socket) {
            return blocked;
        }
        match self.stage {
            Stage::Over if !self.is_fault_reported => {
                self.is_fault_reported = true;
                return Transfer::Fault;
            }
            // The caller discards these bytes.
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
            // Content is never longer than the records that carry it, so it fits into `space`.
            let most = space.len().min(incoming.len());
            let kept = self.kept.len();
            if kept >= most {
                log::debug(format_args!("a TLS message of more than {most} bytes"));
                return Transfer::Broken;
            }
            // A handshake whose turn has come has received its first message.
            let starts = self.queued.as_ref().is_some_and(|queued| queued.is_granted());
            let count = if starts {
                0
            } else {
                match socket::receive(socket, &mut incoming[kept..most]) {
                    Transfer::Moved(count) => count,
                    other => return other,
                }
            };
            incoming[..kept].copy_from_slice(&self.kept);
            self.has_emptied = !starts && count < most - kept;
            let received = &mut incoming[..kept + count];
            if let Some(end) = self.start_handshake(socket, received) {
                return end;
            }
            let outcome = self.process_records(received, space, outgoing);
            self.keep(&received[outcome.used..]);
            self.answer(socket, &outgoing[..outcome.answer]);
            if let Some(fault) = &outcome.fault {
                log::debug(format_args!("TLS: {fault}"));
                self.stage = Stage::Over;
            }
            if outcome.ended {
                // Content before the end is still delivered; the next receive reports the end.
                self.has_ended = true;
                self.has_emptied = false;
            }
            match outcome.content {
                0 if outcome.fault.is_some() => {
                    self.is_fault_reported = true;
                    return Transfer::Fault;
                }
                0 if outcome.ended => return Transfer::Ended,
                0 if self.has_emptied => return Transfer::Again,
                0 => {}
                count => return Transfer::Moved(count),
            }
        }
    }

    /// Encrypts and sends a prefix of `bytes`. `Moved` counts encrypted bytes; the session
    /// [keeps](Self::holds_back) those that the socket did not accept.
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8], more: bool) -> Transfer {
        if let Err(blocked) = self.flush_all(socket) {
            return blocked;
        }
        let tls_buffers = Rc::clone(&self.tls_buffers);
        let mut buffers = tls_buffers.buffers();
        let (_, outgoing) = buffers.both();
        let count = bytes.len().min(PIECE);
        self.send_piece(socket, &bytes[..count], outgoing, more || count < bytes.len())
    }

    /// Reads from a file into the buffers, encrypts and sends.
    pub(crate) fn send_file(
        &mut self,
        socket: &OwnedFd,
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
    ) -> Transfer {
        if let Err(blocked) = self.flush_all(socket) {
            return blocked;
        }
        let tls_buffers = Rc::clone(&self.tls_buffers);
        let mut buffers = tls_buffers.buffers();
        let (incoming, outgoing) = buffers.both();
        let most = count.min(PIECE);
        match rustix::io::pread(file, &mut incoming[..most], offset) {
            // As with `sendfile`: the file has become shorter than the announced length.
            Ok(0) | Err(_) => Transfer::Broken,
            Ok(read) => self.send_piece(socket, &incoming[..read], outgoing, read < count),
        }
    }

    /// Sends encrypted bytes that the socket did not accept before.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Transfer {
        let transfer = socket::transmit(socket, &self.unsent[self.sent..], false);
        if let Transfer::Moved(count) = transfer {
            self.sent += count;
            if self.sent == self.unsent.len() {
                // Free the memory: most connections never need it again.
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

    /// Sends `close_notify` (RFC 8446 section 6.1) if the socket has room for it.
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

    /// Whether encrypted bytes wait for room in the socket.
    pub(crate) const fn holds_back(&self) -> bool {
        self.sent < self.unsent.len()
    }

    /// Whether the last receive emptied the socket.
    pub(crate) const fn has_emptied(&self) -> bool {
        self.has_emptied
    }

    pub(crate) const fn is_shaking_hands(&self) -> bool {
        matches!(self.stage, Stage::Hello { .. }) || self.handshake.is_some()
    }

    /// Whether its handshake waits for its turn.
    pub(crate) const fn awaits_turn(&self) -> bool {
        self.queued.is_some()
    }

    /// Whether a newer handshake has evicted the handshake of this session.
    pub(crate) fn is_evicted(&self) -> bool {
        self.handshake.as_ref().is_some_and(Handshake::is_evicted)
    }

    /// Whether both sides have agreed on HTTP/2.
    pub(crate) fn selects_http2(&self) -> bool {
        matches!(&self.stage, Stage::Open(connection) if connection.alpn_protocol() == Some(HTTP_2))
    }

    /// Whether the connection is to be handed over, because the client offers a protocol other than
    /// HTTP/1.1.
    pub(crate) const fn departs(&self) -> bool {
        matches!(self.stage, Stage::Departing(_))
    }

    /// Hands the connection over to the receiver for the offered protocol.
    pub(crate) fn depart(self, socket: OwnedFd, peer: ClientAddress) {
        let Stage::Departing(departing) = self.stage else { return };
        let (accepted, tls) = *departing;
        let Some(taker) = tls.taker(&accepted.client_hello()).map(Arc::clone) else { return };
        let config = Arc::clone(&tls.config);
        taker.take(Departure { socket, peer, accepted, config });
    }

    /// Starts the handshake when the first record of the `ClientHello` is complete and the turn of the
    /// handshake has come. Returns `Some` when the session cannot continue now, or at all.
    fn start_handshake(&mut self, socket: &OwnedFd, received: &[u8]) -> Option<Transfer> {
        if !matches!(self.stage, Stage::Hello { .. }) {
            return None;
        }
        if self.queued.is_none()
            && let Some(end) = self.register_handshake(socket, received)
        {
            return Some(end);
        }
        if let Some(queued) = self.queued.take_if(|queued| queued.is_granted())
            && let Some(handshake) = &mut self.handshake
        {
            handshake.start(queued.is_preferred());
        }
        if self.queued.is_some() {
            self.keep_new(received);
            return Some(Transfer::Again);
        }
        let Stage::Hello { tls, offers_http2, .. } = &self.stage else { return None };
        match UnbufferedServerConnection::new(Arc::clone(tls.config(*offers_http2))) {
            Ok(connection) => self.stage = Stage::Open(Box::new(connection)),
            Err(error) => {
                log::error(format_args!("cannot start a TLS connection: {error}"));
                return Some(Transfer::Broken);
            }
        }
        None
    }

    /// Counts the handshake, or hands the connection over, when the first record is complete. Returns
    /// `Some` when there is nothing to start.
    fn register_handshake(&mut self, socket: &OwnedFd, received: &[u8]) -> Option<Transfer> {
        let Stage::Hello { tls, handshakes, block, .. } = &self.stage else { return None };
        if received[0] != HANDSHAKE {
            self.stage = Stage::Over;
            if received[0].is_ascii_uppercase() {
                socket::transmit_now(socket, HTTPS_REQUIRED);
            }
            self.is_fault_reported = true;
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
            && let Some(accepted) = accept_hand_over(tls, received)
        {
            self.stage = Stage::Departing(Box::new((accepted, Arc::clone(tls))));
            return Some(Transfer::Ended);
        }
        let (owner, queue) = (self.tls_buffers.owner(), self.tls_buffers.queue());
        // Examined only if handshakes compete.
        let is_resumption = LazyCell::new(|| queue.trusts(*block) && tls.can_open_ticket(received));
        let now = monotonic_milliseconds();
        let Some(mut handshake) = handshakes.begin(*block, &owner, now, || *is_resumption) else {
            return Some(Transfer::Broken);
        };
        match queue.admit(owner.token, *block, || *is_resumption) {
            Verdict::Begin { is_preferred } => handshake.start(is_preferred),
            Verdict::Wait(queued) => {
                handshake.wait();
                self.queued = Some(Box::new(queued));
            }
        }
        self.handshake = Some(handshake);
        None
    }

    /// Decrypts the complete records of `received` into `space`, and writes handshake messages to
    /// send into `outgoing`.
    fn process_records(
        &mut self,
        received: &mut [u8],
        space: &mut [u8],
        outgoing: &mut [u8],
    ) -> RecordOutcome {
        let mut outcome = RecordOutcome::default();
        let Stage::Open(connection) = &mut self.stage else { return outcome };
        loop {
            let UnbufferedStatus { mut discard, state } =
                connection.process_tls_records(&mut received[outcome.used..]);
            let mut must_wait = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let Ok(record) = record else { break };
                        discard += record.discard;
                        let end = outcome.content + record.payload.len();
                        space[outcome.content..end].copy_from_slice(record.payload);
                        outcome.content = end;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    match data.encode(&mut outgoing[outcome.answer..]) {
                        Ok(count) => outcome.answer += count,
                        // No flight of a handshake is longer than the output buffer.
                        Err(_) => (outcome.ended, must_wait) = (true, true),
                    }
                    // After a fault this was the alert, the last record. Further processing would
                    // only find the same fault again.
                    must_wait |= outcome.fault.is_some();
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    // rustls reports this state when no complete record remains. A further call
                    // would try again to decrypt early data (0-RTT), which the server refuses.
                    // rustls limits the amount of such data, and each try counts.
                    must_wait = connection.is_handshaking();
                }
                Ok(ConnectionState::PeerClosed) => outcome.ended = true,
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    must_wait = true;
                }
                Ok(_) => (outcome.ended, must_wait) = (true, true),
                // The next call after a fault yields the alert to send, if there is one.
                Err(error) => {
                    must_wait = outcome.fault.replace(error).is_some();
                    outcome.ended = true;
                }
            }
            outcome.used += discard;
            if must_wait {
                break;
            }
        }
        if let Some(handshake) = &mut self.handshake {
            let is_over = !connection.is_handshaking() || outcome.fault.is_some();
            if handshake.note_kind(connection.handshake_kind(), is_over) {
                self.tls_buffers.queue().distrust(handshake.block());
            }
        }
        if !connection.is_handshaking() {
            self.handshake = None;
        }
        outcome
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

    /// Encrypts `piece` into `outgoing` and returns the encrypted length. Returns `None` when the
    /// session can no longer send.
    fn encrypt(&mut self, piece: &[u8], outgoing: &mut [u8]) -> Option<usize> {
        let Stage::Open(connection) = &mut self.stage else { return None };
        let mut length = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                connection.process_tls_records(&mut self.kept);
            let mut is_whole = false;
            match state.ok()? {
                // The answer to a key update from the client must precede the data.
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

    /// Sends handshake messages without waiting. The deadline of the handshake stays the same.
    fn answer(&mut self, socket: &OwnedFd, bytes: &[u8]) {
        if !bytes.is_empty() {
            let sent = socket::transmit_now(socket, bytes);
            self.unsent.extend_from_slice(&bytes[sent..]);
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Free the memory: usually there is no incomplete record.
            self.kept = Vec::new();
        } else {
            self.kept.clear();
            self.kept.extend_from_slice(rest);
        }
    }

    /// Appends the part of `received` after the bytes that are kept already.
    fn keep_new(&mut self, received: &[u8]) {
        let kept = self.kept.len();
        self.kept.extend_from_slice(&received[kept..]);
    }
}

/// Returns the client's `ClientHello` if it offers a protocol that is to be handed over.
fn accept_hand_over(tls: &Tls, mut hello: &[u8]) -> Option<Accepted> {
    let mut acceptor = Acceptor::default();
    while !hello.is_empty() {
        acceptor.read_tls(&mut hello).ok()?;
    }
    // A malformed or incomplete ClientHello is handled as if there were no hand-over.
    let accepted = acceptor.accept().ok()??;
    tls.taker(&accepted.client_hello()).is_some().then_some(accepted)
}

#[cfg(test)]
mod tests;
