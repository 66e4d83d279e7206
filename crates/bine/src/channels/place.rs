//! Where a reader of channels is, and the ways in which messages come to it.

use bine_push::{Cursor, MessageBatch, Rest, View};

/// Where a reader is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Behind what it has got.
    pub(crate) next: Cursor,
    /// Up to here something may be missing.
    pub(crate) lost: Option<Cursor>,
    pub(crate) ahead: Ahead,
}

/// What is known to come behind a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ahead {
    More,
    /// Nothing yet.
    Nothing,
    /// Nothing ever.
    Closed,
}

/// How messages come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// One answer: an array of JSON.
    Poll,
    /// Server-sent events (WHATWG HTML section 9.2), until somebody ends them.
    Events,
    /// A line of JSON for each, until somebody ends them.
    Lines,
    /// A part for each (RFC 2046 section 5.1), until somebody ends them.
    Parts,
    /// One answer: the bodies, as a Durable Streams resource has them.
    Bodies,
    /// One answer: an array of the bodies, likewise.
    Values,
    /// Events of bodies, and where each ends, likewise.
    DataEvent,
    /// The same in base64.
    Base64Event,
}

impl Place {
    /// Where a page leads.
    pub(crate) fn of(page: &MessageBatch) -> Self {
        let ahead = match page.rest {
            Rest::More => Ahead::More,
            Rest::Closed => Ahead::Closed,
            Rest::Ended | Rest::Wait(_) => Ahead::Nothing,
        };
        Self { next: page.next, lost: page.lost, ahead }
    }
}

impl Manner {
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
