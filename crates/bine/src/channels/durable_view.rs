//! Decides how one channel looks on the wire to whoever follows it as a Durable Streams resource, by poll or by events.

use std::sync::Arc;

use bine_http::{BodyFraming, Date, Exchange, Reply, Status};
use bine_push::{Cursor, Refused};

use super::place::{Ahead, Manner, Place};
use super::status::status_of;
use crate::inert;

/// How a resource is followed: what no other way of following needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Live {
    /// Of the resource.
    pub(crate) content_type: Arc<str>,
    /// What the next request will carry, so that no cache answers it with what it has answered before.
    pub(crate) turn: u64,
}

/// What is told of a resource is as it was a moment ago.
pub(super) const FRESH: &str = "Cache-Control: no-store\r\n";
/// Another site's page may not embed a resource.
const SAME_ORIGIN: &str = "Cross-Origin-Resource-Policy: same-origin\r\n";

/// Cursors count so many seconds each (protocol section 10.1), from 9 October 2024.
const TURN: u64 = 20;
const FIRST_TURN: u64 = 1_728_432_000;

impl Live {
    /// `said` is the turn that the request carries: the next one is later, even if that was the present one.
    pub(super) fn new(content_type: Arc<str>, said: Option<u64>, now: u64) -> Self {
        let turn = (now / 1000).saturating_sub(FIRST_TURN) / TURN;
        let turn = match said {
            // Up to an hour later, so that the peers behind a cache part.
            Some(said) if said >= turn => said.saturating_add(1 + now % (3600 / TURN)),
            _ => turn,
        };
        Self { content_type, turn }
    }

    /// The whole answer to a poll: `bytes` are its messages, if there are any.
    pub(crate) fn answer(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        bytes: Option<&[u8]>,
        place: &Place,
    ) {
        let status = if bytes.is_some() { Status::OK } else { Status::NO_CONTENT };
        let mut reply = Reply::begin(out, exchange, status, date);
        reply.static_lines("Cache-Control: no-store\r\n");
        put_safety(&mut reply, Some(&self.content_type));
        put_place(&mut reply, place);
        if place.ahead != Ahead::Closed {
            let _ = reply.field("Stream-Cursor", &self.turn.to_string());
        }
        match bytes {
            Some(bytes) => {
                // It was checked when the channel was made.
                let _ = reply.field("Content-Type", &self.content_type);
                reply.whole(bytes);
            }
            None => reply.empty(),
        }
    }

    /// The head of an answer by events.
    pub(crate) fn begin(
        manner: Manner,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
    ) -> BodyFraming {
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        reply.static_lines("Content-Type: text/event-stream\r\n");
        reply.static_lines("Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n");
        put_safety(&mut reply, None);
        if manner == Manner::Base64Event {
            reply.static_lines("Stream-SSE-Data-Encoding: base64\r\n");
        }
        reply.stream()
    }

    /// Appends the event that says where the reader is.
    pub(crate) fn put_control(&self, out: &mut Vec<u8>, place: &Place) {
        let next = place.next;
        let rest = match place.ahead {
            Ahead::More => format!(",\"streamCursor\":\"{}\"", self.turn),
            Ahead::Nothing => format!(",\"streamCursor\":\"{}\",\"upToDate\":true", self.turn),
            Ahead::Closed => ",\"upToDate\":true,\"streamClosed\":true".to_owned(),
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

/// Where a reader is, in the fields of a head.
pub(super) fn put_place(reply: &mut Reply<'_>, place: &Place) {
    put_next(reply, place.next);
    if place.ahead != Ahead::More {
        reply.static_lines("Stream-Up-To-Date: true\r\n");
    }
    if place.ahead == Ahead::Closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

pub(super) fn put_next(reply: &mut Reply<'_>, next: Cursor) {
    // A cursor's text holds nothing that a field must not.
    let _ =
        reply.field("Stream-Next-Offset", std::str::from_utf8(&next.text()).unwrap_or_default());
}

/// Why somebody cannot follow.
pub(crate) fn refuse(out: &mut Vec<u8>, exchange: Exchange, date: &Date, refused: &Refused) {
    tell(Reply::begin(out, exchange, status_of(refused), date), &refused.to_string());
}

pub(super) fn tell(mut reply: Reply<'_>, reason: &str) {
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n").static_lines(FRESH);
    put_safety(&mut reply, None);
    reply.whole(format!("{reason}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_never_the_one_that_was_said() {
        let turn = |said, now| Live::new("a/b".into(), said, now).turn;
        let now = (FIRST_TURN + 1000 * TURN) * 1000;
        assert_eq!(turn(None, now), 1000);
        assert_eq!(turn(Some(999), now), 1000);
        assert!(turn(Some(1000), now) > 1000);
        assert!(turn(Some(5000), now + 7) > 5000);
        assert_eq!(turn(None, 0), 0);
        assert_eq!(turn(Some(u64::MAX), now), u64::MAX);
    }
}
