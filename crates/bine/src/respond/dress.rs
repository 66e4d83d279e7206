//! Pages with a status, header fields and a title.

use std::borrow::Cow;

use bine_html::Page;
use bine_http::{Finished, Status};

use super::page::{Above, write_page};
use super::{Replying, Respond, Top};

/// Lets a page have a status and fields of its own.
///
/// ```
/// use bine::{Dress, Page, Respond, Status, html};
///
/// async fn lost() -> impl Respond {
///     html!(<h1>Not here</h1>).with_status(Status::NOT_FOUND)
/// }
/// ```
pub trait Dress: Page + Sized {
    /// The page in its dress, with nothing of its own yet.
    fn dressed(self) -> Dressed<Self> {
        Dressed { page: self, top: Top::of(Status::OK), above: Above::default() }
    }

    /// The page with another status than 200.
    fn with_status(self, status: Status) -> Dressed<Self> {
        self.dressed().with_status(status)
    }

    /// The page with a field.
    fn with_field(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Dressed<Self> {
        self.dressed().with_field(name, value)
    }

    /// The page with a title, for the layout.
    fn with_title(self, title: impl Into<Cow<'static, str>>) -> Dressed<Self> {
        self.dressed().with_title(title)
    }

    /// The page with a name and a content for a `<meta>` of the layout.
    fn with_meta(
        self,
        name: impl Into<Cow<'static, str>>,
        content: impl Into<Cow<'static, str>>,
    ) -> Dressed<Self> {
        self.dressed().with_meta(name, content)
    }

    /// The page as it is, whole by itself.
    fn without_layout(self) -> Dressed<Self> {
        self.dressed().without_layout()
    }
}

impl<P: Page> Dress for P {}

/// A page with a status, fields and a title of its own.
#[derive(Debug)]
pub struct Dressed<P> {
    page: P,
    top: Top,
    above: Above,
}

impl<P> Dressed<P> {
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

    /// The same with another title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.above.title = title.into();
        self
    }

    /// The same with one more `<meta>`.
    #[must_use]
    pub fn with_meta(
        mut self,
        name: impl Into<Cow<'static, str>>,
        content: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.above.meta.push((name.into(), content.into()));
        self
    }

    /// The same without the layout.
    #[must_use]
    pub const fn without_layout(mut self) -> Self {
        self.above.is_bare = true;
        self
    }
}

impl<P: Page> Respond for Dressed<P> {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        write_page(self.page, &self.top, &self.above, to)
    }
}
