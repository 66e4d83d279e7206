//! The position of a reader, and the formats in which messages are delivered.

use bine_push::{Cursor, MessageBatch, Rest, View};

/// The position of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadPosition {
    /// The cursor after the last message that the reader received.
    pub(crate) next: Cursor,
    /// Messages up to this cursor may be missing.
    pub(crate) lost: Option<Cursor>,
    pub(crate) remaining: Remaining,
}

/// The hub's knowledge of the messages after a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remaining {
    More,
    /// The reader has everything so far.
    Nothing,
    /// All channels are closed, so there are no more messages.
    Closed,
}

impl Remaining {
    /// The state after the last messages of a channel that is closed, or not.
    pub(super) const fn after(is_closed: bool) -> Self {
        if is_closed { Self::Closed } else { Self::Nothing }
    }
}

/// The format of delivered messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeliveryMode {
    /// One response: a JSON array.
    Poll,
    /// A stream of server-sent events (WHATWG HTML section 9.2).
    Events,
    /// A stream with one line of JSON for each message.
    Lines,
    /// A stream with one part for each message (RFC 2046 section 5.1).
    Parts,
    /// One response: the concatenated bodies of a Durable Streams resource.
    Bodies,
    /// One response: a JSON array of the bodies of a Durable Streams resource.
    Values,
    /// A stream of events with the bodies and offsets of a Durable Streams resource.
    DataEvent,
    /// Like `DataEvent`, with the bodies in base64.
    Base64Event,
}

impl ReadPosition {
    /// The position after a batch.
    pub(crate) fn of(batch: &MessageBatch) -> Self {
        let remaining = match batch.rest {
            Rest::More => Remaining::More,
            Rest::Closed => Remaining::Closed,
            Rest::Ended | Rest::Wait(_) => Remaining::Nothing,
        };
        Self { next: batch.next, lost: batch.lost, remaining }
    }
}

impl DeliveryMode {
    pub(crate) const fn view(self) -> View {
        match self {
            Self::Poll => View::Json,
            Self::Events => View::Sse,
            Self::Lines => View::Ndjson,
            Self::Parts => View::Multipart,
            Self::Bodies => View::Raw,
            Self::Values => View::Values,
            Self::DataEvent => View::SseData,
            Self::Base64Event => View::SseBase64,
        }
    }

    pub(crate) const fn is_poll(self) -> bool {
        matches!(self, Self::Poll | Self::Bodies | Self::Values)
    }
}
