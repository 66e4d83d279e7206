//! The request stage: receives until a head is complete, or a body that was asked for.

use std::sync::Arc;

use bine_http::{Event, PeerFault};
use bine_profile::{self as profile, Stage};

use crate::connection::{Connection, DeferredWork, Phase, Storing, ThreadContext};
use crate::handler::{BodyEnd, Spool, spool};
use crate::http2::is_preface;
use crate::limits::{Budgets, Claim};
use crate::metrics::Ending;
use crate::next::{Next, ResponseKind};
use crate::settings::Settings;
use crate::stages::input::{begin_to_wait, make_room};
use crate::stages::preface::receive_preface;
use crate::stages::{
    GRACE, answer_fault, answer_fault_of, begin_closing, expire, extend_deadline, is_collecting,
    linger, reject_over_budget,
};
use crate::system::Transfer;
use crate::transport::Transport;

/// The request stage.
pub(crate) fn request<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let _stage = profile::enter(Stage::Receive);
    loop {
        if connection.peer.awaits_preface() {
            if let Some(next) = receive_preface(connection, context) {
                return next;
            }
        } else if context.has_new_input {
            if let Some(next) = parse_event(connection, context) {
                return next;
            }
        } else if !context.output.is_empty() {
            return Next::Reply;
        } else if context.is_socket_empty && !L::BLOCKS {
            return await_socket(connection, context);
        } else if context.receive_allowance == 0 && !L::BLOCKS {
            connection.wants_turn = true;
            return await_socket(connection, context);
        } else if let Some(next) = receive(connection, context) {
            return next;
        }
    }
}

/// Parses one event from the received bytes. Returns `None` if the stage should continue.
// Long because it is one match over all events, and each continues in its own way.
fn parse_event<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    let _stage = profile::enter(Stage::Parse);
    let input = context.input.clone();
    let was_in_body = connection.parser.phase() == bine_http::Phase::Body;
    if !was_in_body && let Some(busy) = &mut connection.busy {
        // All earlier requests were answered.
        busy.is_head = false;
    }
    let step =
        connection.parser.receive(&context.scratch[input.clone()], &context.config.settings.limits);
    context.input.start += step.consumed;
    // The parser reports the end of a body without a further byte. Between requests it has no event
    // for empty input.
    context.has_new_input =
        !context.input.is_empty() || connection.parser.phase() == bine_http::Phase::Body;
    match step.event {
        Event::More => {
            context.has_new_input = false;
            None
        }
        Event::Head(head) => {
            let end = input.start + step.consumed;
            profile::begin_request();
            connection.is_new = false;
            let head = if connection.transport.is_stream() { head.of_http2() } else { head };
            let (mut head, mut peer) = (head, connection.peer);
            // Without a call and a copy for most requests.
            if peer.is_proxy() {
                (head, peer) = context.config.settings.proxies.resolve(head, peer);
            }
            // Empty lines before a head are consumed with it but are not part of it.
            context.current.head = end - head.raw().len()..end;
            context.current.identity = context.config.responder.identify(&head, peer);
            context.current.peer = peer;
            context.requests_left = context.requests_left.saturating_sub(1);
            context.tally.requests.add(1);
            // Last: a processor stalls when it copies a value right after that was written in smaller
            // parts (failed store forwarding).
            context.current.index = Some(head.index());
            Some(Next::Response(ResponseKind::Static))
        }
        Event::Body(piece) => {
            let bytes = piece.len();
            let flow = connection.busy.as_ref().and_then(|busy| busy.body_flow.as_ref());
            if let Some(flow) = flow {
                let has_room = flow.put(piece);
                if connection.phase == Phase::Body {
                    extend_deadline(connection, context, bytes as u64);
                }
                // A thread with one connection polls the handler after each piece.
                return (!has_room || L::BLOCKS).then(|| await_handler(connection, context));
            }
            // The quota is that of the client, also behind a proxy.
            let request = connection.busy.as_ref().and_then(|busy| busy.request.as_ref());
            let client = request.map_or(connection.peer, |request| request.peer);
            let claim = Claim { block: client.block(), owner: &context.owner };
            let collected =
                take_body(connection, &context.config.settings, &context.budgets, claim, piece);
            if connection.phase == Phase::Body {
                extend_deadline(connection, context, bytes as u64);
            }
            match collected {
                Collected::All => None,
                Collected::EnoughToStore => store(connection, context, Storing::Part),
                Collected::TooLong => {
                    let request = connection.busy.as_mut().and_then(|busy| busy.request.take());
                    let fault = PeerFault::ContentTooLarge;
                    Some(answer_fault_of(connection, context, fault, request.as_deref()))
                }
                Collected::Refused => Some(reject_over_budget(connection, context)),
                Collected::Unwanted => {
                    begin_closing(connection);
                    Some(Next::Reply)
                }
            }
        }
        Event::End => {
            if let Some(flow) = connection.busy.as_mut().and_then(|busy| busy.body_flow.take()) {
                flow.end(BodyEnd::Whole);
                return Some(await_handler(connection, context));
            }
            // The next wait gets its own deadline.
            connection.phase = Phase::Idle;
            let request = connection.busy.as_mut().and_then(|busy| busy.request.as_mut())?;
            request.settle();
            if request.spool.is_some() && !request.body.is_empty() {
                return store(connection, context, Storing::Last);
            }
            Some(Next::Response(ResponseKind::Static))
        }
        // The client would take a second reply for the reply to its next request.
        Event::Fault(_) if was_in_body && !is_collecting(connection) => {
            connection.end(Ending::Fault);
            begin_closing(connection);
            Some(Next::Reply)
        }
        Event::Fault(_) if begins_http2(connection, context, &context.scratch[input.clone()]) => {
            context.input = input;
            Some(Next::Depart)
        }
        // The client has promised HTTP/2, so it would not understand a reply.
        Event::Fault(_) if connection.is_new && connection.transport.selects_http2() => {
            Some(connection.end(Ending::Fault))
        }
        Event::Fault(fault) => Some(answer_fault(connection, context, fault)),
    }
}

/// Whether the connection begins with the preface of HTTP/2, which is no request of HTTP/1.1 (RFC
/// 9113, section 3.4).
fn begins_http2<L: Transport>(
    connection: &Connection<L>,
    context: &ThreadContext,
    received: &[u8],
) -> bool {
    connection.is_new
        && !connection.transport.is_stream()
        && context.offers_http2()
        && is_preface(received)
}

/// The result of [`take_body`].
enum Collected {
    /// The piece was stored, or dropped because no handler wants it.
    All,
    /// The piece was stored, and the part of the body in memory is large enough to be written to
    /// disk.
    EnoughToStore,
    /// The body is longer than the handler accepts.
    TooLong,
    /// A budget has no room for more of the body.
    Refused,
    /// The request was answered already, and the rest of its body is too long to drop.
    Unwanted,
}

/// Stores a piece of a body for the handler that asked for it, or drops it otherwise.
fn take_body<L>(
    connection: &mut Connection<L>,
    settings: &Settings,
    budgets: &Budgets,
    claim: Claim<'_>,
    piece: &[u8],
) -> Collected {
    if let Some(busy) = &mut connection.busy
        && let Some(request) = &mut busy.request
    {
        let stored = request.spool.as_ref().map_or(0, |spool| spool.length());
        if stored + (request.body.len() + piece.len()) as u64 > busy.collect {
            busy.request = None;
            return Collected::TooLong;
        }
        let length = (request.body.len() + piece.len()) as u64;
        if request.reserved.reach(length, &budgets.bodies, claim).is_err() {
            return Collected::Refused;
        }
        request.body.extend_from_slice(piece);
        if !busy.on_disk || request.body.len() < spool::PIECE {
            return Collected::All;
        }
        let spool = request.spool.get_or_insert_with(|| Arc::new(Spool::new(&settings.spool)));
        let kept = spool.reach(stored + length, &budgets.uploads, claim);
        return if kept.is_ok() { Collected::EnoughToStore } else { Collected::Refused };
    }
    match connection.discard_allowance.checked_sub(piece.len() as u32) {
        Some(left) => {
            connection.discard_allowance = left;
            Collected::All
        }
        None => Collected::Unwanted,
    }
}

/// Starts work that writes the part of the body in memory to disk, on a thread that may block.
fn store<L>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    storing: Storing,
) -> Option<Next> {
    let busy = connection.busy.as_mut()?;
    let spool = Arc::clone(busy.request.as_ref()?.spool.as_ref()?);
    context.deferred_work = Some(DeferredWork::Work(spool, busy.request.take()?));
    busy.storing = Some(storing);
    Some(Next::Response(ResponseKind::Dynamic))
}

/// Waits for the handler that takes the body in pieces: for room, or for its reply.
fn await_handler<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    connection.phase = Phase::Handler;
    connection.deadline = context.clock.now().after(context.config.settings.timeouts.handler);
    context.save_input(connection);
    Next::Idle
}

/// Receives once. Returns `None` if the stage should continue.
fn receive<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    if L::BLOCKS {
        await_input(connection, context);
        if let Some(next) = begin_to_wait(connection, context) {
            return Some(next);
        }
    }
    make_room(context);
    // The bytes of the head that was parsed last may be overwritten.
    context.current.head = 0..0;
    let space = &mut context.scratch[context.input.end..];
    let room = space.len();
    if connection.phase == Phase::Handshake {
        context.tls_buffers.note_owner(&context.owner);
    }
    let transfer = connection.transport.receive(space);
    if L::BLOCKS {
        context.clock.turn();
    }
    if let Transfer::Moved(count) = transfer {
        context.receive_allowance = context.receive_allowance.saturating_sub(count);
        context.tally.received.add(count as u64);
    }
    match transfer {
        Transfer::Moved(count) if connection.phase == Phase::Lingering => {
            context.is_socket_empty =
                connection.transport.has_emptied(count, room) && !connection.hung_up;
            let left = connection.discard_allowance.checked_sub(count as u32);
            connection.discard_allowance = left.unwrap_or(0);
            left.is_none().then(|| connection.end(Ending::Fault))
        }
        Transfer::Moved(count) => {
            context.input.end += count;
            // If the end of the stream follows these bytes, no further event will report it.
            context.is_socket_empty =
                connection.transport.has_emptied(count, room) && !connection.hung_up;
            context.has_new_input = true;
            None
        }
        Transfer::Again => Some(await_socket(connection, context)),
        Transfer::TimedOut if connection.deadline.has_come(context.clock.now()) => {
            Some(expire(connection, context))
        }
        // The scheduler may need this thread for another connection.
        Transfer::TimedOut if connection.phase == Phase::Handshake => Some(Next::Request),
        Transfer::TimedOut => None,
        Transfer::Fault => {
            connection.end(Ending::Fault);
            linger(connection, context);
            None
        }
        Transfer::Ended if connection.transport.departs() => Some(Next::Depart),
        Transfer::Ended | Transfer::Broken => Some(connection.end(Ending::Peer)),
    }
}

/// Ends the turn of a connection that needs more input: sets its phase and its deadline.
fn await_socket<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) -> Next {
    await_input(connection, context);
    context.save_input(connection);
    Next::Idle
}

/// Sets phase and deadline for the next input. A running deadline stays: a client that sends a head
/// or a body slowly gets no more time than any other.
fn await_input<L: Transport>(connection: &mut Connection<L>, context: &ThreadContext) {
    let timeouts = &context.config.settings.timeouts;
    let (phase, wait) = if connection.phase == Phase::Lingering {
        return;
    } else if connection.parser.phase() == bine_http::Phase::Body {
        (Phase::Body, timeouts.body)
    } else if !context.input.is_empty() {
        (Phase::Head, timeouts.head)
    } else if connection.phase == Phase::Handshake && !connection.transport.is_shaking_hands() {
        (Phase::First, if context.stopping { GRACE } else { timeouts.first_byte })
    } else if matches!(connection.phase, Phase::Handshake | Phase::First) {
        return;
    } else {
        connection.phase = Phase::Idle;
        // A reply that began before the server stopped did not announce the end of the connection.
        let wait = if context.stopping { GRACE } else { timeouts.idle };
        connection.deadline = context.clock.now().after(wait);
        return;
    };
    if connection.phase != phase {
        connection.phase = phase;
        connection.deadline = context.clock.now().after(wait);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::address::ClientAddress;
    use crate::quota::Owner;
    use crate::test_support::{connection, context, request as retained, server};
    use crate::transport::Blocking;

    fn begin() -> (Connection<Blocking>, ThreadContext) {
        let mut context = context(&server(Settings::default()));
        (connection(&mut context).0, context)
    }

    fn take(
        connection: &mut Connection<Blocking>,
        budgets: &Budgets,
        piece: &[u8],
    ) -> &'static str {
        let owner = Owner::default();
        let claim = Claim { block: ClientAddress::UNIX.block(), owner: &owner };
        match take_body(connection, &Settings::default(), budgets, claim, piece) {
            Collected::All => "all",
            Collected::EnoughToStore => "enough",
            Collected::TooLong => "too long",
            Collected::Refused => "refused",
            Collected::Unwanted => "unwanted",
        }
    }

    #[test]
    fn collects_a_body_up_to_its_limit() {
        let (mut connection, mut context) = begin();
        let busy = connection.busy(&mut context);
        (busy.request, busy.collect) = (Some(retained("/")), 10);
        let budgets = Budgets::default();
        assert_eq!(take(&mut connection, &budgets, b"12345678"), "all");
        assert_eq!(take(&mut connection, &budgets, b"90"), "all");
        assert_eq!(connection.busy.as_ref().unwrap().request.as_ref().unwrap().body, b"1234567890");
        assert_eq!(take(&mut connection, &budgets, b"1"), "too long");
        assert!(connection.busy.as_ref().unwrap().request.is_none());
    }

    #[test]
    fn counts_the_part_of_a_body_on_disk() {
        let folder = bine_log::test_support::ScratchFolder::new();
        let spool = Spool::new(&folder.path(""));
        spool.append(b"12345").unwrap();
        let (mut connection, mut context) = begin();
        let busy = connection.busy(&mut context);
        let mut request = retained("/");
        request.spool = Some(Arc::new(spool));
        (busy.request, busy.collect) = (Some(request), 10);
        let budgets = Budgets::default();
        assert_eq!(take(&mut connection, &budgets, b"67890"), "all");
        assert_eq!(take(&mut connection, &budgets, b"1"), "too long");
    }

    #[test]
    fn stores_a_body_in_pieces() {
        let budgets = Budgets::default();
        for (on_disk, expected) in [(true, "enough"), (false, "all")] {
            let (mut connection, mut context) = begin();
            let busy = connection.busy(&mut context);
            (busy.request, busy.collect, busy.on_disk) = (Some(retained("/")), u64::MAX, on_disk);
            assert_eq!(take(&mut connection, &budgets, &vec![0; spool::PIECE - 1]), "all");
            assert_eq!(take(&mut connection, &budgets, &[0]), expected);
            assert_eq!(budgets.metrics()[1].held, if on_disk { spool::PIECE as u64 } else { 0 });
            let next = store(&mut connection, &mut context, Storing::Part);
            assert_eq!(next, on_disk.then_some(Next::Response(ResponseKind::Dynamic)));
            assert_eq!(connection.is_storing(), on_disk);
            if on_disk {
                let Some(DeferredWork::Work(_, request)) = context.deferred_work.take() else {
                    panic!("it is stored by a worker");
                };
                let spool = request.spool.as_ref().unwrap();
                assert_eq!(spool.folder(), Path::new(&Settings::default().spool));
            }
        }
    }

    #[test]
    fn drops_a_body_that_no_handler_wants_up_to_the_allowance() {
        let (mut connection, _context) = begin();
        connection.discard_allowance = 5;
        let budgets = Budgets::default();
        assert_eq!(take(&mut connection, &budgets, b"123"), "all");
        assert_eq!(connection.discard_allowance, 2);
        assert_eq!(take(&mut connection, &budgets, b"45"), "all");
        assert_eq!(take(&mut connection, &budgets, b"6"), "unwanted");
    }

    #[test]
    fn rejects_a_body_beyond_the_budget() {
        let budgets = crate::settings::ByteBudgets {
            bodies: Some(1 << 20),
            uploads: Some(1 << 20),
            ..crate::settings::ByteBudgets::default()
        };
        let budgets = Budgets::new(&Settings { budgets, ..Settings::default() });
        for (on_disk, most) in [(false, 800 << 10), (true, 200 << 10)] {
            let (mut connection, mut context) = begin();
            let busy = connection.busy(&mut context);
            (busy.request, busy.collect, busy.on_disk) = (Some(retained("/")), u64::MAX, on_disk);
            assert_eq!(take(&mut connection, &budgets, &vec![0; most]), "all");
            assert_eq!(take(&mut connection, &budgets, &vec![0; 2 << 20]), "refused");
        }
    }

    /// The input moves to the front when it ends in the second half of the buffer.
    #[test]
    fn makes_room_after_the_input() {
        let (_connection, mut context) = begin();
        let half = context.scratch.len() / 2;
        context.input = half..half;
        make_room(&mut context);
        assert_eq!(context.input, 0..0);
        context.input = half - 3..half;
        make_room(&mut context);
        assert_eq!(context.input, half - 3..half, "there is room");
        context.input = half - 2..half + 1;
        context.scratch[half - 2..=half].copy_from_slice(b"abc");
        make_room(&mut context);
        assert_eq!((&context.scratch[..3], &context.input), (&b"abc"[..], &(0..3)));
    }
}
