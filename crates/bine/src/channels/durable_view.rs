//! The responses of Durable Streams resources to polls and event streams.

use std::sync::Arc;

use bine_http::{BodyFraming, Date, Exchange, Reply, Status};
use bine_push::{Cursor, Refused};

use super::delivery::{DeliveryMode, ReadPosition, Remaining};
use super::status::status_of;
use crate::inert;

/// Options of a read that only Durable Streams resources have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DurableView {
    /// The media type of the resource.
    pub(crate) content_type: Arc<str>,
    /// The `Stream-Cursor` of the response. The next request repeats it, which makes its URL differ
    /// from the URLs of responses in caches.
    pub(crate) stream_cursor: u64,
}

/// Metadata of a resource may change at any time.
pub(super) const FRESH: &str = "Cache-Control: no-store\r\n";
/// Prevents cross-site pages from embedding a resource.
const SAME_ORIGIN: &str = "Cross-Origin-Resource-Policy: same-origin\r\n";

/// The seconds of one cursor interval (protocol section 10.1), counted from 9 October 2024.
const CURSOR_INTERVAL: u64 = 20;
const CURSOR_EPOCH: u64 = 1_728_432_000;

impl DurableView {
    /// `said` is the cursor of the request. The response's cursor is always greater.
    pub(super) fn new(content_type: Arc<str>, said: Option<u64>, now: u64) -> Self {
        let stream_cursor = (now / 1000).saturating_sub(CURSOR_EPOCH) / CURSOR_INTERVAL;
        let stream_cursor = match said {
            // A jitter of up to an hour keeps clients that share a cache apart.
            Some(said) if said >= stream_cursor => {
                said.saturating_add(1 + now % (3600 / CURSOR_INTERVAL))
            }
            _ => stream_cursor,
        };
        Self { content_type, stream_cursor }
    }

    /// Writes the response to a poll; `bytes` are its encoded messages, if any.
    pub(crate) fn answer(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        bytes: Option<&[u8]>,
        position: &ReadPosition,
    ) {
        let status = if bytes.is_some() { Status::OK } else { Status::NO_CONTENT };
        let mut reply = Reply::begin(out, exchange, status, date);
        reply.static_lines("Cache-Control: no-store\r\n");
        put_safety(&mut reply, Some(&self.content_type));
        put_position(&mut reply, position);
        if position.remaining != Remaining::Closed {
            let _ = reply.field("Stream-Cursor", &self.stream_cursor.to_string());
        }
        match bytes {
            Some(bytes) => {
                // The hub validated the type when the channel was created.
                let _ = reply.field("Content-Type", &self.content_type);
                reply.whole(bytes);
            }
            None => reply.empty(),
        }
    }

    /// Writes the head of an event stream.
    pub(crate) fn begin(
        manner: DeliveryMode,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
    ) -> BodyFraming {
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        reply.static_lines("Content-Type: text/event-stream\r\n");
        reply.static_lines("Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n");
        put_safety(&mut reply, None);
        if manner == DeliveryMode::Base64Event {
            reply.static_lines("Stream-SSE-Data-Encoding: base64\r\n");
        }
        reply.stream()
    }

    /// Appends the control event with the reader's position.
    pub(crate) fn put_control(&self, out: &mut Vec<u8>, position: &ReadPosition) {
        let next = position.next;
        let rest = match position.remaining {
            Remaining::More => format!(",\"streamCursor\":\"{}\"", self.stream_cursor),
            Remaining::Nothing => {
                format!(",\"streamCursor\":\"{}\",\"upToDate\":true", self.stream_cursor)
            }
            Remaining::Closed => ",\"upToDate\":true,\"streamClosed\":true".to_owned(),
        };
        let event = format!("event: control\ndata:{{\"streamNextOffset\":\"{next}\"{rest}}}\n\n");
        out.extend_from_slice(event.as_bytes());
    }
}

/// Writes the fields that keep content of this type from running in the application's origin.
pub(super) fn put_safety(reply: &mut Reply<'_>, content_type: Option<&str>) {
    inert::put_fields(reply);
    reply.static_lines(SAME_ORIGIN);
    if content_type.is_some_and(inert::is_active) {
        reply.static_lines(inert::ATTACHMENT);
    }
}

/// Writes a reader's position as fields.
pub(super) fn put_position(reply: &mut Reply<'_>, position: &ReadPosition) {
    put_next(reply, position.next);
    if position.remaining != Remaining::More {
        reply.static_lines("Stream-Up-To-Date: true\r\n");
    }
    if position.remaining == Remaining::Closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

pub(super) fn put_next(reply: &mut Reply<'_>, next: Cursor) {
    // The text of a cursor is valid in a field.
    let _ =
        reply.field("Stream-Next-Offset", std::str::from_utf8(&next.text()).unwrap_or_default());
}

/// Writes the response to a rejected read.
pub(crate) fn refuse(out: &mut Vec<u8>, exchange: Exchange, date: &Date, refused: &Refused) {
    finish_with_reason(Reply::begin(out, exchange, status_of(refused), date), &refused.to_string());
}

pub(super) fn finish_with_reason(mut reply: Reply<'_>, reason: &str) {
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n").static_lines(FRESH);
    put_safety(&mut reply, None);
    reply.whole(format!("{reason}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_cursor_exceeds_request_cursor() {
        let stream_cursor = |said, now| DurableView::new("a/b".into(), said, now).stream_cursor;
        let now = (CURSOR_EPOCH + 1000 * CURSOR_INTERVAL) * 1000;
        assert_eq!(stream_cursor(None, now), 1000);
        assert_eq!(stream_cursor(Some(999), now), 1000);
        assert!(stream_cursor(Some(1000), now) > 1000);
        assert!(stream_cursor(Some(5000), now + 7) > 5000);
        assert_eq!(stream_cursor(None, 0), 0);
        assert_eq!(stream_cursor(Some(u64::MAX), now), u64::MAX);
    }
}
