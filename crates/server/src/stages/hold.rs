//! Decides what a connection does whose reply waits for something to happen.

use bine_log as log;

use crate::access::Replied;
use crate::connection::{Connection, Errand, NO_HOLD, Phase, ThreadContext};
use crate::handler::{After, Why, failed};
use crate::next::Next;
use crate::stages::{hand, park, response};
use crate::transport::Transport;

/// The connection becomes a waiter. `place` names it to those who deliver.
pub(crate) fn hold<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    place: u64,
) -> Next {
    let Some(Errand::Hold(hold, request)) = context.errand.take() else { return Next::Closed };
    // Earlier replies of a pipeline leave first.
    if park(connection, context) == Next::Closed {
        return Next::Closed;
    }
    context.take_up(connection);
    let Some(waiters) = &mut context.waiters else {
        log::error(format_args!("a reply was held by a program that has no waiters"));
        let mut failed = failed(&context.clock, context.config.settings.security);
        return response::finished(connection, context, &mut failed, request);
    };
    connection.hold = waiters.park(place, hold);
    connection.spoke = false;
    match request {
        Some(mut request) if context.config.access.is_on() => {
            // The log is told of its head and its user alone, however long it waits.
            request.drop_body();
            request.who.forget();
            connection.busy(context).request = Some(request);
        }
        Some(request) => context.retained.put(request),
        None => {}
    }
    held(connection, context, Why::Parked)
}

/// Asks what is owed to a waiter, which then has it sent, rests, or is a waiter no more.
pub(crate) fn held<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    why: Why,
) -> Next {
    let Some(waiters) = &mut context.waiters else { return Next::Closed };
    let why = if context.stopping { Why::Stop } else { why };
    let mut out = std::mem::take(&mut context.output);
    let after = waiters.serve(connection.hold, why, &mut out);
    context.output = out;
    owe(connection, context, after)
}

/// What is in the buffer is owed to a waiter, of whom this becomes.
fn owe<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    after: After,
) -> Next {
    count(context);
    tell(connection, context, after);
    match after {
        After::Over { close } => {
            release(connection, close);
            Next::Reply
        }
        After::Waits(wait) if context.output.is_empty() && !connection.has_unsent() => {
            connection.phase = Phase::Held;
            connection.deadline = context.clock.now().after(wait);
            context.put_down(connection);
            Next::Park
        }
        After::Waits(_) => Next::Reply,
    }
}

/// Something happened: `bytes` are sent to a waiter while those behind it wait for their turn.
pub(crate) fn delivered<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    bytes: &[u8],
    after: After,
) -> Next {
    context.output.extend_from_slice(bytes);
    count(context);
    tell(connection, context, after);
    match after {
        After::Over { close } => {
            release(connection, close);
            hand(connection, context, None)
        }
        After::Waits(wait) => hand(connection, context, Some(wait)),
    }
}

/// It is a waiter no more.
fn release<L>(connection: &mut Connection<L>, close: bool) {
    connection.hold = NO_HOLD;
    connection.closing |= close;
    connection.phase = Phase::Idle;
}

/// A reply counts when it begins, which what is behind its head never looks like: that is framed, or no HTTP.
fn count(context: &ThreadContext) {
    if context.output.starts_with(b"HTTP/1.1 ") {
        context.tally.replied(&context.output);
    }
}

/// The access log is told of a reply that is whole, and begins to count one that is not.
fn tell<L: Transport>(connection: &mut Connection<L>, context: &mut ThreadContext, after: After) {
    if context.output.is_empty() {
        return;
    }
    let Some(busy) = &mut connection.busy else { return };
    if let Some(leaving) = &mut busy.leaving {
        leaving.length += context.output.len() as u64;
    } else if let Some(request) = busy.request.take() {
        match after {
            After::Over { .. } => {
                let replied = Replied::of(&context.output);
                context.config.access.record(
                    &request.incoming(),
                    request.began,
                    &context.clock,
                    replied,
                );
                context.retained.put(request);
            }
            After::Waits(_) => {
                busy.leaving = Some(context.config.access.begin_held(request, &context.output));
            }
        }
    }
}
