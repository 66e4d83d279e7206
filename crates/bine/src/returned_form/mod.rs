//! Returns a rejected form to a browser without script: its page again, with the values that were
//! sent and the messages at their fields.
//!
//! The page is requested again on behalf of the visitor, through the whole program with its filters,
//! and its markup is edited. So it needs no state between requests, and no session. The page is the one
//! that a successful call redirects to: an action has it sealed in its address, and for a service it is
//! the `Referer`. A hidden field would be an argument of the service, and a client could set it. The
//! returned page has the address of the service, so its forms name the page in their query.

mod markup;

use std::borrow::Cow;
use std::sync::Arc;
use std::thread;

use bine_http::query;
use bine_http::{Finished, Head, Method, Status};
use bine_log as log;
use bine_server::{Body, Incoming, Retained, answer_internally};
use tokio::runtime::Builder;

use markup::{FieldMessage, PAGE, RejectedForm, return_form};

use crate::accept::prefers_pages;
use crate::app_state::AppState;
use crate::arguments::text_fields;
use crate::error::Error;
use crate::origin;
use crate::page_request::page_request;
use crate::respond::{Respond, Response, ResponsePreference, ResponseWriter};

/// The longest page that is edited, in bytes.
const MAX_PAGE: usize = 4 << 20;

/// Fields of the page's response that do not hold for the edited page, or that the server writes.
const OTHER_FIELDS: [&str; 11] = [
    "accept-ranges",
    "cache-control",
    "connection",
    "content-length",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "strict-transport-security",
    "transfer-encoding",
    "www-authenticate",
];

/// The request by which a form was sent.
pub(crate) trait FormRequest: Send + Sync {
    /// The request, without its body.
    fn request(&self) -> &Retained;

    /// The values that all requests of the program share.
    fn app(&self) -> &AppState;

    /// Opens what an action has sealed for this purpose and the session of the request.
    fn open_seal(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>>;
}

/// A form that a browser without script has sent, in case that the call rejects it.
pub(crate) struct SentForm {
    sender: Arc<dyn FormRequest>,
    /// Path and query of the page of the form.
    page: String,
    fields: Vec<(String, String)>,
    /// The name and the content of the action, if it is one.
    action: Option<(&'static str, Vec<u8>)>,
}

/// The page of a rejected form, before its markup is edited.
pub(crate) struct FormPage {
    form: SentForm,
    fields: Vec<(String, String)>,
    markup: String,
}

/// The form of a page that takes it, and the part of the request that its page needs.
struct SentToPage {
    request: Retained,
    app: Arc<AppState>,
}

impl FormRequest for SentToPage {
    fn request(&self) -> &Retained {
        &self.request
    }

    fn app(&self) -> &AppState {
        &self.app
    }

    /// The form of an action is sent to the action.
    fn open_seal(&self, _purpose: &str, _sealed: &str) -> Option<Vec<u8>> {
        None
    }
}

impl SentForm {
    /// The form that was sent to a page. `None`: no browser without script has sent it, or its page
    /// is unknown.
    pub(crate) fn to_page(request: &Incoming<'_>, app: &Arc<AppState>) -> Option<Box<Self>> {
        let head = &request.head;
        let reads_pages = prefers_pages(head.field_text("accept"));
        if !reads_pages || head.method() != Method::Post || origin::may_be_foreign(head) {
            return None;
        }
        let page = calling_page(head, app);
        let preference = ResponsePreference { reads_pages, is_safe: false, page };
        let fields = text_fields(request)?;
        let request = Retained::of(&Incoming { body: Body::None, ..*request });
        let sender = Arc::new(SentToPage { request, app: Arc::clone(app) });
        Self::of(sender, &preference, Some(&fields), None)
    }

    /// Renders the page of the form on its own thread, and waits for it: for a handler that may
    /// block.
    pub(crate) fn render_blocking(self: Box<Self>, error: &Error) -> Option<Box<FormPage>> {
        thread::scope(|scope| {
            let render = || {
                let runtime = Builder::new_current_thread().enable_all().build().ok()?;
                runtime.block_on(self.render(error))
            };
            let thread = thread::Builder::new().name("form-page".to_owned());
            thread.spawn_scoped(scope, render).ok()?.join().ok()?
        })
    }

    /// The request that has sent the form.
    pub(crate) fn sender(&self) -> Arc<dyn FormRequest> {
        Arc::clone(&self.sender)
    }

    /// The form that made this call. `None`: no form made it, or its page is unknown.
    pub(crate) fn of(
        sender: Arc<dyn FormRequest>,
        preference: &ResponsePreference,
        fields: Option<&[(String, String)]>,
        action: Option<(&'static str, &[u8])>,
    ) -> Option<Box<Self>> {
        if !preference.reads_pages || preference.is_safe {
            return None;
        }
        let fields = fields?.to_vec();
        let page = preference.page.as_deref()?;
        let page = if page.starts_with('/') { page } else { origin::target_of(page)? };
        let action = action.map(|(name, content)| (name, content.to_vec()));
        Some(Box::new(Self { sender, page: page.to_owned(), fields, action }))
    }

    /// Renders the page of the form again, for an error that the visitor may correct. `None`: the page
    /// cannot be rendered.
    pub(crate) async fn render(self: Box<Self>, error: &Error) -> Option<Box<FormPage>> {
        let can_be_corrected = matches!(error.code().code(), 400 | 409 | 422);
        if !can_be_corrected || error.location().is_some() {
            return None;
        }
        let handler = self.sender.app().handler()?;
        let request = page_request(&self.sender.request().incoming(), &self.page).ok()?;
        let reply = Box::pin(answer_internally(&*handler, request)).await?;
        let (fields, markup) = read_page(reply)?;
        Some(Box::new(FormPage { form: *self, fields, markup }))
    }

    /// Whether an address in the page is that of this call.
    fn is_own(&self, address: &str) -> bool {
        let request = self.sender.request();
        let request = request.incoming();
        let Some((name, content)) = &self.action else {
            let path = |address: &str| address.split(['?', '#']).next().map(str::to_owned);
            return path(address) == path(request.head.target());
        };
        // Each render seals the same content in another way.
        let sealed = address.rsplit('/').next().unwrap_or_default();
        address.contains(name)
            && self.sender.open_seal(name, sealed).is_some_and(|opened| opened == *content)
    }
}

impl FormPage {
    /// Writes the page with the values and messages of the form. `None`: the page does not
    /// have the form.
    pub(crate) fn respond(
        &self,
        error: &Error,
        to: &mut ResponseWriter<'_, '_>,
    ) -> Option<Finished> {
        let Self { form, fields, markup } = self;
        let words = to.words();
        let texts: Vec<(String, Cow<'_, str>)> = error
            .arguments()
            .iter()
            .map(|own| {
                let label = own.label_in(&words).unwrap_or_else(|| own.name.clone());
                (label, words.text(&own.detail))
            })
            .collect();
        let errors = error.arguments().iter().zip(&texts);
        let errors: Vec<_> = errors
            .map(|(error, (label, text))| FieldMessage { name: &error.name, label, text })
            .collect();
        let message = error.message_in(&words);
        let targets = &form.sender.app().redirect_targets;
        let rejected = RejectedForm {
            page: &form.page,
            fields: &form.fields,
            errors: &errors,
            message: &message,
            is_own: &|address| form.is_own(address),
            is_service: &|path| {
                !path.starts_with("/_bine/")
                    && origin::is_path(path)
                    && (!targets.may_redirect_to(path) || (form.is_own(path) && form.page != path))
            },
        };
        let Some(markup) = return_form(markup, &rejected) else {
            log::debug(format_args!(
                "the page {} does not have the form that was rejected, so its visitor got the error page",
                form.page
            ));
            return None;
        };
        let status = match error.code() {
            Status::BAD_REQUEST => Status::UNPROCESSABLE_CONTENT,
            status => status,
        };
        if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            // The page has begun or renewed the session already.
            to.visitor_session = None;
        }
        let mut response = Response::bytes_of(markup.into_bytes()).with_status(status);
        for (name, value) in fields {
            response = response.with_header(name.clone(), value.clone());
        }
        // It contains what the visitor has entered.
        Some(response.with_header("Cache-Control", "no-store").respond(to))
    }
}

/// The header fields and the content of a page. `None`: the reply is something else.
fn read_page(reply: Vec<u8>) -> Option<(Vec<(String, String)>, String)> {
    let mut reply = String::from_utf8(reply).ok().filter(|reply| reply.len() <= MAX_PAGE)?;
    let end = reply.find("\r\n\r\n")?;
    let mut lines = reply[..end].split("\r\n");
    lines.next()?.strip_prefix("HTTP/1.1 200 ")?;
    let fields: Vec<(String, String)> = lines
        .map(|line| line.split_once(':'))
        .map(|field| field.map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
        .collect::<Option<_>>()?;
    let has = |own: &str, start: &str| {
        fields
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case(own) && value.starts_with(start))
    };
    if !has("content-type", "text/html")
        || !has("content-length", "")
        || has("content-encoding", "")
    {
        return None;
    }
    let is_kept = |(name, _): &(String, String)| {
        !OTHER_FIELDS.iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    Some((fields.into_iter().filter(is_kept).collect(), reply.split_off(end + 4)))
}

/// The page that has sent a form, for a redirect back to it. A page that answers POST cannot be
/// requested again.
pub(crate) fn calling_page(head: &Head<'_>, app: &AppState) -> Option<String> {
    let named = head.query().and_then(page_in_query);
    if let Some(page) = named.filter(|page| app.redirect_targets.may_redirect_to(page)) {
        return Some(page);
    }
    let page = origin::page_before(head)?;
    app.redirect_targets.may_redirect_to(origin::target_of(page)?).then(|| page.to_owned())
}

/// The page of the form in the query of its address, if the form is in a page that was returned.
fn page_in_query(query: &str) -> Option<String> {
    let (_, page) = query::pairs(query).find(|(name, _)| name.is(PAGE))?;
    page.decode().ok().filter(|page| origin::is_path(page)).map(Cow::into_owned)
}
