//! The reply stage: sends many small replies at once, sends a file in slices after its head, and
//! decides how the connection continues afterwards.

use std::os::fd::AsFd;
use std::time::Duration;

use bine_profile::{self as profile, Stage};

use crate::connection::{Connection, DeferredWork, MAX_REQUESTS, NO_HOLD, Phase, ThreadContext};
use crate::handler::page_cache::CHECK_SIZE;
use crate::handler::{FilePart, Taken};
use crate::limits::{Claim, Reservation};
use crate::metrics::Ending;
use crate::next::Next;
use crate::stages::{extend_deadline, linger, log_pending_entry};
use crate::system::Transfer;
use crate::transport::{Direction, Transport};

/// Replies to requests that were received together are gathered up to this size.
const GATHER: usize = 64 * 1024;
/// The size of the slices of a long reply. Other connections run between two slices.
const SEND_SLICE: u64 = 1 << 20;

/// The interval at which a thread that waits for its client to read checks whether the budget has
/// revoked the reservation of the reply.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The reply stage.
pub(crate) fn reply<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let _stage = profile::enter(Stage::Write);
    let may_gather =
        context.has_new_input && context.requests_left > 0 && context.output.len() < GATHER;
    let is_last = connection.closing || connection.hold != NO_HOLD || connection.is_upgrading();
    if may_gather && !is_last && !connection.has_unsent() {
        return Next::Request;
    }
    match flush(connection, context) {
        Flushed::Whole => after_reply(connection, context),
        Flushed::Blocked => {
            context.save_input(connection);
            Next::Idle
        }
        Flushed::SliceOver => {
            connection.wants_turn = true;
            context.save_input(connection);
            Next::Idle
        }
        Flushed::Cold(part) => {
            context.deferred_work = Some(DeferredWork::WarmUp(part));
            connection.busy(context).warms_up = true;
            context.save_input(connection);
            Next::Park
        }
        Flushed::AwaitsWriter => {
            await_writer(connection, context);
            Next::Park
        }
        Flushed::Broken => end_broken(connection, context),
    }
}

/// Ends a connection that cannot send: the client has closed it, or was too slow.
fn end_broken<L: Transport>(connection: &mut Connection<L>, context: &ThreadContext) -> Next {
    let is_late = connection.deadline.has_come(context.clock.now());
    connection.end(if is_late { Ending::Timeout } else { Ending::Peer })
}

/// Waits for the writer: all its content was sent, and it has a new deadline for the next piece.
fn await_writer<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    if connection.phase != Phase::Streaming {
        connection.phase = Phase::Streaming;
        connection.deadline = context.clock.now().after(context.config.settings.timeouts.handler);
    }
    context.save_input(connection);
}

/// Waits for a reply that is written elsewhere, after sending the replies in the output.
pub(crate) fn park<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    if !context.output.is_empty() {
        match flush(connection, context) {
            Flushed::Broken => return end_broken(connection, context),
            // The socket is still writable, so no event would continue the send.
            Flushed::SliceOver | Flushed::Cold(_) => connection.wants_turn = true,
            Flushed::Whole | Flushed::Blocked | Flushed::AwaitsWriter => {}
        }
    }
    connection.phase = Phase::Handler;
    connection.deadline = context.clock.now().after(context.config.settings.timeouts.handler);
    context.save_input(connection);
    Next::Park
}

/// Sends earlier replies of a pipeline before the next one is written. Returns false if the
/// transport is broken.
pub(crate) fn send_ahead<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> bool {
    context.output.is_empty() || !matches!(flush(connection, context), Flushed::Broken)
}

/// Sends the output of a waiter. With `wait` it continues to wait for that long, otherwise its
/// reply is complete.
pub(super) fn send_to_waiter<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    wait: Option<Duration>,
) -> Next {
    match flush(connection, context) {
        Flushed::Whole => {}
        Flushed::Blocked | Flushed::AwaitsWriter => {
            context.save_input(connection);
            return Next::Idle;
        }
        Flushed::SliceOver | Flushed::Cold(_) => {
            connection.wants_turn = true;
            context.save_input(connection);
            return Next::Idle;
        }
        Flushed::Broken => return end_broken(connection, context),
    }
    if let Some(wait) = wait {
        connection.phase = Phase::Held;
        connection.deadline = context.clock.now().after(wait);
        // If the server stops, the connection must not wait but end.
        connection.wants_turn = context.stopping;
        context.save_input(connection);
        return Next::Park;
    }
    if connection.closing {
        return after_reply(connection, context);
    }
    log_pending_entry(connection, context);
    connection.phase = Phase::Idle;
    connection.end_exchange(context);
    if connection.has_input || !context.input.is_empty() {
        // It continues with its next request after all other waiters were served.
        connection.wants_turn = true;
        context.save_input(connection);
        return Next::Idle;
    }
    // No input has arrived, so the request stage need not try to receive.
    context.is_socket_empty = true;
    Next::Request
}

/// Sends unsent bytes of earlier replies while the connection waits for a later one.
pub(crate) fn send_unsent<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) {
    let (phase, deadline) = (connection.phase, connection.deadline);
    // An error of the transport is reported when the later reply is sent. A part of a file that is
    // not in the page cache is read by the event loop itself: the letter of a worker would be taken
    // for the later reply.
    let flushed = flush_busy(connection, context);
    connection.wants_turn = matches!(flushed, Flushed::SliceOver | Flushed::Cold(_));
    (connection.phase, connection.deadline) = (phase, deadline);
}

enum Flushed {
    Whole,
    /// The client must read first.
    Blocked,
    /// More could be sent, but it is the turn of other connections.
    SliceOver,
    /// The handler must write first.
    AwaitsWriter,
    /// A worker must read this part of the file from disk first.
    Cold(FilePart),
    Broken,
}

fn flush<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) -> Flushed {
    let output_reservation = std::mem::take(&mut context.output_reservation);
    if !connection.has_unsent() {
        // The hot path: one send, directly from the buffer of the thread.
        if context.output.is_empty() {
            return Flushed::Whole;
        }
        begin_writing(connection, context);
        match connection.transport.send(&context.output, false) {
            Transfer::Moved(count)
                if count == context.output.len() && !connection.transport.holds_back() =>
            {
                context.tally.sent.add(count as u64);
                context.output.clear();
                return Flushed::Whole;
            }
            Transfer::Moved(count) => {
                context.tally.sent.add(count as u64);
                context.output.drain(..count);
                extend_deadline(connection, context, count as u64);
            }
            Transfer::Again => {}
            Transfer::TimedOut | Transfer::Ended | Transfer::Fault | Transfer::Broken => {
                return Flushed::Broken;
            }
        }
    }
    let output = std::mem::take(&mut context.output);
    if connection.busy(context).answered.is_empty() {
        connection.note_request(None, context);
    }
    let busy = connection.busy(context);
    if busy.sent == busy.output.len() {
        // No older bytes are unsent, so the buffers are swapped without a copy.
        busy.output.clear();
        busy.sent = 0;
        context.output = std::mem::replace(&mut busy.output, output);
    } else {
        busy.output.extend_from_slice(&output);
        context.output = output;
        context.output.clear();
    }
    begin_writing(connection, context);
    if !reserve_unsent(connection, context, output_reservation) {
        connection.end(Ending::Load);
        return Flushed::Broken;
    }
    flush_busy(connection, context)
}

/// Reserves the unsent bytes in the server's budget; `output_reservation` is reserved already.
/// Returns false if the budget has no room.
fn reserve_unsent<L>(
    connection: &mut Connection<L>,
    context: &ThreadContext,
    output_reservation: Reservation,
) -> bool {
    let Some(busy) = &mut connection.busy else { return true };
    if !busy.output_reservation.is_some() {
        busy.output_reservation = output_reservation;
    }
    let unsent = (busy.output.len() - busy.sent) as u64;
    let claim = Claim { block: connection.peer.block(), owner: &context.owner };
    busy.output_reservation.reach(unsent, &context.budgets.unsent, claim).is_ok()
}

/// Sends from the busy part: the rest of the replies, then the file or the stream.
// Long because it is one loop over all parts of a reply, with one match over the result of each
// call.
fn flush_busy<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Flushed {
    let mut slice = if L::BLOCKS { SEND_SLICE } else { SEND_SLICE.min(context.send_allowance) };
    loop {
        if L::BLOCKS {
            context.clock.turn();
            if !may_wait(connection, context) {
                return Flushed::Broken;
            }
        }
        let Some(busy) = &mut connection.busy else { return Flushed::Whole };
        let unsent = &busy.output[busy.sent..];
        let part = busy.file.as_mut().filter(|file| file.length > 0);
        let transfer = if connection.transport.holds_back() {
            connection.transport.flush()
        } else if slice == 0 && (!unsent.is_empty() || part.is_some()) {
            return Flushed::SliceOver;
        } else if !unsent.is_empty() {
            let count = unsent.len().min(slice as usize);
            let more = count < unsent.len() || part.is_some();
            let transfer = connection.transport.send(&unsent[..count], more);
            if let Transfer::Moved(count) = transfer {
                busy.sent += count;
                busy.output_reservation.touch();
                context.tally.sent.add(count as u64);
            }
            transfer
        } else if let Some(file) = part {
            if let Some(cached_parts) = &mut context.cached_parts
                && file.offset >= busy.warm_to
            {
                let length = CHECK_SIZE.min(file.length);
                busy.warm_to = file.offset + length;
                let now = context.clock.milliseconds();
                if !cached_parts.contain(&file.file, file.offset, length, now) {
                    return Flushed::Cold(FilePart { length, ..file.clone() });
                }
            }
            let count = slice.min(file.length);
            let transfer =
                connection.transport.send_file(file.file.as_fd(), file.offset, count as usize);
            if let Transfer::Moved(moved) = transfer {
                file.offset += moved as u64;
                file.length -= moved as u64;
                context.tally.sent.add(moved as u64);
            }
            transfer
        } else if busy.stream.is_some() {
            match take_written(connection, context) {
                None => continue,
                Some(flushed) => return flushed,
            }
        } else {
            if connection.hold == NO_HOLD {
                log_pending_entry(connection, context);
            }
            if let Some(busy) = &mut connection.busy {
                busy.output.clear();
                busy.sent = 0;
                busy.output_reservation = Reservation::default();
                busy.file = None;
            }
            return Flushed::Whole;
        };
        match transfer {
            Transfer::Moved(count) => {
                if !L::BLOCKS {
                    slice = slice.saturating_sub(count as u64);
                    context.send_allowance = context.send_allowance.saturating_sub(count as u64);
                }
                extend_deadline(connection, context, count as u64);
            }
            Transfer::Again => return Flushed::Blocked,
            Transfer::TimedOut => {
                context.clock.turn();
                if connection.deadline.has_come(context.clock.now()) {
                    return Flushed::Broken;
                }
            }
            Transfer::Ended | Transfer::Fault | Transfer::Broken => return Flushed::Broken,
        }
    }
}

/// Limits the time that the next call may wait for the client. Returns false if the budget has
/// revoked the reservation of its reply.
fn may_wait<L: Transport>(connection: &mut Connection<L>, context: &ThreadContext) -> bool {
    if connection.has_evicted_reply() {
        connection.end(Ending::Load);
        return false;
    }
    let mut left = connection.deadline.since(context.clock.now());
    if connection.busy.as_ref().is_some_and(|busy| busy.output_reservation.is_some()) {
        left = left.min(CHECK_INTERVAL);
    }
    connection.transport.wait_at_most(Direction::Out, left);
    true
}

/// Takes content that a handler has written since the last call. Returns `None` if there is some.
fn take_written<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Flushed> {
    let busy = connection.busy.as_mut()?;
    let stream = busy.stream.as_mut()?;
    busy.output.clear();
    busy.sent = 0;
    busy.output_reservation = Reservation::default();
    match stream.flow.take(&mut busy.output) {
        Taken::More => {
            stream.taken += busy.output.len() as u64;
            begin_writing(connection, context);
            None
        }
        Taken::Nothing => Some(Flushed::AwaitsWriter),
        Taken::Cut => {
            connection.end(Ending::Fault);
            Some(Flushed::Broken)
        }
        Taken::Whole => {
            log_pending_entry(connection, context);
            if let Some(busy) = &mut connection.busy {
                busy.stream = None;
            }
            Some(Flushed::Whole)
        }
    }
}

/// Sets the deadline of a reply at its first byte; later turns keep it.
fn begin_writing<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    if connection.phase != Phase::Writing {
        connection.phase = Phase::Writing;
        connection.deadline = context.clock.now().after(context.config.settings.timeouts.write);
        if L::BLOCKS {
            connection
                .transport
                .wait_at_most(Direction::Out, context.config.settings.timeouts.write);
        }
    }
}

/// Decides how the connection continues after all output was sent.
fn after_reply<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) -> Next {
    if connection.hold != NO_HOLD {
        return Next::Held;
    }
    // The reply of a waiter may have been sent directly, without the busy part.
    log_pending_entry(connection, context);
    if connection.is_upgrading() {
        return Next::Depart;
    }
    if connection.closing {
        // A close with unread input would become a reset, and the client might lose the reply (RFC
        // 9112, section 9.6).
        let unread = connection.lingers || !context.input.is_empty();
        let ended = connection.end(if context.stopping { Ending::Drain } else { Ending::Reply });
        if !unread && connection.parser.phase() != bine_http::Phase::Body {
            return ended;
        }
        linger(connection, context);
        return Next::Request;
    }
    // The next wait sets its own deadline.
    connection.phase = Phase::Idle;
    connection.end_exchange(context);
    if L::BLOCKS {
        context.requests_left = MAX_REQUESTS;
    } else if context.requests_left == 0 && (context.has_new_input || !context.is_socket_empty) {
        connection.wants_turn = true;
        context.save_input(connection);
        return Next::Idle;
    }
    Next::Request
}
