//! A client's subscription, and its responses in each delivery mode.

use std::fmt;
use std::sync::Arc;

use bine_http::{BodyFraming, Date, Exchange, Method, Reply, Status};
use bine_push::{
    BOUNDARY, Cursor, GapPolicy, MessageBatch, Refused, Rest, Start, Subscription, Until, View,
};

use super::access::Denied;
use super::delivery::{DeliveryMode, ReadPosition, Remaining};
use super::durable_view::{self, DurableView};
use super::origin;
use super::presence_guard::PresenceGuard;
use super::status::status_of;
use crate::inert;

/// Any value that must live as long as a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Attachment(pub(crate) Arc<dyn fmt::Debug + Send + Sync>);

impl PartialEq for Attachment {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Attachment {}

/// The channels of a subscription and its options. The read position is kept elsewhere, so that
/// equal subscriptions share one value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SubscriptionSpec {
    pub(crate) channels: Box<[Box<str>]>,
    pub(crate) manner: DeliveryMode,
    pub(crate) holes: GapPolicy,
    pub(crate) until: Until,
    /// Maximum messages in one batch.
    pub(crate) limit: usize,
    /// Milliseconds after which an empty poll is answered; 0: at once.
    pub(crate) wait: u64,
    /// The options of a Durable Streams resource, if the one channel is read as such.
    pub(crate) durable: Option<Box<DurableView>>,
    /// The presence of the client, where it is tracked.
    pub(crate) presence_guard: Option<Arc<PresenceGuard>>,
    /// The allowed origin of the requesting page, if it is cross-origin.
    pub(crate) origin: Option<Arc<str>>,
    /// The page regions that the subscription updates.
    pub(crate) regions: Regions,
    /// A value of the page that must live as long as the subscription.
    pub(crate) attached: Option<Attachment>,
}

/// The relation of a subscription to the regions of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Regions {
    /// The subscription has no regions.
    None,
    /// The channel carries region updates. A client that missed some reconnects and sends its
    /// current state.
    All,
    /// Like `All`, with these bytes sent before the messages of the other subscription.
    Behind(Box<[u8]>, Arc<SubscriptionSpec>),
}

/// The data of the event `reload` if the visitor may no longer see the page: the browser hides it
/// before it loads the page again.
pub(crate) const HIDE: &str = "hide";

/// Maximum bytes of message bodies in one batch.
const BATCH_BYTES: usize = 1 << 20;
/// Each request by GET is also possible by QUERY with a form (RFC 10008 section 3).
pub(crate) const ACCEPT_QUERY: &str = "Accept-Query: application/x-www-form-urlencoded\r\n";
/// Default batch size in messages, and default wait of a poll in milliseconds.
const LIMIT: usize = 100;
const WAIT: u64 = 25_000;
/// Keeps caches from storing a response and proxies from buffering it.
const LIVE: &str = "Cache-Control: no-store, no-transform\r\nX-Accel-Buffering: no\r\n";

impl SubscriptionSpec {
    /// Creates a subscription to these channels with default options.
    pub(crate) fn of(channels: Box<[Box<str>]>) -> Self {
        Self {
            channels,
            manner: DeliveryMode::Poll,
            holes: GapPolicy::Reject,
            until: Until::Open,
            limit: LIMIT,
            wait: WAIT,
            durable: None,
            presence_guard: None,
            origin: None,
            regions: Regions::None,
            attached: None,
        }
    }

    /// Converts it to the hub's type, from a position on.
    pub(crate) fn subscription<'w>(
        &self,
        names: &'w [&'w str],
        start: Start,
        holes: GapPolicy,
    ) -> Subscription<'w> {
        Subscription {
            channels: names,
            start,
            end: self.until,
            gaps: holes,
            limit: self.limit,
            bytes: BATCH_BYTES,
        }
    }

    /// Milliseconds until the requested range begins, if it begins in the future.
    pub(crate) fn ahead(start: Start, batch: &MessageBatch, now: u64) -> Option<u64> {
        match (start, &batch.rest) {
            (Start::Since(time), Rest::Wait(_)) => time.checked_sub(now).filter(|ahead| *ahead > 0),
            _ => None,
        }
    }

    /// Whether an `EventSource` would get no event, neither now nor later.
    pub(crate) fn ends_with_nothing(&self, batch: &MessageBatch) -> bool {
        self.manner == DeliveryMode::Events
            && matches!(batch.rest, Rest::Ended | Rest::Closed)
            && batch.messages.is_empty()
            && batch.lost.is_none()
    }

    /// The session name, if the server chose it.
    pub(crate) fn new_session(&self) -> Option<&str> {
        let presence_guard =
            self.presence_guard.as_ref().filter(|presence_guard| presence_guard.is_new)?;
        Some(&presence_guard.session)
    }

    fn put_session(&self, reply: &mut Reply<'_>) {
        if let Some(session) = self.new_session() {
            // The name consists of letters and digits.
            let _ = reply.field("Session", session);
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.channels.iter().map(|name| &**name).collect()
    }
}

impl SubscriptionSpec {
    /// Writes the response to a poll; `bytes` are its encoded messages.
    pub(crate) fn write_poll(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        bytes: &[u8],
        position: &ReadPosition,
    ) {
        let begin = out.len();
        if let Some(view) = &self.durable {
            view.answer(out, exchange, date, Some(bytes), position);
            return self.put_origin(out, begin);
        }
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        reply
            .static_lines("Content-Type: application/json\r\n")
            .static_lines(LIVE)
            .static_lines(ACCEPT_QUERY);
        inert::put_fields(&mut reply);
        put_cursor(&mut reply, "Cursor", position.next);
        self.put_session(&mut reply);
        if let Some(lost) = position.lost {
            put_cursor(&mut reply, "Cursor-Lost", lost);
        }
        put_end(&mut reply, position);
        reply.whole(bytes);
        self.put_origin(out, begin);
    }

    /// Writes the response to a poll without messages (RFC 6202 section 2.1).
    pub(crate) fn write_empty(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        position: &ReadPosition,
    ) {
        let begin = out.len();
        if let Some(view) = &self.durable {
            view.answer(out, exchange, date, None, position);
            return self.put_origin(out, begin);
        }
        let mut reply = Reply::begin(out, exchange, Status::NO_CONTENT, date);
        reply.static_lines(LIVE).static_lines(ACCEPT_QUERY);
        put_cursor(&mut reply, "Cursor", position.next);
        self.put_session(&mut reply);
        put_end(&mut reply, position);
        reply.empty();
        self.put_origin(out, begin);
    }

    /// Writes the head of a stream and the bytes before its first message. The bytes contain the
    /// cursor only if no messages follow at once: after a broken connection, a client that had
    /// received the cursor but not the messages would skip them.
    pub(crate) fn begin_stream(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        position: &ReadPosition,
        follows: bool,
    ) -> BodyFraming {
        let begin = out.len();
        if self.durable.is_some() {
            let framing = DurableView::begin(self.manner, out, exchange, date);
            self.put_origin(out, begin);
            return framing;
        }
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        match self.manner {
            DeliveryMode::Lines => reply.static_lines("Content-Type: application/x-ndjson\r\n"),
            DeliveryMode::Parts => {
                debug_assert_eq!(BOUNDARY, "bine-part");
                reply.static_lines("Content-Type: multipart/mixed; boundary=bine-part\r\n");
                // Some browsers display the last part as a document.
                reply.static_lines(inert::ATTACHMENT)
            }
            _ => reply.static_lines("Content-Type: text/event-stream\r\n"),
        };
        reply.static_lines(LIVE).static_lines(ACCEPT_QUERY);
        inert::put_fields(&mut reply);
        if let Some(lost) = position.lost {
            put_cursor(&mut reply, "Cursor-Lost", lost);
        }
        self.put_session(&mut reply);
        let framing = reply.stream();
        self.put_origin(out, begin);
        let mut first = Vec::new();
        if let Some(session) = self.new_session() {
            // A page's script cannot read the head of an event stream.
            match self.manner {
                DeliveryMode::Events => {
                    first.extend(format!("event: session\ndata: {session}\n\n").bytes());
                }
                DeliveryMode::Lines => {
                    first.extend(format!("{{\"session\":\"{session}\"}}\n").bytes());
                }
                _ => {}
            }
        }
        if let (DeliveryMode::Events, Some(lost)) = (self.manner, position.lost) {
            first.extend_from_slice(format!("event: lost\ndata: {lost}\n\n").as_bytes());
        }
        if self.regions != Regions::None && self.manner == DeliveryMode::Events {
            // Shows the client that no proxy buffers the stream.
            first.extend_from_slice(b":\n\n");
        }
        if !follows {
            self.append_keepalive(&mut first, position.next);
        }
        framing.append(out, &first);
        framing
    }

    /// Appends the notice that messages up to `lost` may be missing. Returns whether the format of
    /// the stream has one.
    pub(crate) fn append_gap(&self, out: &mut Vec<u8>, framing: BodyFraming, lost: Cursor) -> bool {
        let notice = match self.manner {
            DeliveryMode::Events => format!("event: lost\ndata: {lost}\n\n"),
            DeliveryMode::Lines => format!("{{\"lost\":\"{lost}\"}}\n"),
            // The protocol of Durable Streams and the parts of a body have no place for it.
            DeliveryMode::DataEvent
            | DeliveryMode::Base64Event
            | DeliveryMode::Parts
            | DeliveryMode::Poll
            | DeliveryMode::Bodies
            | DeliveryMode::Values => return false,
        };
        framing.append(out, notice.as_bytes());
        true
    }

    /// Appends encoded messages to a stream; `bytes` may be empty.
    pub(crate) fn append_messages(
        &self,
        out: &mut Vec<u8>,
        framing: BodyFraming,
        bytes: &[u8],
        position: &ReadPosition,
    ) {
        framing.append(out, bytes);
        if let Some(view) = &self.durable {
            let mut control = Vec::new();
            view.put_control(&mut control, position);
            framing.append(out, &control);
        }
    }

    /// Appends a keep-alive with the current cursor.
    pub(crate) fn append_keepalive(&self, out: &mut Vec<u8>, cursor: Cursor) {
        match self.manner {
            // Clients store the id even of an event without data.
            DeliveryMode::Events => out.extend_from_slice(format!("id: {cursor}\n\n").as_bytes()),
            DeliveryMode::Lines => {
                out.extend_from_slice(format!("{{\"cursor\":\"{cursor}\"}}\n").as_bytes());
            }
            // The event before this one already contained the offset.
            DeliveryMode::DataEvent | DeliveryMode::Base64Event => out.extend_from_slice(b":\n\n"),
            // Clients ignore bytes before the first part, and no field of a part fits.
            DeliveryMode::Parts
            | DeliveryMode::Poll
            | DeliveryMode::Bodies
            | DeliveryMode::Values => {}
        }
    }

    /// Ends a stream.
    pub(crate) fn end_stream(&self, out: &mut Vec<u8>, framing: BodyFraming) {
        if self.manner == DeliveryMode::Parts {
            framing.append(out, b"--bine-part--\r\n");
        }
        framing.end(out);
    }

    /// Ends a stream whose grant has ended. The rest of the page also depended on the grant, so
    /// the browser hides and reloads the page.
    pub(crate) fn end_denied(&self, out: &mut Vec<u8>, framing: BodyFraming) {
        if self.regions != Regions::None {
            framing.append(out, reload_event().as_bytes());
        }
        self.end_stream(out, framing);
    }

    /// Writes the response to a rejected subscription.
    pub(crate) fn write_rejection(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        refused: &Refused,
    ) {
        let begin = out.len();
        if self.durable.is_some() {
            durable_view::refuse(out, exchange, date, refused);
        } else {
            refuse(out, exchange, date, refused);
        }
        self.put_origin(out, begin);
    }

    /// Writes the response to a client without access, or over its quota.
    pub(crate) fn write_denied(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        denied: &Denied,
    ) {
        let begin = out.len();
        denied.write(out, exchange, date);
        self.put_origin(out, begin);
    }

    /// Writes the response to a client whose grant ended while it waited. That of a page hides and
    /// reloads the page, as by [`end_denied`](Self::end_denied).
    pub(crate) fn write_end_of_grant(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        denied: &Denied,
    ) {
        if self.regions == Regions::None {
            return self.write_denied(out, exchange, date, denied);
        }
        let (kind, body) = if self.manner.is_poll() {
            let body = format!("[{{\"event\":\"reload\",\"data\":\"{HIDE}\"}}]");
            ("Content-Type: application/json\r\n", body)
        } else {
            ("Content-Type: text/event-stream\r\n", reload_event())
        };
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        reply.static_lines(kind).static_lines(LIVE);
        reply.whole(body.as_bytes());
    }

    fn put_origin(&self, out: &mut Vec<u8>, begin: usize) {
        if let Some(origin) = &self.origin {
            origin::put_fields(out, begin, origin);
        }
    }
}

/// The event that makes a browser hide a page and load it again.
fn reload_event() -> String {
    format!("event: reload\ndata: {HIDE}\n\n")
}

/// Encodes the messages of a batch.
pub(crate) fn encoded(view: View, batch: &MessageBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    view.encode(batch.next.epoch, &batch.messages, &mut bytes);
    bytes
}

/// Writes the response to a rejected subscription or command.
pub(crate) fn refuse(out: &mut Vec<u8>, exchange: Exchange, date: &Date, refused: &Refused) {
    let mut reply = Reply::begin(out, exchange, status_of(refused), date);
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n").static_lines(LIVE);
    inert::put_fields(&mut reply);
    let good = match refused {
        Refused::TooOld { earliest } | Refused::ForeignEpoch { earliest } => Some(*earliest),
        Refused::Ahead { watermark } => Some(*watermark),
        _ => None,
    };
    if let Some(good) = good {
        put_cursor(&mut reply, "Cursor", good);
    }
    reply.whole(format!("{refused}\n").as_bytes());
}

/// Marks the end of closed channels, with the field that Durable Streams also uses.
fn put_end(reply: &mut Reply<'_>, position: &ReadPosition) {
    if position.remaining == Remaining::Closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

fn put_cursor(reply: &mut Reply<'_>, name: &str, cursor: Cursor) {
    let text = cursor.text();
    // A cursor consists of hexadecimal digits and one underscore.
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let _ = reply.field(name, text);
}

/// Whether the request is a HEAD.
pub(crate) fn is_head(exchange: Exchange) -> bool {
    exchange.method == Method::Head
}
