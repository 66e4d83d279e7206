//! The stages that take a connection from one request to the next: request, response, reply. The
//! code is the same for transports that block and transports that do not.
//!
//! ```text
//! accept -> request -> response -> reply (static | dynamic) -> keep-alive, back to request
//! ```
//!
//! A stage takes a connection and the context of its thread, and returns the next stage. It never
//! decides which thread runs that: the thread's driver and its scheduler do.

use crate::next::Next;

mod hold;
mod input;
mod preface;
mod reply;
mod request;
mod response;
mod sink;
mod spooling;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bine_http::{Exchange, PeerFault};

use crate::access::{PendingEntry, Replied};
use crate::address::ClientAddress;
use crate::connection::{Connection, Phase, ThreadContext};
use crate::handler::failure::write_refusal;
use crate::handler::{BodyEnd, Retained, ServeReason, ServerRefusal};
use crate::metrics::Ending;
use crate::transport::Transport;

pub(crate) use hold::{delivered, held, hold};
use reply::send_to_waiter;
pub(crate) use reply::{park, reply, send_ahead, send_unsent};
pub(crate) use request::request;
pub(crate) use response::{
    dynamic, finished, reject_deferred, reject_over_budget, reject_overloaded, reject_unserved,
    response,
};

/// The time that an idle connection still has when the server stops.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// The number of bytes that a client may still send after the last reply of its connection.
const LINGER_BYTES: u32 = 256 * 1024;

/// Handles the end of a connection's deadline. During a request the client gets a reply. Between
/// two requests the connection closes silently, since a client that keeps a pool of idle
/// connections would take a 408 for the reply to its next request.
pub(crate) fn expire<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    match connection.phase {
        Phase::First | Phase::Idle if context.stopping => connection.end(Ending::Drain),
        Phase::Idle => connection.end(Ending::Idle),
        Phase::Handshake | Phase::First | Phase::Writing | Phase::Lingering => {
            connection.end(Ending::Timeout)
        }
        Phase::Streaming => response::writer_timed_out(connection, context),
        Phase::Held => held(connection, context, ServeReason::Time),
        // The reply was sent already; the client would take a second one for the reply to its next
        // request.
        Phase::Body if !is_collecting(connection) => connection.end(Ending::Timeout),
        Phase::Head | Phase::Body => {
            if let Some(busy) = &mut connection.busy {
                busy.request = None;
            }
            answer_fault(connection, context, PeerFault::TimedOut)
        }
        // The driver withdraws a queued request first. If it could not, a worker runs the handler.
        Phase::Queued | Phase::Handler => response::handler_timed_out(connection, context),
    }
}

/// Answers a fault of the client; the server parses no further input of this connection.
fn answer_fault<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    fault: PeerFault,
) -> Next {
    answer_fault_of(connection, context, fault, None)
}

/// Like [`answer_fault`], for a request that is known.
fn answer_fault_of<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    fault: PeerFault,
    request: Option<&Retained>,
) -> Next {
    stop_receiving(connection);
    let mark = context.output.len();
    let exchange = closing_exchange(context);
    let (status, text) = (fault.status(), fault.client_message());
    refuse(context, request, &ServerRefusal { status, text, lines: "", exchange });
    remove_content_for_head(connection, &mut context.output, mark);
    let is_late = matches!(fault, PeerFault::TimedOut);
    connection.end(if is_late { Ending::Timeout } else { Ending::Fault });
    record_bare(connection.peer, context, mark);
    begin_closing(connection);
    Next::Reply
}

/// Writes the reply to a request that the server rejects.
fn refuse(context: &mut ThreadContext, request: Option<&Retained>, refusal: &ServerRefusal) {
    let ThreadContext { config, output, clock, .. } = context;
    write_refusal(&mut *config.responder, request, refusal, clock, output);
}

/// The exchange for a reply of the server itself, after which the connection closes.
fn closing_exchange(context: &ThreadContext) -> Exchange {
    Exchange { security: context.config.settings.security, ..Exchange::closing() }
}

/// Whether the body is being collected for its handler, or passed to it in pieces, so that the
/// request has no reply yet.
fn is_collecting<L>(connection: &Connection<L>) -> bool {
    connection.busy.as_ref().is_some_and(|busy| {
        busy.request.is_some() || busy.storing.is_some() || busy.body_flow.is_some()
    })
}

/// Ends a handler that takes the body in pieces, because the rest of the body will not arrive.
fn stop_receiving<L>(connection: &mut Connection<L>) {
    if let Some(busy) = &mut connection.busy
        && let Some(flow) = busy.body_flow.take()
    {
        flow.end(BodyEnd::Cut);
        if let Some(task) = busy.task.take() {
            task.abort();
        }
    }
}

/// Removes the content of the reply at `mark` if its request is a HEAD (RFC 9110, section 9.3.2). A
/// client would read that content as the start of another reply.
fn remove_content_for_head<L>(connection: &Connection<L>, output: &mut Vec<u8>, mark: usize) {
    if connection.busy.as_ref().is_some_and(|busy| busy.is_head) {
        remove_content(output, mark);
    }
}

/// Removes the content of the reply at `mark`.
fn remove_content(output: &mut Vec<u8>, mark: usize) {
    const END: &[u8] = b"\r\n\r\n";
    let reply = output.get(mark..).unwrap_or_default();
    if let Some(end) = reply.windows(END.len()).position(|bytes| bytes == END) {
        output.truncate(mark + end + END.len());
    }
}

/// Counts the reply at `mark` and writes its line in the access log, without a request.
fn record_bare(peer: ClientAddress, context: &mut ThreadContext, mark: usize) {
    context.tally.replied(&context.output[mark..]);
    if context.config.access.is_on() {
        let replied = Replied::of(&context.output[mark..]);
        context.config.access.record_bare(peer, context.clock.unix(), replied);
    }
}

/// Writes the line in the access log of the reply that was sent after its response stage,
/// completely or in part.
pub(crate) fn log_pending_entry<L>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    let Some(busy) = &mut connection.busy else { return };
    let Some(pending_entry) = busy.pending_entry.take() else { return };
    let unsent = (busy.output.len() - busy.sent) as u64;
    let bytes = match (&busy.file, &busy.stream) {
        (None, None) => pending_entry.length.saturating_sub(unsent),
        (Some(file), _) => pending_entry.length - file.length,
        (None, Some(stream)) => stream.taken.saturating_sub(unsent),
    };
    let replied = Replied { status: pending_entry.status, bytes, head: &pending_entry.head };
    // The current snapshot may be that of another connection.
    context.config.switch_to(connection.snapshot_id);
    let PendingEntry { request, .. } = &pending_entry;
    context.config.access.record(&request.incoming(), request.began, &context.clock, replied);
    context.retained.put(pending_entry.request);
}

/// Prepares the end of the connection after its last reply: the server reads and drops what the
/// client still sends, because a close with unread input would destroy the reply (RFC 9112, section
/// 9.6).
fn begin_closing<L>(connection: &mut Connection<L>) {
    connection.parser.end();
    connection.closing = true;
    connection.lingers = true;
    if let Some(busy) = &mut connection.busy {
        busy.input.clear();
    }
}

/// Closes the sending half, then reads and drops the client's input until the client closes too.
fn linger<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    connection.transport.finish();
    connection.parser.end();
    connection.phase = Phase::Lingering;
    connection.discard_allowance = LINGER_BYTES;
    connection.deadline = context.clock.now().after(context.config.settings.timeouts.linger);
    context.input = 0..0;
    context.has_new_input = false;
    if let Some(busy) = &mut connection.busy {
        busy.request = None;
    }
}

/// Extends the deadline of a slow client: each byte adds time at the minimum rate, up to one full
/// timeout from now.
fn extend_deadline<L>(connection: &mut Connection<L>, context: &ThreadContext, bytes: u64) {
    let timeouts = &context.config.settings.timeouts;
    let pause = match connection.phase {
        Phase::Body => timeouts.body,
        Phase::Writing => timeouts.write,
        _ => return,
    };
    // Rounded up, or single bytes would add no time.
    let bought = Duration::from_millis((bytes * 1000).div_ceil(u64::from(timeouts.rate.max(1))));
    let latest = context.clock.now().after(pause);
    connection.deadline = connection.deadline.after(bought).earlier(latest);
}
