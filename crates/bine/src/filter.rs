//! Decides what stands between a request and its route: filters, in the order in which the program names them.

use std::sync::Arc;

use bine_http::{Head, Method};
use bine_server::{Clock, Done, Incoming, Outgoing, Peer, Retained, Work};

use crate::request_session::{SessionProvider, look_at_user};
use crate::respond::Response;
use crate::trace::RequestDependency;

/// A look at every request before its route is chosen.
///
/// It runs on the connection's own loop and must not block. A request with content is seen twice if its handler
/// takes the content: when its head is there, and when all of it is.
///
/// ```
/// use bine::{Filter, Response, Seen, Status, Verdict};
///
/// /// Keeps what is not ready from everybody else.
/// struct Curtain;
///
/// impl Filter for Curtain {
///     fn filter(&self, request: &Seen<'_>) -> Verdict {
///         match request.path() {
///             path if !path.starts_with("/next/") => Verdict::Pass,
///             _ if request.peer().is_local() => Verdict::Pass,
///             _ => Verdict::Answer(Response::refusal(Status::NOT_FOUND, "Not yet.")),
///         }
///     }
/// }
/// ```
pub trait Filter: Send + Sync + 'static {
    /// Says how the request goes on.
    fn filter(&self, request: &Seen<'_>) -> Verdict;
}

/// How a request goes on behind a filter.
#[derive(Debug)]
pub enum Verdict {
    /// To the next filter, then to its route.
    Pass,
    /// The same, under another path and query, such as `/forum/7?page=2`. It stands in an address as it is: what
    /// must be encoded is encoded.
    Rewrite(String),
    /// It is answered.
    Answer(Response),
}

/// A request as a filter sees it.
pub struct Seen<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) path: &'a str,
    /// Of a program that has some.
    pub(crate) sessions: Option<&'a Arc<dyn SessionProvider>>,
}

impl<'a> Seen<'a> {
    /// The path, decoded.
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// The query as it was sent.
    pub fn query(&self) -> Option<&'a str> {
        self.incoming.head.query()
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.incoming.head.method()
    }

    /// The host and port that the peer wants.
    pub fn host(&self) -> Option<&'a str> {
        self.incoming.head.authority()
    }

    /// The first field called `name`, if it is UTF-8.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        let field = self.incoming.head.field_text(name);
        // An empty field is not none.
        let seen = || field.map_or_else(|| name.to_owned(), |value| [name, ":", value].concat());
        RequestDependency::Filtered.note(|| seen().into_bytes());
        field
    }

    /// Where it came from.
    pub fn peer(&self) -> Peer {
        RequestDependency::Filtered.note(|| format!("{:?}", self.incoming.peer).into_bytes());
        self.incoming.peer
    }

    /// Who has [logged in](crate::Session::log_in), if the cookie says so. What a page answers behind it to a user is for
    /// that user alone, as if it took a [`User`](crate::User).
    pub fn user(&self) -> Option<&'a str> {
        look_at_user(self.sessions, self.incoming)
    }
}

/// The head of a request under another target.
pub(crate) fn rewritten(head: &Head<'_>, target: &str) -> Option<Vec<u8>> {
    let behind = head.method().as_str().len() + 1;
    let (method, rest) = head.raw().split_at(behind);
    let rest = &rest[head.target().len()..];
    Some([method, target.as_bytes(), rest].concat()).filter(|_| target.starts_with('/'))
}

/// A handler's work under the head that a filter has rewritten.
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
