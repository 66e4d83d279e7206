//! The properties of a request that its response depends on.

use std::borrow::Cow;

use bine_http::{Exchange, Head};
use bine_server::Incoming;

use crate::accept::AcceptPreferences;
use crate::inert;

/// The properties of a request that its response depends on.
#[derive(Clone, Copy)]
pub(crate) struct RequestSummary<'r> {
    pub(crate) exchange: Exchange,
    reader: PreferenceSource<'r>,
}

/// The source of the client's preferences among formats. Only failures and whole documents need
/// them, so they are parsed on demand.
#[derive(Clone, Copy)]
enum PreferenceSource<'r> {
    Request(&'r Incoming<'r>),
    Known(AcceptPreferences, Option<&'r KeptAddress>),
}

/// The path and query of a request whose head was not kept, for the layout.
pub(crate) struct KeptAddress {
    path: Box<str>,
    query: Option<Box<str>>,
}

impl KeptAddress {
    pub(crate) fn of(head: &Head<'_>) -> Self {
        Self { path: head.path().into(), query: head.query().map(Into::into) }
    }
}

/// Header fields of conditional and range requests (RFC 9110 sections 13 and 14).
const CONDITIONS: [&str; 6] =
    ["range", "if-none-match", "if-modified-since", "if-range", "if-match", "if-unmodified-since"];

impl<'r> RequestSummary<'r> {
    pub(crate) const fn by(incoming: &'r Incoming<'r>) -> Self {
        Self { exchange: incoming.exchange, reader: PreferenceSource::Request(incoming) }
    }

    /// The summary of a request that is not known.
    pub(crate) fn unknown(exchange: Exchange) -> Self {
        Self { exchange, reader: PreferenceSource::Known(AcceptPreferences::of(None), None) }
    }

    /// Detaches the summary from the request, for a response that is written later. Returns `None`
    /// if the response may need the request itself, as suspended responses and pages with actions
    /// do.
    pub(crate) fn kept(self, may_ask: bool) -> Option<RequestSummary<'static>> {
        if let PreferenceSource::Request(request) = self.reader
            && (may_ask
                || inert::is_to_run(&request.head)
                || CONDITIONS.iter().any(|name| request.head.field(name).is_some()))
        {
            return None;
        }
        Some(RequestSummary {
            exchange: self.exchange,
            reader: PreferenceSource::Known(self.accept_preferences(), None),
        })
    }

    /// Adds the address, which a [kept](Self::kept) summary lacks.
    pub(crate) const fn at(mut self, address: Option<&'r KeptAddress>) -> Self {
        if let PreferenceSource::Known(accept_preferences, _) = self.reader {
            self.reader = PreferenceSource::Known(accept_preferences, address);
        }
        self
    }

    /// The decoded path.
    pub(crate) fn path(self) -> Cow<'r, str> {
        match self.reader {
            PreferenceSource::Request(request) => request.head.path(),
            PreferenceSource::Known(_, address) => {
                Cow::Borrowed(address.map_or("/", |address| &address.path))
            }
        }
    }

    /// The query as the client sent it, without the `?`.
    pub(crate) fn query(self) -> Option<&'r str> {
        match self.reader {
            PreferenceSource::Request(request) => request.head.query(),
            PreferenceSource::Known(_, address) => address?.query.as_deref(),
        }
    }

    /// Closes the connection after this response.
    pub(crate) const fn closing(mut self) -> Self {
        self.exchange.keep_alive = false;
        self
    }

    /// The request's head, if its conditions may affect the response.
    pub(crate) fn conditions(self) -> Option<Head<'r>> {
        self.request().map(|request| request.head)
    }

    pub(crate) const fn request(self) -> Option<&'r Incoming<'r>> {
        match self.reader {
            PreferenceSource::Request(request) => Some(request),
            PreferenceSource::Known(..) => None,
        }
    }

    /// Whether a browser would run the content as a script or style sheet.
    pub(crate) fn is_to_run(self) -> bool {
        self.request().is_some_and(|request| inert::is_to_run(&request.head))
    }

    pub(crate) fn accept_preferences(self) -> AcceptPreferences {
        match self.reader {
            PreferenceSource::Known(accept_preferences, _) => accept_preferences,
            PreferenceSource::Request(request) => {
                AcceptPreferences::of(request.head.field_text("accept"))
            }
        }
    }
}
