//! Decides how channels are reached over HTTP: who may, at which addresses, and in which words.

use std::fmt;
use std::str::FromStr;

use bine_http::{Exchange, Head, Method, Reply, Status, query, websocket};
use bine_pipeline::{Answer, Body, Clock, Finished, Incoming, Outgoing};
use bine_push::{Content, Cursor, Draft, Holes, Order, Publish, Published, Start, Taken, Until};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::batch::{Batch, MOST};
use super::durable::{self, Resource};
use super::engine::{Error, now};
use super::room::hold;
use super::watch::{Manner, Watch, refuse};
use super::{Applied, Channels};

/// Who may do what with channels over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Nobody: they are for the program's own pages.
    #[default]
    None,
    /// Everybody may follow; the program alone publishes.
    Follow,
    /// Everybody may follow and publish. For development, or behind a filter of the program's own.
    Everything,
}

/// Channels as they are reached at `/channels`.
#[derive(Clone, Debug)]
pub(crate) struct Face {
    pub(crate) channels: Channels,
    pub(crate) access: Access,
}

/// Where they are.
const PATH: &str = "/channels";
/// Of a batch.
const MOST_BODY: u64 = 16 << 20;
/// Messages at once, if nothing is said.
const LIMIT: usize = 100;
/// Seconds that a poll waits, if nothing is said, and at most (RFC 6202 section 5.5: proxies give up early).
const WAIT: u64 = 25;
const LONGEST_WAIT: u64 = 55;

impl Face {
    /// Answers a request that is about channels.
    pub(crate) fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Option<Answer> {
        if self.access == Access::None {
            return None;
        }
        let exchange = request.exchange;
        let name = path.strip_prefix(durable::ROOT).filter(|name| !name.is_empty());
        if path != PATH && name.is_none() {
            return None;
        }
        if !request.head.method().is_safe() && is_foreign(&request.head) {
            let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &clock.date());
            tell(reply, "a page of another site may not write here");
            return Some(Answer::Written { close: false });
        }
        if let Some(name) = name {
            return Some(self.resource(name).respond(request, clock, out));
        }
        Some(match request.head.method() {
            Method::Get | Method::Head => match follow(&request.head) {
                Ok((watch, start)) if asks_for_websocket(&request.head) => {
                    self.open(watch, start, request, clock, out)
                }
                Ok((watch, start)) => Answer::Hold(hold(watch, start, exchange)),
                Err(reason) => bad(out, exchange, clock, &reason),
            },
            Method::Post if self.access == Access::Everything => match request.body {
                Body::Coming => Answer::Collect { limit: MOST_BODY, on_disk: false },
                Body::Here(bytes) => self.publish(bytes, exchange, clock, out),
                Body::None | Body::Filed(_) => bad(out, exchange, clock, "there is no body"),
            },
            Method::Post => {
                let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &clock.date());
                tell(reply, "publishing is not open to everybody here");
                Answer::Written { close: false }
            }
            _ => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::METHOD_NOT_ALLOWED, &clock.date());
                reply.constant("Allow: GET, HEAD, POST\r\n");
                tell(reply, "channels are followed by GET and published in by POST");
                Answer::Written { close: false }
            }
        })
    }

    /// One channel.
    fn resource<'f>(&'f self, name: &'f str) -> Resource<'f> {
        let may_write = self.access == Access::Everything;
        Resource { channels: &self.channels, name, may_write }
    }

    /// Publishes a batch: one message, an array of them, or a line for each.
    fn publish(
        &self,
        bytes: &[u8],
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let messages = match read_batch(bytes) {
            Ok(messages) => messages,
            Err(reason) => return bad(out, exchange, clock, &reason),
        };
        let ordered =
            self.channels.order(Order::Publish(Publish { messages, ..Publish::default() }));
        let channels = self.channels.clone();
        let date = clock.date();
        Answer::Later(Box::pin(async move {
            let mut bytes = Vec::new();
            match ordered.await {
                Ok(Applied::Published(published)) => {
                    let mut reply = Reply::begin(&mut bytes, exchange, Status::OK, &date);
                    reply.constant("Content-Type: application/json\r\n");
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
        }))
    }
}

/// Whether a browser says that a page of another site asks (Fetch Metadata section 2.1), or names it (RFC 6454).
fn is_foreign(head: &Head<'_>) -> bool {
    if let Some(site) = head.field_text("Sec-Fetch-Site") {
        return !matches!(site, "same-origin" | "none");
    }
    head.field_text("Origin").is_some_and(|origin| {
        // `null` is nobody's own.
        origin.split_once("://").is_none_or(|(_, host)| Some(host) != head.authority())
    })
}

/// What came of each message, as JSON.
pub(super) fn told(channels: &Channels, published: &Published) -> Vec<u8> {
    let epoch = channels.0.hub(|hub| hub.watermark().epoch).unwrap_or_default();
    let each = published.messages.iter().map(|taken| {
        let (sequence, is_new) = match taken {
            Taken::New(sequence) => (*sequence, true),
            Taken::Repeated(sequence) => (*sequence, false),
        };
        let cursor = Cursor { epoch, sequence };
        format!("{{\"cursor\":\"{cursor}\",\"repeated\":{}}}", !is_new)
    });
    format!("[{}]\n", each.collect::<Vec<_>>().join(",")).into_bytes()
}

/// A message of a batch, member by member.
#[derive(Default)]
struct Item {
    channels: Option<Box<RawValue>>,
    content_type: Option<Box<RawValue>>,
    event: Option<Box<RawValue>>,
    id: Option<Box<RawValue>>,
    data: Option<Box<RawValue>>,
    /// The first member that it should not have.
    unknown: Option<String>,
}

pub(super) fn read_batch(bytes: &[u8]) -> Result<Vec<Draft>, String> {
    let wrong = |error: serde_json::Error| format!("no messages: {error}");
    let items: Result<Vec<Item>, _> = if bytes.trim_ascii_start().first() == Some(&b'[') {
        serde_json::from_slice(bytes).map(|Batch(items)| items)
    } else {
        // One value behind the other: a single message, or a line for each.
        let values = serde_json::Deserializer::from_slice(bytes).into_iter();
        values.take(MOST + 1).collect()
    };
    let numbered = items.map_err(wrong)?.into_iter().enumerate();
    numbered
        .map(|(number, item)| draft(item).map_err(|why| format!("message {}: {why}", number + 1)))
        .collect()
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a message: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Item, A::Error> {
        let mut item = Item::default();
        while let Some(name) = from.next_key::<String>()? {
            let member = match &*name {
                "channels" => &mut item.channels,
                "type" => &mut item.content_type,
                "event" => &mut item.event,
                "id" => &mut item.id,
                "data" => &mut item.data,
                _ => {
                    from.next_value::<IgnoredAny>()?;
                    item.unknown.get_or_insert(name);
                    continue;
                }
            };
            *member = Some(from.next_value()?);
        }
        Ok(item)
    }
}

fn draft(item: Item) -> Result<Draft, String> {
    let Item { channels, content_type, event, id, data, unknown } = item;
    let names = channels.ok_or("it has no `channels`: a name, or an array of them")?;
    let names = match text(&names) {
        Ok(name) => vec![name],
        Err(_) => serde_json::from_str(names.get())
            .map_err(|_| "`channels` is a name, or an array of them")?,
    };
    let word = |name: &str, value: Option<Box<RawValue>>| {
        value.map(|value| text(&value)).transpose().map_err(|_| format!("`{name}` is a text"))
    };
    let content_type = word("type", content_type)?;
    let (event, id) = (word("event", event)?, word("id", id)?);
    let data = data.ok_or("it has no `data`: a text, or any other value")?;
    if let Some(name) = unknown {
        return Err(format!("there is no `{name}`: channels, type, event, id, data"));
    }
    // A text stands for itself, unless it is said to be JSON; whatever else it is, is JSON.
    let is_json = content_type.as_deref().is_some_and(|own| own.starts_with("application/json"));
    let (body, usual) = match text(&data) {
        Ok(text) if !is_json => (text.into_bytes(), "text/plain; charset=utf-8"),
        _ => (data.get().as_bytes().to_vec(), "application/json"),
    };
    let content = Content {
        content_type: Some(content_type.as_deref().unwrap_or(usual).into()),
        event: event.map(Into::into),
        id: id.map(Into::into),
        body: body.into(),
        ..Content::default()
    };
    Ok(Draft { channels: names.into_iter().map(String::into).collect(), content })
}

fn text(value: &RawValue) -> Result<String, serde_json::Error> {
    serde_json::from_str(value.get())
}

/// What somebody wants to follow, and from where on.
fn follow(head: &Head<'_>) -> Result<(Watch, Start), String> {
    let manner = manner(head.field_text("Accept").unwrap_or_default());
    let mut watch = Watch {
        channels: Box::default(),
        manner,
        holes: Holes::Refuse,
        until: Until::Open,
        limit: LIMIT,
        wait: WAIT * 1000,
        live: None,
    };
    let (mut channels, mut start): (Vec<Box<str>>, _) = (Vec::new(), None);
    for (name, value) in query::pairs(head.query().unwrap_or_default()) {
        let value = value.decode().map_err(|_| "the query is not encoded as it should be")?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
        let name = name.decode().map_err(|_| "the query is not encoded as it should be")?;
        match &*name {
            "c" => channels.push((&*value).into()),
            "after" => start = Some(place(&value)?),
            "before" => {
                watch.until = match place(&value)? {
                    Start::After(cursor) => Until::Cursor(cursor),
                    Start::Since(time) => Until::Time(time),
                    Start::Now => Until::Time(now()),
                    Start::Earliest => return Err("there is nothing before `earliest`".to_owned()),
                }
            }
            "limit" => watch.limit = (number()?.clamp(1, MOST as u64)) as usize,
            "wait" => watch.wait = number()?.min(LONGEST_WAIT) * 1000,
            "gap" if value == "allow" => watch.holes = Holes::Tell,
            // What EventSource of older browsers' libraries says in place of the field.
            "last_event_id" | "lastEventId" if start.is_none() => start = Some(place(&value)?),
            other => {
                return Err(format!("there is no `{other}`: c, after, before, limit, wait, gap"));
            }
        }
    }
    if let Some(last) = head.field_text("Last-Event-ID").filter(|last| !last.is_empty()) {
        start = Some(place(last)?);
    }
    if let Some(wait) = preferred_wait(head.field_text("Prefer").unwrap_or_default()) {
        watch.wait = wait.min(LONGEST_WAIT) * 1000;
    }
    if channels.is_empty() {
        return Err("which channels? Name each by `c`, like ?c=news&c=weather".to_owned());
    }
    watch.channels = channels.into();
    Ok((watch, start.unwrap_or(Start::Now)))
}

/// Whether it means the view by WebSocket, be it in wrong words.
fn asks_for_websocket(head: &Head<'_>) -> bool {
    !matches!(
        websocket::Upgrade::read(head),
        Err(websocket::Refusal::NotAsked | websocket::Refusal::Method)
    )
}

/// The first of the views that a peer takes.
fn manner(accept: &str) -> Manner {
    let known = accept.split(',').find_map(|range| match range.split(';').next()?.trim() {
        "application/json" => Some(Manner::Poll),
        "text/event-stream" => Some(Manner::Events),
        "application/x-ndjson" | "application/ndjson" => Some(Manner::Lines),
        "multipart/mixed" => Some(Manner::Parts),
        _ => None,
    });
    known.unwrap_or(Manner::Poll)
}

/// `Prefer: wait=10` (RFC 7240 section 4.3).
fn preferred_wait(prefer: &str) -> Option<u64> {
    let preferences = prefer.split([',', ';']);
    preferences
        .filter_map(|one| one.trim().strip_prefix("wait="))
        .find_map(|wait| wait.parse().ok())
}

/// A cursor, a word, or milliseconds since 1970.
fn place(text: &str) -> Result<Start, String> {
    match text {
        "earliest" | "-1" => Ok(Start::Earliest),
        "now" => Ok(Start::Now),
        _ => match (Cursor::from_str(text), text.parse::<u64>()) {
            (Ok(cursor), _) => Ok(Start::After(cursor)),
            (Err(_), Ok(time)) => Ok(Start::Since(time)),
            (Err(fault), Err(_)) => Err(format!(
                "`{text}` is no place: {fault}, or say earliest, now, or milliseconds since 1970"
            )),
        },
    }
}

fn bad(out: &mut Outgoing<'_>, exchange: Exchange, clock: &Clock, reason: &str) -> Answer {
    tell(Reply::begin(out.buffer, exchange, Status::BAD_REQUEST, &clock.date()), reason);
    Answer::Written { close: false }
}

pub(super) fn tell(mut reply: Reply<'_>, reason: &str) {
    reply.constant("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    reply.whole(format!("{reason}\n").as_bytes());
}
