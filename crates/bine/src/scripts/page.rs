//! The pages of applications: runs the function of a page, and writes its markup.

use std::rc::Rc;
use std::sync::Arc;

use bine_html::{Page, Render as _, Tree, Writer};
use bine_http::{Finished, Status};
use bine_log as log;
use bine_script::{Function, Markup, MarkupPart, Value};

use super::application::{Application, PageListing};
use super::browser_files::ModuleRequest;
use super::call_state::CallState;
use super::instance::{LocalApplication, local};
use super::{faults, field_errors, tree_page};
use crate::error::Error;
use crate::live::{self, RegionReads};
use crate::respond::{
    CHALLENGE, PageExt as _, PageResponse, Respond, Response, ResponseWriter, note, numbered,
};
use crate::service::Caller;
use crate::visitor_message::VisitorMessage;

/// A request for a page of an application.
pub(super) struct PageCall {
    pub(super) app: Arc<Application>,
    pub(super) listing: Arc<PageListing>,
    /// The position of the page in the listing; `None`: no page has the path.
    pub(super) page: Option<usize>,
    /// The module of the browser at the path.
    pub(super) module: Option<ModuleRequest>,
    /// Parameters of the path and the query.
    pub(super) parameters: Value,
    pub(super) caller: Caller,
    /// Whether errors show their causes.
    pub(super) develops: bool,
    /// The name of the route.
    pub(super) handler: &'static str,
}

impl PageCall {
    /// Renders the page, or the application's page for the error.
    pub(super) async fn answer(self) -> Result<ScriptReply, Error> {
        let Self { app, listing, page, module, parameters, caller, develops, handler } = self;
        listing.rule.admit_caller(&caller)?;
        // A failure of the compiler is in the log, and the module is not found.
        let compile = || drop(app.generation());
        let response = module.and_then(|module| module.response(&app.browser_files, compile));
        if let Some(response) = response {
            return Ok(ScriptReply::Module(response));
        }
        let _place = app.place(&caller, handler).await?;
        let local = local(&app, &caller).await?;
        let runner = Rc::<LocalApplication>::clone(&local);
        let state = CallState::new(caller, true, runner);
        CallState::record_signal(&app.changed);
        let call = PageRender { local: &local, state: &state };
        let file = page.map(|page| listing.app.files[page].file.as_str());
        let answer = call.page(file, parameters).await;
        if develops {
            for large in local.instance.take_large_captures() {
                log::warn(format_args!("{}: {large}", app.name()));
            }
        }
        match answer {
            Err(error)
                if error.location().is_none()
                    && !(develops && error.code().code() >= 500)
                    && state.reads_error_pages() =>
            {
                if local.instance.retired().is_none() {
                    return call.error_page(error).await;
                }
                // An instance that has exceeded a limit renders no page any more: the next one does.
                let Ok(caller) = state.caller() else { return Err(error) };
                let Ok(next) = self::local(&app, caller).await else { return Err(error) };
                PageRender { local: &next, state: &state }.error_page(error).await
            }
            answer => answer,
        }
    }
}

/// The calls of one request for a page.
struct PageRender<'r> {
    local: &'r Rc<LocalApplication>,
    state: &'r Rc<CallState>,
}

impl PageRender<'_> {
    async fn page(&self, file: Option<&str>, parameters: Value) -> Result<ScriptReply, Error> {
        let function = file.and_then(|file| self.local.pages.get(file));
        let function = function
            .ok_or_else(|| Error::told(Status::NOT_FOUND, VisitorMessage::NothingHere {}))?;
        let result = self.call(function, parameters).await?;
        match result {
            Value::Html(markup) => {
                Ok(ScriptReply::Page(self.page_of(ScriptContent::Markup(markup))))
            }
            Value::Tree(tree) => Ok(ScriptReply::Page(self.page_of(ScriptContent::Tree(tree)))),
            other => match Answer::of(&other) {
                Some(Answer::Redirect(location)) => {
                    Ok(ScriptReply::Redirect(Rc::clone(self.state), location))
                }
                Some(Answer::Error(error)) => Err(error),
                None => Err(Error::hidden(
                    Status::INTERNAL_SERVER_ERROR,
                    format!(
                        "a page returns markup, a tree, `redirect(..)`, `notFound()` or `error(..)`, not {}",
                        other.kind()
                    ),
                )),
            },
        }
    }

    /// The error in the page of the application for errors, if it has one.
    async fn error_page(&self, error: Error) -> Result<ScriptReply, Error> {
        let Some(function) = &self.local.error_page else { return Err(error) };
        let (status, words) = (error.code(), self.state.words());
        // The log has the error, even if its page fails as well.
        let message = match note(status, &error) {
            Some(number) => numbered(&error, &number, &words),
            None => error.message_in(&words).into_owned(),
        };
        let title = words.title(status);
        self.state.use_title(title.clone());
        let about = Value::Object(vec![
            ("status".to_owned(), Value::Number(status.code().into())),
            ("title".to_owned(), Value::Text(title)),
            ("message".to_owned(), Value::Text(message)),
        ]);
        match self.call(function, about).await {
            Ok(Value::Html(markup)) => {
                Ok(ScriptReply::Failed(self.page_of(ScriptContent::Markup(markup)), error))
            }
            Ok(Value::Tree(tree)) => {
                Ok(ScriptReply::Failed(self.page_of(ScriptContent::Tree(tree)), error))
            }
            Ok(other) => {
                let kind = other.kind();
                log::error(format_args!("`_error.tsx` returns {kind} in place of markup"));
                Err(error)
            }
            Err(failure) => {
                log::error(format_args!("`_error.tsx` has failed: {failure:?}"));
                Err(error)
            }
        }
    }

    async fn call(&self, function: &Function, argument: Value) -> Result<Value, Error> {
        let Self { local, state } = self;
        let context = Rc::<CallState>::clone(state);
        let call = local.instance.call_within(function, &[argument], context);
        call.await.map_err(|fault| faults::of_call(&local.generation, state, &fault))
    }

    fn page_of(&self, content: ScriptContent) -> ScriptPage {
        ScriptPage::new(self.local, self.state, content)
    }
}

/// The answer of a page.
pub(super) enum ScriptReply {
    Page(ScriptPage),
    /// An error in the page of the application for errors.
    Failed(ScriptPage, Error),
    Redirect(Rc<CallState>, String),
    /// A module of the browser.
    Module(Response),
}

/// The result of the function of a page.
pub(super) enum ScriptContent {
    Markup(Markup),
    /// A whole document.
    Tree(Tree),
}

/// The content of a page.
pub(super) struct ScriptPage {
    content: ScriptContent,
    /// The title of a page without its own document.
    title: String,
    regions: Vec<Option<RegionReads>>,
    state: Rc<CallState>,
    /// The version of the application.
    version: u64,
    /// Whether it is compressed; `None`: the configuration of the server decides.
    compression: Option<bool>,
}

impl ScriptPage {
    /// The page with the content that a call has returned.
    pub(super) fn new(
        local: &LocalApplication,
        state: &Rc<CallState>,
        content: ScriptContent,
    ) -> Self {
        let usual = || local.generation.app.settings.title.clone().unwrap_or_default();
        let title = state.title().unwrap_or_else(usual);
        let content = match content {
            ScriptContent::Tree(tree) => ScriptContent::Tree(tree_page::document(tree, &title)),
            markup @ ScriptContent::Markup(_) => markup,
        };
        let version = local.generation.version;
        let compression = state.compression().or(local.generation.app.settings.compression);
        let regions = state.take_regions();
        Self { content, title, regions, state: Rc::clone(state), version, compression }
    }

    /// The page as the response, with the settings of its application.
    fn into_response(self) -> PageResponse<Self> {
        let (version, compression) = (self.version, self.compression);
        let response = self.without_layout().of_version(version);
        match compression {
            Some(is_compressed) => response.with_compression(is_compressed),
            None => response,
        }
    }

    /// Writes the page as the response of a service.
    pub(super) fn answer(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        self.into_response().respond(to)
    }
}

/// An answer that is no page and no value: `redirect`, `notFound` or `error` of a script.
pub(super) enum Answer {
    Redirect(String),
    Error(Error),
}

impl Answer {
    /// The answer in a result, if it is one.
    pub(super) fn of(result: &Value) -> Option<Self> {
        let Some(Value::Number(status)) = result.property("$status") else { return None };
        if let Some(location) = result.property("location").and_then(Value::as_text) {
            return Some(Self::Redirect(location.to_owned()));
        }
        #[expect(clippy::cast_sign_loss, reason = "a negative status becomes 0, which is none")]
        let status = Status::new(*status as u16)?;
        let message = result.property("message").and_then(Value::as_text).unwrap_or_default();
        if let Some(cause) = result.property("cause").and_then(Value::as_text) {
            return Some(Self::Error(Error::hidden(status, cause.to_owned())));
        }
        if let Some(Value::Array(errors)) = result.property("errors") {
            let wrong = errors.iter().filter_map(field_errors::read).collect();
            return Some(Self::Error(Error::of_arguments(status, wrong)));
        }
        Some(Self::Error(match (status, message) {
            (Status::NOT_FOUND, "") => Error::told(status, VisitorMessage::NothingHere {}),
            (status, message) => Error::status(status, message),
        }))
    }
}

impl Respond for ScriptReply {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        match self {
            Self::Page(page) => {
                to.override_session(page.state.used_session());
                page.into_response().respond(to)
            }
            Self::Failed(page, error) => {
                to.override_session(page.state.used_session());
                let (status, (name, value)) = (error.code(), CHALLENGE);
                let page = page.into_response().with_status(status);
                // The response depends on the `Accept` field.
                let page = page.with_header("Vary", "Accept");
                match status {
                    Status::UNAUTHORIZED => page.with_header(name, value).respond(to),
                    _ => page.respond(to),
                }
            }
            Self::Redirect(state, location) => {
                to.override_session(state.used_session());
                Response::see_other(location).respond(to)
            }
            Self::Module(response) => response.respond(to),
        }
    }
}

impl Page for ScriptPage {
    fn write(self, writer: &mut Writer<'_>) {
        let markup = match self.content {
            ScriptContent::Markup(markup) => markup,
            // Its elements have no position in the source of the server.
            ScriptContent::Tree(tree) => {
                return writer.without_inspection(|writer| tree.render(writer));
            }
        };
        let mut parts = markup.parts().peekable();
        let is_document = match parts.peek() {
            Some(MarkupPart::Text(text)) => begins_document(text),
            _ => false,
        };
        if !is_document {
            writer.constant("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
            writer.text(&self.title);
            writer.constant("</title>");
            writer.end_head();
            writer.constant("</head><body>");
        }
        write_parts(&mut parts, &self.regions, writer);
        if !is_document {
            writer.constant("</body></html>");
        }
    }

    fn is_this_document(&self) -> bool {
        match &self.content {
            // Markup of a script is HTML only.
            ScriptContent::Markup(_) => false,
            ScriptContent::Tree(tree) => tree.is_this_document(),
        }
    }
}

/// Whether markup is a whole document: the compiler writes this line before each `<html>`.
fn begins_document(markup: &str) -> bool {
    markup.starts_with("<!DOCTYPE html>")
}

/// Writes parts up to the end of the region that they are in, or up to their own end.
fn write_parts<'m>(
    parts: &mut impl Iterator<Item = MarkupPart<'m>>,
    regions: &[Option<RegionReads>],
    writer: &mut Writer<'_>,
) {
    while let Some(part) = parts.next() {
        match part {
            MarkupPart::Text(text) => writer.trusted(text),
            MarkupPart::HeadEnd => writer.end_head(),
            MarkupPart::RegionEnd => return,
            MarkupPart::RegionStart(number) => {
                let reads = regions.get(number as usize).copied().flatten();
                writer.region(
                    |writer| write_parts(parts, regions, writer),
                    |region| live::seen_after(region, reads),
                );
            }
        }
    }
}
