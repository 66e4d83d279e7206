//! Decides how a connection gets from one request to the next: request, response, reply, once for
//! transports that block and transports that do not.
//!
//! ```text
//! accept -> request -> response -> reply (static | dynamic) -> keep-alive, back to request
//! ```
//!
//! A stage takes a connection and its thread's context and returns what comes next. It never
//! decides where that runs: the thread's driver and its scheduler do.

use crate::next::Next;

mod hold;
mod reply;
mod request;
mod response;
mod sink;
mod spooling;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bine_http::{Exchange, PeerFault};

use crate::access::{Leaving, Replied};
use crate::address::Peer;
use crate::connection::{Connection, Phase, ThreadContext};
use crate::handler::Why;
use crate::metrics::Ending;
use crate::transport::Transport;

pub(crate) use hold::{delivered, held, hold};
use reply::hand;
pub(crate) use reply::{park, push, reply, send_ahead};
pub(crate) use request::request;
pub(crate) use response::{
    crowded_out, dynamic, finished, overloaded, response, turn_away, unheard,
};

/// What an idle connection has left when the server stops.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// What a peer that is being sent away may still send before it is cut off.
const FAREWELL: u32 = 256 * 1024;

/// Says what becomes of a connection whose deadline came: in the middle of a request it is told so,
/// between two it is closed without a word, since a pool of idle connections would take a 408 for
/// the answer to its next request.
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
        Phase::Streaming => response::silent(connection, context),
        Phase::Held => held(connection, context, Why::Time),
        // The answer has been sent; a second one would be taken for that to the next request.
        Phase::Body if !is_collecting(connection) => connection.end(Ending::Timeout),
        Phase::Head | Phase::Body => {
            if let Some(busy) = &mut connection.busy {
                busy.request = None;
            }
            refuse(connection, context, PeerFault::TimedOut)
        }
        // A queued one is withdrawn before; if it is not to be had, it has a handler.
        Phase::Queued | Phase::Handler => response::overdue(connection, context),
    }
}

/// Answers a fault of the peer; nothing it sends from here on is looked at.
fn refuse<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    fault: PeerFault,
) -> Next {
    let mark = context.output.len();
    let exchange = farewell(context);
    fault.reply(&mut context.output, exchange, &context.clock.date());
    remove_content_for_head(connection, &mut context.output, mark);
    let is_late = matches!(fault, PeerFault::TimedOut);
    connection.end(if is_late { Ending::Timeout } else { Ending::Fault });
    record_bare(connection.peer, context, mark);
    part(connection);
    Next::Reply
}

/// For an answer that the server gives by itself, after which the connection closes.
fn farewell(context: &ThreadContext) -> Exchange {
    Exchange { security: context.config.settings.security, ..Exchange::closing() }
}

/// Whether the request's body is being collected for its handler, so that the request has no answer yet.
fn is_collecting<L>(connection: &Connection<L>) -> bool {
    connection.busy.as_ref().is_some_and(|busy| busy.request.is_some() || busy.storing.is_some())
}

/// Removes the content of the reply at `mark` if its request is a HEAD (RFC 9110 section 9.3.2). A client would read
/// that content as the beginning of another reply.
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

/// The reply behind `mark` counts, and has a line in the access log, although its request is not at hand.
fn record_bare(peer: Peer, context: &mut ThreadContext, mark: usize) {
    context.tally.replied(&context.output[mark..]);
    if context.config.access.is_on() {
        let replied = Replied::of(&context.output[mark..]);
        context.config.access.record_bare(peer, context.clock.unix(), replied);
    }
}

/// The reply that is leaving has left, or never will: its line in the access log is due.
pub(crate) fn tell_of_leaving<L>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    let Some(busy) = &mut connection.busy else { return };
    let Some(leaving) = busy.leaving.take() else { return };
    let unsent = (busy.output.len() - busy.sent) as u64;
    let bytes = match (&busy.file, &busy.stream) {
        (None, None) => leaving.length.saturating_sub(unsent),
        (Some(file), _) => leaving.length - file.length,
        (None, Some(stream)) => stream.taken.saturating_sub(unsent),
    };
    let replied = Replied { status: leaving.status, bytes, head: &leaving.head };
    // The connection at hand may be one that came under other settings.
    context.config.switch_to(connection.snapshot_id);
    let Leaving { request, .. } = &leaving;
    context.config.access.record(&request.incoming(), request.began, &context.clock, replied);
    context.retained.put(leaving.request);
}

/// The last reply is on its way; what the peer still sends is read and dropped, so that closing
/// does not destroy the reply (RFC 9112 section 9.6).
fn part<L>(connection: &mut Connection<L>) {
    connection.machine.end();
    connection.closing = true;
    connection.lingers = true;
    if let Some(busy) = &mut connection.busy {
        busy.input.clear();
    }
}

/// Nothing more will be said; what the peer still sends is read and dropped until it notices.
fn linger<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext) {
    connection.transport.finish();
    connection.machine.end();
    connection.phase = Phase::Lingering;
    connection.patience = FAREWELL;
    connection.deadline = context.clock.now().after(context.config.settings.timeouts.linger);
    context.input = 0..0;
    context.fresh = false;
    if let Some(busy) = &mut connection.busy {
        busy.request = None;
    }
}

/// A slow peer's bytes buy it time at the least rate allowed, never more than one pause.
fn credit<L>(connection: &mut Connection<L>, context: &ThreadContext, bytes: u64) {
    let timeouts = &context.config.settings.timeouts;
    let pause = match connection.phase {
        Phase::Body => timeouts.body,
        Phase::Writing => timeouts.write,
        _ => return,
    };
    // Rounded up, or single bytes would buy nothing.
    let bought = Duration::from_millis((bytes * 1000).div_ceil(u64::from(timeouts.rate.max(1))));
    let latest = context.clock.now().after(pause);
    connection.deadline = connection.deadline.after(bought).earlier(latest);
}
