//! Decides how what a handler returns becomes a response.

use std::borrow::Cow;

use bine_html::{Page, Writer};
use bine_http::{Date, Exchange, Finished, Method, Reply, Status};
use bine_pipeline::{Answer, Clock, Outgoing, log};

use crate::arguments::Rejection;

/// What a handler may return: a page, or a [`Response`].
pub trait Respond {
    /// Writes the whole reply.
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished;
}

/// A reply to be written.
pub struct Replying<'r, 'o> {
    out: &'r mut Outgoing<'o>,
    exchange: Exchange,
    date: Date,
    /// A page longer than this leaves in chunks.
    chunk_at: usize,
}

impl<'r, 'o> Replying<'r, 'o> {
    pub(crate) fn new(
        out: &'r mut Outgoing<'o>,
        exchange: Exchange,
        clock: &Clock,
        chunk_at: usize,
    ) -> Self {
        Self { out, exchange, date: clock.date(), chunk_at }
    }
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

impl<P: Page> Respond for P {
    #[inline]
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self, &Top::of(Status::OK), to)
    }
}

fn write_page<P: Page>(page: P, top: &Top, to: &mut Replying<'_, '_>) -> Finished {
    let Outgoing { buffer, drain } = &mut *to.out;
    let mut reply = Reply::begin(buffer, to.exchange, top.status, &to.date);
    top.write_fields(&mut reply);
    reply.constant(HTML);
    let mut body = reply.body();
    let mut spill = |buffer: &mut Vec<u8>| body.spill(buffer, |buffer| drain(buffer));
    page.write(&mut Writer::with_spill(buffer, to.chunk_at, &mut spill));
    body.finish(buffer)
}

/// What stands above the content: a status, and the fields that a program adds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Top {
    status: Status,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Top {
    const fn of(status: Status) -> Self {
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

    fn write_fields(&self, reply: &mut Reply<'_>) {
        for (name, value) in &self.fields {
            if let Err(misuse) = reply.field(name, value) {
                // Nothing unsafe is ever sent; the rest is, and the log says what it lacks.
                log::error(format_args!("the field `{name}` was left out: {misuse}"));
            }
        }
    }
}

/// A response that is no page: text, bytes, a redirect, a status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    top: Top,
    bytes: Cow<'static, [u8]>,
}

impl Response {
    /// An empty response.
    pub const fn status(status: Status) -> Self {
        Self { top: Top::of(status), bytes: Cow::Borrowed(b"") }
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
        Self { top, bytes: bytes.into() }
    }

    /// Sends the peer to `location`, to be fetched by GET (303).
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::SEE_OTHER).with_field("Location", location)
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

    /// What a page or an asset that is only to be read says to any `method` but GET and HEAD: the
    /// same as a file.
    pub(crate) fn only_read(method: Method) -> Self {
        let response = match method {
            Method::Options => Self::status(Status::NO_CONTENT),
            _ => Self::text("this address is only to be read\n")
                .with_status(Status::METHOD_NOT_ALLOWED),
        };
        response.with_field("Allow", "GET, HEAD")
    }

    pub(crate) fn of_rejection(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Bad { name, reason } => {
                Self::text(format!("`{name}` {reason}\n")).with_status(Status::BAD_REQUEST)
            }
            // A body that was collected and is still asked for is a handler's mistake.
            Rejection::NeedsBody { .. } => Self::status(Status::INTERNAL_SERVER_ERROR),
        }
    }

    /// Writes it as the whole answer.
    pub(crate) fn answer(
        self,
        exchange: Exchange,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let mut to = Replying::new(out, exchange, clock, usize::MAX);
        Answer::Written { close: self.respond(&mut to).close }
    }
}

impl Respond for Response {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        let mut reply = Reply::begin(to.out.buffer, to.exchange, self.top.status, &to.date);
        self.top.write_fields(&mut reply);
        reply.whole(&self.bytes);
        Finished { close: !to.exchange.keep_alive }
    }
}

/// Lets a page have a status and fields of its own.
///
/// ```
/// use bine::{Dress, Page, Respond, Status, html};
///
/// async fn lost() -> impl Respond {
///     html!(<h1>Not here</h1>).with_status(Status::NOT_FOUND)
/// }
/// ```
pub trait Dress: Page {
    /// The page with another status than 200.
    fn with_status(self, status: Status) -> Dressed<Self> {
        Dressed { page: self, top: Top::of(status) }
    }

    /// The page with a field.
    fn with_field(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Dressed<Self> {
        Dressed { page: self, top: Top::of(Status::OK).with_field(name, value) }
    }
}

impl<P: Page> Dress for P {}

/// A page with a status and fields of its own.
#[derive(Debug)]
pub struct Dressed<P> {
    page: P,
    top: Top,
}

impl<P: Page> Dressed<P> {
    /// The same with another status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
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
}

impl<P: Page> Respond for Dressed<P> {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self.page, &self.top, to)
    }
}
