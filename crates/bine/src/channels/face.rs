//! Decides how channels are reached over HTTP: who may, at which addresses, and in which words.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::{Exchange, Framing, Method, Reply, Status};
use bine_log as log;
use bine_push::{Command, Cursor, Publish, Published, Receipt};
use bine_server::{Answer, Body, Clock, Finished, Follow, Incoming, Outgoing, Retained};

use super::access::{Action, Denied, Gate, Visitor};
use super::asked::{Following, Unclear, asks_for_websocket, follow};
use super::attendee::Attendee;
use super::batch::read_batch;
use super::durable::{self, Resource};
use super::engine::Error;
use super::origin;
use super::presence::Present;
use super::room::hold_for;
use super::text_reply::tell;
use super::watch::{ACCEPT_QUERY, Watch, refuse};
use super::{Applied, Channels};
use crate::app_state::AppState;
use crate::arguments::Arguments;
use crate::inert;
use crate::origin::is_foreign;

/// Channels as they are reached at `/channels`.
#[derive(Clone, Debug)]
pub(crate) struct Face {
    pub(crate) channels: Channels,
    pub(crate) gate: Arc<Gate>,
}

/// Where they are.
const PATH: &str = "/channels";
/// Of a batch.
const MOST_BODY: u64 = 16 << 20;
/// Of a QUERY: ten thousand names of the longest, some of their letters encoded.
const MOST_QUERY: u64 = 4 << 20;
/// Of whom the function has yet to know. Before it takes in more, it is asked, and what it says at once is heeded.
const MOST_UNKNOWN: u64 = 64 << 10;
/// What may be asked at [`PATH`].
const ALLOWED: &str = "Allow: GET, HEAD, QUERY, POST, OPTIONS\r\n";

impl Face {
    /// Answers a request that is about channels.
    pub(crate) fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Option<Answer> {
        if !self.gate.is_open() {
            return None;
        }
        let needs_no_name =
            matches!(request.head.method(), Method::Get | Method::Post | Method::Options);
        let name =
            path.strip_prefix(durable::ROOT).filter(|name| needs_no_name || !name.is_empty());
        if path != PATH && name.is_none() {
            return None;
        }
        let (exchange, date) = (request.exchange, clock.date());
        let (begin, origin) = (out.buffer.len(), self.gate.origin_of(&request.head));
        if let Some(origin) = &origin
            && let Some(answer) =
                origin::preflight(&request.head, origin, exchange, clock, out.buffer)
        {
            return Some(answer);
        }
        if !request.head.method().is_safe() && origin.is_none() && is_foreign(&request.head) {
            let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &date);
            tell(reply, "a page of another site may not write here");
            return Some(Answer::Written { close: false });
        }
        let visitor = self.gate.recognize(request);
        let answer = match self.serve(name, &visitor, request, clock, out) {
            Ok(answer) => answer,
            Err(_) if visitor.is_unasked() => self.ask(name, visitor, request, app, clock, out),
            Err(denied) => denied.answer(out.buffer, exchange, &date),
        };
        Some(match origin {
            Some(origin) => origin::told(answer, out, begin, origin),
            None => answer,
        })
    }

    /// Asks the program's function who this is, and answers when it has said so.
    fn ask(
        &self,
        name: Option<&str>,
        visitor: Visitor<'_>,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let is_coming = matches!(request.body, Body::Coming);
        let framing = request.head.framing();
        if is_coming && matches!(framing, Framing::Length(length) if length <= MOST_UNKNOWN) {
            // Whoever answers later cannot collect any more.
            return Answer::Collect { limit: MOST_UNKNOWN, on_disk: false };
        }
        let (exchange, date) = (request.exchange, clock.date());
        let asked = visitor.ask(&mut Arguments::of(app, request));
        // What it takes, no request can lack.
        let Some(Ok((question, mut answering))) = asked else {
            return failed(out, exchange, clock);
        };
        // Most answers are there at once; whose is not, waits in a task.
        if let Poll::Ready(said) = answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            let served = question.learn(said).and_then(|session| {
                self.serve(name, &visitor.answered(session), request, clock, out)
            });
            return served.unwrap_or_else(|denied| denied.answer(out.buffer, exchange, &date));
        }
        if is_coming {
            // It is asked again when all is here.
            let is_query = request.head.method() == Method::Query;
            let limit = if is_query { MOST_QUERY } else { MOST_BODY };
            return Answer::Collect { limit, on_disk: false };
        }
        let (face, request, clock) = (self.clone(), Retained::of(request), Rc::clone(clock));
        let name = name.map(str::to_owned);
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
                    let visitor = face.gate.recognize(&request);
                    let served = question.learn(said).and_then(|session| {
                        let visitor = visitor.answered(session);
                        face.serve(name.as_deref(), &visitor, &request, &clock, &mut out)
                    });
                    served.unwrap_or_else(|denied| denied.answer(out.buffer, exchange, &date))
                }
            };
            let follow = match answer {
                Answer::Written { close } => return Finished { bytes, follow: None, close },
                Answer::Later(later) | Answer::WhileOpen(later) => return later.await,
                Answer::Hold(hold) => Follow::Hold(hold),
                Answer::Upgrade(upgrade) => Follow::Upgrade(upgrade),
                Answer::File(part) => Follow::File(part),
                Answer::Stream(stream) => Follow::Stream(stream),
                // Its body is here, and nothing of channels runs where it may block.
                Answer::Collect { .. } | Answer::Work(_) => return Finished::default(),
            };
            Finished { bytes, follow: Some(follow), close: false }
        }))
    }

    /// Does what a visitor asks, if they may.
    fn serve(
        &self,
        name: Option<&str>,
        visitor: &Visitor<'_>,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let exchange = request.exchange;
        if let Some(name) = name {
            for (action, channel) in durable::wants(name, &request.head).iter().flatten() {
                visitor.check(*action, channel)?;
            }
            if name.is_empty() && request.head.method() == Method::Get {
                // Which channels a list has depends on all that may be permitted.
                visitor.check_all_known()?;
            }
            let resource = Resource { channels: &self.channels, name, visitor };
            return Ok(resource.respond(request, clock, out));
        }
        Ok(match request.head.method() {
            Method::Get | Method::Head => self.follow(&[], visitor, request, clock, out)?,
            Method::Query => match request.body {
                Body::Coming => {
                    visitor.check_some(Action::Follow)?;
                    Answer::Collect { limit: MOST_QUERY, on_disk: false }
                }
                Body::Here(content) => self.follow(content, visitor, request, clock, out)?,
                Body::None | Body::Filed(_) => self.follow(&[], visitor, request, clock, out)?,
            },
            Method::Options => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::NO_CONTENT, &clock.date());
                reply.static_lines(ALLOWED).static_lines(ACCEPT_QUERY);
                reply.empty();
                Answer::Written { close: false }
            }
            Method::Post => match request.body {
                Body::Coming => {
                    visitor.check_some(Action::Publish)?;
                    Answer::Collect { limit: MOST_BODY, on_disk: false }
                }
                Body::Here(bytes) => self.publish(bytes, visitor, exchange, clock, out)?,
                Body::None | Body::Filed(_) => {
                    visitor.check_some(Action::Publish)?;
                    bad(out, exchange, clock, "there is no body")
                }
            },
            _ => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::METHOD_NOT_ALLOWED, &clock.date());
                reply.static_lines(ALLOWED).static_lines(ACCEPT_QUERY);
                tell(reply, "channels are followed by GET or QUERY, and published in by POST");
                Answer::Written { close: false }
            }
        })
    }

    /// Whoever follows rests until there is something, or changes over to a WebSocket.
    fn follow(
        &self,
        content: &[u8],
        visitor: &Visitor<'_>,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let Following { mut watch, start, session, who } = match follow(&request.head, content) {
            Ok(asked) => asked,
            Err(Unclear(status, reason)) => {
                let mut reply = Reply::begin(out.buffer, request.exchange, status, &clock.date());
                reply.static_lines(ACCEPT_QUERY);
                tell(reply, &reason);
                return Ok(Answer::Written { close: false });
            }
        };
        for channel in &watch.channels {
            visitor.check(Action::Follow, channel)?;
        }
        if who {
            self.tell_present(&watch, request.exchange, clock, out);
            return Ok(Answer::Written { close: false });
        }
        let is_websocket = asks_for_websocket(&request.head);
        if is_websocket || self.channels.0.attendance.counts(&watch.channels) {
            visitor.check_all_known()?;
        }
        let pass = visitor.pass()?;
        let name = visitor.subject().or(session.as_deref());
        watch.origin = self.gate.origin_of(&request.head);
        watch.attendee = Attendee::of(&self.channels.0, &watch.channels, name, Some(visitor));
        if is_websocket {
            // It is counted as one who stays.
            drop(pass);
            let asked = Following { watch, start, session, who };
            return self.open(asked, visitor, request, clock, out);
        }
        Ok(Answer::Hold(hold_for(pass, watch, start, request.exchange)))
    }

    /// Who is present in channels; those who are named are no more than the limit, of all channels together.
    fn tell_present(
        &self,
        watch: &Watch,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) {
        let mut left = watch.limit;
        let each = watch.channels.iter().map(|channel| {
            let Present { count, sessions } =
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
                tell(reply, &reason);
            }
        }
    }

    /// Publishes a batch: one message, an array of them, or a line for each.
    fn publish(
        &self,
        bytes: &[u8],
        visitor: &Visitor<'_>,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        visitor.check_some(Action::Publish)?;
        let messages = match read_batch(bytes) {
            Ok(messages) => messages,
            Err(reason) => return Ok(bad(out, exchange, clock, &reason)),
        };
        visitor.check_batch(&messages)?;
        let order = Command::Publish(Publish { messages, ..Publish::default() });
        let ordered = self.channels.order_by(order, visitor);
        let channels = self.channels.clone();
        let date = clock.date();
        Ok(Answer::Later(Box::pin(async move {
            let mut bytes = Vec::new();
            match ordered.await {
                Ok(Applied::Published(published)) => {
                    let mut reply = Reply::begin(&mut bytes, exchange, Status::OK, &date);
                    reply.static_lines("Content-Type: application/json\r\n");
                    inert::put_fields(&mut reply);
                    reply.whole(&told(&channels, &published));
                }
                Ok(_) => {
                    Reply::begin(&mut bytes, exchange, Status::NO_CONTENT, &date).empty();
                }
                Err(Error::Refused(refused)) => refuse(&mut bytes, exchange, &date, &refused),
                Err(Error::NotKept(error)) => {
                    let error = crate::Error::from(error);
                    let reply = Reply::begin(&mut bytes, exchange, error.code(), &date);
                    tell(reply, error.message().unwrap_or_default());
                }
            }
            Finished { bytes, follow: None, close: false }
        })))
    }
}

/// What came of each message, as JSON.
pub(super) fn told(channels: &Channels, published: &Published) -> Vec<u8> {
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
    tell(Reply::begin(out.buffer, exchange, Status::BAD_REQUEST, &clock.date()), reason);
    Answer::Written { close: false }
}

/// The program's own function could not be asked.
fn failed(out: &mut Outgoing<'_>, exchange: Exchange, clock: &Clock) -> Answer {
    let status = Status::INTERNAL_SERVER_ERROR;
    let reply = Reply::begin(out.buffer, exchange, status, &clock.date());
    tell(reply, "who may do this could not be found out");
    Answer::Written { close: false }
}
