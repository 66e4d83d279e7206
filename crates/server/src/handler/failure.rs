//! Runs handlers that may panic, and writes the reply if one did.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_http::{Exchange, Reply, SecurityHeaders, Status};
use bine_log as log;
use bine_profile::{self as profile, Stage};

use crate::handler::incoming::{Incoming, Retained};
use crate::handler::outgoing::{Done, Finished, Outgoing};
use crate::handler::{Responder, ServerRefusal, Work};
use crate::metrics::tally;
use crate::time::Clock;

/// The text that the client gets when a handler panicked. Details are only in the log.
pub(crate) const FAILURE_TEXT: &str = "The page failed; the server's log has the details.\n";

/// Runs `work`. Returns `None` if it panicked; then the bytes that it wrote since the last drain of
/// `out` are dropped.
pub(crate) fn run_work(
    work: &dyn Work,
    request: &Retained,
    clock: &Clock,
    out: &mut Outgoing<'_>,
) -> Option<Done> {
    let _stage = profile::enter_route(Stage::Handler, work.name());
    let mark = out.buffer.len();
    let ran = catch_unwind(AssertUnwindSafe(|| work.run(request, clock, out)));
    if ran.is_err() {
        tally::count_panic();
        out.buffer.truncate(mark);
    }
    ran.ok()
}

/// Writes the reply of a `work` that panicked, if no byte of its own reply has been sent.
pub(crate) fn reply_after_panic(
    work: &dyn Work,
    request: &Retained,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> Done {
    log::error(format_args!("{} panicked; its peer got a 500", work.name()));
    let mut incoming = request.incoming();
    incoming.exchange.keep_alive = false;
    let exchange = closing_exchange_for(&incoming);
    write_failure(out, exchange, clock, |out| work.failed(&incoming, clock, out));
    Done { follow: None, close: true }
}

/// The exchange for a reply that replaces the reply of a handler that panicked.
pub(crate) fn closing_exchange_for(request: &Incoming<'_>) -> Exchange {
    Exchange { security: request.exchange.security, ..Exchange::closing() }
}

/// Calls `write`, by which the program writes its own error page. If that writes no bytes or panics
/// too, writes the standard text.
pub(crate) fn write_failure(
    out: &mut Vec<u8>,
    exchange: Exchange,
    clock: &Clock,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let mark = out.len();
    let written = catch_unwind(AssertUnwindSafe(|| write(out)));
    if written.is_err() || out.len() == mark {
        out.truncate(mark);
        error_reply(out, exchange, Status::INTERNAL_SERVER_ERROR, FAILURE_TEXT, clock);
    }
}

/// Writes the reply of a refusal: by the program, or the text of the server if the program writes no
/// bytes or panics.
pub(crate) fn write_refusal(
    responder: &mut dyn Responder,
    request: Option<&Retained>,
    refusal: &ServerRefusal,
    clock: &Clock,
    out: &mut Vec<u8>,
) {
    let mark = out.len();
    let request = request.map(Retained::incoming);
    let written = catch_unwind(AssertUnwindSafe(|| {
        let mut out = Outgoing { buffer: &mut *out, drain: &mut |_: &mut Vec<u8>| {} };
        responder.refuse(request.as_ref(), refusal, &mut out);
    }));
    if written.is_err() || out.len() == mark {
        out.truncate(mark);
        let mut reply = Reply::begin(out, refusal.exchange, refusal.status, &clock.date());
        reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
        reply.static_lines(refusal.lines);
        reply.whole(refusal.text.as_bytes());
    }
}

pub(crate) fn error_reply(
    out: &mut Vec<u8>,
    exchange: Exchange,
    status: Status,
    text: &str,
    clock: &Clock,
) {
    let mut reply = Reply::begin(out, exchange, status, &clock.date());
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
    reply.whole(text.as_bytes());
}

/// The reply that replaces the reply of a handler that panicked.
pub(crate) fn failed(clock: &Clock, security: SecurityHeaders) -> Finished {
    let mut bytes = Vec::new();
    let exchange = Exchange { security, ..Exchange::closing() };
    error_reply(&mut bytes, exchange, Status::INTERNAL_SERVER_ERROR, FAILURE_TEXT, clock);
    Finished { bytes, follow: None, close: true }
}
