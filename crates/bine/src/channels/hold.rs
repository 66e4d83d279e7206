//! Decides how a page answers with channels: it says which and from where on, and the reply is held as one at `/channels`.

use std::time::Duration;

use bine_http::{Exchange, Finished, Head, Status};
use bine_log as log;
use bine_push::{Cursor, Refused, Start};
use bine_server::{Follow, Hold, Incoming};

use super::Channels;
use super::access::{Denied, Pass};
use super::asked::{self, LONGEST_WAIT};
use super::attendee::Attendee;
use super::batch::MOST;
use super::place::Manner;
use super::watch::{Watch, refuse};
use super::websocket::Leave;
use super::{room, websocket};
use crate::respond::{CustomContent, Replying, Respond, Response, Top};
use crate::sessions::{Login, Visit};
use crate::store::Time;
use crate::websocket::Opening;

/// A page's answer that is held until there are messages, as [`Channels::hold`] makes it.
///
/// It is what `/channels` answers: a poll, events, lines, parts or a WebSocket as the request's `Accept` and `Upgrade` ask
/// for, which waits without a thread, a task or a buffer; a WebSocket alone takes a task. What the request says of `after`, `before`, `limit`, `wait`,
/// `gap`, `Last-Event-ID` and `Prefer` goes before what the page says here, which is for those who say nothing; `c`
/// and whatever else is in the query is the page's own. The page alone says which channels. Who waits counts for the
/// [caps](super::Caps) of their address.
#[derive(Debug)]
pub struct Held {
    channels: Channels,
    watch: Watch,
    start: Start,
    view: Option<View>,
    /// Who is present by it.
    name: Option<Box<str>>,
}

/// How messages come to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// One answer: an array of JSON, at once or as soon as there is something; 204 if nothing came.
    Poll,
    /// Server-sent events (WHATWG HTML section 9.2).
    Events,
    /// A line of JSON for each.
    Lines,
    /// A part of `multipart/mixed` for each (RFC 2046 section 5.1).
    Parts,
}

/// How a request is answered after all.
enum Answered {
    Hold(Hold),
    Open(Opening),
    Refused(Refused),
    /// Too many wait where it comes from.
    Denied(Denied),
    /// The request makes no sense, for this reason.
    Bad(String),
}

impl Held {
    pub(super) fn new(channels: Channels, names: Box<[Box<str>]>) -> Self {
        Self { channels, watch: Watch::of(names), start: Start::Now, view: None, name: None }
    }

    /// Begins behind the message that has this cursor, instead of now.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        Self { start: Start::After(cursor), ..self }
    }

    /// Begins with the earliest message that is there, instead of now.
    #[must_use]
    pub fn earliest(self) -> Self {
        Self { start: Start::Earliest, ..self }
    }

    /// Begins with what was published at this time or later, instead of now.
    #[must_use]
    pub fn since(self, time: impl Into<Time>) -> Self {
        Self { start: Start::Since(milliseconds(time.into())), ..self }
    }

    /// Messages at once, 1000 at most; else 100.
    #[must_use]
    pub fn limit(mut self, messages: usize) -> Self {
        self.watch.limit = messages.clamp(1, MOST);
        self
    }

    /// How long a poll waits for news, 55 seconds at most; else 25 seconds.
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.watch.wait = time.min(Duration::from_secs(LONGEST_WAIT)).as_millis() as u64;
        self
    }

    /// Whoever is answered is present by this name, in those of the channels where that is counted
    /// ([`App::presence`](crate::App::presence)); nobody is otherwise.
    #[must_use]
    pub fn present_as(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Whatever the request asks for, messages come this way.
    #[must_use]
    pub fn view(self, view: View) -> Self {
        Self { view: Some(view), ..self }
    }

    /// What becomes of it for a request; of a request that is not there any more its head is not known.
    /// It ends with the login of a session that the page has looked at.
    fn answer(
        self,
        request: Option<&Incoming<'_>>,
        login: Option<Login>,
        exchange: Exchange,
    ) -> Answered {
        let (watch, start) = match self.amended(request.map(|request| &request.head)) {
            Ok(amended) => amended,
            Err(reason) => return Answered::Bad(reason),
        };
        let Some(request) = request else {
            // Nobody's, where nobody knows any more who has asked.
            return Answered::Hold(room::hold_for(Pass::default(), watch, start, exchange));
        };
        let parties = &self.channels.0.parties;
        let pass = match Pass::of_peer(parties, request.peer, login) {
            Ok(pass) => pass,
            Err(denied) => return Answered::Denied(denied),
        };
        if self.view.is_some() || !asked::asks_for_websocket(&request.head) {
            return Answered::Hold(room::hold_for(pass, watch, start, exchange));
        }
        let leave = Leave::Page(pass.sit(parties));
        match websocket::opening(&self.channels, leave, watch, start, request) {
            Ok(opening) => Answered::Open(opening),
            Err(refused) => Answered::Refused(refused),
        }
    }

    fn amended(&self, head: Option<&Head<'_>>) -> Result<(Watch, Start), String> {
        let watch = self.watch.clone();
        let (mut watch, start) = match head {
            Some(head) => asked::amend(head, watch)?,
            None => (watch, None),
        };
        if let Some(view) = self.view {
            watch.manner = view.manner();
        }
        if let Some(name) = &self.name {
            watch.attendee = Attendee::of(&self.channels.0, &watch.channels, Some(name), None);
        }
        Ok((watch, start.unwrap_or(self.start)))
    }
}

impl View {
    const fn manner(self) -> Manner {
        match self {
            Self::Poll => Manner::Poll,
            Self::Events => Manner::Events,
            Self::Lines => Manner::Lines,
            Self::Parts => Manner::Parts,
        }
    }
}

/// Since 1970; 0 for what lies before.
pub(super) fn milliseconds(time: Time) -> u64 {
    u64::try_from(time.0.div_euclid(1000)).unwrap_or(0)
}

impl CustomContent for Held {
    /// Suspends the response until there are messages, for as long as the session lasts that the page has looked at. Fields
    /// of the session have no place in it: no cache keeps it, and it sets no cookie.
    fn respond(self: Box<Self>, top: Top, to: &mut Replying<'_, '_>) -> Finished {
        let login = to.visit.take().and_then(Visit::of_session).and_then(|visit| visit.login());
        let exchange = to.exchange();
        match self.answer(to.request(), login, exchange) {
            Answered::Hold(hold) => {
                for (name, _) in &top.fields {
                    log::error(format_args!("the field `{name}` was left out: the reply is held"));
                }
                to.follow = Some(Follow::Hold(hold));
                return Finished { close: false };
            }
            Answered::Open(opening) => return Box::new(opening).respond(top, to),
            Answered::Refused(refused) => {
                let (out, date) = to.output();
                refuse(out, exchange, date, &refused);
            }
            Answered::Denied(denied) => {
                let (out, date) = to.output();
                denied.write(out, exchange, date);
            }
            Answered::Bad(reason) => return to.write_error(Status::BAD_REQUEST, &reason),
        }
        Finished { close: !exchange.keep_alive }
    }
}

impl Respond for Held {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        CustomContent::respond(Box::new(self), Top::of(Status::OK), to)
    }
}

impl From<Held> for Response {
    fn from(held: Held) -> Self {
        Self::custom(Status::OK, held)
    }
}
