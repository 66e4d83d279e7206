//! Decides how channels are reached over HTTP: who may, at which addresses, and in which words.

use bine_http::{Exchange, Head, Method, Reply, Status};
use bine_pipeline::{Answer, Body, Clock, Finished, Incoming, Outgoing};
use bine_push::{Cursor, Order, Publish, Published, Taken};

use super::access::Access;
use super::asked::{Unclear, asks_for_websocket, follow};
use super::batch::read_batch;
use super::durable::{self, Resource};
use super::engine::Error;
use super::room::hold;
use super::watch::{ACCEPT_QUERY, refuse};
use super::{Applied, Channels};

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
/// Of a QUERY: ten thousand names of the longest, some of their letters encoded.
const MOST_QUERY: u64 = 4 << 20;
/// What may be asked at [`PATH`].
const ALLOWED: &str = "Allow: GET, HEAD, QUERY, POST, OPTIONS\r\n";

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
        let makes_name = request.head.method() == Method::Post;
        let name = path.strip_prefix(durable::ROOT).filter(|name| makes_name || !name.is_empty());
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
            Method::Get | Method::Head => self.follow(&[], request, clock, out),
            Method::Query => match request.body {
                Body::Coming => Answer::Collect { limit: MOST_QUERY, on_disk: false },
                Body::Here(content) => self.follow(content, request, clock, out),
                Body::None | Body::Filed(_) => self.follow(&[], request, clock, out),
            },
            Method::Options => {
                let mut reply =
                    Reply::begin(out.buffer, exchange, Status::NO_CONTENT, &clock.date());
                reply.constant(ALLOWED).constant(ACCEPT_QUERY);
                reply.empty();
                Answer::Written { close: false }
            }
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
                reply.constant(ALLOWED).constant(ACCEPT_QUERY);
                tell(reply, "channels are followed by GET or QUERY, and published in by POST");
                Answer::Written { close: false }
            }
        })
    }

    /// Whoever follows rests until there is something, or changes over to a WebSocket.
    fn follow(
        &self,
        content: &[u8],
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        match follow(&request.head, content) {
            Ok((watch, start)) if asks_for_websocket(&request.head) => {
                self.open(watch, start, request, clock, out)
            }
            Ok((watch, start)) => Answer::Hold(hold(watch, start, request.exchange)),
            Err(Unclear(status, reason)) => {
                let mut reply = Reply::begin(out.buffer, request.exchange, status, &clock.date());
                reply.constant(ACCEPT_QUERY);
                tell(reply, &reason);
                Answer::Written { close: false }
            }
        }
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

fn bad(out: &mut Outgoing<'_>, exchange: Exchange, clock: &Clock, reason: &str) -> Answer {
    tell(Reply::begin(out.buffer, exchange, Status::BAD_REQUEST, &clock.date()), reason);
    Answer::Written { close: false }
}

pub(super) fn tell(mut reply: Reply<'_>, reason: &str) {
    reply.constant("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    reply.whole(format!("{reason}\n").as_bytes());
}
