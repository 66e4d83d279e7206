//! The request handler of the data browser: checks the client, then runs on a worker.

use std::rc::Rc;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_server::{Answer, Body, Clock, Done, Incoming, Outgoing, Retained, Work};

use super::access::{Admission, DataViewer, decide};
use super::address::Place;
use super::csv::CsvReader;
use super::page::{secured, style};
use super::request::{BrowserRequest, BrowserState, busy, not_found};
use super::row_list::ListArguments;
use super::{audit_page, edit, row_form, row_list, table_list};
use crate::app_state::AppState;
use crate::arguments::form_fields;
use crate::methods::Methods;
use crate::origin::may_be_foreign;
use crate::respond::{RequestSummary, Response, ResponseWriter, write_panic_response};
use crate::subsystem::MountedHandler;
use crate::tables::Tables;

/// The handler of all paths of the data browser.
pub(super) struct DataBrowserEndpoint(pub(super) Arc<BrowserState>);

/// One request of the data browser, for a worker.
struct BrowserWork {
    viewer: DataViewer,
    state: Arc<BrowserState>,
    app: Arc<AppState>,
}

/// The longest form, in bytes.
const MAX_FORM: u64 = 1 << 20;

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
        Place::Csv(table) => export(request, table),
        Place::NewRow(table) if is_post => edit::insert(request, table),
        Place::NewRow(table) => row_form::new_row(request, table),
        Place::Row(table, id) if is_post => edit::update(request, table, id),
        Place::Row(table, id) => row_form::row(request, table, id),
        Place::Removal(table, id) if is_post => edit::remove(request, table, id),
        Place::Removal(table, id) => row_form::removal(request, table, id),
    }
}

/// Streams a table as CSV.
fn export(request: &BrowserRequest<'_>, table: &str) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    if snapshot.table_named(table).is_none() {
        return Err(not_found());
    }
    let Some(permit) = request.state.exports.begin() else {
        return Err(busy("Other downloads are running; try again."));
    };
    // A file name of plain letters needs no encoding (RFC 6266 section 4.1).
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = table.chars().map(plain).collect();
    let reader = CsvReader::new(snapshot, table, permit);
    Ok(secured(Response::reader("text/csv; charset=utf-8; header=present", reader))
        .with_header("Content-Disposition", format!("attachment; filename=\"{name}.csv\"")))
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
