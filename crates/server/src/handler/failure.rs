//! Runs handlers that may panic, and writes the replies in place of those that did.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_http::{Exchange, Reply, SecurityHeaders, Status};
use bine_log as log;

use crate::handler::Work;
use crate::handler::incoming::{Incoming, Retained};
use crate::handler::outgoing::{Done, Finished, Outgoing};
use crate::metrics::tally;
use crate::time::Clock;

/// What the peer is told of a fault that is ours; what happened is in the log.
pub(crate) const FAILED: &str = "The page failed; the log says why.\n";

/// Runs `work`, wherever that is. `None`: it panicked, and what it wrote since it last drained `out` is dropped.
pub(crate) fn run_work(
    work: &dyn Work,
    request: &Retained,
    clock: &Clock,
    out: &mut Outgoing<'_>,
) -> Option<Done> {
    let mark = out.buffer.len();
    let ran = catch_unwind(AssertUnwindSafe(|| work.run(request, clock, out)));
    if ran.is_err() {
        tally::count_panic();
        out.buffer.truncate(mark);
    }
    ran.ok()
}

/// Writes what the peer of a `work` that panicked is told, if nothing of its reply has left.
pub(crate) fn excuse(
    work: &dyn Work,
    request: &Retained,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> Done {
    log::error(format_args!("{} panicked; its peer got a 500", work.name()));
    let mut incoming = request.incoming();
    incoming.exchange.keep_alive = false;
    let exchange = farewell_to(&incoming);
    apologize(out, exchange, clock, |out| work.failed(&incoming, clock, out));
    Done { follow: None, close: true }
}

/// For an answer in place of that of a handler that panicked.
pub(crate) fn farewell_to(request: &Incoming<'_>) -> Exchange {
    Exchange { security: request.exchange.security, ..Exchange::closing() }
}

/// Lets the program tell that it failed in its own words, unless it fails at that too.
pub(crate) fn apologize(
    out: &mut Vec<u8>,
    exchange: Exchange,
    clock: &Clock,
    tell: impl FnOnce(&mut Vec<u8>),
) {
    let mark = out.len();
    let told = catch_unwind(AssertUnwindSafe(|| tell(out)));
    if told.is_err() || out.len() == mark {
        out.truncate(mark);
        error_reply(out, exchange, Status::INTERNAL_SERVER_ERROR, FAILED, clock);
    }
}

pub(crate) fn error_reply(
    out: &mut Vec<u8>,
    exchange: Exchange,
    status: Status,
    told: &str,
    clock: &Clock,
) {
    let mut reply = Reply::begin(out, exchange, status, &clock.date());
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
    reply.whole(told.as_bytes());
}

/// The reply in place of one whose handler panicked.
pub(crate) fn failed(clock: &Clock, security: SecurityHeaders) -> Finished {
    let mut bytes = Vec::new();
    let exchange = Exchange { security, ..Exchange::closing() };
    error_reply(&mut bytes, exchange, Status::INTERNAL_SERVER_ERROR, FAILED, clock);
    Finished { bytes, follow: None, close: true }
}
