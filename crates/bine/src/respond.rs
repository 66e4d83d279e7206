//! Decides how what a handler returns becomes a response.

use std::borrow::Cow;

use bine_html::{Page, Writer};
use bine_http::{Date, Exchange, Finished, Reply, Status};
use bine_pipeline::Outgoing;

use crate::arguments::Rejection;

/// What a handler may return: a page, or a [`Response`].
pub trait Respond {
    /// Writes the whole reply.
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished;
}

/// A reply to be written.
pub struct Replying<'r, 'o> {
    pub(crate) out: &'r mut Outgoing<'o>,
    pub(crate) exchange: Exchange,
    pub(crate) date: Date,
    pub(crate) chunk_at: usize,
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

impl<P: Page> Respond for P {
    #[inline]
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self, Status::OK, &[], to)
    }
}

fn write_page<P: Page>(
    page: P,
    status: Status,
    fields: &[(Cow<'static, str>, Cow<'static, str>)],
    to: &mut Replying<'_, '_>,
) -> Finished {
    let Outgoing { buffer, drain } = &mut *to.out;
    let mut reply = Reply::begin(buffer, to.exchange, status, &to.date);
    for (name, value) in fields {
        if let Err(misuse) = reply.field(name, value) {
            // Nothing unsafe is ever sent; the page is, and the log says what it lacks.
            bine_pipeline::log::error(format_args!("the field `{name}` was left out: {misuse}"));
        }
    }
    reply.constant(HTML);
    let mut body = reply.body();
    let mut spill = |buffer: &mut Vec<u8>| body.spill(buffer, |buffer| drain(buffer));
    page.write(&mut Writer::with_spill(buffer, to.chunk_at, &mut spill));
    body.finish(buffer)
}

/// A response that is no page: text, bytes, a redirect, a status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    status: Status,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    bytes: Cow<'static, [u8]>,
}

impl Response {
    /// An empty response.
    pub const fn status(status: Status) -> Self {
        Self { status, fields: Vec::new(), bytes: Cow::Borrowed(b"") }
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
        let fields = vec![(Cow::Borrowed("Content-Type"), media_type.into())];
        Self { status: Status::OK, fields, bytes: bytes.into() }
    }

    /// Sends the peer to `location`, to be fetched by GET (303).
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Self {
        Self::status(Status::SEE_OTHER).with_field("Location", location)
    }

    /// The same with another status.
    #[must_use]
    pub const fn with_status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// The same with one more field.
    #[must_use]
    pub fn with_field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fields.push((name.into(), value.into()));
        self
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
}

impl Respond for Response {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        let mut reply = Reply::begin(to.out.buffer, to.exchange, self.status, &to.date);
        for (name, value) in &self.fields {
            if let Err(misuse) = reply.field(name, value) {
                bine_pipeline::log::error(format_args!(
                    "the field `{name}` was left out: {misuse}"
                ));
            }
        }
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
        Dressed { page: self, status, fields: Vec::new() }
    }

    /// The page with a field.
    fn with_field(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Dressed<Self> {
        Dressed { page: self, status: Status::OK, fields: vec![(name.into(), value.into())] }
    }
}

impl<P: Page> Dress for P {}

/// A page with a status and fields of its own.
#[derive(Debug)]
pub struct Dressed<P> {
    page: P,
    status: Status,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl<P: Page> Dressed<P> {
    /// The same with another status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// The same with one more field.
    #[must_use]
    pub fn with_field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

impl<P: Page> Respond for Dressed<P> {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self.page, self.status, &self.fields, to)
    }
}
