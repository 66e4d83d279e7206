//! The wait for received bytes, and the space for them.

use std::time::Duration;

use crate::connection::{Connection, ThreadContext};
use crate::next::Next;
use crate::stages::{expire, reject_over_budget};
use crate::transport::{Direction, Transport};

/// The interval at which a thread that waits for more of a body checks whether the budget has
/// revoked the reservation of the body.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Limits how long the next receive of a thread that blocks may wait. Returns `Some` if the
/// connection must not wait.
pub(super) fn begin_to_wait<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Option<Next> {
    // Checked each time, not only after a timeout: a client that keeps sending prevents
    // timeouts.
    if connection.deadline.has_come(context.clock.now()) {
        return Some(expire(connection, context));
    }
    if connection.has_evicted_body() {
        return Some(reject_over_budget(connection, context));
    }
    context.config.access.flush();
    let mut left = connection.deadline.since(context.clock.now());
    if connection.has_reserved_body() {
        left = left.min(CHECK_INTERVAL);
    }
    connection.transport.wait_at_most(Direction::In, left);
    if connection.transport.holds_back() {
        connection.transport.wait_at_most(Direction::Out, left);
    }
    None
}

/// Makes room after the unconsumed input: if that ends in the second half of the buffer, moves it
/// to the front.
pub(super) fn make_room(context: &mut ThreadContext) {
    if context.input.is_empty() {
        context.input = 0..0;
    } else if context.input.end > context.scratch.len() / 2 {
        let length = context.input.len();
        context.scratch.copy_within(context.input.clone(), 0);
        context.input = 0..length;
    }
}
