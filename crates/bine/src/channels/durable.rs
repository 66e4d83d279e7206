//! Decides how one channel is a resource of the Durable Streams protocol: created, written, read, followed and removed at
//! an address of its own.
//!
//! The protocol is that of <https://github.com/durable-streams/durable-streams>, which its comments cite by section. An
//! offset is a cursor; bytes are messages one behind the other; values of JSON are a message each. `Stream-Seq` counts for
//! the whole stream, whoever writes.

mod asked;
mod lease;
mod list;

use std::borrow::Cow;
use std::sync::Arc;

use bine_http::{Date, Exchange, Framing, Head, Method, Reply, Status};
use bine_push::{
    Applied, ChannelInfo, ChannelName, Command, Cursor, Durability, Expiry, Fork, GapPolicy,
    MessageBatch, Publish, Published, Refused, Rest, Retention, Settings, Start, Until,
    name_from_bits,
};
use bine_server::{Answer, Body, Clock, Finished, Incoming, Outgoing};

use super::access::{Action, Visitor};
use super::clock::now;
use super::durable_view::{FRESH, Live, put_next, put_place, put_safety, tell};
use super::engine::Error;
use super::media_type::essence;
use super::place::{Manner, Place};
use super::room::hold_for;
use super::status::status_of;
use super::watch::{Watch, encoded};
use super::{Channels, instant};
use crate::inert;
use asked::{Mode, Offset, Read, drafts, is_json};
use list::Refusal;

/// Where resources lie, each with its channel's name.
pub(crate) const ROOT: &str = "/channels/";

/// One channel, as somebody reaches it.
pub(crate) struct Resource<'r> {
    pub(crate) channels: &'r Channels,
    pub(crate) name: &'r str,
    pub(crate) visitor: &'r Visitor<'r>,
}

/// An answer that refuses, before it is written.
struct No(Status, String);

/// Of a body. A larger one comes in several.
const MOST_BODY: u64 = 16 << 20;
/// Messages at once.
const LIMIT: usize = 10_000;
/// Milliseconds that a poll waits, give or take a tenth: a reader may give up after 20 seconds.
const WAIT: u64 = 18_000;
/// Milliseconds that events are sent before the reader is to come again, so that caches can gather readers (section 10.2).
const EVENTS: u64 = 60_000;
/// What a channel holds whose maker says nothing.
const USUAL: &str = "application/octet-stream";
/// What may be asked here, and which fields a page of another site could send. Which site's pages may, this does not
/// say: [origins](super::origin) are told before it.
const OPTIONS: &str = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n\
    Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n\
    Access-Control-Allow-Headers: Content-Type, If-None-Match, Producer-Id, Producer-Epoch, \
    Producer-Seq, Stream-Closed, Stream-Durability, Stream-Expires-At, Stream-Fork-Offset, \
    Stream-Fork-Sub-Offset, Stream-Forked-From, Stream-Retention, Stream-Seq, Stream-TTL, \
    Stream-TTL-Of\r\n";

/// What may be asked where one is made without a name.
const ROOT_OPTIONS: &str = "Allow: GET, POST, OPTIONS\r\n\
    Access-Control-Allow-Methods: GET, POST\r\n\
    Access-Control-Allow-Headers: Content-Type, Stream-Closed, Stream-Durability, Stream-Expires-At, \
    Stream-Retention, Stream-TTL, Stream-TTL-Of\r\n";

/// What one must be permitted for a request to a resource: two things at most.
pub(crate) fn wants<'n>(name: &'n str, head: &Head<'_>) -> [Option<(Action, Cow<'n, str>)>; 2] {
    let of = |action| Some((action, Cow::Borrowed(name)));
    match head.method() {
        // A list has what may be managed, channel by channel.
        Method::Get if name.is_empty() => [None, None],
        Method::Get | Method::Head => [of(Action::Follow), None],
        Method::Put => {
            // What is said wrongly is refused as such.
            let source = asked::forked(head, ROOT).ok().flatten();
            let source = source.map(|fork| (Action::Follow, Cow::Owned(fork.from.to_string())));
            [of(Action::Manage), source]
        }
        // What it will be called is not known yet, only of what kind: one segment.
        Method::Post if name.is_empty() => {
            [Some((Action::Manage, Cow::Owned(name_from_bits(0)))), None]
        }
        Method::Post if asked::closes(head) => {
            let has_content = head.framing() != Framing::None;
            [of(Action::Manage), has_content.then_some(()).and(of(Action::Publish))]
        }
        Method::Post => [of(Action::Publish), None],
        Method::Patch | Method::Delete => [of(Action::Manage), None],
        _ => [None, None],
    }
}

impl Resource<'_> {
    /// Answers a request, which is permitted.
    pub(crate) fn respond(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let (exchange, head) = (request.exchange, &request.head);
        let answered = match head.method() {
            // Kept for what wakes workers (section 6), which is not served.
            _ if self.name == "__ds" || self.name.starts_with("__ds/") => {
                Err(No(Status::NOT_FOUND, "no subscriptions are kept here".to_owned()))
            }
            Method::Get if self.name.is_empty() => match self.list(request, clock) {
                Ok(answer) => Ok(answer),
                Err(Refusal::No(no)) => Err(no),
                Err(Refusal::Denied(denied)) => {
                    Ok(denied.answer(out.buffer, exchange, &clock.date()))
                }
            },
            Method::Get if inert::is_to_run(head) => {
                let reason = "a channel is not served as a script or style sheet: clients write it";
                Err(No(Status::FORBIDDEN, reason.to_owned()))
            }
            Method::Get => self.read(head, exchange, clock, out),
            Method::Head => self.describe().map(|description| {
                describe(out.buffer, exchange, &clock.date(), &description);
                Answer::Written { close: false }
            }),
            Method::Options => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::NO_CONTENT, &clock.date());
                reply.static_lines(if self.name.is_empty() { ROOT_OPTIONS } else { OPTIONS });
                put_safety(&mut reply, None);
                reply.empty();
                Ok(Answer::Written { close: false })
            }
            Method::Put | Method::Post if matches!(request.body, Body::Coming) => {
                return Answer::Collect { limit: MOST_BODY, on_disk: false };
            }
            Method::Put => self.create(request, clock, out),
            Method::Post if self.name.is_empty() => self.create_unnamed(request, clock, out),
            Method::Patch => self.renew(request, clock),
            Method::Post => self.append(request, clock, out),
            Method::Delete => self.remove(exchange, clock),
            _ => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::METHOD_NOT_ALLOWED, &clock.date());
                reply.static_lines("Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
                tell(reply, "a channel is read by GET and written by PUT, POST, PATCH and DELETE");
                Ok(Answer::Written { close: false })
            }
        };
        answered.unwrap_or_else(|No(status, reason)| {
            tell(Reply::begin(out.buffer, exchange, status, &clock.date()), &reason);
            Answer::Written { close: false }
        })
    }

    /// Section 5.1: makes the channel, or finds it as it would be made.
    fn create(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, No> {
        let (head, is_closed) = (&request.head, asked::closes(&request.head));
        let fork = asked::forked(head, ROOT)?;
        let source = fork.as_ref().map(|fork| self.source(&fork.from)).transpose()?;
        let inherited = source.as_ref().map(|source| &source.settings);
        let kind = match (head.field_text("Content-Type"), inherited) {
            (Some(kind), Some(inherited)) if essence(kind) != essence(kind_of(inherited)) => {
                return Err(No(Status::CONFLICT, "a fork has the type of its source".to_owned()));
            }
            (_, Some(inherited)) => kind_of(inherited),
            (Some(kind), None) if !essence(kind).is_empty() => kind.trim(),
            (_, None) => USUAL,
        };
        let (retention, durability) = (asked::retention(head)?, asked::durability(head)?);
        let expiry = asked::expiry(head, Expiry::AfterActivity)?;
        let expiry = expiry.or(inherited.map(|inherited| inherited.expiry)).unwrap_or_default();
        let settings = match self.describe() {
            Ok(there) => {
                let is_same = essence(kind_of(&there.settings)) == essence(kind)
                    && there.settings.expiry == expiry
                    && retention.is_none_or(|retention| there.settings.retention == retention)
                    && durability.is_none_or(|durability| there.settings.durability == durability)
                    && there.is_closed == is_closed;
                if !is_same {
                    let reason = "there is a stream here with another type, expiry, end, \
                        retention or durability";
                    return Err(No(Status::CONFLICT, reason.to_owned()));
                }
                there.settings
            }
            Err(No(Status::NOT_FOUND, _)) => Settings {
                content_type: Some(kind.into()),
                retention: retention.unwrap_or_default(),
                expiry,
                durability: durability.unwrap_or(Durability::Commit),
            },
            // It was removed, and forks of it are there.
            Err(No(Status::GONE, reason)) => return Err(No(Status::CONFLICT, reason)),
            Err(no) => return Err(no),
        };
        let name: Arc<str> = self.name.into();
        let first = drafts(&name, kind, body_of(request))?;
        let fork = match (fork, source) {
            (Some(fork), Some(source)) => Some(self.fork(&fork, &source)?),
            _ => None,
        };
        if let Err(denied) = self.visitor.spend(first.len().max(1)) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let location = location(request);
        let order =
            Command::Create { name: ChannelName::Given(name), settings, fork, first, is_closed };
        Ok(self.carry_out(order, request.exchange, clock, move |out, exchange, date, done| {
            let is_new = matches!(done.applied, Applied::Created { .. });
            let status = if is_new { Status::CREATED } else { Status::OK };
            let mut reply = Reply::begin(out, exchange, status, date);
            reply.static_lines(FRESH);
            put_safety(&mut reply, None);
            if is_new {
                // It came as a target, which holds nothing that a field must not.
                let _ = reply.field("Location", &location);
            }
            if let Some(there) = done.there {
                put_description(&mut reply, &there);
            }
            reply.empty();
        }))
    }

    /// Section 5.2: publishes, closes, or both.
    fn append(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, No> {
        let (head, body) = (&request.head, body_of(request));
        let there = self.describe()?;
        let closes = asked::closes(head);
        let producer = asked::producer(head)?;
        let kind = kind_of(&there.settings);
        if body.is_empty() && !closes {
            return Err("there is no body, and Stream-Closed: true is not said".into());
        } else if !body.is_empty() {
            let said = head.field_text("Content-Type").ok_or("Content-Type is missing")?;
            // What is closed is refused as such, whatever comes.
            if !there.is_closed && essence(said) != essence(kind) {
                let reason = format!("this stream takes {kind}, not {said}");
                return Err(No(Status::CONFLICT, reason));
            }
        }
        let name: Arc<str> = self.name.into();
        let messages = drafts(&name, kind, body)?;
        let has_messages = !messages.is_empty();
        if !has_messages && !body.is_empty() {
            return Err("an empty array is no message".into());
        }
        if let Err(denied) = self.visitor.spend(messages.len()) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let mark = head.field_text("Stream-Seq").map(Arc::from);
        let close = if closes { vec![name] } else { Vec::new() };
        let epoch = producer.as_ref().map(|producer| producer.epoch);
        let order = Command::Publish(Publish { messages, close, producer, mark });
        Ok(self.carry_out(order, request.exchange, clock, move |out, exchange, date, done| {
            let published = match done.applied {
                Applied::Published(published) => published,
                // Nothing else comes of a publication.
                _ => Published::default(),
            };
            let is_new = published.producer.is_some_and(|reached| !reached.is_duplicate);
            let status = if is_new && has_messages { Status::OK } else { Status::NO_CONTENT };
            let mut reply = Reply::begin(out, exchange, status, date);
            reply.static_lines(FRESH);
            put_safety(&mut reply, None);
            if let (Some(reached), Some(epoch)) = (published.producer, epoch) {
                put_number(&mut reply, "Producer-Epoch", epoch);
                put_number(&mut reply, "Producer-Seq", reached.sequence);
            }
            if let Some(there) = &done.there {
                let sequence = published.tail;
                put_next(&mut reply, Cursor { epoch: there.tail.epoch, sequence });
            }
            if closes || done.there.is_some_and(|there| there.is_closed) {
                reply.static_lines("Stream-Closed: true\r\n");
            }
            reply.empty();
        }))
    }

    /// Section 5.4.
    fn remove(&self, exchange: Exchange, clock: &Clock) -> Result<Answer, No> {
        self.describe()?;
        let order = Command::Remove(self.name.into());
        Ok(self.carry_out(order, exchange, clock, |out, exchange, date, _| {
            let mut reply = Reply::begin(out, exchange, Status::NO_CONTENT, date);
            reply.static_lines(FRESH);
            put_safety(&mut reply, None);
            reply.empty();
        }))
    }

    /// Sections 5.6 to 5.8: answers with what is there, or waits for what comes.
    fn read(
        &self,
        head: &Head<'_>,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, No> {
        let read = Read::of(head)?;
        let now = now();
        let looked = self.channels.0.hub(|hub| {
            hub.touch(self.name, now)?;
            let there = hub.describe(self.name, now)?;
            let start = match read.offset {
                Offset::Beginning => there.earliest,
                Offset::Now => there.tail,
                Offset::At(cursor) => cursor,
            };
            let watch = watch(self.name, &there, &read, now);
            let page = if read.mode == Mode::CatchUp {
                let names = watch.names();
                let subscription =
                    watch.subscription(&names, Start::After(start), GapPolicy::Reject);
                Some(hub.read(&subscription, now)?)
            } else {
                None
            };
            Ok::<_, Refused>((Looked { there, offset: read.offset, start }, watch, page))
        });
        let (looked, watch, page) = looked.ok_or_else(No::closed)??;
        let Some(page) = page else {
            let start = Start::After(looked.start);
            let watch = Watch { origin: self.visitor.origin_of(head), ..watch };
            return Ok(match self.visitor.pass() {
                Ok(pass) => Answer::Hold(hold_for(pass, watch, start, exchange)),
                Err(denied) => denied.answer(out.buffer, exchange, &clock.date()),
            });
        };
        let tag = looked.tag(&page);
        let is_known = read.offset != Offset::Now && knows(head, &tag);
        let status = if is_known { Status::NOT_MODIFIED } else { Status::OK };
        let mut reply = Reply::begin(out.buffer, exchange, status, &clock.date());
        looked.put(&mut reply, &tag, &page);
        if is_known {
            reply.empty();
        } else {
            // It was checked when the channel was made.
            let _ = reply.field("Content-Type", kind_of(&looked.there.settings));
            reply.whole(&encoded(watch.manner.view(), &page));
        }
        Ok(Answer::Written { close: false })
    }

    /// Where a fork begins, counted in the messages of its source.
    fn fork(&self, fork: &asked::Forked, source: &ChannelInfo) -> Result<Fork, No> {
        let until = match fork.offset {
            None | Some(Offset::Now) => None,
            Some(Offset::Beginning) => Some(source.earliest),
            Some(Offset::At(until)) => Some(until),
        };
        if until.is_some_and(|until| until.epoch != source.tail.epoch || until > source.tail) {
            return Err("Stream-Fork-Offset lies beyond the source".into());
        }
        let mut fork_of = Fork { channel: Arc::clone(&fork.from), until, bytes: 0 };
        if fork.beyond == 0 {
            return Ok(fork_of);
        }
        let is_json = is_json(kind_of(&source.settings));
        let overshoots = "Stream-Fork-Sub-Offset lies beyond the source";
        let limit = if is_json { fork.beyond } else { 1 };
        let limit = usize::try_from(limit).ok().filter(|limit| *limit <= source.messages);
        let limit = limit.ok_or(overshoots)?;
        let watch = Watch { limit, ..watch(&fork.from, source, &Read::PLAIN, 0) };
        let (names, start) = (watch.names(), Start::After(until.unwrap_or(source.tail)));
        let mut subscription = watch.subscription(&names, start, GapPolicy::Reject);
        subscription.bytes = usize::MAX;
        let page = self.channels.0.hub(|hub| hub.read(&subscription, now()));
        let page = page.ok_or_else(No::closed)??;
        let last = page.messages.get(limit - 1).ok_or(overshoots)?;
        if is_json {
            fork_of.until = Some(Cursor { epoch: page.next.epoch, sequence: last.sequence });
        } else if fork.beyond > last.body.len() as u64 {
            return Err(overshoots.into());
        } else {
            fork_of.bytes = fork.beyond;
        }
        Ok(fork_of)
    }

    fn describe(&self) -> Result<ChannelInfo, No> {
        Ok(self.channels.describe(self.name)?)
    }

    /// What a fork is made of: one that was removed cannot be forked any more.
    fn source(&self, name: &str) -> Result<ChannelInfo, No> {
        match self.channels.describe(name) {
            Err(Error::Refused(refused @ Refused::Gone(_))) => {
                Err(No(Status::CONFLICT, refused.to_string()))
            }
            described => Ok(described?),
        }
    }

    /// Has an order carried out, and what came of it written.
    fn carry_out(
        &self,
        order: Command,
        exchange: Exchange,
        clock: &Clock,
        write: impl FnOnce(&mut Vec<u8>, Exchange, &Date, Done) + 'static,
    ) -> Answer {
        let ordered = self.channels.order_by(order, self.visitor);
        let (channels, name, date) = (self.channels.clone(), self.name.to_owned(), clock.date());
        Answer::Later(Box::pin(async move {
            let (mut bytes, outcome) = (Vec::new(), ordered.await);
            let name = match &outcome {
                Ok(Applied::Created { name, .. }) => name,
                _ => &*name,
            };
            let there = channels.describe(name).ok();
            match outcome {
                Ok(applied) => write(&mut bytes, exchange, &date, Done { applied, there }),
                Err(error) => not_done(&mut bytes, exchange, &date, error, there),
            }
            Finished { bytes, follow: None, close: false }
        }))
    }
}

/// What came of an order.
struct Done {
    applied: Applied,
    /// The channel, if it is still there.
    there: Option<ChannelInfo>,
}

/// How a resource is followed.
fn watch(name: &str, there: &ChannelInfo, read: &Read, now: u64) -> Watch {
    let kind = kind_of(&there.settings);
    let (is_json, is_text) = (is_json(kind), essence(kind).starts_with("text/"));
    let shared = there.settings.content_type.clone().unwrap_or_else(|| USUAL.into());
    let is_stream = read.mode == Mode::Events;
    Watch {
        manner: match (is_stream, is_json) {
            (false, false) => Manner::Bodies,
            (false, true) => Manner::Values,
            (true, _) if is_json || is_text => Manner::DataEvent,
            (true, _) => Manner::Base64Event,
        },
        holes: GapPolicy::Reject,
        until: if is_stream { Until::Time(now + EVENTS) } else { Until::Open },
        limit: LIMIT,
        wait: WAIT,
        live: Some(Box::new(Live::new(shared, read.turn, now))),
        ..Watch::of(Box::new([name.into()]))
    }
}

/// What a read that does not wait has found.
struct Looked {
    there: ChannelInfo,
    offset: Offset,
    /// Where the offset is.
    start: Cursor,
}

impl Looked {
    /// What stands between two places stays as it is, unless nothing comes behind it any more (section 10.1).
    fn tag(&self, page: &MessageBatch) -> String {
        let end = if matches!(page.rest, Rest::Closed) { ":c" } else { "" };
        format!("\"{}:{}:{}{end}\"", self.there.number, self.start, page.next)
    }

    /// The fields that go with a page, whether it is sent or not.
    fn put(&self, reply: &mut Reply<'_>, tag: &str, page: &MessageBatch) {
        reply.static_lines(match (self.offset, &page.rest) {
            (Offset::Now, _) => FRESH,
            // More has come since, so this never changes. Whose it is, a cache cannot know.
            (_, Rest::More) => "Cache-Control: private, max-age=60, stale-while-revalidate=300\r\n",
            _ => "Cache-Control: private, no-cache\r\n",
        });
        // A cache must not show one visitor what was for another, nor one site what only another was told it may read.
        reply.static_lines("Vary: Origin, Authorization, Cookie\r\n");
        put_safety(reply, Some(kind_of(&self.there.settings)));
        if self.offset != Offset::Now {
            // Its letters are digits, colons and underscores.
            let _ = reply.field("ETag", tag);
        }
        put_place(reply, &Place::of(page));
    }
}

/// Whether the peer says that it has this already (RFC 9110 section 13.1.2).
fn knows(head: &Head<'_>, tag: &str) -> bool {
    let known = head.field_text("If-None-Match").unwrap_or_default();
    let mut known = known.split(',').map(str::trim);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Section 5.5.
fn describe(out: &mut Vec<u8>, exchange: Exchange, date: &Date, there: &ChannelInfo) {
    let mut reply = Reply::begin(out, exchange, Status::OK, date);
    reply.static_lines(FRESH);
    put_safety(&mut reply, None);
    put_description(&mut reply, there);
    reply.unknown_length();
}

fn put_description(reply: &mut Reply<'_>, there: &ChannelInfo) {
    // It was checked when the channel was made.
    let _ = reply.field("Content-Type", kind_of(&there.settings));
    if inert::is_active(kind_of(&there.settings)) {
        reply.static_lines(inert::ATTACHMENT);
    }
    put_state(reply, there);
}

/// What there is to know of a channel besides its type. What is as usual is not told.
fn put_state(reply: &mut Reply<'_>, there: &ChannelInfo) {
    put_next(reply, there.tail);
    match there.settings.expiry {
        Expiry::Never => {}
        Expiry::AfterPublish(after) => {
            put_number(reply, "Stream-TTL", after / 1000);
            reply.static_lines("Stream-TTL-Of: publishers\r\n");
        }
        Expiry::AfterActivity(after) => put_number(reply, "Stream-TTL", after / 1000),
        Expiry::At(time) => {
            let _ = reply.field("Stream-Expires-At", &instant::write(time));
        }
    }
    put_retention(reply, there.settings.retention);
    reply.static_lines(match there.settings.durability {
        Durability::Commit => "",
        Durability::Interval => "Stream-Durability: interval\r\n",
        Durability::Memory => "Stream-Durability: memory\r\n",
    });
    if there.is_closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

/// Says how much stays, as far as it is not as usual.
fn put_retention(reply: &mut Reply<'_>, retention: Retention) {
    if retention == Retention::UNLIMITED {
        reply.static_lines("Stream-Retention: unlimited\r\n");
        return;
    }
    let usual = Retention::default();
    let limits = [
        ("messages", retention.messages, usual.messages),
        ("bytes", retention.bytes, usual.bytes),
        ("age", retention.age / 1000, usual.age / 1000),
    ];
    let limits = limits.iter().filter(|(_, number, usual)| number != usual);
    let limits: Vec<_> = limits
        .map(|(name, number, _)| match number {
            0 => format!("{name}=unlimited"),
            number => format!("{name}={number}"),
        })
        .collect();
    if !limits.is_empty() {
        // Words and digits are no mistake in any field.
        let _ = reply.field("Stream-Retention", &limits.join(", "));
    }
}

/// Says why an order was not carried out, with what a producer needs to go on.
fn not_done(
    out: &mut Vec<u8>,
    exchange: Exchange,
    date: &Date,
    error: Error,
    there: Option<ChannelInfo>,
) {
    let refused = if let Error::Refused(refused) = &error { Some(refused.clone()) } else { None };
    let No(status, reason) = error.into();
    let mut reply = Reply::begin(out, exchange, status, date);
    match refused {
        Some(Refused::Closed { tail, .. }) => {
            reply.static_lines("Stream-Closed: true\r\n");
            if let Some(there) = there {
                put_next(&mut reply, Cursor { epoch: there.tail.epoch, sequence: tail });
            }
        }
        Some(Refused::StaleEpoch { current }) => {
            put_number(&mut reply, "Producer-Epoch", current);
        }
        Some(Refused::SequenceGap { expected, received }) => {
            put_number(&mut reply, "Producer-Expected-Seq", expected);
            put_number(&mut reply, "Producer-Received-Seq", received);
        }
        _ => {}
    }
    tell(reply, &reason);
}

fn put_number(reply: &mut Reply<'_>, name: &str, number: u64) {
    // Digits are no mistake in any field.
    let _ = reply.field(name, &number.to_string());
}

fn kind_of(settings: &Settings) -> &str {
    settings.content_type.as_deref().unwrap_or(USUAL)
}

fn body_of<'r>(request: &Incoming<'r>) -> &'r [u8] {
    match request.body {
        Body::Here(body) => body,
        Body::None | Body::Coming | Body::Filed(_) => &[],
    }
}

/// The resource's own address.
fn location(request: &Incoming<'_>) -> String {
    address(request, request.head.target().split('?').next().unwrap_or_default())
}

/// The address of a path at the host that was asked.
fn address(request: &Incoming<'_>, path: &str) -> String {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    match request.head.authority() {
        Some(authority) if path.starts_with('/') => format!("{scheme}://{authority}{path}"),
        // The target says all, or there is nothing more to say.
        _ => path.to_owned(),
    }
}

impl No {
    /// The channels are not there yet, or any more.
    fn closed() -> Self {
        Error::NotKept(bine_store::Error::Closed).into()
    }
}

impl From<Error> for No {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refused) => refused.into(),
            Error::NotKept(error) => {
                let error = crate::Error::from(error);
                Self(error.code(), error.message().unwrap_or_default().to_owned())
            }
        }
    }
}

impl From<Refused> for No {
    fn from(refused: Refused) -> Self {
        Self(status_of(&refused), refused.to_string())
    }
}

impl From<String> for No {
    fn from(reason: String) -> Self {
        Self(Status::BAD_REQUEST, reason)
    }
}

impl From<&str> for No {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}
