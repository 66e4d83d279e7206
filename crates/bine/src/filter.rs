//! Filters: code that sees each request before the router, in the order in which the program adds
//! them.

use std::sync::Arc;

use bine_http::{Head, Method};
use bine_server::{ClientAddress, Clock, Done, Incoming, Outgoing, Retained, Work};

use crate::request_session::{SessionProvider, look_at_user};
use crate::respond::Response;
use crate::response_notes::note_field;
use crate::trace::RequestDependency;

/// Inspects each request before it is routed.
///
/// A filter runs on the event loop of the connection and must not block. If a handler takes the
/// request's body, filters run twice for that request: after the head, and after the complete body.
///
/// ```
/// use bine::{Filter, FilterDecision, FilterRequest, Response, Status};
///
/// /// Hides unreleased pages from clients on other machines.
/// struct Curtain;
///
/// impl Filter for Curtain {
///     fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
///         match request.path() {
///             path if !path.starts_with("/next/") => FilterDecision::Continue,
///             _ if request.client_address().is_local() => FilterDecision::Continue,
///             _ => FilterDecision::Respond(Response::error(Status::NOT_FOUND, "Not yet.")),
///         }
///     }
/// }
/// ```
pub trait Filter: Send + Sync + 'static {
    /// Decides how the request continues.
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision;
}

/// A filter's decision about a request.
#[derive(Debug)]
pub enum FilterDecision {
    /// Continue with the next filter, then with the route.
    Continue,
    /// Continue with a new path and query, such as `/forum/7?page=2`. The target is used as given:
    /// encode what must be encoded.
    Rewrite(String),
    /// Follow this other decision, and set these fields of the response. A field replaces one of the
    /// same name that the response has, except `Link`, `Set-Cookie` and `Vary`, which are added. A
    /// response that waits for messages does not get them.
    ///
    /// ```
    /// use bine::{Filter, FilterDecision, FilterRequest};
    ///
    /// /// Keeps previews out of search engines.
    /// struct Previews;
    ///
    /// impl Filter for Previews {
    ///     fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
    ///         if !request.path().starts_with("/preview/") {
    ///             return FilterDecision::Continue;
    ///         }
    ///         let fields = vec![("X-Robots-Tag".to_owned(), "noindex".to_owned())];
    ///         FilterDecision::SetHeaders(fields, Box::new(FilterDecision::Continue))
    ///     }
    /// }
    /// ```
    SetHeaders(Vec<(String, String)>, Box<Self>),
    /// Send this response.
    Respond(Response),
}

/// A request as a filter sees it.
pub struct FilterRequest<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) path: &'a str,
    /// The session store, in a program with sessions.
    pub(crate) sessions: Option<&'a Arc<dyn SessionProvider>>,
}

impl<'a> FilterRequest<'a> {
    /// The decoded path.
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// The request as the server has received it.
    #[cfg(feature = "script")]
    pub(crate) const fn incoming(&self) -> &'a Incoming<'a> {
        self.incoming
    }

    /// The session store, in a program with sessions.
    #[cfg(feature = "script")]
    pub(crate) const fn sessions(&self) -> Option<&'a Arc<dyn SessionProvider>> {
        self.sessions
    }

    /// The query as it was sent.
    pub fn query(&self) -> Option<&'a str> {
        self.incoming.head.query()
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.incoming.head.method()
    }

    /// The requested host and port.
    pub fn host(&self) -> Option<&'a str> {
        self.incoming.head.authority()
    }

    /// The first header field called `name`, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let field = self.incoming.head.field_text(name);
        // An empty field and a missing field must have different keys.
        let seen = || field.map_or_else(|| name.to_owned(), |value| [name, ":", value].concat());
        RequestDependency::Filtered.note(|| seen().into_bytes());
        note_field(name);
        field
    }

    /// The address of the client.
    pub fn client_address(&self) -> ClientAddress {
        RequestDependency::Filtered.note(|| format!("{:?}", self.incoming.peer).into_bytes());
        self.incoming.peer
    }

    /// The [logged-in](crate::Session::log_in) user, if the cookie identifies one. Afterwards the
    /// page's response belongs to that user alone, as if the page took a [`User`](crate::User).
    pub fn user(&self) -> Option<&'a str> {
        look_at_user(self.sessions, self.incoming)
    }
}

/// Replaces the target in the head of a request.
pub(crate) fn rewritten(head: &Head<'_>, target: &str) -> Option<Vec<u8>> {
    let behind = head.method().as_str().len() + 1;
    let (method, rest) = head.raw().split_at(behind);
    let rest = &rest[head.target().len()..];
    Some([method, target.as_bytes(), rest].concat()).filter(|_| target.starts_with('/'))
}

/// A handler's work for a request whose target a filter has rewritten.
pub(crate) struct Rewritten {
    pub(crate) work: Arc<dyn Work>,
    pub(crate) request: Retained,
}

impl Work for Rewritten {
    fn run(&self, _request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        self.work.run(&self.request, clock, out)
    }

    fn failed(&self, _request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        let mut request = self.request.incoming();
        request.exchange.keep_alive = false;
        self.work.failed(&request, clock, out);
    }

    fn name(&self) -> &'static str {
        self.work.name()
    }
}
