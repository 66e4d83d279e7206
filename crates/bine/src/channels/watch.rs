//! Decides what somebody who follows channels has asked for, and how each way of following looks on the wire.

use std::fmt;
use std::sync::Arc;

use bine_http::{BodyFraming, Date, Exchange, Method, Reply, Status};
use bine_push::{
    BOUNDARY, Cursor, GapPolicy, MessageBatch, Refused, Rest, Start, Subscription, Until, View,
};

use super::access::Denied;
use super::attendee::Attendee;
use super::durable_view::{self, Live};
use super::origin;
use super::place::{Ahead, Manner, Place};
use super::status::status_of;
use crate::inert;

/// A value that lives as long as a subscription, whatever it is.
#[derive(Clone, Debug)]
pub(crate) struct Attachment(pub(crate) Arc<dyn fmt::Debug + Send + Sync>);

impl PartialEq for Attachment {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Attachment {}

/// What somebody follows, and how. Where they are in it is not in here, so that many may share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Watch {
    pub(crate) channels: Box<[Box<str>]>,
    pub(crate) manner: Manner,
    pub(crate) holes: GapPolicy,
    pub(crate) until: Until,
    /// Messages at once, at most.
    pub(crate) limit: usize,
    /// A poll without news is answered after so many milliseconds; 0: at once.
    pub(crate) wait: u64,
    /// Its one channel is followed as a Durable Streams resource.
    pub(crate) live: Option<Box<Live>>,
    /// Who is present by it, where that is counted.
    pub(crate) attendee: Option<Arc<Attendee>>,
    /// The other site whose page asks.
    pub(crate) origin: Option<Arc<str>>,
    /// It is a page that is followed.
    pub(crate) regions: Regions,
    /// Who follows the page by it, if that is one of its own.
    pub(crate) attached: Option<Attachment>,
}

/// What a watch has to do with the regions of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Regions {
    /// Nothing.
    None,
    /// Its channel has what becomes of them. One that has missed some of it comes again and says what it shows.
    All,
    /// These bytes come first, then all that the other watch has.
    Behind(Box<[u8]>, Arc<Watch>),
}

/// Bytes of messages at once, at most.
const PAGE: usize = 1 << 20;
/// Whatever can be asked by GET can be by QUERY, whose content is a form (RFC 10008 section 3).
pub(crate) const ACCEPT_QUERY: &str = "Accept-Query: application/x-www-form-urlencoded\r\n";
/// Messages at once and milliseconds that a poll waits, if nothing is said.
const LIMIT: usize = 100;
const WAIT: u64 = 25_000;
/// Neither a cache nor a proxy that gathers may stand between.
const LIVE: &str = "Cache-Control: no-store, no-transform\r\nX-Accel-Buffering: no\r\n";

impl Watch {
    /// Of these channels, as it is if nothing is said.
    pub(crate) fn of(channels: Box<[Box<str>]>) -> Self {
        Self {
            channels,
            manner: Manner::Poll,
            holes: GapPolicy::Reject,
            until: Until::Open,
            limit: LIMIT,
            wait: WAIT,
            live: None,
            attendee: None,
            origin: None,
            regions: Regions::None,
            attached: None,
        }
    }

    /// What it is in the hub's words, from a place on.
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
            bytes: PAGE,
        }
    }

    /// In how many milliseconds what is wanted begins, if that is still to come. A page never ends before that.
    pub(crate) fn ahead(start: Start, page: &MessageBatch, now: u64) -> Option<u64> {
        match (start, &page.rest) {
            (Start::Since(time), Rest::Wait(_)) => time.checked_sub(now).filter(|ahead| *ahead > 0),
            _ => None,
        }
    }

    /// Whether an `EventSource` would find nothing, now and ever.
    pub(crate) fn ends_with_nothing(&self, page: &MessageBatch) -> bool {
        self.manner == Manner::Events
            && matches!(page.rest, Rest::Ended | Rest::Closed)
            && page.messages.is_empty()
            && page.lost.is_none()
    }

    /// The name that one was given who is present without saying who they are.
    pub(crate) fn new_session(&self) -> Option<&str> {
        let attendee = self.attendee.as_ref().filter(|attendee| attendee.is_new)?;
        Some(&attendee.session)
    }

    fn put_session(&self, reply: &mut Reply<'_>) {
        if let Some(session) = self.new_session() {
            // It is of letters and digits.
            let _ = reply.field("Session", session);
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.channels.iter().map(|name| &**name).collect()
    }
}

impl Watch {
    /// The whole answer to a poll: `bytes` are its messages.
    pub(crate) fn answer(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        bytes: &[u8],
        place: &Place,
    ) {
        let begin = out.len();
        if let Some(live) = &self.live {
            live.answer(out, exchange, date, Some(bytes), place);
            return self.tell_origin(out, begin);
        }
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        reply
            .static_lines("Content-Type: application/json\r\n")
            .static_lines(LIVE)
            .static_lines(ACCEPT_QUERY);
        inert::put_fields(&mut reply);
        put_cursor(&mut reply, "Cursor", place.next);
        self.put_session(&mut reply);
        if let Some(lost) = place.lost {
            put_cursor(&mut reply, "Cursor-Lost", lost);
        }
        put_end(&mut reply, place);
        reply.whole(bytes);
        self.tell_origin(out, begin);
    }

    /// A poll that brings nothing (RFC 6202 section 2.1).
    pub(crate) fn nothing(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        place: &Place,
    ) {
        let begin = out.len();
        if let Some(live) = &self.live {
            live.answer(out, exchange, date, None, place);
            return self.tell_origin(out, begin);
        }
        let mut reply = Reply::begin(out, exchange, Status::NO_CONTENT, date);
        reply.static_lines(LIVE).static_lines(ACCEPT_QUERY);
        put_cursor(&mut reply, "Cursor", place.next);
        self.put_session(&mut reply);
        put_end(&mut reply, place);
        reply.empty();
        self.tell_origin(out, begin);
    }

    /// The head of an answer that goes on, and what comes before its first message. Where the reader is stands there only
    /// if none `follows` at once: a reader whose connection breaks between would skip those behind which it already is.
    pub(crate) fn begin(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        place: &Place,
        follows: bool,
    ) -> BodyFraming {
        let begin = out.len();
        if self.live.is_some() {
            let pieces = Live::begin(self.manner, out, exchange, date);
            self.tell_origin(out, begin);
            return pieces;
        }
        let mut reply = Reply::begin(out, exchange, Status::OK, date);
        match self.manner {
            Manner::Lines => reply.static_lines("Content-Type: application/x-ndjson\r\n"),
            Manner::Parts => {
                debug_assert_eq!(BOUNDARY, "bine-part");
                reply.static_lines("Content-Type: multipart/mixed; boundary=bine-part\r\n");
                // Some browsers show the last part as a document.
                reply.static_lines(inert::ATTACHMENT)
            }
            _ => reply.static_lines("Content-Type: text/event-stream\r\n"),
        };
        reply.static_lines(LIVE).static_lines(ACCEPT_QUERY);
        inert::put_fields(&mut reply);
        if let Some(lost) = place.lost {
            put_cursor(&mut reply, "Cursor-Lost", lost);
        }
        self.put_session(&mut reply);
        let pieces = reply.stream();
        self.tell_origin(out, begin);
        let mut first = Vec::new();
        if let Some(session) = self.new_session() {
            // A page's own script sees no head.
            match self.manner {
                Manner::Events => {
                    first.extend(format!("event: session\ndata: {session}\n\n").bytes());
                }
                Manner::Lines => first.extend(format!("{{\"session\":\"{session}\"}}\n").bytes()),
                _ => {}
            }
        }
        if let (Manner::Events, Some(lost)) = (self.manner, place.lost) {
            first.extend_from_slice(format!("event: lost\ndata: {lost}\n\n").as_bytes());
        }
        if self.regions != Regions::None && self.manner == Manner::Events {
            // So that whoever waits for the stream knows that nothing on the way holds it back.
            first.extend_from_slice(b":\n\n");
        }
        if !follows {
            self.mark(&mut first, place.next);
        }
        pieces.append(out, &first);
        pieces
    }

    /// Appends messages to an answer that goes on; `bytes` may be none.
    pub(crate) fn go_on(
        &self,
        out: &mut Vec<u8>,
        pieces: BodyFraming,
        bytes: &[u8],
        place: &Place,
    ) {
        pieces.append(out, bytes);
        if let Some(live) = &self.live {
            let mut control = Vec::new();
            live.put_control(&mut control, place);
            pieces.append(out, &control);
        }
    }

    /// Shows that an answer lives on, and where its reader is.
    pub(crate) fn mark(&self, out: &mut Vec<u8>, cursor: Cursor) {
        match self.manner {
            // An event without data is none, but its id counts.
            Manner::Events => out.extend_from_slice(format!("id: {cursor}\n\n").as_bytes()),
            Manner::Lines => {
                out.extend_from_slice(format!("{{\"cursor\":\"{cursor}\"}}\n").as_bytes());
            }
            // Each event was followed by its place.
            Manner::DataEvent | Manner::Base64Event => out.extend_from_slice(b":\n\n"),
            // What stands before the first part is for nobody, and there is no other place.
            Manner::Parts | Manner::Poll | Manner::Bodies | Manner::Values => {}
        }
    }

    /// The end of an answer that went on.
    pub(crate) fn end(&self, out: &mut Vec<u8>, pieces: BodyFraming) {
        if self.manner == Manner::Parts {
            pieces.append(out, b"--bine-part--\r\n");
        }
        pieces.end(out);
    }

    /// The end of an answer that went on, for one who may not have more of it. What a page shows beside its regions was
    /// for them too, so the browser asks for the page again.
    pub(crate) fn dismiss(&self, out: &mut Vec<u8>, pieces: BodyFraming) {
        if self.regions != Regions::None {
            pieces.append(out, b"event: reload\ndata: \n\n");
        }
        self.end(out, pieces);
    }

    /// Why somebody cannot follow.
    pub(crate) fn refuse(
        &self,
        out: &mut Vec<u8>,
        exchange: Exchange,
        date: &Date,
        refused: &Refused,
    ) {
        let begin = out.len();
        if self.live.is_some() {
            durable_view::refuse(out, exchange, date, refused);
        } else {
            refuse(out, exchange, date, refused);
        }
        self.tell_origin(out, begin);
    }

    /// Why somebody may not follow any longer, or not now.
    pub(crate) fn deny(&self, out: &mut Vec<u8>, exchange: Exchange, date: &Date, denied: &Denied) {
        let begin = out.len();
        denied.write(out, exchange, date);
        self.tell_origin(out, begin);
    }

    fn tell_origin(&self, out: &mut Vec<u8>, begin: usize) {
        if let Some(origin) = &self.origin {
            origin::tell(out, begin, origin);
        }
    }
}

/// The messages of a page in a view.
pub(crate) fn encoded(view: View, page: &MessageBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    view.encode(page.next.epoch, &page.messages, &mut bytes);
    bytes
}

/// Why somebody cannot follow, or an order cannot be carried out.
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

/// Tells a poll that nothing comes behind it, in the words that one channel has for it.
fn put_end(reply: &mut Reply<'_>, place: &Place) {
    if place.ahead == Ahead::Closed {
        reply.static_lines("Stream-Closed: true\r\n");
    }
}

fn put_cursor(reply: &mut Reply<'_>, name: &str, cursor: Cursor) {
    let text = cursor.text();
    // Its letters are digits and one underscore.
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let _ = reply.field(name, text);
}

/// Whether a method asks for a head alone.
pub(crate) fn is_head(exchange: Exchange) -> bool {
    exchange.method == Method::Head
}
