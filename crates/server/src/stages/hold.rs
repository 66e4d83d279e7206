//! The stage of a suspended response.

use bine_log as log;
use bine_profile::{self as profile, Stage};

use crate::access::Replied;
use crate::connection::{Connection, DeferredWork, NO_HOLD, Phase, ThreadContext};
use crate::handler::{ServeOutcome, ServeReason, failed};
use crate::next::Next;
use crate::stages::{park, response, send_to_waiter};
use crate::transport::Transport;

/// Suspends the response: the connection becomes a waiter. `place` is its identifier in
/// [`WaiterSink`](crate::handler::WaiterSink).
pub(crate) fn hold<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    place: u64,
) -> Next {
    let _stage = profile::enter(Stage::Write);
    let Some(DeferredWork::Suspend(hold, request)) = context.deferred_work.take() else {
        return Next::Closed;
    };
    // Earlier replies of a pipeline are sent first.
    if park(connection, context) == Next::Closed {
        return Next::Closed;
    }
    context.make_current(connection);
    let Some(waiters) = &mut context.waiters else {
        log::error(format_args!("a response was suspended, but the program has no waiters"));
        let mut failed = failed(&context.clock, context.config.settings.security);
        return response::finished(connection, context, &mut failed, request);
    };
    connection.hold = waiters.park(place, hold);
    connection.has_input = false;
    match request {
        Some(mut request) if context.config.access.is_on() => {
            // The log needs only the head and the user, and the response may wait long.
            request.drop_body();
            request.identity.keep_name_only();
            connection.busy(context).request = Some(request);
        }
        Some(request) => context.retained.put(request),
        None => {}
    }
    held(connection, context, ServeReason::Parked)
}

/// Asks the waiters for the bytes that are due to this connection, then sends them, waits on, or
/// ends the suspension.
pub(crate) fn held<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    why: ServeReason,
) -> Next {
    let _stage = profile::enter(Stage::Write);
    let Some(waiters) = &mut context.waiters else { return Next::Closed };
    let why = if context.stopping { ServeReason::Stop } else { why };
    let mut out = std::mem::take(&mut context.output);
    let after = waiters.serve(connection.hold, why, &mut out);
    context.output = out;
    continue_response(connection, context, after)
}

/// Continues with the output of a waiter.
fn continue_response<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    after: ServeOutcome,
) -> Next {
    count_reply(context);
    log_output(connection, context, after);
    match after {
        ServeOutcome::Over { close } => {
            end_suspension(connection, close);
            Next::Reply
        }
        ServeOutcome::Waits(wait) if context.output.is_empty() && !connection.has_unsent() => {
            connection.phase = Phase::Held;
            connection.deadline = context.clock.now().after(wait);
            context.save_input(connection);
            Next::Park
        }
        ServeOutcome::Waits(_) => Next::Reply,
    }
}

/// An event occurred: sends `bytes` to a waiter. The next waiters follow afterwards.
pub(crate) fn delivered<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    bytes: &[u8],
    after: ServeOutcome,
) -> Next {
    let _stage = profile::enter(Stage::Write);
    context.output.extend_from_slice(bytes);
    count_reply(context);
    log_output(connection, context, after);
    match after {
        ServeOutcome::Over { close } => {
            end_suspension(connection, close);
            send_to_waiter(connection, context, None)
        }
        ServeOutcome::Waits(wait) => send_to_waiter(connection, context, Some(wait)),
    }
}

/// Ends the suspension.
fn end_suspension<L>(connection: &mut Connection<L>, close: bool) {
    connection.hold = NO_HOLD;
    connection.closing |= close;
    connection.phase = Phase::Idle;
}

/// Counts a reply when it begins. Later output of a waiter does not start with a status line: it is
/// framed content, or not HTTP.
fn count_reply(context: &ThreadContext) {
    if context.output.starts_with(b"HTTP/1.1 ") {
        context.tally.replied(&context.output);
    }
}

/// Writes the access log line of a complete reply, or begins to count the bytes of an incomplete
/// one.
fn log_output<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    after: ServeOutcome,
) {
    if context.output.is_empty() {
        return;
    }
    let Some(busy) = &mut connection.busy else { return };
    if let Some(pending_entry) = &mut busy.pending_entry {
        pending_entry.length += context.output.len() as u64;
    } else if let Some(request) = busy.request.take() {
        match after {
            ServeOutcome::Over { .. } => {
                let replied = Replied::of(&context.output);
                context.config.access.record(
                    &request.incoming(),
                    request.began,
                    &context.clock,
                    replied,
                );
                context.retained.put(request);
            }
            ServeOutcome::Waits(_) => {
                busy.pending_entry =
                    Some(context.config.access.begin_suspended(request, &context.output));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::Settings;
    use crate::test_support::{connection, context, request, server};

    #[test]
    fn counts_the_content_of_each_output_for_the_access_log() {
        let server = server(Settings::default());
        let mut context = context(&server);
        let (mut connection, _client) = connection(&mut context);
        let output = |connection: &mut _, context: &mut ThreadContext, bytes: &[u8]| {
            context.output = bytes.to_vec();
            log_output(connection, context, ServeOutcome::Waits(Duration::ZERO));
        };
        output(&mut connection, &mut context, b"HTTP/1.1 200 OK\r\n\r\nabc");
        assert!(connection.busy.is_none(), "no log needs the request");
        connection.busy(&mut context).request = Some(request("/"));
        output(&mut connection, &mut context, b"");
        assert!(connection.busy(&mut context).pending_entry.is_none());
        let mut lengths = Vec::new();
        for bytes in [&b"HTTP/1.1 200 OK\r\n\r\nabc"[..], b"", b"12345"] {
            output(&mut connection, &mut context, bytes);
            let entry = connection.busy(&mut context).pending_entry.as_ref().unwrap();
            lengths.push((entry.status, entry.length));
        }
        assert_eq!(lengths, [(200, 3), (200, 3), (200, 8)]);
    }
}
