//! Decides how what a handler returns becomes a response.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Once};
use std::time::Instant;

use bine_files::NamedFile;
use bine_html::{Frozen, Page, Writer};
use bine_http::{
    BodyFraming, Date, Exchange, Finished, Head, Method, Reply, SecurityHeaders, Status,
};
use bine_log as log;
use bine_server::{Answer, Clock, Done, FilePart, Follow, Incoming, Outgoing, Stream};

mod dress;
mod manner;
mod page;

pub use dress::{Dress, Dressed};
pub use manner::Manner;
use page::{Above, write_page};

use crate::error::Error;
use crate::inert;
use crate::look::{Failure, Look};
use crate::methods::Methods;
use crate::panics;
use crate::problem::{Wrong, problem};
use crate::rejection::Rejection;
use crate::repeated::Repeated;
use crate::request_session::RequestSession;
use crate::security;
use crate::taste::Taste;
use crate::writing::Writing;

/// What a handler may return: a page, a [`Response`], [`Json`](crate::Json), or a `Result` with one of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer to a request",
    note = "a page returns `impl Page`, a `Response`, `Json<T>`, or `Result<.., bine::Error>` with one of these"
)]
pub trait Respond {
    /// Writes the whole reply.
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished;
}

/// Whatever a handler returns. `Kind` keeps the ways apart for the compiler, which finds it by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer to a request",
    note = "a page returns `impl Page`, a `Response`, `Json<T>`, or `Result<.., bine::Error>` with one of these"
)]
pub trait Outcome<Kind> {
    /// Writes the whole reply.
    fn reply(self, to: &mut Replying<'_, '_>) -> Finished;
}

/// The kind of an [`Outcome`] that is an answer by itself.
#[derive(Debug)]
pub enum Sure {}

/// The kind of an [`Outcome`] that may have failed.
#[derive(Debug)]
pub enum Fallible {}

impl<R: Respond> Outcome<Sure> for R {
    #[inline]
    fn reply(self, to: &mut Replying<'_, '_>) -> Finished {
        self.respond(to)
    }
}

impl<R: Respond, E: Into<Error>> Outcome<Fallible> for Result<R, E> {
    fn reply(self, to: &mut Replying<'_, '_>) -> Finished {
        match self {
            Ok(answer) => answer.respond(to),
            Err(error) => {
                let error = error.into();
                to.refuse(error.code(), &error)
            }
        }
    }
}

/// Writes what a peer is told of a handler that panicked; its words are for the log, and for the page in development.
pub(crate) fn apologize(asked: Asked<'_>, clock: &Clock, look: &Look, out: &mut Vec<u8>) {
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: out, drain: &mut keep };
    let said = panics::last_words();
    let causes = if look.shows_causes() { said.as_slice() } else { &[] };
    let top = Top::of(Status::INTERNAL_SERVER_ERROR);
    let telling = Telling { causes, ..Telling::of(Look::APOLOGY) };
    Replying::new(&mut out, asked, clock, usize::MAX, look).tell(&top, &telling);
}

/// A reply to be written.
pub struct Replying<'r, 'o> {
    out: &'r mut Outgoing<'o>,
    asked: Asked<'r>,
    date: Date,
    /// The same in seconds since 1970.
    second: u64,
    /// A page longer than this leaves in chunks.
    chunk_at: usize,
    look: &'r Look,
    /// The session that the handler has looked at, until the head says so.
    pub(crate) visit: Option<Arc<dyn RequestSession>>,
    /// What follows the head, if it is not all.
    pub(crate) follow: Option<Follow>,
}

/// What a reply must know of its request.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'r> {
    pub(crate) exchange: Exchange,
    reader: Reader<'r>,
}

/// How it is found out what the peer makes of pages: only failures and whole documents want to know.
#[derive(Clone, Copy)]
enum Reader<'r> {
    Unread(&'r Incoming<'r>),
    Known(Taste),
}

/// Fields by which a peer says that it has a file already, or wants a part of it (RFC 9110 sections 13 and 14).
const CONDITIONS: [&str; 6] =
    ["range", "if-none-match", "if-modified-since", "if-range", "if-match", "if-unmodified-since"];

impl<'r> Asked<'r> {
    pub(crate) const fn by(incoming: &'r Incoming<'r>) -> Self {
        Self { exchange: incoming.exchange, reader: Reader::Unread(incoming) }
    }

    /// The same without the request, for an answer that comes later. `None`: an answer may want to see it, as one that
    /// is held does, and a page with actions.
    pub(crate) fn kept(self, may_ask: bool) -> Option<Asked<'static>> {
        if let Reader::Unread(request) = self.reader
            && (may_ask
                || inert::is_to_run(&request.head)
                || CONDITIONS.iter().any(|name| request.head.field(name).is_some()))
        {
            return None;
        }
        Some(Asked { exchange: self.exchange, reader: Reader::Known(self.taste()) })
    }

    /// The same for the last reply of its connection.
    pub(crate) const fn closing(mut self) -> Self {
        self.exchange.keep_alive = false;
        self
    }

    /// The request's head, unless nothing in it would change how a file is sent.
    fn conditions(self) -> Option<Head<'r>> {
        self.request().map(|request| request.head)
    }

    const fn request(self) -> Option<&'r Incoming<'r>> {
        match self.reader {
            Reader::Unread(request) => Some(request),
            Reader::Known(_) => None,
        }
    }

    /// Whether a browser would run the content as a script or style sheet.
    fn is_to_run(self) -> bool {
        self.request().is_some_and(|request| inert::is_to_run(&request.head))
    }

    fn taste(self) -> Taste {
        match self.reader {
            Reader::Known(taste) => taste,
            Reader::Unread(request) => Taste::of(request.head.field_text("accept")),
        }
    }
}

impl<'r, 'o> Replying<'r, 'o> {
    pub(crate) fn new(
        out: &'r mut Outgoing<'o>,
        asked: Asked<'r>,
        clock: &Clock,
        chunk_at: usize,
        look: &'r Look,
    ) -> Self {
        let (date, second) = (clock.date(), clock.unix());
        Self { out, asked, date, second, chunk_at, look, visit: None, follow: None }
    }

    /// The same for a handler that may have looked at a session.
    pub(crate) fn for_visit(mut self, visit: Option<Arc<dyn RequestSession>>) -> Self {
        self.visit = visit;
        self
    }

    /// The same for what may have looked at a session by itself.
    pub(crate) fn visit(&mut self, visit: Option<Arc<dyn RequestSession>>) {
        self.visit = visit.or_else(|| self.visit.take());
    }

    /// With what a session adds to the head.
    pub(crate) fn complete<'t>(&mut self, top: &'t Top) -> Cow<'t, Top> {
        static TOLD: Once = Once::new();
        let Some(visit) = self.visit.take() else { return Cow::Borrowed(top) };
        let (mut top, fields) = (top.clone(), visit.response_fields());
        // Whoever were given a cookie that others get too would have their session.
        let sets_cookie = fields.iter().any(|(name, _)| *name == "Set-Cookie");
        if sets_cookie && top.is_shared() {
            top.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("cache-control"));
            TOLD.call_once(|| {
                log::warn(format_args!(
                    "a page that takes a session lets shared caches keep its reply by `Cache-Control`: while it sets the cookie, it is sent as `private`"
                ));
            });
        }
        let says_how_long = top.has("cache-control");
        for (name, value) in fields {
            if name != "Cache-Control" || !says_how_long {
                top.fields.push((name.into(), value));
            }
        }
        Cow::Owned(top)
    }

    /// Writes that it cannot be done: a page for whoever reads pages, else a line of text.
    pub(crate) fn refuse(&mut self, status: Status, error: &Error) -> Finished {
        note(status, error);
        let (message, causes) = (Look::message(error), self.look.causes(error));
        let telling = Telling { wrong: error.arguments(), causes: &causes, ..Telling::of(message) };
        self.tell(&Top::of(status), &telling)
    }

    /// Writes that a call cannot be done: as [`refuse`](Self::refuse) does for whoever reads pages, with a way back to
    /// the one that called, else as a problem.
    pub(crate) fn fail(&mut self, error: &Error, manner: &Manner) -> Finished {
        note(error.code(), error);
        let (message, causes) = (Look::message(error), self.look.causes(error));
        let telling =
            Telling { wrong: error.arguments(), causes: &causes, ..Telling::to(manner, message) };
        self.tell(&Top::of(error.code()), &telling)
    }

    /// The same of a call that panicked, which the log has been told.
    pub(crate) fn break_down(&mut self, words: &[String], manner: &Manner) -> Finished {
        let causes = if self.look.shows_causes() { words } else { &[] };
        let telling = Telling { causes, ..Telling::to(manner, Look::APOLOGY) };
        self.tell(&Top::of(Status::INTERNAL_SERVER_ERROR), &telling)
    }

    /// Writes of a failure: a page for whoever reads pages, a problem (RFC 9457) for whoever would rather have JSON, else
    /// a line of text.
    fn tell(&mut self, top: &Top, telling: &Telling<'_>) -> Finished {
        let Telling { message, wrong, causes, back, is_for_program } = *telling;
        let mut bytes = Vec::new();
        let Taste { reads_pages, prefers_xhtml, prefers_json } = self.asked.taste();
        let kind = if is_for_program || prefers_json {
            // A server that has called what is not here tells its visitors nothing of that.
            let detail = Some(message).filter(|message| *message != Look::NOWHERE);
            bytes = problem(top.status, detail, wrong, causes);
            PROBLEM
        } else if reads_pages {
            let failure = Failure { status: top.status, message, causes, back };
            let is_xml = prefers_xhtml && self.look.failure_is_document();
            let writer = Writer::new(&mut bytes).with_head(self.look.head());
            let mut writer = writer_for(is_xml, writer);
            match self.writing() {
                // There may be some in the layout.
                Some(writing) => {
                    writing.during(|| self.look.write_failure(&failure, &mut writer));
                    self.visit = self.visit.take().or_else(|| writing.visitor());
                }
                None => self.look.write_failure(&failure, &mut writer),
            }
            if is_xml { XHTML } else { HTML }
        } else {
            bytes.extend_from_slice(message.as_bytes());
            for cause in causes {
                bytes.extend_from_slice(b"\n  ");
                bytes.extend_from_slice(cause.as_bytes());
            }
            bytes.push(b'\n');
            TEXT
        };
        let top = &*self.complete(top);
        let look = self.look;
        let mut reply = self.begin(top);
        reply.static_lines(kind);
        if kind == HTML || kind == XHTML {
            top.write_policy(look, &mut reply);
        }
        // The same address may answer in several ways.
        reply.static_lines(VARY);
        reply.whole(&bytes);
        Finished { close: !self.asked.exchange.keep_alive }
    }

    /// Sends a file as the request's conditions want it.
    fn send_file(&mut self, mut file: NamedFile, top: &Top) -> Finished {
        // The first is its own type.
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

    /// Sends a page that was written before, unless the peer has it. Where its `<head>` ends stands what it could not
    /// know of when it was written.
    fn send_frozen(&mut self, frozen: &Frozen, top: &Top) -> Finished {
        let Exchange { method, keep_alive, .. } = self.asked.exchange;
        let (before, behind) = frozen.split_at_head_end().unwrap_or((frozen.bytes(), &[]));
        let links = self.look.links.as_ref().filter(|_| !behind.is_empty());
        let parts = [before, links.map_or("", |links| links.markup()).as_bytes(), behind];
        let mut place = [0; 64];
        let tag = links.map_or(frozen.tag(), |links| links.tag_of(frozen.tag(), &mut place));
        let judged = match self.asked.conditions() {
            Some(head)
                if top.status == Status::OK && matches!(method, Method::Get | Method::Head) =>
            {
                bine_files::evaluate_etag(&head, tag)
            }
            _ => None,
        };
        let status = judged.unwrap_or(top.status);
        let exchange = top.exchange(self.asked.exchange);
        let mut reply = Reply::begin(self.out.buffer, exchange, status, &self.date);
        top.write_fields(&mut reply);
        if status != Status::PRECONDITION_FAILED {
            reply.field("ETag", tag).expect("quotes, digits and a dash");
        }
        if judged.is_some() {
            reply.empty();
            return Finished { close: !keep_alive };
        }
        reply.static_lines(HTML);
        top.write_policy(self.look, &mut reply);
        if status != Status::OK {
            reply.whole(&parts.concat());
            return Finished { close: !keep_alive };
        }
        let length: usize = parts.iter().map(|part| part.len()).sum();
        reply.content_length(length as u64);
        if method != Method::Head {
            // So that no more of it lies in the buffer than the peer has still to take.
            for piece in parts.iter().flat_map(|part| part.chunks(self.chunk_at.max(1))) {
                self.out.buffer.extend_from_slice(piece);
                if length > self.chunk_at {
                    (self.out.drain)(self.out.buffer);
                }
            }
        }
        Finished { close: !keep_alive }
    }

    /// How the request was made, and what the response must have because of it.
    pub(crate) const fn exchange(&self) -> Exchange {
        self.asked.exchange
    }

    /// The request, unless only its exchange was kept.
    pub(crate) const fn request(&self) -> Option<&Incoming<'_>> {
        self.asked.request()
    }

    /// The buffer that the response is written to, and its date.
    pub(crate) const fn output(&mut self) -> (&mut Vec<u8>, &Date) {
        (self.out.buffer, &self.date)
    }

    /// Writes an error response with this message for the client.
    pub(crate) fn write_error(&mut self, status: Status, message: &str) -> Finished {
        self.tell(&Top::of(status), &Telling::of(message))
    }

    /// The page that this is going to be, in a program with actions.
    fn writing(&self) -> Option<Rc<Writing>> {
        let (keeper, request) = (self.look.actions.as_ref()?, self.asked.request()?);
        Writing::of(request, self.visit.as_ref(), keeper)
    }

    fn begin(&mut self, top: &Top) -> Reply<'_> {
        let exchange = top.exchange(self.asked.exchange);
        let mut reply = Reply::begin(self.out.buffer, exchange, top.status, &self.date);
        top.write_fields(&mut reply);
        reply
    }
}

/// What is told of a failure.
struct Telling<'t> {
    message: &'t str,
    /// Arguments, by their names.
    wrong: &'t [Wrong],
    /// For developers.
    causes: &'t [String],
    /// The page to go back to.
    back: Option<&'t str>,
    /// A program has called that did not say what it would rather have.
    is_for_program: bool,
}

impl<'t> Telling<'t> {
    const fn of(message: &'t str) -> Self {
        Self { message, wrong: &[], causes: &[], back: None, is_for_program: false }
    }

    fn to(manner: &'t Manner, message: &'t str) -> Self {
        let (back, is_for_program) = (manner.page.as_deref(), !manner.reads_pages);
        Self { back, is_for_program, ..Self::of(message) }
    }
}

/// Logs an error that is not the client's. One by which the server, and not its program, cannot do anything at the moment,
/// such as a full disk, is logged once a second.
fn note(status: Status, error: &Error) {
    static REPEATED: LazyLock<Repeated> = LazyLock::new(Repeated::new);
    if status.code() < 500 {
        return;
    }
    let told = log_line(error);
    if status == Status::INTERNAL_SERVER_ERROR {
        return log::error(format_args!("answered {}: {told}", status.code()));
    }
    match REPEATED.pass(&told, Instant::now()) {
        None => {}
        Some(0) => log::error(format_args!("answered {}: {told}", status.code())),
        Some(more) => {
            log::error(format_args!(
                "answered {}: {told} (and {more} times before)",
                status.code()
            ));
        }
    }
}

/// What the log is told of an error: its message and its causes, each once.
fn log_line(error: &Error) -> String {
    let mut parts: Vec<String> = error.message().map(str::to_owned).into_iter().collect();
    parts.extend(error.chain());
    parts.dedup();
    parts.join(": ")
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const XHTML: &str = "Content-Type: application/xhtml+xml; charset=utf-8\r\n";
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const PROBLEM: &str = "Content-Type: application/problem+json\r\n";
const VARY: &str = "Vary: Accept\r\n";

fn writer_for(is_xml: bool, writer: Writer<'_>) -> Writer<'_> {
    if is_xml { writer.in_xml() } else { writer }
}

impl<P: Page> Respond for P {
    #[inline]
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self, &Top::of(Status::OK), &Above::default(), to)
    }
}

/// What stands above the content: a status, and the fields that a program adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Top {
    status: Status,
    pub(crate) fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Top {
    pub(crate) const fn of(status: Status) -> Self {
        Self { status, fields: Vec::new() }
    }

    fn with_field(
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

    /// Whether it says how long it may be kept, and not that caches which several share may not (RFC 9111 section
    /// 5.2.2).
    fn is_shared(&self) -> bool {
        let own = self.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        let mut words = own.flat_map(|(_, value)| value.split(',')).map(str::trim).peekable();
        let keeps_out =
            |word: &str| ["private", "no-store"].iter().any(|own| word.eq_ignore_ascii_case(own));
        words.peek().is_some() && !words.any(keeps_out)
    }

    /// Whether it says nothing that only the whole file may say.
    fn is_of_a_file(&self) -> bool {
        let types =
            self.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        self.status == Status::OK && types.count() == 1
    }

    /// The exchange without the security headers that are among the fields.
    #[inline]
    fn exchange(&self, exchange: Exchange) -> Exchange {
        let own = self.fields.iter().map(|(name, _)| SecurityHeaders::named(name));
        let security = own.fold(exchange.security, SecurityHeaders::without);
        Exchange { security, ..exchange }
    }

    /// Writes the content security policy of a page, unless it is among the fields.
    #[inline]
    fn write_policy(&self, look: &Look, reply: &mut Reply<'_>) {
        if let Some(policy) = look.policy.get()
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
                // Nothing unsafe is ever sent; the rest is, and the log says what it lacks.
                log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
    }
}

/// Content of a response that another module writes: one that is suspended, or that ends the use of HTTP on its connection.
pub(crate) trait CustomContent: fmt::Debug + Send + 'static {
    /// Writes the whole response, with what `top` adds to its head.
    fn respond(self: Box<Self>, top: Top, to: &mut Replying<'_, '_>) -> Finished;
}

/// A response that is no page: text, bytes, a file, a stream, a redirect, a status.
#[derive(Debug)]
pub struct Response {
    top: Top,
    content: Content,
}

enum Content {
    Bytes(Cow<'static, [u8]>),
    File(Box<NamedFile>),
    /// A file that a client may have stored.
    Stored(Box<NamedFile>),
    Stream(Box<dyn FnOnce(BodyFraming) -> Stream + Send>),
    /// Content of another module, which writes the response.
    Custom(Box<dyn CustomContent>),
    /// Words for whoever is refused, on a page if that is what they read.
    Refusal(Cow<'static, str>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::File(file) | Self::Stored(file) => file.fmt(f),
            Self::Stream(_) => f.write_str("a stream"),
            Self::Custom(content) => content.fmt(f),
            Self::Refusal(words) => write!(f, "{words:?}"),
        }
    }
}

impl Response {
    /// An empty response.
    pub const fn status(status: Status) -> Self {
        Self { top: Top::of(status), content: Content::Bytes(Cow::Borrowed(b"")) }
    }

    /// Plain text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        let bytes = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self::bytes("text/plain; charset=utf-8", bytes)
    }

    /// Bytes of a media type.
    pub fn bytes(
        media_type: impl Into<Cow<'static, str>>,
        bytes: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        let top = Top::of(Status::OK).with_field("Content-Type", media_type);
        Self { top, content: Content::Bytes(bytes.into()) }
    }

    /// A file from anywhere on the disk; its name tells its media type. A peer that has it already is told so, and
    /// one that wants a part of it gets that, as with the files of a folder. Opening blocks: a page that sends a file
    /// is a plain `fn`, or calls this in [`blocking`](crate::blocking).
    ///
    /// A visitor may have uploaded it, so it never runs as part of the application: browsers open it without scripts in
    /// an origin of its own (`Content-Security-Policy: sandbox`), and save what they might run, such as HTML and SVG
    /// (`Content-Disposition: attachment`). A browser that wants it as a script or style sheet is refused (403).
    /// [`trusted_file`](Self::trusted_file) is for files of the program's own.
    ///
    /// # Errors
    ///
    /// There is no such file (404 by `?`), it is none, or it cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let media_type = bine_files::media_type(&path.to_string_lossy());
        let (top, file) = open(path)?;
        let file = Self { top, content: Content::Stored(file) }
            .with_field("X-Content-Type-Options", "nosniff")
            .with_field("Content-Security-Policy", "sandbox");
        if !inert::is_active(&media_type) {
            return Ok(file);
        }
        // A browser that has saved it once must not take it from its cache to run it.
        Ok(file
            .with_field("Content-Disposition", "attachment")
            .with_field("Vary", "Sec-Fetch-Dest"))
    }

    /// The same for a file that no visitor can have written: a browser opens it as a part of the application.
    ///
    /// # Errors
    ///
    /// As [`file`](Self::file).
    pub fn trusted_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (top, file) = open(path.as_ref())?;
        Ok(Self { top, content: Content::File(file) })
    }

    /// Content of a media type that is made while it is sent, as [`Response::stream`] tells.
    pub(crate) fn streaming(
        media_type: impl Into<Cow<'static, str>>,
        stream: impl FnOnce(BodyFraming) -> Stream + Send + 'static,
    ) -> Self {
        let top = Top::of(Status::OK).with_field("Content-Type", media_type);
        Self { top, content: Content::Stream(Box::new(stream)) }
    }

    /// A response that `content` writes.
    pub(crate) fn custom(status: Status, content: impl CustomContent) -> Self {
        Self { top: Top::of(status), content: Content::Custom(Box::new(content)) }
    }

    /// A failure in words for the user: the program's page of errors for whoever reads pages, else text.
    pub fn refusal(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self { top: Top::of(status), content: Content::Refusal(message.into()) }
    }

    /// Sends the peer to `location`, to be fetched by GET (303).
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::SEE_OTHER).with_field("Location", location)
    }

    /// Says that the address is another one for good (308): the peer asks there, by the same method.
    pub fn moved(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::PERMANENT_REDIRECT).with_field("Location", location)
    }

    /// Sends the peer to `location` for this time (307), by the same method.
    pub fn elsewhere(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::TEMPORARY_REDIRECT).with_field("Location", location)
    }

    /// The same with another status.
    #[must_use]
    pub const fn with_status(mut self, status: Status) -> Self {
        self.top.status = status;
        self
    }

    /// The same with one more field.
    #[must_use]
    pub fn with_field(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { top: self.top.with_field(name, value), ..self }
    }

    /// What an address says to a method that none of its pages answers, and to OPTIONS.
    pub(crate) fn allowing(method: Method, allowed: Methods) -> Self {
        let response = match method {
            Method::Options => Self::status(Status::NO_CONTENT),
            _ => Self::refusal(
                Status::METHOD_NOT_ALLOWED,
                format!("{} is not what this address answers.", method.as_str()),
            ),
        };
        response.with_field("Allow", allowed.to_string())
    }

    pub(crate) fn of_rejection(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Bad { name, reason } => {
                Self::refusal(Status::BAD_REQUEST, format!("`{name}` {reason}"))
            }
            Rejection::Elsewhere { location } => Self::see_other(location.clone()),
            // A body that was collected and is still asked for is a handler's mistake.
            Rejection::NeedsBody { .. } => Self::status(Status::INTERNAL_SERVER_ERROR),
            // A challenge belongs to it (RFC 9110 section 15.5.2), and browsers show the page of one that they do not know.
            Rejection::NeedsUser => {
                Self::refusal(Status::UNAUTHORIZED, "This is for users. Log in first.")
                    .with_field("WWW-Authenticate", "Cookie realm=\"session\"")
            }
        }
    }

    /// Writes it as the whole answer.
    pub(crate) fn answer(
        self,
        asked: Asked<'_>,
        clock: &Clock,
        look: &Look,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        Replying::new(out, asked, clock, usize::MAX, look).answer(self)
    }
}

impl Replying<'_, '_> {
    /// Writes what a handler returned; says what follows and whether the connection closes.
    pub(crate) fn finish<K>(mut self, outcome: impl Outcome<K>) -> Done {
        let close = outcome.reply(&mut self).close;
        Done { follow: self.follow, close }
    }

    /// Writes what a handler returned; says it as the server wants to hear it.
    pub(crate) fn answer<K>(mut self, outcome: impl Outcome<K>) -> Answer {
        let Finished { close } = outcome.reply(&mut self);
        match self.follow {
            // Behind a file the connection closes only if its peer wants it.
            Some(Follow::File(part)) => Answer::File(part),
            Some(Follow::Stream(stream)) => Answer::Stream(stream),
            Some(Follow::Upgrade(upgrade)) => Answer::Upgrade(upgrade),
            Some(Follow::Hold(hold)) => Answer::Hold(hold),
            None => Answer::Written { close },
        }
    }
}

/// Opens a file to be sent, with what is said of it in any case.
fn open(path: &Path) -> Result<(Top, Box<NamedFile>), Error> {
    let name = path.to_string_lossy();
    match File::open(path).and_then(|file| NamedFile::new(file, &name)) {
        Ok(file) => {
            let top = Top::of(Status::OK).with_field("Content-Type", bine_files::media_type(&name));
            Ok((top, Box::new(file)))
        }
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => Error::not_found("there is no such file"),
            io::ErrorKind::InvalidInput => Error::not_found("this is no file"),
            _ => error.into(),
        }),
    }
}

impl Respond for Response {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        if matches!(self.content, Content::Stored(_)) && to.asked.is_to_run() {
            const TOLD: &str =
                "a file that a visitor may have uploaded is not served as a script or style sheet";
            return Self::refusal(Status::FORBIDDEN, TOLD).respond(to);
        }
        let exchange = to.asked.exchange;
        let content = match self.content {
            Content::Custom(content) => return content.respond(self.top, to),
            content => content,
        };
        let top = &*to.complete(&self.top);
        match content {
            Content::Bytes(bytes) => to.begin(top).whole(&bytes),
            Content::File(file) | Content::Stored(file) => {
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
            Content::Stream(stream) => {
                let pieces = to.begin(top).stream();
                to.follow = Some(Follow::Stream(stream(pieces)));
            }
            Content::Custom(_) => unreachable!("it has written the response"),
            Content::Refusal(message) => return to.tell(top, &Telling::of(&message)),
        }
        Finished { close: !exchange.keep_alive }
    }
}
