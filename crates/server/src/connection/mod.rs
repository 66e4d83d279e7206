//! The state of a connection between two turns, and the state that a thread keeps for all its
//! connections.
//!
//! An idle connection is only a [`Connection`]. While it is busy, its further state is in a pooled
//! [`Busy`].

mod answered;
mod busy;
mod context;
mod current_request;
mod detached;
pub(crate) mod saved;

use bine_http::{BodyFraming, RequestParser};
use bine_profile as profile;

use crate::address::ClientAddress;
use crate::generation::SnapshotId;
use crate::handler::{Follow, Retained, Streaming};
use crate::limits::Reservation;
use crate::metrics::Ending;
use crate::next::Next;
use crate::time::Tick;
use crate::tls::Session;
use crate::transport::Transport;
use context::RECEIVE_ALLOWANCE;

pub(crate) use answered::AnsweredRequest;
pub(crate) use busy::{Busy, Storing};
pub(crate) use context::{DeferredWork, MAX_REQUESTS, ThreadContext};
pub(crate) use detached::DetachedConnection;
pub(crate) use saved::SavedContext;

/// One connection. The four [stages](crate::stages) run it over a transport `L`; while it is busy
/// it has a `B`.
pub(crate) struct Connection<L, B = Box<Busy>> {
    pub(crate) transport: L,
    pub(crate) parser: RequestParser,
    pub(crate) peer: ClientAddress,
    /// The deadline for progress; `phase` determines the consequence.
    pub(crate) deadline: Tick,
    /// The number of bytes that the server still reads and drops, from an unwanted body or from a
    /// client whose connection is ending.
    pub(crate) discard_allowance: u32,
    /// The snapshot under which it was accepted; it keeps it.
    pub(crate) snapshot_id: SnapshotId,
    pub(crate) phase: Phase,
    /// Whether the connection closes after the current replies.
    pub(crate) closing: bool,
    /// Whether the connection lingers after a fault of the client: the server reads what the client
    /// still sends before it closes, or the client may lose the reply (RFC 9112, section 9.6).
    pub(crate) lingers: bool,
    /// The reason for its end, once that is known.
    pub(crate) ending: Option<Ending>,
    /// Whether the client has closed its sending half; the server receives until the end of the
    /// stream.
    pub(crate) hung_up: bool,
    /// Whether it has received no complete head.
    pub(crate) is_new: bool,
    /// Whether it has more to do without waiting for its socket, and wants a further turn.
    pub(crate) wants_turn: bool,
    /// Whether its socket became readable while it was suspended.
    pub(crate) has_input: bool,
    /// Whether the program knows the client of the last request.
    pub(crate) is_known: bool,
    /// Whether an earlier reply began a session.
    pub(crate) has_begun: bool,
    /// The key of its waiter, or [`NO_HOLD`].
    pub(crate) hold: u32,
    pub(crate) busy: Option<B>,
}

/// The key of a connection without a suspended response.
pub(crate) const NO_HOLD: u32 = u32::MAX;

/// The event that a connection waits for, which determines how it ends if the event does not
/// happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Accepted; the TLS handshake is not complete.
    Handshake,
    /// Accepted; no byte was received.
    First,
    /// Idle between two requests.
    Idle,
    /// Receiving a head.
    Head,
    /// Receiving a body.
    Body,
    /// Waiting for a worker.
    Queued,
    /// Waiting for its handler.
    Handler,
    /// Waiting for its client to read.
    Writing,
    /// Waiting for its handler to write more.
    Streaming,
    /// Suspended until its waiter has an event.
    Held,
    /// Waiting for its client to close the connection.
    Lingering,
}

impl<L, B> Connection<L, B> {
    /// Converts the transport by `transport` and the busy part by `busy`.
    pub(crate) fn map<M, C>(
        self,
        transport: impl FnOnce(L) -> M,
        busy: impl FnOnce(B) -> C,
    ) -> Connection<M, C> {
        Connection {
            transport: transport(self.transport),
            parser: self.parser,
            peer: self.peer,
            deadline: self.deadline,
            discard_allowance: self.discard_allowance,
            snapshot_id: self.snapshot_id,
            phase: self.phase,
            closing: self.closing,
            lingers: self.lingers,
            hung_up: self.hung_up,
            is_new: self.is_new,
            wants_turn: self.wants_turn,
            has_input: self.has_input,
            has_begun: self.has_begun,
            is_known: self.is_known,
            hold: self.hold,
            ending: self.ending,
            busy: self.busy.map(busy),
        }
    }
}

impl<L: Transport> Connection<L> {
    /// A connection under the newest settings. The code that drops it must
    /// [leave](crate::generation::ThreadConfig::leave) its snapshot. `transport` creates the
    /// transport, from a TLS session if the address asks for one.
    pub(crate) fn new(
        transport: impl FnOnce(Option<Box<Session>>) -> L,
        peer: ClientAddress,
        context: &mut ThreadContext,
    ) -> Self {
        // First, since the session follows from the newest settings, too.
        let snapshot_id = context.config.enter();
        let transport = transport(context.session(peer));
        context.tally.accepted.add(1);
        Self::begin(transport, snapshot_id, peer, context)
    }

    /// One stream of a connection of HTTP/2, under the newest settings, as [`new`](Self::new). It is no
    /// accepted connection.
    pub(crate) fn of_stream(
        transport: L,
        peer: ClientAddress,
        context: &mut ThreadContext,
    ) -> Self {
        let snapshot_id = context.config.enter();
        Self::begin(transport, snapshot_id, peer, context)
    }

    fn begin(
        transport: L,
        snapshot_id: SnapshotId,
        peer: ClientAddress,
        context: &ThreadContext,
    ) -> Self {
        let timeouts = &context.config.settings.timeouts;
        let (phase, wait) = if transport.is_shaking_hands() {
            (Phase::Handshake, timeouts.handshake)
        } else {
            (Phase::First, timeouts.first_byte)
        };
        Self {
            transport,
            parser: RequestParser::new(),
            peer,
            deadline: context.clock.now().after(wait),
            discard_allowance: 0,
            snapshot_id,
            phase,
            closing: false,
            lingers: false,
            ending: None,
            hung_up: false,
            is_new: true,
            wants_turn: false,
            has_input: false,
            is_known: false,
            has_begun: false,
            hold: NO_HOLD,
            busy: None,
        }
    }

    /// The busy part, which this creates if it does not exist.
    pub(crate) fn busy(&mut self, context: &mut ThreadContext) -> &mut Busy {
        self.busy.get_or_insert_with(|| context.spare_busy())
    }

    /// Stores method and path of the request that it answers, for the report of a stop that takes
    /// too long. Without a `collected` request they are in the scratch buffer, if it still has the
    /// head.
    pub(crate) fn note_request(
        &mut self,
        collected: Option<&Retained>,
        context: &mut ThreadContext,
    ) {
        let busy = self.busy.get_or_insert_with(|| context.spare_busy());
        let head = match collected {
            Some(request) => &request.head,
            None => &context.scratch[context.current.head.clone()],
        };
        if !head.is_empty() {
            busy.answered.note(head, context.clock.now());
        }
    }

    /// Whether its next work is to store a piece of a body, not to answer.
    pub(crate) fn is_storing(&self) -> bool {
        self.busy.as_deref().is_some_and(|busy| busy.storing.is_some())
    }

    /// Whether it collects a body that holds bytes of a budget.
    pub(crate) fn has_reserved_body(&self) -> bool {
        let request = self.busy.as_deref().and_then(|busy| busy.request.as_deref());
        request.is_some_and(|request| request.reserved.is_some())
    }

    /// Whether it has an unread reply whose reservation the budget has revoked.
    pub(crate) fn has_evicted_reply(&self) -> bool {
        self.busy.as_deref().is_some_and(|busy| busy.output_reservation.is_evicted())
    }

    /// Whether it collects a body whose reservation the budget has revoked.
    pub(crate) fn has_evicted_body(&self) -> bool {
        let request = self.busy.as_deref().and_then(|busy| busy.request.as_deref());
        request.is_some_and(Retained::is_evicted)
    }

    /// Whether its handler runs and takes the body in pieces, which is not received completely.
    pub(crate) fn is_receiving(&self) -> bool {
        self.busy.as_deref().is_some_and(|busy| busy.body_flow.is_some())
    }

    /// Whether part of a reply is not in the socket yet, written or not.
    pub(crate) fn has_unsent(&self) -> bool {
        let is_unsent = |busy: &Busy| {
            busy.sent < busy.output.len() || busy.file.is_some() || busy.stream.is_some()
        };
        self.busy.as_deref().is_some_and(is_unsent) || self.transport.holds_back()
    }

    /// Ends it. An earlier reason has precedence.
    pub(crate) fn end(&mut self, ending: Ending) -> Next {
        self.ending.get_or_insert(ending);
        Next::Closed
    }

    /// The reason for its end, or the likely one if none was recorded.
    pub(crate) fn ended(&self, stopping: bool) -> Ending {
        let otherwise = if self.hung_up {
            Ending::Peer
        } else if stopping {
            Ending::Drain
        } else {
            Ending::Fault
        };
        self.ending.unwrap_or(otherwise)
    }

    /// Whether an upgrade takes it over when its last reply has been sent.
    pub(crate) fn is_upgrading(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.upgrade.is_some())
    }

    /// Stores the content that follows the head that was just written.
    pub(crate) fn follow(&mut self, follow: Follow, context: &mut ThreadContext) {
        match follow {
            Follow::File(part) => {
                let busy = self.busy(context);
                (busy.file, busy.warm_to) = (Some(part), 0);
            }
            Follow::Stream(stream) => {
                self.closing |= stream.framing().closes_connection();
                // The reply to a HEAD has no content.
                if stream.framing() != BodyFraming::Empty {
                    self.busy(context).stream = Some(Streaming::new(stream));
                }
            }
            Follow::Upgrade(upgrade) => self.busy(context).upgrade = Some(upgrade),
            Follow::Suspend(_) | Follow::Again(_) => {
                debug_assert!(false, "the response stage handles it");
            }
        }
    }

    /// Whether a worker runs its handler, as far as this thread knows.
    pub(crate) fn is_with_worker(&self) -> bool {
        self.phase == Phase::Handler && self.busy.as_ref().is_none_or(|busy| busy.task.is_none())
    }

    /// Ends the exchange after the reply was sent: the next request may begin.
    pub(crate) fn end_exchange(&mut self, context: &mut ThreadContext) {
        // If the body of a later request is being collected, only the earlier exchange ends.
        if let Some(busy) = &mut self.busy {
            busy.answered.clear();
            if busy.request.is_none() && busy.storing.is_none() {
                busy.is_head = false;
            }
        }
        self.rest(context);
    }

    /// Recycles the busy part if it is empty. While a handler runs, it has the handler's name.
    pub(crate) fn rest(&mut self, context: &mut ThreadContext) {
        if !matches!(self.phase, Phase::Queued | Phase::Handler)
            && self.busy.as_ref().is_some_and(|busy| busy.is_spent())
            && let Some(busy) = self.busy.take()
        {
            context.recycle(busy);
        }
    }
}

// This is not in `context`, which does not depend on connections.
impl ThreadContext {
    /// Makes `connection` the current one: sets its snapshot, and moves the bytes that it received
    /// earlier into the scratch buffer.
    pub(crate) fn make_current<L>(&mut self, connection: &mut Connection<L>) {
        debug_assert!(self.output.is_empty(), "unsent output of a different connection");
        profile::set_route(|| connection.busy.as_ref().map_or("", |busy| busy.handler));
        self.output_reservation = Reservation::default();
        self.config.switch_to(connection.snapshot_id);
        self.current.head = 0..0;
        self.requests_left = MAX_REQUESTS;
        self.receive_allowance = RECEIVE_ALLOWANCE;
        self.is_socket_empty = false;
        self.input = 0..0;
        self.has_new_input = false;
        if let Some(busy) = &mut connection.busy
            && !busy.input.is_empty()
        {
            self.scratch[..busy.input.len()].copy_from_slice(&busy.input);
            self.input = 0..busy.input.len();
            self.has_new_input = true;
            busy.input.clear();
        }
        // The parser may report the end of the body without a further byte.
        self.has_new_input |= connection.busy.as_ref().is_some_and(|busy| busy.body_flow.is_some());
    }

    /// Moves received and unused bytes from the scratch buffer to `connection`.
    pub(crate) fn save_input<L: Transport>(&mut self, connection: &mut Connection<L>) {
        if !self.input.is_empty() {
            let kept = self.input.clone();
            let mut input = std::mem::take(&mut connection.busy(self).input);
            input.extend_from_slice(&self.scratch[kept]);
            connection.busy(self).input = input;
            self.input = 0..0;
        }
        connection.rest(self);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::handler::{FilePart, Stream};
    use crate::limits::{Budgets, Claim};
    use crate::quota::Owner;
    use crate::settings::Settings;
    use crate::test_support::{connection, context, request, server};
    use crate::transport::Blocking;

    fn begin() -> (Connection<Blocking>, ThreadContext) {
        let mut context = context(&server(Settings::default()));
        (connection(&mut context).0, context)
    }

    fn stream(framing: BodyFraming) -> Stream {
        Stream::new(framing, |_sender| Box::pin(async { Ok(()) }))
    }

    #[test]
    fn idle_connection_fits_in_96_bytes() {
        // The goal is 128 bytes of user memory, slab and timer links included.
        let size = size_of::<Connection<crate::transport::Nonblocking>>();
        assert!(size <= 96, "{size}");
    }

    #[test]
    fn begins_with_the_wait_for_its_first_byte() {
        let (connection, context) = begin();
        let expected = context.clock.now().after(context.config.settings.timeouts.first_byte);
        assert_eq!((connection.phase, connection.deadline), (Phase::First, expected));
        assert_eq!(context.tally.accepted.read(), 1);
        assert_eq!(connection.ended(false), Ending::Fault);
    }

    #[test]
    fn recycles_the_busy_part_when_it_is_spent() {
        let (mut connection, mut context) = begin();
        connection.busy(&mut context).output = vec![0; 3];
        connection.rest(&mut context);
        assert!(connection.busy.is_some(), "three bytes are unsent");
        connection.busy(&mut context).sent = 3;
        for phase in [Phase::Queued, Phase::Handler] {
            connection.phase = phase;
            connection.rest(&mut context);
            assert!(connection.busy.is_some(), "it has the name of the handler: {phase:?}");
        }
        connection.phase = Phase::Idle;
        let place = std::ptr::from_ref(&**connection.busy.as_ref().unwrap()).addr();
        connection.rest(&mut context);
        assert!(connection.busy.is_none());
        let reused = connection.busy(&mut context);
        assert_eq!((std::ptr::from_ref(reused).addr(), reused.output.len()), (place, 0));
    }

    #[test]
    fn keeps_received_bytes_while_another_connection_runs() {
        let (mut connection, mut context) = begin();
        context.scratch[2..7].copy_from_slice(b"bytes");
        context.input = 2..7;
        context.save_input(&mut connection);
        assert_eq!(
            (&*connection.busy.as_ref().unwrap().input, &context.input),
            (&b"bytes"[..], &(0..0))
        );
        // A second part is appended.
        context.scratch[..2].copy_from_slice(b"++");
        context.input = 0..2;
        context.save_input(&mut connection);
        context.scratch.fill(b'x');
        (context.requests_left, context.receive_allowance) = (0, 0);
        context.is_socket_empty = true;
        context.make_current(&mut connection);
        assert_eq!(&context.scratch[context.input.clone()], b"bytes++");
        assert!(context.has_new_input && !context.is_socket_empty);
        assert_eq!(context.requests_left, MAX_REQUESTS);
        assert_eq!(context.receive_allowance, RECEIVE_ALLOWANCE);
        // The bytes are in the scratch buffer now, so the busy part is spent.
        context.input = 0..0;
        context.save_input(&mut connection);
        assert!(connection.busy.is_none());
        context.make_current(&mut connection);
        assert!(context.input.is_empty() && !context.has_new_input);
    }

    #[test]
    fn has_unsent_content_while_any_part_of_a_reply_is_left() {
        let (mut connection, mut context) = begin();
        assert!(!connection.has_unsent());
        let busy = connection.busy(&mut context);
        (busy.output, busy.sent) = (vec![0; 2], 1);
        assert!(connection.has_unsent());
        connection.busy(&mut context).sent = 2;
        assert!(!connection.has_unsent());
        let file = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
        let part = FilePart { file, offset: 0, length: 5 };
        connection.follow(Follow::File(part), &mut context);
        assert!(connection.has_unsent() && !connection.closing);
        connection.busy(&mut context).file = None;
        connection.follow(Follow::Stream(stream(BodyFraming::Chunked)), &mut context);
        assert!(connection.has_unsent() && !connection.closing);
        connection.busy(&mut context).stream = None;
        // The reply to a HEAD.
        connection.follow(Follow::Stream(stream(BodyFraming::Empty)), &mut context);
        assert!(!connection.has_unsent() && !connection.closing);
        connection.follow(Follow::Stream(stream(BodyFraming::CloseDelimited)), &mut context);
        assert!(connection.has_unsent() && connection.closing);
    }

    #[test]
    fn ends_for_its_first_reason_or_the_likely_one() {
        let (mut connection, _context) = begin();
        assert_eq!(connection.ended(true), Ending::Drain);
        connection.hung_up = true;
        assert_eq!(connection.ended(true), Ending::Peer);
        assert_eq!(connection.end(Ending::Idle), Next::Closed);
        assert_eq!(connection.end(Ending::Load), Next::Closed);
        assert_eq!(connection.ended(true), Ending::Idle);
    }

    #[test]
    fn is_with_a_worker_while_a_handler_without_a_task_runs() {
        let (mut connection, mut context) = begin();
        assert!(!connection.is_with_worker());
        connection.phase = Phase::Handler;
        assert!(connection.is_with_worker());
        connection.busy(&mut context);
        assert!(connection.is_with_worker());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        connection.busy(&mut context).task = Some(task.abort_handle());
        assert!(!connection.is_with_worker());
    }

    #[test]
    fn ends_an_exchange_but_not_the_next_request() {
        let (mut connection, mut context) = begin();
        let noted = request("/first");
        connection.note_request(Some(&noted), &mut context);
        connection.busy(&mut context).is_head = true;
        connection.busy(&mut context).request = Some(request("/second"));
        connection.end_exchange(&mut context);
        let busy = connection.busy.as_ref().unwrap();
        assert!(busy.is_head && busy.answered.is_empty(), "the body of a HEAD is collected");
        connection.busy(&mut context).request = None;
        connection.busy(&mut context).storing = Some(Storing::Part);
        assert!(connection.is_storing());
        connection.end_exchange(&mut context);
        assert!(connection.busy.as_ref().unwrap().is_head, "a part of its body is stored");
        connection.busy(&mut context).storing = None;
        assert!(!connection.is_storing());
        connection.end_exchange(&mut context);
        assert!(connection.busy.is_none());
    }

    #[test]
    fn names_the_request_of_the_buffer_or_the_collected_one() {
        let (mut connection, mut context) = begin();
        let head = b"PUT /buffer?x HTTP/1.1\r\n";
        context.scratch[5..5 + head.len()].copy_from_slice(head);
        context.current.head = 5..5 + head.len();
        connection.note_request(None, &mut context);
        assert_eq!(connection.busy(&mut context).answered.to_string(), "PUT /buffer");
        connection.note_request(Some(&request("/collected")), &mut context);
        assert_eq!(connection.busy(&mut context).answered.to_string(), "GET /collected");
        // The buffer has no head any more: the name stays.
        context.current.head = 0..0;
        context.clock.advance(Duration::from_secs(1));
        connection.note_request(None, &mut context);
        let answered = &connection.busy(&mut context).answered;
        assert_eq!(answered.to_string(), "GET /collected");
    }

    #[test]
    fn reports_reserved_and_evicted_bodies_and_replies() {
        let (mut connection, mut context) = begin();
        let budgets = Budgets::default();
        let owner = Owner::default();
        let claim = || Claim { block: ClientAddress::UNIX.block(), owner: &owner };
        let mut collected = request("/");
        assert!(!connection.has_reserved_body() && !connection.has_evicted_body());
        collected.reserved.reach(100_000, &budgets.bodies, claim()).unwrap();
        connection.busy(&mut context).request = Some(collected);
        assert!(connection.has_reserved_body() && !connection.has_evicted_body());
        let reservation = &mut connection.busy(&mut context).output_reservation;
        reservation.reach(100_000, &budgets.bodies, claim()).unwrap();
        assert!(!connection.has_evicted_reply());
        assert!(!connection.is_upgrading());
        connection.busy(&mut context).output_reservation.revoke();
        assert!(connection.has_evicted_reply() && !connection.has_evicted_body());
        let busy = connection.busy(&mut context);
        busy.request.as_ref().unwrap().reserved.revoke();
        assert!(connection.has_evicted_body());
        connection.busy(&mut context).request = None;
        assert!(!connection.has_reserved_body());
    }
}
