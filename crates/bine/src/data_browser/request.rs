//! A request of the data browser, as its pages see it.

use std::sync::Arc;

use bine_http::Status;

use super::access::DataViewer;
use super::limiter::Limiter;
use crate::respond::Response;
use crate::store::Store;
use crate::templates::Templates;

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct BrowserState {
    /// The names of the program's own tables. Only their rows can be changed here.
    own_tables: Box<[String]>,
    pub(super) searches: Arc<Limiter>,
    pub(super) exports: Arc<Limiter>,
}

/// The parts of a request that its page needs.
pub(super) struct BrowserRequest<'r> {
    pub(super) viewer: &'r DataViewer,
    pub(super) state: &'r BrowserState,
    pub(super) store: &'r Store,
    /// The fields of the query, and those of the form in a POST.
    pub(super) query: Vec<(String, String)>,
    pub(super) form: Option<Vec<(String, String)>>,
}

/// Searches without an index that run at a time.
const MAX_SEARCHES: usize = 2;
/// CSV downloads that run at a time. Each one keeps a snapshot of all tables.
const MAX_EXPORTS: usize = 4;

impl BrowserState {
    pub(super) fn new(own_tables: Box<[String]>) -> Self {
        let (searches, exports) = (Limiter::new(MAX_SEARCHES), Limiter::new(MAX_EXPORTS));
        Self { own_tables, searches, exports }
    }

    /// Whether the rows of this table can be changed here.
    pub(super) fn is_editable(&self, table: &str) -> bool {
        self.own_tables.iter().any(|own| own == table)
    }
}

impl BrowserRequest<'_> {
    /// The value of a field of the query; empty without the field.
    pub(super) fn argument(&self, name: &str) -> &str {
        let field = self.query.iter().find(|(own, _)| own == name);
        field.map_or("", |(_, value)| value)
    }
}

/// The response to a path that does not exist.
pub(super) fn not_found() -> Response {
    Response::error(Status::NOT_FOUND, Templates::NOT_FOUND_MESSAGE)
}

/// The response while too many operations of one kind run.
pub(super) fn busy(message: &'static str) -> Response {
    Response::error(Status::SERVICE_UNAVAILABLE, message).with_header("Retry-After", "1")
}
