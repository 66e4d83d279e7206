//! Decides when a request is there: receives until a head is whole, or a body that was asked for.

use std::sync::Arc;
use std::time::Duration;

use bine_http::{Event, PeerFault};

use crate::connection::{Connection, Errand, Phase, Storing, ThreadContext};
use crate::handler::{Spool, spool};
use crate::limits::{Budgets, Claim};
use crate::metrics::Ending;
use crate::next::{Kind, Next};
use crate::settings::Settings;
use crate::stages::{GRACE, credit, crowded_out, expire, is_collecting, linger, part, refuse};
use crate::system::Transfer;
use crate::transport::{Transport, Way};

/// How often a thread that waits for more of a body looks whether others need what that holds.
const LOOK: Duration = Duration::from_millis(250);

/// The request stage.
pub(crate) fn request<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    loop {
        if context.fresh {
            if let Some(next) = understand(connection, context) {
                return next;
            }
        } else if !context.output.is_empty() {
            return Next::Reply;
        } else if context.drained && !L::BLOCKS {
            return settle(connection, context);
        } else if context.intake == 0 && !L::BLOCKS {
            connection.wants_turn = true;
            return settle(connection, context);
        } else if let Some(next) = receive(connection, context) {
            return next;
        }
    }
}

/// Takes one event out of the received bytes. `None`: look again.
fn understand<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    let input = context.input.clone();
    let was_in_body = connection.machine.phase() == bine_http::Phase::Body;
    if !was_in_body && let Some(busy) = &mut connection.busy {
        // Earlier requests have their answers.
        busy.is_head = false;
    }
    let step = connection
        .machine
        .receive(&context.scratch[input.clone()], &context.config.settings.limits);
    context.input.start += step.consumed;
    // The end of a body is told without another byte: only a machine between requests has
    // nothing to say about nothing.
    context.fresh =
        !context.input.is_empty() || connection.machine.phase() == bine_http::Phase::Body;
    match step.event {
        Event::More => {
            context.fresh = false;
            None
        }
        Event::Head(head) => {
            let end = input.start + step.consumed;
            // Empty lines before a head are consumed with it but are no part of it.
            context.current.head = end - head.raw().len()..end;
            context.current.index = Some(head.index());
            context.current.who = context.config.responder.admit(&head, connection.peer);
            context.slice = context.slice.saturating_sub(1);
            context.tally.requests.add(1);
            Some(Next::Response(Kind::Static))
        }
        Event::Body(piece) => {
            let bytes = piece.len();
            let claim = Claim { block: connection.peer.block(), owner: &context.owner };
            let taken =
                take_body(connection, &context.config.settings, &context.budgets, claim, piece);
            if connection.phase == Phase::Body {
                credit(connection, context, bytes as u64);
            }
            match taken {
                Taken::All => None,
                Taken::EnoughToStore => store(connection, context, Storing::Part),
                Taken::TooLong => Some(refuse(connection, context, PeerFault::ContentTooLarge)),
                Taken::Refused => Some(crowded_out(connection, context)),
                Taken::Unwanted => {
                    part(connection);
                    Some(Next::Reply)
                }
            }
        }
        Event::End => {
            // The next wait begins anew; it is not this body's.
            connection.phase = Phase::Idle;
            let request = connection.busy.as_mut().and_then(|busy| busy.request.as_mut())?;
            request.settle();
            if request.spool.is_some() && !request.body.is_empty() {
                return store(connection, context, Storing::Last);
            }
            Some(Next::Response(Kind::Static))
        }
        // A second answer would be taken for that to the next request.
        Event::Fault(_) if was_in_body && !is_collecting(connection) => {
            connection.end(Ending::Fault);
            part(connection);
            Some(Next::Reply)
        }
        Event::Fault(fault) => Some(refuse(connection, context, fault)),
    }
}

/// What became of a piece of a body.
enum Taken {
    /// It is kept, or dropped because nobody wants it.
    All,
    /// It is kept, and what is in memory now shall go to disk.
    EnoughToStore,
    /// The body is longer than the handler takes.
    TooLong,
    /// There is no room for more of it among what all may hold together.
    Refused,
    /// Answered already, and more than is worth dropping.
    Unwanted,
}

/// Collects a piece of a body for the handler that asked for it, or drops it when none did.
fn take_body<L>(
    connection: &mut Connection<L>,
    settings: &Settings,
    budgets: &Budgets,
    claim: Claim<'_>,
    piece: &[u8],
) -> Taken {
    if let Some(busy) = &mut connection.busy
        && let Some(request) = &mut busy.request
    {
        let stored = request.spool.as_ref().map_or(0, |spool| spool.length());
        if stored + (request.body.len() + piece.len()) as u64 > busy.collect {
            busy.request = None;
            return Taken::TooLong;
        }
        let length = (request.body.len() + piece.len()) as u64;
        if request.reserved.reach(length, &budgets.bodies, claim).is_err() {
            return Taken::Refused;
        }
        request.body.extend_from_slice(piece);
        if !busy.on_disk || request.body.len() < spool::PIECE {
            return Taken::All;
        }
        let spool = request.spool.get_or_insert_with(|| Arc::new(Spool::new(&settings.spool)));
        let kept = spool.reach(stored + length, &budgets.uploads, claim);
        return if kept.is_ok() { Taken::EnoughToStore } else { Taken::Refused };
    }
    match connection.patience.checked_sub(piece.len() as u32) {
        Some(left) => {
            connection.patience = left;
            Taken::All
        }
        None => Taken::Unwanted,
    }
}

/// Has the part of the body that is in memory written to disk, where that may block.
fn store<L>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    storing: Storing,
) -> Option<Next> {
    let busy = connection.busy.as_mut()?;
    let spool = Arc::clone(busy.request.as_ref()?.spool.as_ref()?);
    context.errand = Some(Errand::Work(spool, busy.request.take()?));
    busy.storing = Some(storing);
    Some(Next::Response(Kind::Dynamic))
}

/// Receives once. `None`: look at what came.
fn receive<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    if L::BLOCKS {
        await_input(connection, context);
        // Not only when a wait has timed out, which bytes that come again and again prevent.
        if connection.deadline.has_come(context.clock.now()) {
            return Some(expire(connection, context));
        }
        if connection.has_evicted_body() {
            return Some(crowded_out(connection, context));
        }
        context.config.access.flush();
        let mut left = connection.deadline.since(context.clock.now());
        if connection.has_reserved_body() {
            left = left.min(LOOK);
        }
        connection.transport.wait_at_most(Way::In, left);
        if connection.transport.holds_back() {
            connection.transport.wait_at_most(Way::Out, left);
        }
    }
    make_room(context);
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
        context.intake = context.intake.saturating_sub(count);
        context.tally.received.add(count as u64);
    }
    match transfer {
        Transfer::Moved(count) if connection.phase == Phase::Lingering => {
            context.drained = connection.transport.has_emptied(count, room) && !connection.hung_up;
            let left = connection.patience.checked_sub(count as u32);
            connection.patience = left.unwrap_or(0);
            left.is_none().then(|| connection.end(Ending::Fault))
        }
        Transfer::Moved(count) => {
            context.input.end += count;
            // With the end of the stream behind these bytes no other event would tell of it.
            context.drained = connection.transport.has_emptied(count, room) && !connection.hung_up;
            context.fresh = true;
            None
        }
        Transfer::Again => Some(settle(connection, context)),
        Transfer::TimedOut if connection.deadline.has_come(context.clock.now()) => {
            Some(expire(connection, context))
        }
        // Its thread may be needed elsewhere.
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

/// Room behind what is kept: an incomplete head moves to the front when half the buffer is used.
fn make_room(context: &mut ThreadContext) {
    if context.input.is_empty() {
        context.input = 0..0;
    } else if context.input.end > context.scratch.len() / 2 {
        let length = context.input.len();
        context.scratch.copy_within(context.input.clone(), 0);
        context.input = 0..length;
    }
}

/// Nothing more can be done without the peer: notes what is waited for, and until when.
fn settle<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) -> Next {
    await_input(connection, context);
    context.put_down(connection);
    Next::Idle
}

/// Sets phase and deadline for the bytes to come. A deadline that runs already runs on: a head or
/// a body that trickles in gets no more time than one that does not.
fn await_input<L: Transport>(connection: &mut Connection<L>, context: &ThreadContext) {
    let timeouts = &context.config.settings.timeouts;
    let (phase, wait) = if connection.phase == Phase::Lingering {
        return;
    } else if connection.machine.phase() == bine_http::Phase::Body {
        (Phase::Body, timeouts.body)
    } else if !context.input.is_empty() {
        (Phase::Head, timeouts.head)
    } else if connection.phase == Phase::Handshake && !connection.transport.is_shaking_hands() {
        (Phase::First, if context.stopping { GRACE } else { timeouts.first_byte })
    } else if matches!(connection.phase, Phase::Handshake | Phase::First) {
        return;
    } else {
        connection.phase = Phase::Idle;
        // A reply that was begun before the stop could not say that it is the last.
        let wait = if context.stopping { GRACE } else { timeouts.idle };
        connection.deadline = context.clock.now().after(wait);
        return;
    };
    if connection.phase != phase {
        connection.phase = phase;
        connection.deadline = context.clock.now().after(wait);
    }
}
