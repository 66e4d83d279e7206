//! The response stage: calls the handler, and handles its panics and errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_http::{Exchange, Framing, Head, Method, PeerFault, Status};
use bine_log as log;
use bine_profile::{self as profile, Stage};

use crate::access::Replied;
use crate::connection::{Connection, DeferredWork, Phase, Storing, ThreadContext};
use crate::generation::ThreadConfig;
use crate::handler::{
    Answer, Body, BodyEnd, FAILURE_TEXT, Finished, Follow, Identity, Incoming, Outgoing, Retained,
    ServerRefusal, closing_exchange_for, error_reply, failed, reply_after_panic, run_work,
    write_failure,
};
use crate::limits::Claim;
use crate::metrics::{Ending, tally};
use crate::next::{Next, ResponseKind};
use crate::stages::sink::{Sink, UnsentBudget};
use crate::stages::{
    answer_fault_of, begin_closing, closing_exchange, record_bare, refuse, remove_content,
    remove_content_for_head, send_ahead,
};
use crate::transport::Transport;

/// Asks a client that waits before it sends a body to send it (RFC 9110, section 10.1.1).
const CONTINUE: &[u8] = bine_http::continue_100();

/// The response stage.
// Long because it is one match over all kinds of answers, and each continues in its own way.
pub(crate) fn response<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let _stage = profile::enter(Stage::Route);
    let collected = connection.busy.as_mut().and_then(|busy| busy.request.take());
    let began = context.clock.now();
    let Some(call) = call_handler(connection, context, collected.as_deref()) else {
        return Next::Request;
    };
    if !L::BLOCKS {
        context.slowness.check(&context.clock, began, || context.config.responder.last());
    }
    profile::set_route(|| context.config.responder.last());
    let HandlerCall { answer, exchange, framing, expects_continue, request_copy, mark } = call;
    let has_unread_body = framing != Framing::None && collected.is_none();
    note_head_request(connection, context, &answer, exchange.method);
    if !matches!(answer, HandlerOutcome::Answered(Answer::Collect { .. })) {
        profile::count_route(|| context.config.responder.last());
    }
    if answer.takes_longer() {
        connection.note_request(collected.as_deref(), context);
    }
    match answer {
        HandlerOutcome::Broken => connection.end(Ending::Peer),
        HandlerOutcome::Cut => connection.end(Ending::Fault),
        HandlerOutcome::Panicked => {
            connection.end(Ending::Fault);
            connection.closing = true;
            connection.lingers = has_unread_body;
            Next::Reply
        }
        HandlerOutcome::Answered(Answer::Written { close }) => {
            connection.closing |= close || !exchange.keep_alive;
            Next::Reply
        }
        HandlerOutcome::Answered(Answer::File(part)) => {
            connection.closing |= !exchange.keep_alive;
            follow(connection, context, Follow::File(part), collected.or(request_copy), mark)
        }
        HandlerOutcome::Answered(Answer::Stream(stream)) => {
            connection.closing |= !exchange.keep_alive;
            connection.busy(context).handler = context.config.responder.last();
            follow(connection, context, Follow::Stream(stream), collected.or(request_copy), mark)
        }
        HandlerOutcome::Answered(Answer::Upgrade(_)) if has_unread_body => {
            // The new protocol would read the body as its own first bytes.
            let name = context.config.responder.last();
            log::error(format_args!("{name} accepts an upgrade of a request with a body"));
            fail(connection, context, mark)
        }
        HandlerOutcome::Answered(Answer::Upgrade(upgrade)) => {
            connection.busy(context).handler = context.config.responder.last();
            follow(connection, context, Follow::Upgrade(upgrade), collected.or(request_copy), mark)
        }
        HandlerOutcome::Answered(Answer::Collect { .. }) if collected.is_some() => {
            log::error(format_args!(
                "{} asked for the body twice",
                context.config.responder.last()
            ));
            let mark = context.output.len();
            fail(connection, context, mark)
        }
        HandlerOutcome::Answered(Answer::Collect { limit, on_disk }) => {
            let limit = if on_disk { limit.max(context.config.settings.upload) } else { limit };
            if matches!(framing, Framing::Length(length) if length > limit) {
                let fault = PeerFault::ContentTooLarge;
                return answer_fault_of(connection, context, fault, request_copy.as_deref());
            }
            let busy = connection.busy(context);
            busy.request = request_copy;
            (busy.collect, busy.on_disk) = (limit, on_disk);
            if expects_continue && context.input.is_empty() {
                context.output.extend_from_slice(CONTINUE);
            }
            Next::Request
        }
        HandlerOutcome::Answered(Answer::Receive(reply, source)) => {
            let request = collected.map(without_body).or(request_copy);
            if has_unread_body {
                connection.busy(context).body_flow = Some(source.0);
                if expects_continue && context.input.is_empty() {
                    context.output.extend_from_slice(CONTINUE);
                }
            } else {
                source.0.end(BodyEnd::Whole);
            }
            park_for(connection, context, exchange, DeferredWork::Later(reply, request))
        }
        HandlerOutcome::Answered(Answer::Later(reply)) => {
            let request = collected.map(without_body).or(request_copy);
            park_for(connection, context, exchange, DeferredWork::Later(reply, request))
        }
        HandlerOutcome::Answered(Answer::WhileOpen(reply)) => {
            let request = collected.map(without_body).or(request_copy);
            park_for(connection, context, exchange, DeferredWork::WhileOpen(reply, request))
        }
        HandlerOutcome::Answered(Answer::Suspend(hold)) => park_for(
            connection,
            context,
            exchange,
            DeferredWork::Suspend(hold, collected.or(request_copy)),
        ),
        HandlerOutcome::Answered(Answer::Work(work)) => {
            connection.closing |= !exchange.keep_alive;
            let Some(request) = collected.or(request_copy) else { return Next::Closed };
            context.deferred_work = Some(DeferredWork::Work(work, request));
            Next::Response(ResponseKind::Dynamic)
        }
    }
}

/// Replaces the reply at `mark` by a 500 and closes the connection after it.
fn fail<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    mark: usize,
) -> Next {
    context.output.truncate(mark);
    write_error(context, Status::INTERNAL_SERVER_ERROR, FAILURE_TEXT);
    remove_content_for_head(connection, &mut context.output, mark);
    context.tally.replied(&context.output[mark..]);
    connection.end(Ending::Fault);
    connection.closing = true;
    Next::Reply
}

/// Records whether a reply that is not written yet is for a HEAD. A written reply does not need it.
fn note_head_request<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    answer: &HandlerOutcome,
    method: Method,
) {
    let is_written = matches!(answer, HandlerOutcome::Answered(Answer::Written { .. }));
    let is_head = method == Method::Head && !is_written;
    if let Some(busy) = &mut connection.busy {
        busy.is_head = is_head;
    } else if is_head {
        connection.busy(context).is_head = true;
    }
}

/// Starts content that follows the head at `mark`.
fn follow<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    follow: Follow,
    request: Option<Box<Retained>>,
    mark: usize,
) -> Next {
    if let Some(mut request) = request
        && context.config.access.is_on()
    {
        // The log needs only the head, and the reply may take long.
        request.drop_body();
        let pending_entry = context.config.access.begin(request, &context.output[mark..], &follow);
        connection.busy(context).pending_entry = Some(pending_entry);
    }
    connection.follow(follow, context);
    Next::Reply
}

/// The response stage on a thread that may block: runs the work.
pub(crate) fn dynamic<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let Some(DeferredWork::Work(work, request)) = context.deferred_work.take() else {
        return Next::Closed;
    };
    let _stage = profile::enter(Stage::Route);
    profile::set_route(|| work.name());
    // The work may take long, so earlier replies are sent first.
    if !send_ahead(connection, context) {
        return Next::Closed;
    }
    let mut bytes = std::mem::take(&mut context.output);
    let mark = bytes.len();
    let ThreadContext { config, clock, tally, output_reservation, budgets, owner, .. } =
        &mut *context;
    let ThreadConfig { settings, access, .. } = config;
    let claim = Claim { block: connection.peer.block(), owner };
    let unsent_budget =
        UnsentBudget { reserved: output_reservation, budget: &budgets.unsent, claim };
    let more = request.exchange.method != Method::Head;
    let mut sink = Sink::new(
        &mut connection.transport,
        settings,
        unsent_budget,
        mark,
        more,
        access.wants_head(),
    );
    let mut drain = |buffer: &mut Vec<u8>| sink.drain(buffer);
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut drain };
    let done = run_work(&*work, &request, clock, &mut out);
    if sink.sent > 0 || sink.broken {
        let is_whole = done.is_some() && !sink.broken;
        sink.count(&bytes, tally);
        if is_whole && access.is_on() {
            let replied = sink.replied(&bytes);
            access.record(&request.incoming(), request.began, clock, replied);
        }
        if !is_whole {
            let ending = if sink.broken { Ending::Peer } else { Ending::Fault };
            connection.ending.get_or_insert(ending);
        }
        if done.is_none() {
            log::error(format_args!(
                "{} panicked in the middle of its reply, which was cut",
                work.name()
            ));
        }
        connection.closing |= done.is_some_and(|done| done.close);
        context.output = bytes;
        context.clock.turn();
        context.retained.put(request);
        connection.phase = Phase::Idle;
        // An incomplete reply was sent; the client detects that by the end of the connection.
        return if is_whole { Next::Reply } else { Next::Closed };
    }
    let done =
        done.unwrap_or_else(|| reply_after_panic(&*work, &request, &context.clock, &mut bytes));
    connection.closing |= limit_length(&mut bytes, context);
    remove_content_for_head(connection, &mut bytes, mark);
    context.output = bytes;
    context.clock.turn();
    // Earlier replies may have set a deadline; this reply begins with a new one.
    connection.phase = Phase::Idle;
    if context.output.len() == mark && done.follow.is_none() {
        return after_store(connection, context, request);
    }
    end_storing(connection);
    connection.closing |= done.close;
    if done.follow.is_some() {
        connection.busy(context).handler = work.name();
    }
    settle_reply(connection, context, done.follow, Some(request), mark)
}

/// Continues with a reply that was written outside the response stage.
pub(crate) fn finished<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    finished: &mut Finished,
    request: Option<Box<Retained>>,
) -> Next {
    if finished.is_nothing()
        && let Some(request) = request
    {
        return after_store(connection, context, request);
    }
    end_storing(connection);
    if connection.busy.as_mut().is_some_and(|busy| busy.body_flow.take().is_some()) {
        // The handler has answered without the rest of the body.
        begin_closing(connection);
    }
    connection.closing |= limit_length(&mut finished.bytes, context);
    remove_content_for_head(connection, &mut finished.bytes, 0);
    // The output buffer is empty: this connection has waited for this reply only.
    std::mem::swap(&mut context.output, &mut finished.bytes);
    connection.closing |= finished.close;
    // The deadline of the handler has ended; the next step sets its own.
    connection.phase = Phase::Idle;
    settle_reply(connection, context, finished.follow.take(), request, 0)
}

/// A piece of the body was written to disk, and there is no reply yet: continues with the rest of
/// the body or with the handler.
fn after_store<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    mut request: Box<Retained>,
) -> Next {
    let wait = context.config.settings.timeouts.body;
    let busy = connection.busy(context);
    let Some(storing) = busy.storing.take() else {
        log::error(format_args!("{} wrote no reply", busy.handler));
        return Next::Closed;
    };
    request.body.clear();
    busy.request = Some(request);
    if storing == Storing::Last {
        connection.phase = Phase::Idle;
        return Next::Response(ResponseKind::Static);
    }
    connection.phase = Phase::Body;
    connection.deadline = context.clock.now().after(wait);
    if connection.has_evicted_body() {
        return reject_over_budget(connection, context);
    }
    // The parser may report the end of the body without a further byte.
    context.has_new_input = true;
    Next::Request
}

/// Stops receiving a body after an error of the disk.
fn end_storing<L>(connection: &mut Connection<L>) {
    if connection.busy.as_mut().is_some_and(|busy| busy.storing.take().is_some()) {
        begin_closing(connection);
    }
}

/// Finishes the reply at `mark`: starts the content that follows it, and writes its line in the
/// access log now or when it has been sent.
fn settle_reply<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    content: Option<Follow>,
    request: Option<Box<Retained>>,
    mark: usize,
) -> Next {
    match (content, request) {
        (Some(Follow::Suspend(hold)), request) => {
            context.deferred_work = Some(DeferredWork::Suspend(hold, request));
            Next::Park
        }
        (Some(Follow::Again(mut again)), request) => {
            // The copy was made when the request arrived.
            again.began = request.map_or(again.began, |request| request.began);
            // What the handler has waited for may decide who the client is.
            let responder = &mut context.config.responder;
            again.identity = responder.identify(&again.incoming().head, again.peer);
            connection.busy(context).request = Some(again);
            Next::Response(ResponseKind::Static)
        }
        (Some(content), request) => {
            context.tally.replied(&context.output[mark..]);
            follow(connection, context, content, request, mark)
        }
        (None, Some(request)) => {
            context.tally.replied(&context.output[mark..]);
            if context.config.access.is_on() {
                let replied = Replied::of(&context.output[mark..]);
                context.config.access.record(
                    &request.incoming(),
                    request.began,
                    &context.clock,
                    replied,
                );
            }
            context.retained.put(request);
            Next::Reply
        }
        (None, None) => {
            context.tally.replied(&context.output[mark..]);
            Next::Reply
        }
    }
}

/// Replaces a reply longer than the limit of unsent bytes by a 500. Returns true if it did; then
/// the connection must close.
fn limit_length(bytes: &mut Vec<u8>, context: &ThreadContext) -> bool {
    let limit = context.config.settings.unsent;
    let fits = bytes.len() <= limit;
    if !fits {
        log::error(format_args!("a reply of {} bytes exceeds the limit of {limit}", bytes.len()));
        *bytes = failed(&context.clock, context.config.settings.security).bytes;
    }
    !fits
}

/// Answers for a handler that did not finish in time. Its result will be dropped.
pub(crate) fn handler_timed_out<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    if let Some(busy) = &mut connection.busy
        && let Some(task) = busy.task.take()
    {
        task.abort();
        busy.body_flow = None;
    }
    let name = connection.busy.as_ref().map_or("", |busy| busy.handler);
    log::warn(format_args!(
        "{name} took longer than {:?}; its peer got a 504",
        context.config.settings.timeouts.handler
    ));
    let mark = context.output.len();
    let (status, text) = (Status::GATEWAY_TIMEOUT, "the page took too long\n");
    let exchange = closing_exchange(context);
    refuse(context, None, &ServerRefusal { status, text, lines: "", exchange });
    remove_content_for_head(connection, &mut context.output, mark);
    // The request is with the handler.
    record_bare(connection.peer, context, mark);
    connection.end(Ending::Timeout);
    begin_closing(connection);
    connection.phase = Phase::Idle;
    Next::Reply
}

/// Cuts a reply whose handler has sent no content for too long. The client detects by the end of
/// the connection that the reply is incomplete.
pub(crate) fn writer_timed_out<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let name = connection.busy.as_ref().map_or("", |busy| busy.handler);
    log::warn(format_args!(
        "{name} sent nothing for {:?} in the middle of its reply, which was cut",
        context.config.settings.timeouts.handler
    ));
    connection.end(Ending::Timeout)
}

/// Values of `Retry-After`. They differ, so that clients rejected at the same time do not return at
/// the same time.
const RETRY_AFTER: [&str; 4] =
    ["Retry-After: 1\r\n", "Retry-After: 2\r\n", "Retry-After: 3\r\n", "Retry-After: 4\r\n"];

/// Rejects a request early and cheaply, because no worker was free in time.
pub(crate) fn reject_overloaded<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    request: Box<Retained>,
) -> Next {
    reject(connection, context, Some(request))
}

/// Rejects a request whose body is being collected: the body exceeds a budget, or the budget has
/// revoked its reservation.
pub(crate) fn reject_over_budget<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let request = connection.busy.as_mut().and_then(|busy| busy.request.take());
    reject(connection, context, request)
}

/// Rejects the deferred work: there is too little memory for it.
pub(crate) fn reject_deferred<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    match context.deferred_work.take() {
        Some(DeferredWork::Work(_, request)) => reject(connection, context, Some(request)),
        Some(DeferredWork::Later(_, request) | DeferredWork::WhileOpen(_, request)) => {
            reject(connection, context, request)
        }
        Some(DeferredWork::Suspend(..) | DeferredWork::WarmUp(_)) | None => Next::Closed,
    }
}

fn reject<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    request: Option<Box<Retained>>,
) -> Next {
    let mark = context.output.len();
    // The microseconds of the current time are random enough.
    let retry = RETRY_AFTER[context.clock.microseconds() as usize % RETRY_AFTER.len()];
    let exchange = closing_exchange(context);
    let refusal = ServerRefusal {
        status: Status::SERVICE_UNAVAILABLE,
        text: "the server is busy; try again in a moment\n",
        lines: retry,
        exchange,
    };
    refuse(context, request.as_deref(), &refusal);
    if request.as_ref().is_some_and(|request| request.exchange.method == Method::Head) {
        remove_content(&mut context.output, mark);
    }
    context.tally.replied(&context.output[mark..]);
    connection.end(Ending::Load);
    if let Some(request) = request {
        if context.config.access.is_on() {
            let replied = Replied::of(&context.output[mark..]);
            context.config.access.record(
                &request.incoming(),
                request.began,
                &context.clock,
                replied,
            );
        }
        context.retained.put(request);
    }
    begin_closing(connection);
    connection.phase = Phase::Idle;
    Next::Reply
}

/// Rejects a request that waited too long for a thread.
pub(crate) fn reject_unserved<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    let collected = connection.busy.as_mut().and_then(|busy| busy.request.take());
    let request = match (context.deferred_work.take(), collected) {
        (Some(DeferredWork::Work(_, request)), _) | (_, Some(request)) => request,
        _ => {
            let ThreadContext { config, scratch, current, clock, retained, .. } = context;
            let Some(index) = current.index.take() else { return Next::Closed };
            let head = Head::from_parts(&scratch[current.head.clone()], index);
            let incoming = Incoming {
                head,
                body: Body::None,
                peer: current.peer,
                identity: &current.identity,
                arrival: clock.unix(),
                has_begun: connection.has_begun,
                exchange: head.exchange(),
            };
            retained.take(&incoming, config.access.timestamp(clock))
        }
    };
    reject_overloaded(connection, context, request)
}

fn write_error(context: &mut ThreadContext, status: Status, text: &str) {
    let exchange = closing_exchange(context);
    error_reply(&mut context.output, exchange, status, text, &context.clock);
}

/// The result of [`call_handler`].
struct HandlerCall {
    answer: HandlerOutcome,
    exchange: Exchange,
    framing: Framing,
    expects_continue: bool,
    /// A copy of the request, if the answer needs one.
    request_copy: Option<Box<Retained>>,
    /// The start of the reply in the output.
    mark: usize,
}

fn park_for<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    exchange: Exchange,
    work: DeferredWork,
) -> Next {
    connection.closing |= !exchange.keep_alive;
    context.deferred_work = Some(work);
    Next::Park
}

/// A reply made from the body may be as large, so the reservation stays until the handler has
/// answered.
fn without_body(mut request: Box<Retained>) -> Box<Retained> {
    request.body = Vec::new();
    request
}

enum HandlerOutcome {
    Answered(Answer),
    /// The handler panicked; the output contains the error reply.
    Panicked,
    /// The connection is closed.
    Broken,
    /// The handler panicked after part of its reply was sent.
    Cut,
}

impl HandlerOutcome {
    /// Whether a copy of the request must be kept, other than the one in which its body was
    /// `collected`.
    const fn needs_request(&self, collected: bool, is_logged: bool) -> bool {
        match self {
            _ if collected => false,
            Self::Answered(Answer::Collect { .. } | Answer::Work(_)) => true,
            // Logged after the reply was sent.
            Self::Answered(
                Answer::File(_)
                | Answer::Stream(_)
                | Answer::Upgrade(_)
                | Answer::Suspend(_)
                | Answer::Receive(..)
                | Answer::Later(_)
                | Answer::WhileOpen(_),
            ) => is_logged,
            Self::Answered(Answer::Written { .. }) | Self::Panicked | Self::Broken | Self::Cut => {
                false
            }
        }
    }

    /// Whether the response may take more than this turn, other than a suspended one.
    const fn takes_longer(&self) -> bool {
        match self {
            Self::Answered(
                Answer::File(_)
                | Answer::Stream(_)
                | Answer::Receive(..)
                | Answer::Later(_)
                | Answer::WhileOpen(_)
                | Answer::Work(_),
            ) => true,
            Self::Answered(
                Answer::Written { .. }
                | Answer::Collect { .. }
                | Answer::Suspend(_)
                | Answer::Upgrade(_),
            )
            | Self::Panicked
            | Self::Broken
            | Self::Cut => false,
        }
    }

    /// The access log entry of a reply in `output`, or `None` if it is not logged now.
    fn replied<'r, L: Transport>(
        &self,
        sink: &'r Sink<'_, L>,
        output: &'r [u8],
    ) -> Option<Replied<'r>> {
        match self {
            Self::Answered(Answer::Written { .. }) | Self::Panicked => Some(sink.replied(output)),
            Self::Answered(_) | Self::Broken | Self::Cut => None,
        }
    }
}

/// Calls the handler for the current request. Returns `None` if there is no request.
// Long because it names each part of the thread that it borrows.
fn call_handler<L: Transport>(
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
    collected: Option<&Retained>,
) -> Option<HandlerCall> {
    let ThreadContext {
        config,
        scratch,
        output,
        output_reservation,
        budgets,
        owner,
        current,
        clock,
        retained,
        ..
    } = context;
    let ThreadConfig { responder, settings, access, .. } = config;
    let claim = Claim { block: connection.peer.block(), owner };
    let unsent_budget =
        UnsentBudget { reserved: output_reservation, budget: &budgets.unsent, claim };
    let began = collected.map_or_else(|| access.timestamp(clock), |request| request.began);
    let mut incoming = match collected {
        Some(request) => request.incoming(),
        None => {
            let head = Head::from_parts(&scratch[current.head.clone()], current.index.take()?);
            Incoming {
                head,
                body: if head.framing() == Framing::None { Body::None } else { Body::Pending },
                peer: current.peer,
                identity: &current.identity,
                arrival: clock.unix(),
                has_begun: connection.has_begun,
                exchange: head.exchange(),
            }
        }
    };
    if incoming.peer.is_secure() {
        incoming.exchange.hsts = settings.hsts;
    }
    incoming.exchange.security = settings.security;
    connection.is_known = matches!(incoming.identity, Identity::Known(_));
    let framing = incoming.head.framing();
    let expects_continue = incoming.head.expects_continue();
    if matches!(incoming.body, Body::Pending) {
        incoming.exchange.keep_alive &=
            can_drop(framing, settings.unread_body) && !expects_continue;
        connection.discard_allowance = settings.unread_body as u32;
    }
    incoming.exchange.keep_alive &= !(context.stopping || context.is_leaving || connection.closing);
    let mark = output.len();
    let more = incoming.exchange.method != Method::Head;
    let mut sink = Sink::new(
        &mut connection.transport,
        settings,
        unsent_budget,
        mark,
        more,
        access.wants_head(),
    );
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let mut drain = |buffer: &mut Vec<u8>| sink.drain(buffer);
        responder.respond(&incoming, &mut Outgoing { buffer: output, drain: &mut drain })
    }));
    connection.has_begun = connection.has_begun || responder.begins();
    let answer = match answer {
        _ if sink.broken => HandlerOutcome::Broken,
        // The usual answer is smaller than the others. A processor stalls when it copies the whole value
        // right after that was written in smaller parts (failed store forwarding).
        Ok(Answer::Written { close }) => HandlerOutcome::Answered(Answer::Written { close }),
        Ok(answer) => HandlerOutcome::Answered(answer),
        Err(_) => {
            tally::count_panic();
            log::error(format_args!("{} panicked; its peer got a 500", responder.last()));
            output.truncate(mark);
            if sink.sent > 0 {
                HandlerOutcome::Cut
            } else {
                incoming.exchange.keep_alive = false;
                let exchange = closing_exchange_for(&incoming);
                write_failure(output, exchange, clock, |out| responder.failed(&incoming, out));
                if incoming.exchange.method == Method::Head {
                    remove_content(output, mark);
                }
                HandlerOutcome::Panicked
            }
        }
    };
    sink.count(output, &context.tally);
    if access.is_on()
        && !responder.is_unlogged()
        && let Some(replied) = answer.replied(&sink, output)
    {
        access.record(&incoming, began, clock, replied);
    }
    if matches!(answer, HandlerOutcome::Answered(Answer::Collect { .. })) && collected.is_none() {
        // The body will be read to its end, so the connection can stay open.
        incoming.exchange.keep_alive = incoming.head.exchange().keep_alive;
    }
    if matches!(answer, HandlerOutcome::Answered(Answer::Receive(..))) {
        // A handler that answers before the end of the body closes the connection.
        let is_last = context.stopping || context.is_leaving || connection.closing;
        incoming.exchange.keep_alive = incoming.head.exchange().keep_alive && !is_last;
    }
    let request_copy = answer
        .needs_request(collected.is_some(), access.is_on())
        .then(|| retained.take(&incoming, began));
    Some(HandlerCall {
        answer,
        exchange: incoming.exchange,
        framing,
        expects_continue,
        request_copy,
        mark,
    })
}

/// Whether the server reads and drops a body that the handler does not ask for, to keep the
/// connection open: only if it is short. A chunked body may be endless or malformed, which the
/// server would detect only after it has answered.
fn can_drop(framing: Framing, limit: u64) -> bool {
    matches!(framing, Framing::Length(length) if length <= limit)
}
