//! The request handler of the data browser: checks the client, then runs on a worker.

use std::rc::Rc;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_server::{Answer, Body, Clock, Done, Incoming, Outgoing, Retained, Work};

use super::access::{Admission, Viewer, decide};
use super::address::Place;
use super::csv::CsvReader;
use super::limiter::Limiter;
use super::page::{secured, style};
use super::row_list::ListArguments;
use super::{audit_page, edit, row_form, row_list, table_list};
use crate::app_state::AppState;
use crate::arguments::form_fields;
use crate::methods::Methods;
use crate::origin::may_be_foreign;
use crate::respond::{RequestSummary, Response, ResponseWriter, write_panic_response};
use crate::store::Store;
use crate::subsystem::MountedHandler;
use crate::tables::Tables;
use crate::templates::Templates;

/// The handler of all paths of the data browser.
pub(super) struct DataBrowserEndpoint(pub(super) Arc<BrowserState>);

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct BrowserState {
    /// The names of the program's own tables. Only their rows can be changed here.
    own_tables: Box<[String]>,
    pub(super) searches: Arc<Limiter>,
    exports: Arc<Limiter>,
}

/// One request of the data browser, for a worker.
struct BrowserWork {
    viewer: Viewer,
    state: Arc<BrowserState>,
    app: Arc<AppState>,
}

/// The parts of a request that its page needs.
pub(super) struct BrowserRequest<'r> {
    pub(super) viewer: &'r Viewer,
    pub(super) state: &'r BrowserState,
    pub(super) store: &'r Store,
    /// The fields of the query, and those of the form in a POST.
    pub(super) query: Vec<(String, String)>,
    pub(super) form: Option<Vec<(String, String)>>,
}

/// The longest form, in bytes.
const MAX_FORM: u64 = 1 << 20;
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

impl MountedHandler for DataBrowserEndpoint {
    fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let answer = |response: Response, out: &mut Outgoing<'_>| {
            response.answer(RequestSummary::by(request), clock, &app.templates, out)
        };
        let viewer = match decide(request, app) {
            Admission::Admit(viewer) => viewer,
            Admission::RequireLogin => {
                let message = "Log in as an administrator to see this.";
                return answer(Response::error(Status::UNAUTHORIZED, message), out);
            }
            Admission::Hide => return answer(not_found(), out),
        };
        let Some(place) = Place::of(path) else { return answer(not_found(), out) };
        match request.head.method() {
            Method::Get | Method::Head => {}
            Method::Post if place.has_form() => {
                if may_be_foreign(&request.head) {
                    let message = "A page of another site may not send this here.";
                    return answer(Response::error(Status::FORBIDDEN, message), out);
                }
                if matches!(request.body, Body::Pending) {
                    return Answer::Collect { limit: MAX_FORM, on_disk: false };
                }
            }
            method => {
                let post = if place.has_form() { Methods::POST } else { Methods::GET };
                return answer(Response::allowing(method, Methods::GET.or(post)), out);
            }
        }
        let (state, app) = (Arc::clone(&self.0), Arc::clone(app));
        Answer::Work(Arc::new(BrowserWork { viewer, state, app }))
    }
}

impl BrowserWork {
    fn response(&self, request: &Incoming<'_>) -> Response {
        let path = request.head.path();
        let store = self.app.states.find::<Tables>().and_then(Tables::opened);
        let (Some(place), Some(store)) = (Place::of(&path), store) else { return not_found() };
        let query = request.head.query().unwrap_or_default();
        let form = || -> Result<_, String> {
            let query = form_fields("", query.as_bytes())?;
            let kind = request.head.field_text("content-type").unwrap_or_default();
            let form = match request.body {
                _ if request.head.method() != Method::Post => None,
                Body::InMemory(bytes) => Some(form_fields(kind, bytes)?),
                _ => Some(Vec::new()),
            };
            Ok((query, form))
        };
        let (query, form) = match form() {
            Ok(fields) => fields,
            Err(reason) => return Response::error(Status::BAD_REQUEST, reason),
        };
        let request =
            BrowserRequest { viewer: &self.viewer, state: &self.state, store, query, form };
        respond(place, &request).unwrap_or_else(|response| response)
    }
}

/// The response to a request for a page, or an error response.
fn respond(place: Place<'_>, request: &BrowserRequest<'_>) -> Result<Response, Response> {
    let is_post = request.form.is_some();
    match place {
        Place::Style => Ok(style()),
        Place::Tables => Ok(table_list::respond(request)),
        Place::Audit => audit_page::respond(request),
        Place::Rows(table) => row_list::respond(request, table, &ListArguments::of(request)),
        Place::Csv(table) => request.export(table),
        Place::NewRow(table) if is_post => edit::insert(request, table),
        Place::NewRow(table) => row_form::new_row(request, table),
        Place::Row(table, id) if is_post => edit::update(request, table, id),
        Place::Row(table, id) => row_form::row(request, table, id),
        Place::Removal(table, id) if is_post => edit::remove(request, table, id),
        Place::Removal(table, id) => row_form::removal(request, table, id),
    }
}

impl BrowserRequest<'_> {
    /// The value of a field of the query; empty without the field.
    pub(super) fn argument(&self, name: &str) -> &str {
        let field = self.query.iter().find(|(own, _)| own == name);
        field.map_or("", |(_, value)| value)
    }

    /// Streams a table as CSV.
    fn export(&self, table: &str) -> Result<Response, Response> {
        let snapshot = self.store.read().without_tracking();
        if snapshot.table_named(table).is_none() {
            return Err(not_found());
        }
        let Some(permit) = self.state.exports.begin() else {
            return Err(busy("Other downloads are running; try again."));
        };
        // A file name of plain letters needs no encoding (RFC 6266 section 4.1).
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = table.chars().map(plain).collect();
        let reader = CsvReader::new(snapshot, table, permit);
        Ok(secured(Response::reader("text/csv; charset=utf-8; header=present", reader))
            .with_header("Content-Disposition", format!("attachment; filename=\"{name}.csv\"")))
    }
}

impl Work for BrowserWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let incoming = request.incoming();
        let response = self.response(&incoming);
        let asked = RequestSummary::by(&incoming);
        ResponseWriter::new(out, asked, clock, usize::MAX, &self.app.templates).finish(response)
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        write_panic_response(RequestSummary::by(request), clock, &self.app.templates, out);
    }

    fn name(&self) -> &'static str {
        "data browser"
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
