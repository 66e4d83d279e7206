//! A page's response that delivers channels, suspended like a response at `/channels`.

use std::time::Duration;

use bine_http::{Exchange, Finished, Head, Status};
use bine_log as log;
use bine_push::{Cursor, Refused, Start};
use bine_server::{Follow, Incoming, SuspendedResponse};

use super::Channels;
use super::access::{Denied, HoldPermit};
use super::batch::MAX_MESSAGES;
use super::delivery::DeliveryMode;
use super::follow_request::{self, MAX_WAIT};
use super::presence_guard::PresenceGuard;
use super::subscription::{SubscriptionSpec, refuse};
use super::websocket::Permission;
use super::{suspended, websocket};
use crate::respond::{CustomContent, Respond, Response, ResponseHead, ResponseWriter};
use crate::sessions::{Login, VisitorSession};
use crate::store::Time;
use crate::websocket::Opening;

/// A page's response that the server suspends until there are messages
/// ([`Channels::respond`] creates it).
///
/// Like `/channels`, it is a poll, events, lines, parts or a WebSocket, as the request's `Accept`
/// and `Upgrade` fields demand. A suspended response uses no thread, task or buffer; only a
/// WebSocket uses a task. The request's `after`, `before`, `limit`, `wait`, `gap`, `Last-Event-ID`
/// and `Prefer` take precedence over the values set here. All other query parameters, including
/// `c`, belong to the page: the page alone chooses the channels. Each suspended response counts
/// against the [limits](super::ClientLimits) of the client's address.
#[derive(Debug)]
pub struct ChannelResponse {
    channels: Channels,
    spec: SubscriptionSpec,
    start: Start,
    view: Option<Format>,
    /// The session name for presence.
    name: Option<Box<str>>,
}

/// The format of delivered messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One response with a JSON array, sent as soon as there are messages, or 204 after the wait.
    Poll,
    /// Server-sent events (WHATWG HTML section 9.2).
    Events,
    /// A stream with one line of JSON for each message.
    Lines,
    /// A stream with one part of `multipart/mixed` for each message (RFC 2046 section 5.1).
    Parts,
}

/// The outcome for a request.
enum ChannelResponseOutcome {
    Hold(SuspendedResponse),
    Open(Opening),
    Refused(Refused),
    /// The client has too many held requests.
    Denied(Denied),
    /// The request is malformed, for this reason.
    Bad(String),
}

impl ChannelResponse {
    pub(super) fn new(channels: Channels, names: Box<[Box<str>]>) -> Self {
        Self {
            channels,
            spec: SubscriptionSpec::of(names),
            start: Start::Now,
            view: None,
            name: None,
        }
    }

    /// Begins after the message with this cursor, instead of now.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        Self { start: Start::After(cursor), ..self }
    }

    /// Begins with the earliest retained message, instead of now.
    #[must_use]
    pub fn earliest(self) -> Self {
        Self { start: Start::Earliest, ..self }
    }

    /// Begins with messages published at this time or later, instead of now.
    #[must_use]
    pub fn since(self, time: impl Into<Time>) -> Self {
        Self { start: Start::Since(milliseconds(time.into())), ..self }
    }

    /// Sets the maximum number of messages in one batch: 100 by default, at most 1000.
    #[must_use]
    pub fn limit(mut self, messages: usize) -> Self {
        self.spec.limit = messages.clamp(1, MAX_MESSAGES);
        self
    }

    /// Sets how long a poll waits for messages: 25 seconds by default, at most 55 seconds.
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.spec.wait = time.min(Duration::from_secs(MAX_WAIT)).as_millis() as u64;
        self
    }

    /// Lists the client as present under this name in those of the channels that track presence
    /// ([`App::presence`](crate::App::presence)). By default it is not listed.
    #[must_use]
    pub fn present_as(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the format, whichever one the request asks for.
    #[must_use]
    pub fn format(self, view: Format) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Decides the outcome. `request` is `None` if the response is written after the request has
    /// been released. The response ends with `login`, a session that the page has read.
    fn answer(
        self,
        request: Option<&Incoming<'_>>,
        login: Option<Login>,
        exchange: Exchange,
    ) -> ChannelResponseOutcome {
        let (spec, start) = match self.amended(request.map(|request| &request.head)) {
            Ok(amended) => amended,
            Err(reason) => return ChannelResponseOutcome::Bad(reason),
        };
        let Some(request) = request else {
            // Without the request there is no address to count it for.
            return ChannelResponseOutcome::Hold(suspended::hold_for(
                HoldPermit::default(),
                spec,
                start,
                exchange,
            ));
        };
        let quotas = &self.channels.0.parties;
        let permit = match HoldPermit::of_peer(quotas, request.peer, login, Some(request)) {
            Ok(permit) => permit,
            Err(denied) => return ChannelResponseOutcome::Denied(denied),
        };
        if self.view.is_some() || !follow_request::asks_for_websocket(&request.head) {
            return ChannelResponseOutcome::Hold(suspended::hold_for(
                permit, spec, start, exchange,
            ));
        }
        let permission = Permission::Page(permit.into_guard(quotas));
        match websocket::opening(&self.channels, permission, spec, start, request) {
            Ok(opening) => ChannelResponseOutcome::Open(opening),
            Err(refused) => ChannelResponseOutcome::Refused(refused),
        }
    }

    fn amended(&self, head: Option<&Head<'_>>) -> Result<(SubscriptionSpec, Start), String> {
        let spec = self.spec.clone();
        let (mut spec, start) = match head {
            Some(head) => follow_request::amend(head, spec)?,
            None => (spec, None),
        };
        if let Some(view) = self.view {
            spec.manner = view.manner();
        }
        if let Some(name) = &self.name {
            spec.presence_guard =
                PresenceGuard::of(&self.channels.0, &spec.channels, Some(name), None);
        }
        Ok((spec, start.unwrap_or(self.start)))
    }
}

impl Format {
    const fn manner(self) -> DeliveryMode {
        match self {
            Self::Poll => DeliveryMode::Poll,
            Self::Events => DeliveryMode::Events,
            Self::Lines => DeliveryMode::Lines,
            Self::Parts => DeliveryMode::Parts,
        }
    }
}

/// Converts a time to milliseconds since 1970; 0 for earlier times.
pub(super) fn milliseconds(time: Time) -> u64 {
    u64::try_from(time.0.div_euclid(1000)).unwrap_or(0)
}

impl CustomContent for ChannelResponse {
    /// Suspends the response until there are messages, or until the session ends that the page has
    /// read. It sends no session fields: no cache stores it, and it sets no cookie.
    fn respond(self: Box<Self>, top: ResponseHead, to: &mut ResponseWriter<'_, '_>) -> Finished {
        let login = to
            .visitor_session
            .take()
            .and_then(VisitorSession::of_session)
            .and_then(|visitor_session| visitor_session.login());
        let exchange = to.exchange();
        match self.answer(to.request(), login, exchange) {
            ChannelResponseOutcome::Hold(hold) => {
                for (name, _) in &top.fields {
                    log::error(format_args!("the field `{name}` was left out: the reply is held"));
                }
                to.follow = Some(Follow::Suspend(hold));
                return Finished { close: false };
            }
            ChannelResponseOutcome::Open(opening) => return Box::new(opening).respond(top, to),
            ChannelResponseOutcome::Refused(refused) => {
                let (out, date) = to.output();
                refuse(out, exchange, date, &refused);
            }
            ChannelResponseOutcome::Denied(denied) => {
                let (out, date) = to.output();
                denied.write(out, exchange, date);
            }
            ChannelResponseOutcome::Bad(reason) => {
                return to.write_error(Status::BAD_REQUEST, &reason);
            }
        }
        Finished { close: !exchange.keep_alive }
    }
}

impl Respond for ChannelResponse {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        CustomContent::respond(Box::new(self), ResponseHead::of(Status::OK), to)
    }
}

impl From<ChannelResponse> for Response {
    fn from(held: ChannelResponse) -> Self {
        Self::custom(Status::OK, held)
    }
}
