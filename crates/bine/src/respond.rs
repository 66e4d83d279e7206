//! Converts the value that a handler returns into an HTTP response.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Once};

use bine_files::NamedFile;
use bine_html::{Frozen, Page};
use bine_http::{BodyFraming, Date, Exchange, Finished, Method, Reply, SecurityHeaders, Status};
use bine_log as log;
use bine_server::{
    Answer, Clock, Done, FilePart, Follow, Incoming, Outgoing, ServerRefusal, Stream,
};

mod failure;
mod manner;
mod page;
mod page_response;

use failure::ErrorContent;
pub(crate) use failure::write_panic_response;
#[cfg(feature = "script")]
pub(crate) use failure::{CHALLENGE, note, numbered};
pub use manner::ResponsePreference;
use page::write_page;
pub use page_response::{PageExt, PageResponse};

use crate::error::Error;
use crate::inert;
use crate::languages::VisitorWords;
use crate::methods::Methods;
use crate::problem::ArgumentError;
use crate::rejection::Rejection;
use crate::render_context::RenderContext;
use crate::request_session::RequestSession;
pub(crate) use crate::request_summary::RequestSummary;
use crate::response_notes::note_compression;
use crate::security;
use crate::templates::{PageSettings, Templates};
use crate::visitor_message::{MessageText, VisitorMessage};

/// A type that a handler may return: a page, a [`Response`], [`Json`](crate::Json), or a `Result`
/// with one of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer to a request",
    note = "a page returns `impl Page`, a `Response`, `Json<T>`, or `Result<.., bine::Error>` with one of these"
)]
pub trait Respond {
    /// Writes the whole response.
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished;
}

/// Every type that a handler may return. `Kind` only separates the two implementations for the
/// compiler, which infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer to a request",
    note = "a page returns `impl Page`, a `Response`, `Json<T>`, or `Result<.., bine::Error>` with one of these"
)]
pub trait HandlerOutput<Kind> {
    /// Writes the whole response.
    fn reply(self, to: &mut ResponseWriter<'_, '_>) -> Finished;

    /// The value without its error, if it is one.
    #[doc(hidden)]
    fn or_error(self) -> Result<Self, Error>
    where
        Self: Sized,
    {
        Ok(self)
    }
}

/// The kind of a [`HandlerOutput`] that cannot fail.
#[derive(Debug)]
pub enum PlainOutput {}

/// The kind of a [`HandlerOutput`] that is a `Result`.
#[derive(Debug)]
pub enum ResultOutput {}

impl<R: Respond> HandlerOutput<PlainOutput> for R {
    #[inline]
    fn reply(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        self.respond(to)
    }
}

impl<R: Respond, E: Into<Error>> HandlerOutput<ResultOutput> for Result<R, E> {
    fn reply(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        match self {
            Ok(answer) => answer.respond(to),
            Err(error) => {
                let error = error.into();
                to.refuse(error.code(), &error)
            }
        }
    }

    fn or_error(self) -> Result<Self, Error> {
        self.map(Ok).map_err(Into::into)
    }
}

/// Writes the response to one request.
pub struct ResponseWriter<'r, 'o> {
    out: &'r mut Outgoing<'o>,
    asked: RequestSummary<'r>,
    date: Date,
    /// The same time in seconds since 1970.
    second: u64,
    /// The server sends a page longer than this in chunks.
    chunk_at: usize,
    templates: &'r Templates,
    /// The session that the handler has used, until the head is written.
    pub(crate) visitor_session: Option<Arc<dyn RequestSession>>,
    /// The part of the response that follows the written bytes, if any.
    pub(crate) follow: Option<Follow>,
}

impl<'r, 'o> ResponseWriter<'r, 'o> {
    pub(crate) fn new(
        out: &'r mut Outgoing<'o>,
        asked: RequestSummary<'r>,
        clock: &Clock,
        chunk_at: usize,
        templates: &'r Templates,
    ) -> Self {
        let (date, second) = (clock.date(), clock.unix());
        Self { out, asked, date, second, chunk_at, templates, visitor_session: None, follow: None }
    }

    /// Sets the session that the value of the handler has used by itself. Without one, that of the
    /// handler stays.
    pub(crate) fn override_session(&mut self, visitor_session: Option<Arc<dyn RequestSession>>) {
        self.visitor_session = visitor_session.or_else(|| self.visitor_session.take());
    }

    /// Adds the header fields of the session.
    pub(crate) fn complete<'t>(&mut self, top: &'t ResponseHead) -> Cow<'t, ResponseHead> {
        static WARNED: Once = Once::new();
        let Some(visitor_session) = self.visitor_session.take() else { return Cow::Borrowed(top) };
        let (mut top, fields) = (top.clone(), visitor_session.response_fields());
        // A shared cache would hand a stored cookie, and with it the session, to other clients.
        let sets_cookie = fields.iter().any(|(name, _)| *name == "Set-Cookie");
        if sets_cookie && top.is_shared() {
            top.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("cache-control"));
            WARNED.call_once(|| {
                log::warn(format_args!(
                    "a page with a session allows shared caches by `Cache-Control`: responses that set the cookie are sent as `private` instead"
                ));
            });
        }
        let has_cache_control = top.has("cache-control");
        for (name, value) in fields {
            if name != "Cache-Control" || !has_cache_control {
                top.fields.push((name.into(), value));
            }
        }
        Cow::Owned(top)
    }

    /// Sends a file, subject to the request's conditions and ranges.
    fn send_file(&mut self, mut file: NamedFile, top: &ResponseHead) -> Finished {
        // The first field is the media type, which the file sets itself.
        for (name, value) in &top.fields[1..] {
            if value.is_empty() && security::is_default(name) {
                continue;
            }
            if let Err(misuse) = file.add_field(name, value) {
                log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
        let (head, now) = (self.asked.conditions(), (self.second, self.date));
        let exchange = top.exchange(self.asked.exchange);
        self.follow = match file.respond(head, exchange, now, self.out.buffer) {
            Answer::File(part) => Some(Follow::File(part)),
            Answer::Stream(stream) => Some(Follow::Stream(stream)),
            _ => None,
        };
        Finished { close: !self.asked.exchange.keep_alive }
    }

    /// Sends a page that was rendered before, unless the client has it. Inserts the links that were
    /// unknown at that time at the end of the `<head>`.
    fn send_frozen(&mut self, frozen: &Frozen, top: &ResponseHead) -> Finished {
        let Exchange { method, keep_alive, .. } = self.asked.exchange;
        let (before, behind) = frozen.split_at_head_end().unwrap_or((frozen.bytes(), &[]));
        let links = self.templates.links.as_ref().filter(|_| !behind.is_empty());
        let parts = [before, links.map_or("", |links| links.markup()).as_bytes(), behind];
        let mut place = [0; 64];
        let tag = links.map_or(frozen.tag(), |links| links.tag_of(frozen.tag(), &mut place));
        let outcome = match self.asked.conditions() {
            Some(head)
                if top.status == Status::OK && matches!(method, Method::Get | Method::Head) =>
            {
                bine_files::evaluate_etag(&head, tag)
            }
            _ => None,
        };
        let status = outcome.unwrap_or(top.status);
        let exchange = top.exchange(self.asked.exchange);
        let mut reply = Reply::begin(self.out.buffer, exchange, status, &self.date);
        top.write_fields(&mut reply);
        if status != Status::PRECONDITION_FAILED {
            reply.field("ETag", tag).expect("quotes, digits and a dash");
        }
        if outcome.is_some() {
            reply.empty();
            return Finished { close: !keep_alive };
        }
        reply.static_lines(HTML);
        top.write_policy(self.templates, &mut reply);
        if status != Status::OK {
            reply.whole(&parts.concat());
            return Finished { close: !keep_alive };
        }
        let length: usize = parts.iter().map(|part| part.len()).sum();
        reply.content_length(length as u64);
        if method != Method::Head {
            // Draining piece by piece keeps the buffer as short as the part that the client has not
            // yet received.
            for piece in parts.iter().flat_map(|part| part.chunks(self.chunk_at.max(1))) {
                self.out.buffer.extend_from_slice(piece);
                if length > self.chunk_at {
                    (self.out.drain)(self.out.buffer);
                }
            }
        }
        Finished { close: !keep_alive }
    }

    /// The properties of the request that the response's framing depends on.
    pub(crate) const fn exchange(&self) -> Exchange {
        self.asked.exchange
    }

    /// The request, unless only its summary was kept.
    pub(crate) const fn request(&self) -> Option<&Incoming<'_>> {
        self.asked.request()
    }

    /// The buffer of the response, and its date.
    pub(crate) const fn output(&mut self) -> (&mut Vec<u8>, &Date) {
        (self.out.buffer, &self.date)
    }

    /// The words for the visitor.
    pub(crate) fn words(&self) -> VisitorWords {
        VisitorWords::of(self.templates.languages.as_ref(), self.asked.request())
    }

    /// The recorder of this page's actions, in a program with actions.
    fn context(&self) -> Option<Rc<RenderContext>> {
        let (keeper, request) = (self.templates.actions.as_ref()?, self.asked.request()?);
        RenderContext::of(request, self.visitor_session.as_ref(), keeper)
    }

    fn begin(&mut self, top: &ResponseHead) -> Reply<'_> {
        let exchange = top.exchange(self.asked.exchange);
        let mut reply = Reply::begin(self.out.buffer, exchange, top.status, &self.date);
        top.write_fields(&mut reply);
        reply
    }
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const XHTML: &str = "Content-Type: application/xhtml+xml; charset=utf-8\r\n";
const VARY: &str = "Vary: Accept\r\n";

impl<P: Page> Respond for P {
    #[inline]
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        write_page(self, &ResponseHead::of(Status::OK), &PageSettings::default(), to)
    }
}

/// The head of a response: a status, and the fields that a program adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResponseHead {
    status: Status,
    pub(crate) fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// Whether the content is compressed; `None`: the configuration decides.
    compression: Option<bool>,
}

impl ResponseHead {
    pub(crate) const fn of(status: Status) -> Self {
        Self { status, fields: Vec::new(), compression: None }
    }

    fn with_header(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Whether its `Cache-Control` field lets shared caches store it (RFC 9111 section 5.2.2).
    fn is_shared(&self) -> bool {
        let own = self.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        let mut words = own.flat_map(|(_, value)| value.split(',')).map(str::trim).peekable();
        let keeps_out =
            |word: &str| ["private", "no-store"].iter().any(|own| word.eq_ignore_ascii_case(own));
        words.peek().is_some() && !words.any(keeps_out)
    }

    /// Whether the head allows a conditional or partial response: status 200 and no second media
    /// type.
    fn is_of_a_file(&self) -> bool {
        let types =
            self.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        self.status == Status::OK && types.count() == 1
    }

    /// The exchange without the security headers that the fields replace, for the head that is written
    /// next.
    #[inline]
    fn exchange(&self, exchange: Exchange) -> Exchange {
        if let Some(compression) = self.compression {
            note_compression(compression);
        }
        let own = self.fields.iter().map(|(name, _)| SecurityHeaders::named(name));
        let security = own.fold(exchange.security, SecurityHeaders::without);
        Exchange { security, ..exchange }
    }

    /// Writes the content security policy of a page, unless the fields contain one.
    #[inline]
    fn write_policy(&self, templates: &Templates, reply: &mut Reply<'_>) {
        if let Some(policy) = templates.policy.get()
            && !self.fields.iter().any(|(name, _)| security::is_policy(name))
        {
            reply.field_lines(policy);
        }
    }

    fn write_fields(&self, reply: &mut Reply<'_>) {
        for (name, value) in &self.fields {
            if value.is_empty() && security::is_default(name) {
                continue;
            }
            if let Err(misuse) = reply.field(name, value) {
                // An invalid field is never sent. The rest of the response is, and the log names
                // the omitted field.
                log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
    }
}

/// Content of a response that a different module writes: one that is suspended, or that ends HTTP
/// on its connection.
pub(crate) trait CustomContent: fmt::Debug + Send + 'static {
    /// Writes the whole response, with the fields of `top` in its head.
    fn respond(self: Box<Self>, top: ResponseHead, to: &mut ResponseWriter<'_, '_>) -> Finished;
}

/// A response other than a page: text, bytes, a file, a stream, a redirect, a status.
#[derive(Debug)]
pub struct Response {
    top: ResponseHead,
    content: ResponseBody,
}

enum ResponseBody {
    Bytes(Cow<'static, [u8]>),
    File(Box<NamedFile>),
    /// A file that a user may have uploaded.
    Stored(Box<NamedFile>),
    Stream(Box<dyn FnOnce(BodyFraming) -> Stream + Send>),
    /// Content of a different module, which writes the response.
    Custom(Box<dyn CustomContent>),
    /// A page, which is rendered when the response is written.
    Page(Box<PageBody>),
    /// An error message, rendered as a page for clients that accept pages.
    Refusal(MessageText),
    /// The error message for an invalid argument.
    Invalid(Box<ArgumentError>),
}

/// Renders a page with a head.
type PageBody = dyn FnOnce(&ResponseHead, &mut ResponseWriter<'_, '_>) -> Finished + Send;

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::File(file) | Self::Stored(file) => file.fmt(f),
            Self::Stream(_) => f.write_str("a stream"),
            Self::Page(_) => f.write_str("a page"),
            Self::Custom(content) => content.fmt(f),
            Self::Refusal(words) => write!(f, "{words:?}"),
            Self::Invalid(argument) => argument.fmt(f),
        }
    }
}

impl Response {
    /// Creates an empty response.
    pub const fn status(status: Status) -> Self {
        Self { top: ResponseHead::of(status), content: ResponseBody::Bytes(Cow::Borrowed(b"")) }
    }

    /// Creates a response of plain text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        let bytes = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self::bytes("text/plain; charset=utf-8", bytes)
    }

    /// Creates a response of bytes whose media type is among its fields.
    pub(crate) fn bytes_of(bytes: Vec<u8>) -> Self {
        let content = ResponseBody::Bytes(Cow::Owned(bytes));
        Self { top: ResponseHead::of(Status::OK), content }
    }

    /// Creates a response of bytes with a media type.
    pub fn bytes(
        media_type: impl Into<Cow<'static, str>>,
        bytes: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        let top = ResponseHead::of(Status::OK).with_header("Content-Type", media_type);
        Self { top, content: ResponseBody::Bytes(bytes.into()) }
    }

    /// Sends a file from anywhere on the disk; its name determines the media type. Conditional and
    /// range requests work as for the files of a folder. Opening a file blocks: a page that sends
    /// one is a plain `fn`, or calls this in [`blocking`](crate::blocking).
    ///
    /// Because a user may have uploaded the file, it never runs as part of the application:
    /// browsers open it without scripts in an origin of its own (`Content-Security-Policy:
    /// sandbox`), and download types that they might run, such as HTML and SVG
    /// (`Content-Disposition: attachment`). The server rejects (403) a browser that requests it as
    /// a script or style sheet. For files of the program itself use
    /// [`trusted_file`](Self::trusted_file).
    ///
    /// # Errors
    ///
    /// The file does not exist (404 by `?`), is not a regular file, or cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let media_type = bine_files::media_type(&path.to_string_lossy());
        let (top, file) = open(path)?;
        let file = Self { top, content: ResponseBody::Stored(file) }
            .with_header("X-Content-Type-Options", "nosniff")
            .with_header("Content-Security-Policy", "sandbox");
        if !inert::is_active(&media_type) {
            return Ok(file);
        }
        // A browser that has downloaded it once must not run the cached copy.
        Ok(file
            .with_header("Content-Disposition", "attachment")
            .with_header("Vary", "Sec-Fetch-Dest"))
    }

    /// Sends a file that no user can have written: a browser opens it as a part of the application.
    ///
    /// # Errors
    ///
    /// The same as for [`file`](Self::file).
    pub fn trusted_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (top, file) = open(path.as_ref())?;
        Ok(Self { top, content: ResponseBody::File(file) })
    }

    /// Creates a response whose content is produced while it is sent, as [`Response::stream`] does.
    pub(crate) fn streaming(
        media_type: impl Into<Cow<'static, str>>,
        stream: impl FnOnce(BodyFraming) -> Stream + Send + 'static,
    ) -> Self {
        let top = ResponseHead::of(Status::OK).with_header("Content-Type", media_type);
        Self { top, content: ResponseBody::Stream(Box::new(stream)) }
    }

    /// Creates a response that `content` writes.
    pub(crate) fn custom(status: Status, content: impl CustomContent) -> Self {
        Self { top: ResponseHead::of(status), content: ResponseBody::Custom(Box::new(content)) }
    }

    /// Creates a response from a page, for a handler that returns a page in one case and a redirect
    /// or a file in the other.
    ///
    /// ```
    /// use bine::{Page, Query, Response, html};
    ///
    /// async fn search(word: Query<Option<String>>) -> Response {
    ///     match word.0 {
    ///         None => Response::see_other("/"),
    ///         Some(word) => Response::page(html!(<h1>Results for {word}</h1>)),
    ///     }
    /// }
    /// ```
    ///
    /// For a title, a layout or `<meta>` elements, convert a [`PageResponse`]:
    /// `Response::from(html!(..).with_title("Search"))`.
    pub fn page(page: impl Page + Send + 'static) -> Self {
        page.into_page_response().into()
    }

    /// Creates an error response with a message for the user: the program's error page for clients
    /// that accept pages, otherwise text.
    pub fn error(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        let content = ResponseBody::Refusal(message.into().into());
        Self { top: ResponseHead::of(status), content }
    }

    /// Creates an error response with a message of the framework.
    pub(crate) fn told(status: Status, message: impl Into<MessageText>) -> Self {
        Self { top: ResponseHead::of(status), content: ResponseBody::Refusal(message.into()) }
    }

    fn invalid(status: Status, name: &str, reason: &MessageText) -> Self {
        let argument = Box::new(ArgumentError::new(name, reason.clone()));
        Self { top: ResponseHead::of(status), content: ResponseBody::Invalid(argument) }
    }

    /// Redirects the client to `location`, to be requested by GET (303).
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::SEE_OTHER).with_header("Location", location)
    }

    /// Redirects the client permanently (308): it repeats the request at `location` by the same
    /// method.
    pub fn permanent_redirect(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::PERMANENT_REDIRECT).with_header("Location", location)
    }

    /// Redirects the client to `location` for this request only (307), by the same method.
    pub fn temporary_redirect(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::TEMPORARY_REDIRECT).with_header("Location", location)
    }

    /// Replaces the status.
    #[must_use]
    pub const fn with_status(mut self, status: Status) -> Self {
        self.top.status = status;
        self
    }

    /// Adds a header field.
    #[must_use]
    pub fn with_header(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { top: self.top.with_header(name, value), ..self }
    }

    /// Sets whether the content is compressed for clients that accept it, instead of the configuration
    /// key `compress`.
    ///
    /// By default, content that depends on a session, a user or cookies is not compressed, because its
    /// length could reveal a secret to an attacker who can add text of his own to it (BREACH). `true`
    /// declares that this content has no secret, or none of the text of others. It needs the feature
    /// `compress`.
    ///
    /// ```
    /// use bine::{Response, Session};
    ///
    /// async fn words(_session: Session) -> Response {
    ///     Response::text("the same for all").with_compression(true)
    /// }
    /// ```
    #[must_use]
    pub const fn with_compression(mut self, is_compressed: bool) -> Self {
        self.top.compression = Some(is_compressed);
        self
    }

    /// The response to a method that no page of this path handles, and to OPTIONS.
    pub(crate) fn allowing(method: Method, allowed: Methods) -> Self {
        let response = match method {
            Method::Options => Self::status(Status::NO_CONTENT),
            _ => Self::told(
                Status::METHOD_NOT_ALLOWED,
                VisitorMessage::Method { method: method.as_str().to_owned() },
            ),
        };
        response.with_header("Allow", allowed.to_string())
    }

    /// The response to a request that the server rejects by itself.
    pub(crate) fn of_server_refusal(refusal: &ServerRefusal) -> Self {
        let message = match refusal.status {
            Status::CONTENT_TOO_LARGE => VisitorMessage::TooLarge {},
            Status::SERVICE_UNAVAILABLE => VisitorMessage::ServerBusy {},
            Status::GATEWAY_TIMEOUT => VisitorMessage::TookTooLong {},
            status => {
                let reason = refusal.text.trim_end().to_owned();
                VisitorMessage::RequestFault { status: status.code(), reason }
            }
        };
        let lines = refusal.lines.lines().filter_map(|line| line.split_once(": "));
        lines.fold(Self::told(refusal.status, message), |response, (name, value)| {
            response.with_header(name, value)
        })
    }

    pub(crate) fn of_rejection(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Invalid { name, reason } => Self::invalid(Status::BAD_REQUEST, name, reason),
            Rejection::InvalidPath { name, reason } => {
                Self::invalid(Status::NOT_FOUND, name, reason)
            }
            Rejection::Redirect { location } => Self::see_other(location.clone()),
            // A handler that still requests the body after it was collected has a bug.
            Rejection::NeedsBody { .. } => Self::status(Status::INTERNAL_SERVER_ERROR),
            Rejection::NeedsUser => {
                let rule = "users".to_owned();
                Self::told(Status::UNAUTHORIZED, VisitorMessage::LogInFirst { rule })
            }
        }
    }

    /// Writes the response and returns it as the handler's answer.
    pub(crate) fn answer(
        self,
        asked: RequestSummary<'_>,
        clock: &Clock,
        templates: &Templates,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        ResponseWriter::new(out, asked, clock, usize::MAX, templates).answer(self)
    }
}

impl ResponseWriter<'_, '_> {
    /// Writes the value that a handler returned. Returns the part that follows and whether the
    /// connection closes.
    pub(crate) fn finish<K>(mut self, outcome: impl HandlerOutput<K>) -> Done {
        let close = outcome.reply(&mut self).close;
        Done { follow: self.follow, close }
    }

    /// Writes the value that a handler returned, and converts the result to an [`Answer`].
    pub(crate) fn answer<K>(mut self, outcome: impl HandlerOutput<K>) -> Answer {
        let Finished { close } = outcome.reply(&mut self);
        match self.follow {
            // After a file the connection closes only if the client asked for that.
            Some(Follow::File(part)) => Answer::File(part),
            Some(Follow::Stream(stream)) => Answer::Stream(stream),
            Some(Follow::Upgrade(upgrade)) => Answer::Upgrade(upgrade),
            Some(Follow::Suspend(hold)) => Answer::Suspend(hold),
            Some(again @ Follow::Again(_)) => Answer::Later(Box::pin(async move {
                bine_server::Finished { follow: Some(again), ..Default::default() }
            })),
            None => Answer::Written { close },
        }
    }
}

/// Opens a file to be sent, with its media type.
fn open(path: &Path) -> Result<(ResponseHead, Box<NamedFile>), Error> {
    let name = path.to_string_lossy();
    match File::open(path).and_then(|file| NamedFile::new(file, &name)) {
        Ok(file) => {
            let top = ResponseHead::of(Status::OK)
                .with_header("Content-Type", bine_files::media_type(&name));
            Ok((top, Box::new(file)))
        }
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => Error::told(Status::NOT_FOUND, VisitorMessage::NoFile {}),
            io::ErrorKind::InvalidInput => {
                Error::told(Status::NOT_FOUND, VisitorMessage::NotAFile {})
            }
            _ => error.into(),
        }),
    }
}

impl Respond for Response {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        if matches!(self.content, ResponseBody::Stored(_)) && to.asked.is_to_run() {
            const WARNED: &str =
                "a file that a visitor may have uploaded is not served as a script or style sheet";
            return Self::error(Status::FORBIDDEN, WARNED).respond(to);
        }
        let exchange = to.asked.exchange;
        let content = match self.content {
            ResponseBody::Custom(content) => return content.respond(self.top, to),
            ResponseBody::Page(write) => return write(&self.top, to),
            content => content,
        };
        let top = &*to.complete(&self.top);
        match content {
            ResponseBody::Bytes(bytes) => to.begin(top).whole(&bytes),
            ResponseBody::File(file) | ResponseBody::Stored(file) => {
                let is_read = matches!(exchange.method, Method::Get | Method::Head);
                if is_read && top.is_of_a_file() {
                    return to.send_file(*file, top);
                }
                let length = file.length();
                to.begin(top).content_length(length);
                if exchange.method != Method::Head {
                    let file = Arc::clone(file.file());
                    to.follow = Some(Follow::File(FilePart { file, offset: 0, length }));
                }
            }
            ResponseBody::Stream(stream) => {
                let pieces = to.begin(top).stream();
                to.follow = Some(Follow::Stream(stream(pieces)));
            }
            ResponseBody::Custom(_) | ResponseBody::Page(_) => unreachable!("returned above"),
            ResponseBody::Refusal(message) => {
                let words = to.words();
                let is_missing = matches!(message.message(), Some(VisitorMessage::NothingHere {}));
                let message = words.text(&message);
                let content = ErrorContent { is_missing, ..ErrorContent::of(&message, &words) };
                return to.write_failure(top, &content);
            }
            ResponseBody::Invalid(argument) => {
                let words = to.words();
                let message = ArgumentError::sentence(&[*argument], &words);
                return to.write_failure(top, &ErrorContent::of(&message, &words));
            }
        }
        Finished { close: !exchange.keep_alive }
    }
}
