//! The HTTP endpoint of channels: paths, methods, access checks and responses.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::{Exchange, Framing, Method, Reply, Status};
use bine_log as log;
use bine_push::{Command, Cursor, Publish, Published, Receipt};
use bine_server::{Answer, Body, Clock, Finished, Follow, Incoming, Outgoing, Retained};

use super::access::{AccessControl, ChannelAction, ChannelClient, ChannelScope, Denied};
use super::batch::read_batch;
use super::durable::{self, Resource};
use super::engine::Error;
use super::follow_request::{BadRequest, FollowRequest, asks_for_websocket, follow};
use super::origin;
use super::presence::PresentSessions;
use super::presence_guard::PresenceGuard;
use super::subscription::{ACCEPT_QUERY, SubscriptionSpec, refuse};
use super::suspended::hold_for;
use super::text_reply::finish_with_reason;
use super::{Applied, Channels};
use crate::app_state::AppState;
use crate::arguments::RequestParts;
use crate::inert;
use crate::origin::is_foreign;
use crate::subsystem::MountedHandler;

/// The handler of `/channels` and the paths below it.
#[derive(Clone, Debug)]
pub(crate) struct ChannelsEndpoint {
    pub(crate) channels: Channels,
    pub(crate) gate: Arc<AccessControl>,
}

/// The path for several channels at once.
pub(crate) const PATH: &str = "/channels";
/// Maximum bytes of a published batch.
const MAX_BODY: u64 = 16 << 20;
/// Maximum bytes of a QUERY: ten thousand of the longest names, partly percent-encoded.
const MAX_QUERY: u64 = 4 << 20;
/// Maximum bytes of a body that the server buffers before the access function is called: the
/// function may answer at once, which decides whether the server buffers more.
const MAX_UNKNOWN: u64 = 64 << 10;
/// The methods that [`PATH`] supports.
const ALLOWED: &str = "Allow: GET, HEAD, QUERY, POST, OPTIONS\r\n";

impl MountedHandler for ChannelsEndpoint {
    /// The path `/channels/` names no channel; only requests for the list of channels go there.
    fn accepts(&self, path: &str, request: &Incoming<'_>) -> bool {
        let needs_no_name =
            matches!(request.head.method(), Method::Get | Method::Post | Method::Options);
        if !self.gate.is_only_for_scopes() {
            return needs_no_name || path != durable::ROOT;
        }
        // Pages with parameters in their paths keep all addresses that name no channel.
        match path.strip_prefix(durable::ROOT) {
            Some(name) => self.gate.is_in_scope(name),
            None => request.head.method() != Method::Get || request.head.query().is_some(),
        }
    }

    /// Answers a request for `/channels` or a path below it.
    fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let name = path.strip_prefix(durable::ROOT);
        let (exchange, date) = (request.exchange, clock.date());
        let (begin, origin) = (out.buffer.len(), self.gate.origin_of(&request.head));
        if let Some(origin) = &origin
            && let Some(answer) =
                origin::preflight(&request.head, origin, exchange, clock, out.buffer)
        {
            return answer;
        }
        if !request.head.method().is_safe() && origin.is_none() && is_foreign(&request.head) {
            let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &date);
            finish_with_reason(reply, "a page of another site may not write here");
            return Answer::Written { close: false };
        }
        let caller = Requested { name, request, app, clock };
        let answer = self.decide(&caller, self.gate.scopes(), out);
        match origin {
            Some(origin) => origin::with_fields(answer, out, begin, origin),
            None => answer,
        }
    }
}

/// A request to the endpoint. `name`: that of the one channel in the path.
pub(super) struct Requested<'r> {
    name: Option<&'r str>,
    pub(super) request: &'r Incoming<'r>,
    pub(super) app: &'r Arc<AppState>,
    pub(super) clock: &'r Rc<Clock>,
}

impl ChannelsEndpoint {
    /// Answers a request. `loads`: the most parts of the program that are loaded for it.
    fn decide(&self, asked: &Requested<'_>, loads: usize, out: &mut Outgoing<'_>) -> Answer {
        let Requested { request, clock, .. } = *asked;
        let client = self.gate.recognize(request);
        let denied = match self.serve(asked, &client, out) {
            Ok(answer) => return answer,
            Err(denied) => denied,
        };
        match client.take_unloaded() {
            Some(scope) if loads > 0 => self.load(asked, &*scope, loads - 1),
            _ if client.needs_function() => self.ask(asked, client, out),
            _ => denied.answer(out.buffer, request.exchange, &clock.date()),
        }
    }

    /// Loads a part of the program that has rules for the channels of the request, and decides
    /// again.
    fn load(&self, asked: &Requested<'_>, scope: &dyn ChannelScope, loads: usize) -> Answer {
        let Requested { name, request, app, clock } = *asked;
        if matches!(request.body, Body::Pending) {
            return collect(request);
        }
        let loading = scope.load(request, app);
        let (own, request) = (self.clone(), Retained::of(request));
        let (name, app, clock) = (name.map(str::to_owned), Arc::clone(app), Rc::clone(clock));
        Answer::Later(Box::pin(async move {
            let loaded = loading.await;
            let (mut bytes, request) = (Vec::new(), request.incoming());
            if let Err(error) = loaded {
                let exchange = request.exchange;
                scope_error(&error).write(&mut bytes, exchange, &clock.date());
                return Finished { bytes, follow: None, close: false };
            }
            let mut keep = |_: &mut Vec<u8>| {};
            let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
            let (name, request) = (name.as_deref(), &request);
            let asked = Requested { name, request, app: &app, clock: &clock };
            let answer = own.decide(&asked, loads, &mut out);
            finished(answer, bytes).await
        }))
    }

    /// Calls the program's access function and responds when it has returned.
    fn ask(
        &self,
        asked: &Requested<'_>,
        client: ChannelClient<'_>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let Requested { name, request, app, clock } = *asked;
        let is_coming = matches!(request.body, Body::Pending);
        let framing = request.head.framing();
        if is_coming && matches!(framing, Framing::Length(length) if length <= MAX_UNKNOWN) {
            // A deferred answer cannot ask for the body any more.
            return Answer::Collect { limit: MAX_UNKNOWN, on_disk: false };
        }
        let (exchange, date) = (request.exchange, clock.date());
        let question = client.ask(&mut RequestParts::of(app, request));
        // The argument types of an access function never reject a request.
        let Some(Ok((question, mut answering))) = question else {
            return failed(out, exchange, clock);
        };
        // Most functions return at once. The others continue in a task.
        if let Poll::Ready(said) = answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            let served = question
                .complete(said)
                .and_then(|session| self.serve(asked, &client.with_grant(session), out));
            return served.unwrap_or_else(|denied| denied.answer(out.buffer, exchange, &date));
        }
        if is_coming {
            // With the whole body buffered, the request is handled, and the function called, again.
            return collect(request);
        }
        let (face, request) = (self.clone(), Retained::of(request));
        let (name, app, clock) = (name.map(str::to_owned), Arc::clone(app), Rc::clone(clock));
        Answer::Later(Box::pin(async move {
            let said = poll_fn(|task| {
                let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(task)));
                polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
            });
            let said = said.await;
            let (mut bytes, request) = (Vec::new(), request.incoming());
            let mut keep = |_: &mut Vec<u8>| {};
            let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
            let answer = match said {
                None => {
                    log::error(format_args!("what is asked for access to channels panicked"));
                    failed(&mut out, exchange, &clock)
                }
                Some(said) => {
                    let client = face.gate.recognize(&request);
                    let (name, request) = (name.as_deref(), &request);
                    let asked = Requested { name, request, app: &app, clock: &clock };
                    let served = question.complete(said).and_then(|session| {
                        face.serve(&asked, &client.with_grant(session), &mut out)
                    });
                    served.unwrap_or_else(|denied| denied.answer(out.buffer, exchange, &date))
                }
            };
            finished(answer, bytes).await
        }))
    }

    /// Performs what a client requests, if it has access.
    fn serve(
        &self,
        asked: &Requested<'_>,
        client: &ChannelClient<'_>,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let Requested { name, request, clock, .. } = *asked;
        let exchange = request.exchange;
        if let Some(name) = name {
            for (action, channel) in
                durable::required_permissions(name, &request.head).iter().flatten()
            {
                client.check(*action, channel)?;
            }
            if name.is_empty() && request.head.method() == Method::Get {
                // The list depends on the client's full grant.
                client.check_all_known()?;
            }
            let resource = Resource { channels: &self.channels, name, client };
            return Ok(resource.respond(request, clock, out));
        }
        Ok(match request.head.method() {
            Method::Get | Method::Head => self.follow(&[], client, asked, out)?,
            Method::Query => match request.body {
                Body::Pending => {
                    client.check_some(ChannelAction::Follow)?;
                    Answer::Collect { limit: MAX_QUERY, on_disk: false }
                }
                Body::InMemory(content) => self.follow(content, client, asked, out)?,
                Body::None | Body::OnDisk(_) => self.follow(&[], client, asked, out)?,
            },
            Method::Options => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::NO_CONTENT, &clock.date());
                reply.static_lines(ALLOWED).static_lines(ACCEPT_QUERY);
                reply.empty();
                Answer::Written { close: false }
            }
            Method::Post => match request.body {
                Body::Pending => {
                    client.check_some(ChannelAction::Publish)?;
                    Answer::Collect { limit: MAX_BODY, on_disk: false }
                }
                Body::InMemory(bytes) => self.publish(bytes, client, exchange, clock, out)?,
                Body::None | Body::OnDisk(_) => {
                    client.check_some(ChannelAction::Publish)?;
                    bad(out, exchange, clock, "there is no body")
                }
            },
            _ => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::METHOD_NOT_ALLOWED, &clock.date());
                reply.static_lines(ALLOWED).static_lines(ACCEPT_QUERY);
                finish_with_reason(
                    reply,
                    "channels are followed by GET or QUERY, and published in by POST",
                );
                Answer::Written { close: false }
            }
        })
    }

    /// Suspends the response until there are messages, or upgrades to a WebSocket.
    fn follow(
        &self,
        content: &[u8],
        client: &ChannelClient<'_>,
        asked: &Requested<'_>,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let Requested { request, clock, .. } = *asked;
        let FollowRequest { mut spec, start, session, is_presence_only } =
            match follow(&request.head, content) {
                Ok(follow_request) => follow_request,
                Err(BadRequest(status, reason)) => {
                    let mut reply =
                        Reply::begin(out.buffer, request.exchange, status, &clock.date());
                    reply.static_lines(ACCEPT_QUERY);
                    finish_with_reason(reply, &reason);
                    return Ok(Answer::Written { close: false });
                }
            };
        for channel in &spec.channels {
            client.check(ChannelAction::Follow, channel)?;
        }
        if is_presence_only {
            self.list_present(&spec, request.exchange, clock, out);
            return Ok(Answer::Written { close: false });
        }
        let is_websocket = asks_for_websocket(&request.head);
        if is_websocket || self.channels.0.presence_tracker.tracks_any(&spec.channels) {
            client.check_all_known()?;
        }
        let permit = client.reserve_hold()?;
        let name = client.subject().or(session.as_deref());
        spec.origin = self.gate.origin_of(&request.head);
        spec.presence_guard =
            PresenceGuard::of(&self.channels.0, &spec.channels, name, Some(client));
        if is_websocket {
            // The WebSocket reserves its own hold.
            drop(permit);
            let follow_request = FollowRequest { spec, start, session, is_presence_only };
            return self.open(follow_request, client, asked, out);
        }
        Ok(Answer::Suspend(hold_for(permit, spec, start, request.exchange)))
    }

    /// Lists the sessions present in channels. `limit` bounds the names of all channels together.
    fn list_present(
        &self,
        spec: &SubscriptionSpec,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) {
        let mut left = spec.limit;
        let each = spec.channels.iter().map(|channel| {
            let PresentSessions { count, sessions } =
                self.channels.present(channel, left).ok_or(channel)?;
            left -= sessions.len();
            let sessions: Vec<_> = sessions.iter().map(|session| &**session).collect();
            let told =
                serde_json::json!({"channel": channel, "count": count, "sessions": sessions});
            Ok(told.to_string())
        });
        match each.collect::<Result<Vec<_>, &Box<str>>>() {
            Ok(each) => {
                let mut reply = Reply::begin(out.buffer, exchange, Status::OK, &clock.date());
                reply.static_lines("Content-Type: application/json\r\nCache-Control: no-store\r\n");
                inert::put_fields(&mut reply);
                reply.whole(format!("[{}]\n", each.join(",")).as_bytes());
            }
            Err(channel) => {
                let status = Status::NOT_FOUND;
                let reply = Reply::begin(out.buffer, exchange, status, &clock.date());
                let reason = format!(
                    "nobody counts who is present in `{channel}`; a program says so by App::presence"
                );
                finish_with_reason(reply, &reason);
            }
        }
    }

    /// Publishes a batch: one message, an array of messages, or one message a line.
    fn publish(
        &self,
        bytes: &[u8],
        client: &ChannelClient<'_>,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        client.check_some(ChannelAction::Publish)?;
        let messages = match read_batch(bytes) {
            Ok(messages) => messages,
            Err(reason) => return Ok(bad(out, exchange, clock, &reason)),
        };
        client.check_batch(&messages)?;
        let command = Command::Publish(Publish { messages, ..Publish::default() });
        let ordered = self.channels.execute_for(command, client);
        let channels = self.channels.clone();
        let date = clock.date();
        Ok(Answer::Later(Box::pin(async move {
            let mut bytes = Vec::new();
            match ordered.await {
                Ok(Applied::Published(published)) => {
                    let mut reply = Reply::begin(&mut bytes, exchange, Status::OK, &date);
                    reply.static_lines("Content-Type: application/json\r\n");
                    inert::put_fields(&mut reply);
                    reply.whole(&receipts_json(&channels, &published));
                }
                Ok(_) => {
                    Reply::begin(&mut bytes, exchange, Status::NO_CONTENT, &date).empty();
                }
                Err(Error::Refused(refused)) => refuse(&mut bytes, exchange, &date, &refused),
                Err(Error::Storage(error)) => {
                    let error = crate::Error::from(error);
                    let reply = Reply::begin(&mut bytes, exchange, error.code(), &date);
                    finish_with_reason(reply, error.message().unwrap_or_default());
                }
            }
            Finished { bytes, follow: None, close: false }
        })))
    }
}

/// The denial for a client whose channels have no rules, because a part of the program cannot be
/// loaded, or not for this client.
pub(super) fn scope_error(error: &crate::Error) -> Denied {
    if error.code().code() < 500 {
        return Denied::new(error.code(), error.message().unwrap_or_default().to_owned());
    }
    let reasons: Vec<_> = error.chain().collect();
    log::error(format_args!("the rules for channels: {}", reasons.join(": ")));
    let reason = "the application of this channel cannot be loaded".to_owned();
    Denied::new(Status::SERVICE_UNAVAILABLE, reason)
}

/// The answer that asks for the whole body of a request.
fn collect(request: &Incoming<'_>) -> Answer {
    let is_query = request.head.method() == Method::Query;
    Answer::Collect { limit: if is_query { MAX_QUERY } else { MAX_BODY }, on_disk: false }
}

/// An answer as the result of a task that has written `bytes`.
async fn finished(answer: Answer, bytes: Vec<u8>) -> Finished {
    let follow = match answer {
        Answer::Written { close } => return Finished { bytes, follow: None, close },
        Answer::Later(later) | Answer::WhileOpen(later) | Answer::Receive(later, _) => {
            return later.await;
        }
        Answer::Suspend(hold) => Follow::Suspend(hold),
        Answer::Upgrade(upgrade) => Follow::Upgrade(upgrade),
        Answer::File(part) => Follow::File(part),
        Answer::Stream(stream) => Follow::Stream(stream),
        // The body is complete, and channels use no thread pool.
        Answer::Collect { .. } | Answer::Work(_) => return Finished::default(),
    };
    Finished { bytes, follow: Some(follow), close: false }
}

/// Formats the receipts of a publication as JSON.
pub(super) fn receipts_json(channels: &Channels, published: &Published) -> Vec<u8> {
    let epoch = channels.0.hub(|hub| hub.watermark().epoch).unwrap_or_default();
    let each = published.messages.iter().map(|taken| {
        let (sequence, is_new) = match taken {
            Receipt::New(sequence) => (*sequence, true),
            Receipt::Duplicate(sequence) => (*sequence, false),
        };
        let cursor = Cursor { epoch, sequence };
        format!("{{\"cursor\":\"{cursor}\",\"repeated\":{}}}", !is_new)
    });
    format!("[{}]\n", each.collect::<Vec<_>>().join(",")).into_bytes()
}

fn bad(out: &mut Outgoing<'_>, exchange: Exchange, clock: &Clock, reason: &str) -> Answer {
    finish_with_reason(
        Reply::begin(out.buffer, exchange, Status::BAD_REQUEST, &clock.date()),
        reason,
    );
    Answer::Written { close: false }
}

/// Responds to a failure of the program's access function.
fn failed(out: &mut Outgoing<'_>, exchange: Exchange, clock: &Clock) -> Answer {
    let status = Status::INTERNAL_SERVER_ERROR;
    let reply = Reply::begin(out.buffer, exchange, status, &clock.date());
    finish_with_reason(reply, "who may do this could not be found out");
    Answer::Written { close: false }
}
