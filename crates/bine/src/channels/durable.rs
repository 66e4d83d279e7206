//! Channels as resources of the Durable Streams protocol: clients create, append to, read, follow
//! and remove a channel at its own URL.
//!
//! The protocol is that of <https://github.com/durable-streams/durable-streams>; comments cite its
//! sections. An offset is a cursor. A byte stream is the concatenation of its messages; a JSON
//! stream has one message for each value. `Stream-Seq` applies to the whole stream, across all
//! writers.

mod lease;
mod list;
mod request;

use std::borrow::Cow;
use std::sync::Arc;

use bine_http::{Date, Exchange, Framing, Head, Method, Reply, Status};
use bine_push::{
    Applied, ChannelInfo, ChannelName, Command, Cursor, Durability, Expiry, Fork, GapPolicy,
    MessageBatch, Publish, Published, Refused, Rest, Retention, Settings, Start, Until,
    name_from_bits,
};
use bine_server::{Answer, Body, Clock, Finished, Incoming, Outgoing};

use super::access::{ChannelAction, ChannelClient};
use super::clock::now;
use super::delivery::{DeliveryMode, ReadPosition};
use super::durable_view::{
    DurableView, FRESH, finish_with_reason, put_next, put_position, put_safety,
};
use super::engine::Error;
use super::media_type::essence;
use super::status::status_of;
use super::subscription::{SubscriptionSpec, encoded};
use super::suspended::hold_for;
use super::{Channels, timestamp};
use crate::inert;
use list::ListFailure;
use request::{Mode, Offset, ReadRequest, drafts, is_json};

/// The path of all resources; a channel's name follows it.
pub(crate) const ROOT: &str = "/channels/";

/// A client's request for one channel.
pub(crate) struct Resource<'r> {
    pub(crate) channels: &'r Channels,
    pub(crate) name: &'r str,
    pub(crate) client: &'r ChannelClient<'r>,
}

/// An error response that is not written yet.
struct Failure(Status, String);

/// Maximum bytes of a body. Clients split larger content.
const MAX_BODY: u64 = 16 << 20;
/// Maximum messages in one batch.
const LIMIT: usize = 10_000;
/// Milliseconds that a poll waits, with a jitter of a tenth: clients may time out after 20 seconds.
const WAIT: u64 = 18_000;
/// Milliseconds after which an event stream ends and the client reconnects, so that caches can
/// combine readers (section 10.2).
const STREAM_DURATION: u64 = 60_000;
/// The default media type of a channel.
const DEFAULT_TYPE: &str = "application/octet-stream";
/// Methods, and fields that pages of other sites could send. The [origins](mod@super::origin)
/// module decides which sites may.
const OPTIONS: &str = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n\
    Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n\
    Access-Control-Allow-Headers: Content-Type, If-None-Match, Producer-Id, Producer-Epoch, \
    Producer-Seq, Stream-Closed, Stream-Durability, Stream-Expires-At, Stream-Fork-Offset, \
    Stream-Fork-Sub-Offset, Stream-Forked-From, Stream-Retention, Stream-Seq, Stream-TTL, \
    Stream-TTL-Of\r\n";

/// The methods and fields of the collection, where clients create channels without a name.
const ROOT_OPTIONS: &str = "Allow: GET, POST, OPTIONS\r\n\
    Access-Control-Allow-Methods: GET, POST\r\n\
    Access-Control-Allow-Headers: Content-Type, Stream-Closed, Stream-Durability, Stream-Expires-At, \
    Stream-Retention, Stream-TTL, Stream-TTL-Of\r\n";

/// The permissions that a request needs: at most two.
pub(crate) fn required_permissions<'n>(
    name: &'n str,
    head: &Head<'_>,
) -> [Option<(ChannelAction, Cow<'n, str>)>; 2] {
    let of = |action| Some((action, Cow::Borrowed(name)));
    match head.method() {
        // The list itself checks each channel.
        Method::Get if name.is_empty() => [None, None],
        Method::Get | Method::Head => [of(ChannelAction::Follow), None],
        Method::Put => {
            // A malformed field is rejected later, with its own message.
            let source = request::forked(head, ROOT).ok().flatten();
            let source =
                source.map(|fork| (ChannelAction::Follow, Cow::Owned(fork.from.to_string())));
            [of(ChannelAction::Manage), source]
        }
        // The name is not chosen yet; the check uses a name of the same form, one segment.
        Method::Post if name.is_empty() => {
            [Some((ChannelAction::Manage, Cow::Owned(name_from_bits(0)))), None]
        }
        Method::Post if request::closes(head) => {
            let has_content = head.framing() != Framing::None;
            [of(ChannelAction::Manage), has_content.then_some(()).and(of(ChannelAction::Publish))]
        }
        Method::Post => [of(ChannelAction::Publish), None],
        Method::Patch | Method::Delete => [of(ChannelAction::Manage), None],
        _ => [None, None],
    }
}

impl Resource<'_> {
    /// Responds to a request whose permissions were checked.
    pub(crate) fn respond(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let (exchange, head) = (request.exchange, &request.head);
        let answered = match head.method() {
            // Reserved for waking workers (section 6), which the server does not implement.
            _ if self.name == "__ds" || self.name.starts_with("__ds/") => {
                Err(Failure(Status::NOT_FOUND, "no subscriptions are kept here".to_owned()))
            }
            Method::Get if self.name.is_empty() => match self.list(request, clock) {
                Ok(answer) => Ok(answer),
                Err(ListFailure::Failure(no)) => Err(no),
                Err(ListFailure::Denied(denied)) => {
                    Ok(denied.answer(out.buffer, exchange, &clock.date()))
                }
            },
            Method::Get if inert::is_to_run(head) => {
                let reason = "a channel is not served as a script or style sheet: clients write it";
                Err(Failure(Status::FORBIDDEN, reason.to_owned()))
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
            Method::Put | Method::Post if matches!(request.body, Body::Pending) => {
                return Answer::Collect { limit: MAX_BODY, on_disk: false };
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
                finish_with_reason(
                    reply,
                    "a channel is read by GET and written by PUT, POST, PATCH and DELETE",
                );
                Ok(Answer::Written { close: false })
            }
        };
        answered.unwrap_or_else(|Failure(status, reason)| {
            finish_with_reason(Reply::begin(out.buffer, exchange, status, &clock.date()), &reason);
            Answer::Written { close: false }
        })
    }

    /// Creates the channel, or confirms that it exists with the same settings (section 5.1).
    fn create(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Failure> {
        let (head, is_closed) = (&request.head, request::closes(&request.head));
        let fork = request::forked(head, ROOT)?;
        let source = fork.as_ref().map(|fork| self.source(&fork.from)).transpose()?;
        let inherited = source.as_ref().map(|source| &source.settings);
        let kind = match (head.field_text("Content-Type"), inherited) {
            (Some(kind), Some(inherited)) if essence(kind) != essence(kind_of(inherited)) => {
                return Err(Failure(
                    Status::CONFLICT,
                    "a fork has the type of its source".to_owned(),
                ));
            }
            (_, Some(inherited)) => kind_of(inherited),
            (Some(kind), None) if !essence(kind).is_empty() => kind.trim(),
            (_, None) => DEFAULT_TYPE,
        };
        let (retention, durability) = (request::retention(head)?, request::durability(head)?);
        let expiry = request::expiry(head, Expiry::AfterActivity)?;
        let expiry = expiry.or(inherited.map(|inherited| inherited.expiry)).unwrap_or_default();
        let settings = match self.describe() {
            Ok(info) => {
                let is_same = essence(kind_of(&info.settings)) == essence(kind)
                    && info.settings.expiry == expiry
                    && retention.is_none_or(|retention| info.settings.retention == retention)
                    && durability.is_none_or(|durability| info.settings.durability == durability)
                    && info.is_closed == is_closed;
                if !is_same {
                    let reason = "there is a stream here with another type, expiry, end, \
                        retention or durability";
                    return Err(Failure(Status::CONFLICT, reason.to_owned()));
                }
                info.settings
            }
            Err(Failure(Status::NOT_FOUND, _)) => Settings {
                content_type: Some(kind.into()),
                retention: retention.unwrap_or_default(),
                expiry,
                durability: durability.unwrap_or(Durability::Commit),
            },
            // The channel was removed but still has forks.
            Err(Failure(Status::GONE, reason)) => return Err(Failure(Status::CONFLICT, reason)),
            Err(no) => return Err(no),
        };
        let name: Arc<str> = self.name.into();
        let first = drafts(&name, kind, body_of(request))?;
        let fork = match (fork, source) {
            (Some(fork), Some(source)) => Some(self.fork(&fork, &source)?),
            _ => None,
        };
        if let Err(denied) = self.client.charge_messages(first.len().max(1)) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let location = location(request);
        let command =
            Command::Create { name: ChannelName::Given(name), settings, fork, first, is_closed };
        Ok(self.execute(command, request.exchange, clock, move |out, exchange, date, done| {
            let is_new = matches!(done.applied, Applied::Created { .. });
            let status = if is_new { Status::CREATED } else { Status::OK };
            let mut reply = Reply::begin(out, exchange, status, date);
            reply.static_lines(FRESH);
            put_safety(&mut reply, None);
            if is_new {
                // The request's target is valid in a field.
                let _ = reply.field("Location", &location);
            }
            if let Some(info) = done.info {
                put_description(&mut reply, &info);
            }
            reply.empty();
        }))
    }

    /// Publishes, closes, or both (section 5.2).
    fn append(
        &self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Failure> {
        let (head, body) = (&request.head, body_of(request));
        let info = self.describe()?;
        let closes = request::closes(head);
        let producer = request::producer(head)?;
        let kind = kind_of(&info.settings);
        if body.is_empty() && !closes {
            return Err("there is no body, and Stream-Closed: true is not said".into());
        } else if !body.is_empty() {
            let said = head.field_text("Content-Type").ok_or("Content-Type is missing")?;
            // A closed stream is rejected as such, whatever the type.
            if !info.is_closed && essence(said) != essence(kind) {
                let reason = format!("this stream takes {kind}, not {said}");
                return Err(Failure(Status::CONFLICT, reason));
            }
        }
        let name: Arc<str> = self.name.into();
        let messages = drafts(&name, kind, body)?;
        let has_messages = !messages.is_empty();
        if !has_messages && !body.is_empty() {
            return Err("an empty array is no message".into());
        }
        if let Err(denied) = self.client.charge_messages(messages.len()) {
            return Ok(denied.answer(out.buffer, request.exchange, &clock.date()));
        }
        let mark = head.field_text("Stream-Seq").map(Arc::from);
        let close = if closes { vec![name] } else { Vec::new() };
        let epoch = producer.as_ref().map(|producer| producer.epoch);
        let command = Command::Publish(Publish { messages, close, producer, mark });
        Ok(self.execute(command, request.exchange, clock, move |out, exchange, date, done| {
            let published = match done.applied {
                Applied::Published(published) => published,
                // A publication has no other result.
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
            if let Some(info) = &done.info {
                let sequence = published.tail;
                put_next(&mut reply, Cursor { epoch: info.tail.epoch, sequence });
            }
            if closes || done.info.is_some_and(|info| info.is_closed) {
                reply.static_lines("Stream-Closed: true\r\n");
            }
            reply.empty();
        }))
    }

    /// Removes the channel (section 5.4).
    fn remove(&self, exchange: Exchange, clock: &Clock) -> Result<Answer, Failure> {
        self.describe()?;
        let command = Command::Remove(self.name.into());
        Ok(self.execute(command, exchange, clock, |out, exchange, date, _| {
            let mut reply = Reply::begin(out, exchange, Status::NO_CONTENT, date);
            reply.static_lines(FRESH);
            put_safety(&mut reply, None);
            reply.empty();
        }))
    }

    /// Responds with the existing messages, or waits for new ones (sections 5.6 to 5.8).
    fn read(
        &self,
        head: &Head<'_>,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Failure> {
        let read = ReadRequest::of(head)?;
        let now = now();
        let outcome = self.channels.0.hub(|hub| {
            hub.touch(self.name, now)?;
            let renews = self.channels.0.is_shared() && hub.should_renew(self.name, now);
            let info = hub.describe(self.name, now)?;
            let start = match read.offset {
                Offset::Beginning => info.earliest,
                Offset::Now => info.tail,
                Offset::At(cursor) => cursor,
            };
            let spec = spec(self.name, &info, &read, now);
            let batch = if read.mode == Mode::CatchUp {
                let names = spec.names();
                let subscription =
                    spec.subscription(&names, Start::After(start), GapPolicy::Reject);
                Some(self.channels.0.read(hub, &subscription).0?)
            } else {
                None
            };
            let outcome = ReadOutcome { info, offset: read.offset, start };
            Ok::<_, Refused>((outcome, renews, (spec, batch)))
        });
        let (outcome, renews, (spec, batch)) = outcome.ok_or_else(Failure::closed)??;
        if renews {
            // The other nodes let the channel expire unless they learn of the read. If the command
            // fails, a later read repeats it.
            drop(self.channels.0.execute(Command::Renew(self.name.into())));
        }
        let Some(batch) = batch else {
            let start = Start::After(outcome.start);
            let spec = SubscriptionSpec { origin: self.client.origin_of(head), ..spec };
            return Ok(match self.client.reserve_hold() {
                Ok(permit) => Answer::Suspend(hold_for(permit, spec, start, exchange)),
                Err(denied) => denied.answer(out.buffer, exchange, &clock.date()),
            });
        };
        let tag = outcome.tag(&batch);
        let is_known = read.offset != Offset::Now && knows(head, &tag);
        let status = if is_known { Status::NOT_MODIFIED } else { Status::OK };
        let mut reply = Reply::begin(out.buffer, exchange, status, &clock.date());
        outcome.put(&mut reply, &tag, &batch);
        if is_known {
            reply.empty();
        } else {
            // The hub validated the type when the channel was created.
            let _ = reply.field("Content-Type", kind_of(&outcome.info.settings));
            reply.whole(&encoded(spec.manner.view(), &batch));
        }
        Ok(Answer::Written { close: false })
    }

    /// Converts a fork point to messages of the source.
    fn fork(&self, fork: &request::ForkSource, source: &ChannelInfo) -> Result<Fork, Failure> {
        let until = match fork.offset {
            None | Some(Offset::Now) => None,
            Some(Offset::Beginning) => Some(source.earliest),
            Some(Offset::At(until)) => Some(until),
        };
        if until.is_some_and(|until| until.epoch != source.tail.epoch || until > source.tail) {
            return Err("Stream-Fork-Offset lies beyond the source".into());
        }
        let mut fork_of = Fork { channel: Arc::clone(&fork.from), until, bytes: 0 };
        if fork.sub_offset == 0 {
            return Ok(fork_of);
        }
        let is_json = is_json(kind_of(&source.settings));
        let overshoots = "Stream-Fork-Sub-Offset lies beyond the source";
        let limit = if is_json { fork.sub_offset } else { 1 };
        let limit = usize::try_from(limit).ok().filter(|limit| *limit <= source.messages);
        let limit = limit.ok_or(overshoots)?;
        let spec = SubscriptionSpec { limit, ..spec(&fork.from, source, &ReadRequest::PLAIN, 0) };
        let (names, start) = (spec.names(), Start::After(until.unwrap_or(source.tail)));
        let mut subscription = spec.subscription(&names, start, GapPolicy::Reject);
        subscription.bytes = usize::MAX;
        let batch = self.channels.0.hub(|hub| hub.read(&subscription, now()));
        let batch = batch.ok_or_else(Failure::closed)??;
        let last = batch.messages.get(limit - 1).ok_or(overshoots)?;
        if is_json {
            fork_of.until = Some(Cursor { epoch: batch.next.epoch, sequence: last.sequence });
        } else if fork.sub_offset > last.body.len() as u64 {
            return Err(overshoots.into());
        } else {
            fork_of.bytes = fork.sub_offset;
        }
        Ok(fork_of)
    }

    fn describe(&self) -> Result<ChannelInfo, Failure> {
        Ok(self.channels.describe(self.name)?)
    }

    /// Describes the source of a fork. A removed channel cannot be forked.
    fn source(&self, name: &str) -> Result<ChannelInfo, Failure> {
        match self.channels.describe(name) {
            Err(Error::Refused(refused @ Refused::Gone(_))) => {
                Err(Failure(Status::CONFLICT, refused.to_string()))
            }
            described => Ok(described?),
        }
    }

    /// Executes a command, and writes its result with `write`.
    fn execute(
        &self,
        command: Command,
        exchange: Exchange,
        clock: &Clock,
        write: impl FnOnce(&mut Vec<u8>, Exchange, &Date, CommandOutcome) + 'static,
    ) -> Answer {
        let ordered = self.channels.execute_for(command, self.client);
        let (channels, name, date) = (self.channels.clone(), self.name.to_owned(), clock.date());
        Answer::Later(Box::pin(async move {
            let (mut bytes, outcome) = (Vec::new(), ordered.await);
            let name = match &outcome {
                Ok(Applied::Created { name, .. }) => name,
                _ => &*name,
            };
            let info = channels.describe(name).ok();
            match outcome {
                Ok(applied) => write(&mut bytes, exchange, &date, CommandOutcome { applied, info }),
                Err(error) => write_failure(&mut bytes, exchange, &date, error, info),
            }
            Finished { bytes, follow: None, close: false }
        }))
    }
}

/// The result of a command.
struct CommandOutcome {
    applied: Applied,
    /// The channel after the command, if it still exists.
    info: Option<ChannelInfo>,
}

/// The subscription of a read.
fn spec(name: &str, info: &ChannelInfo, read: &ReadRequest, now: u64) -> SubscriptionSpec {
    let kind = kind_of(&info.settings);
    let (is_json, is_text) = (is_json(kind), essence(kind).starts_with("text/"));
    let shared = info.settings.content_type.clone().unwrap_or_else(|| DEFAULT_TYPE.into());
    let is_stream = read.mode == Mode::Events;
    SubscriptionSpec {
        manner: match (is_stream, is_json) {
            (false, false) => DeliveryMode::Bodies,
            (false, true) => DeliveryMode::Values,
            (true, _) if is_json || is_text => DeliveryMode::DataEvent,
            (true, _) => DeliveryMode::Base64Event,
        },
        holes: GapPolicy::Reject,
        until: if is_stream { Until::Time(now + STREAM_DURATION) } else { Until::Open },
        limit: LIMIT,
        wait: WAIT,
        durable: Some(Box::new(DurableView::new(shared, read.stream_cursor, now))),
        ..SubscriptionSpec::of(Box::new([name.into()]))
    }
}

/// The result of a read that does not wait.
struct ReadOutcome {
    info: ChannelInfo,
    offset: Offset,
    /// The cursor of the offset.
    start: Cursor,
}

impl ReadOutcome {
    /// The entity tag: messages between two cursors never change, only the end of the channel may
    /// (section 10.1).
    fn tag(&self, batch: &MessageBatch) -> String {
        let end = if matches!(batch.rest, Rest::Closed) { ":c" } else { "" };
        format!("\"{}:{}:{}{end}\"", self.info.number, self.start, batch.next)
    }

    /// Writes the fields of a response with messages or without (304).
    fn put(&self, reply: &mut Reply<'_>, tag: &str, batch: &MessageBatch) {
        reply.static_lines(match (self.offset, &batch.rest) {
            (Offset::Now, _) => FRESH,
            // Later messages exist, so this batch never changes. Shared caches cannot check access.
            (_, Rest::More) => "Cache-Control: private, max-age=60, stale-while-revalidate=300\r\n",
            _ => "Cache-Control: private, no-cache\r\n",
        });
        // A cache must not mix the responses for different clients or different origins.
        reply.static_lines("Vary: Origin, Authorization, Cookie\r\n");
        put_safety(reply, Some(kind_of(&self.info.settings)));
        if self.offset != Offset::Now {
            // The tag consists of digits, colons and underscores.
            let _ = reply.field("ETag", tag);
        }
        put_position(reply, &ReadPosition::of(batch));
    }
}

/// Whether the client already has this content (RFC 9110 section 13.1.2).
fn knows(head: &Head<'_>, tag: &str) -> bool {
    let known = head.field_text("If-None-Match").unwrap_or_default();
    let mut known = known.split(',').map(str::trim);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Writes the response to a HEAD request (section 5.5).
fn describe(out: &mut Vec<u8>, exchange: Exchange, date: &Date, info: &ChannelInfo) {
    let mut reply = Reply::begin(out, exchange, Status::OK, date);
    reply.static_lines(FRESH);
    put_safety(&mut reply, None);
    put_description(&mut reply, info);
    reply.unknown_length();
}

fn put_description(reply: &mut Reply<'_>, info: &ChannelInfo) {
    // The hub validated the type when the channel was created.
    let _ = reply.field("Content-Type", kind_of(&info.settings));
    if inert::is_active(kind_of(&info.settings)) {
        reply.static_lines(inert::ATTACHMENT);
    }
    put_state(reply, info);
}

/// Writes the properties of a channel except its type. Default values are omitted.
fn put_state(reply: &mut Reply<'_>, info: &ChannelInfo) {
    put_next(reply, info.tail);
    match info.settings.expiry {
        Expiry::Never => {}
        Expiry::AfterPublish(after) => {
            put_number(reply, "Stream-TTL", after / 1000);
            reply.static_lines("Stream-TTL-Of: publishers\r\n");
        }
        Expiry::AfterActivity(after) => put_number(reply, "Stream-TTL", after / 1000),
        Expiry::At(time) => {
            let _ = reply.field("Stream-Expires-At", &timestamp::write(time));
        }
    }
    put_retention(reply, info.settings.retention);
    reply.static_lines(match info.settings.durability {
        Durability::Commit => "",
        Durability::Interval => "Stream-Durability: interval\r\n",
        Durability::Memory => "Stream-Durability: memory\r\n",
    });
    if info.is_closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

/// Writes the retention unless it is the default.
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
        // Words and digits are valid in a field.
        let _ = reply.field("Stream-Retention", &limits.join(", "));
    }
}

/// Writes the response to a failed command, with the fields that a producer needs to continue.
fn write_failure(
    out: &mut Vec<u8>,
    exchange: Exchange,
    date: &Date,
    error: Error,
    info: Option<ChannelInfo>,
) {
    let refused = if let Error::Refused(refused) = &error { Some(refused.clone()) } else { None };
    let Failure(status, reason) = error.into();
    let mut reply = Reply::begin(out, exchange, status, date);
    match refused {
        Some(Refused::Closed { tail, .. }) => {
            reply.static_lines("Stream-Closed: true\r\n");
            if let Some(info) = info {
                put_next(&mut reply, Cursor { epoch: info.tail.epoch, sequence: tail });
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
    finish_with_reason(reply, &reason);
}

fn put_number(reply: &mut Reply<'_>, name: &str, number: u64) {
    // Digits are valid in a field.
    let _ = reply.field(name, &number.to_string());
}

fn kind_of(settings: &Settings) -> &str {
    settings.content_type.as_deref().unwrap_or(DEFAULT_TYPE)
}

fn body_of<'r>(request: &Incoming<'r>) -> &'r [u8] {
    match request.body {
        Body::InMemory(body) => body,
        Body::None | Body::Pending | Body::OnDisk(_) => &[],
    }
}

/// Returns the URL of the resource.
fn location(request: &Incoming<'_>) -> String {
    address(request, request.head.target().split('?').next().unwrap_or_default())
}

/// Returns the URL of a path on the requested host.
fn address(request: &Incoming<'_>, path: &str) -> String {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    match request.head.authority() {
        Some(authority) if path.starts_with('/') => format!("{scheme}://{authority}{path}"),
        // The target is a complete URL already, or the host is unknown.
        _ => path.to_owned(),
    }
}

impl Failure {
    /// The channels have not started, or have ended.
    fn closed() -> Self {
        Error::Storage(bine_store::Error::Closed).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refused) => refused.into(),
            Error::Storage(error) => {
                let error = crate::Error::from(error);
                Self(error.code(), error.message().unwrap_or_default().to_owned())
            }
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self(status_of(&refused), refused.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self(Status::BAD_REQUEST, reason)
    }
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}
