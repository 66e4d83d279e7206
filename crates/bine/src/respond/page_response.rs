//! Pages with a status, header fields and a title.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use bine_html::Page;
use bine_http::{Finished, Status};

use super::page::write_page;
use super::{Respond, Response, ResponseBody, ResponseHead, ResponseWriter};
use crate::templates::PageSettings;

/// Sets the status and the header fields of a page.
///
/// ```
/// use bine::{Page, PageExt, Respond, Status, html};
///
/// async fn lost() -> impl Respond {
///     html!(<h1>Not here</h1>).with_status(Status::NOT_FOUND)
/// }
/// ```
pub trait PageExt: Page + Sized {
    /// Wraps the page with default settings.
    fn into_page_response(self) -> PageResponse<Self> {
        PageResponse {
            page: self,
            top: ResponseHead::of(Status::OK),
            settings: PageSettings::default(),
        }
    }

    /// Sets a status other than 200.
    fn with_status(self, status: Status) -> PageResponse<Self> {
        self.into_page_response().with_status(status)
    }

    /// Adds a header field.
    fn with_header(
        self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> PageResponse<Self> {
        self.into_page_response().with_header(name, value)
    }

    /// Sets the title, which the layout displays.
    fn with_title(self, title: impl Into<Cow<'static, str>>) -> PageResponse<Self> {
        self.into_page_response().with_title(title)
    }

    /// Adds a name and a content for a `<meta>` element of the layout.
    fn with_meta(
        self,
        name: impl Into<Cow<'static, str>>,
        content: impl Into<Cow<'static, str>>,
    ) -> PageResponse<Self> {
        self.into_page_response().with_meta(name, content)
    }

    /// Hands a value to the layout, which reads it by
    /// [`PageContent::get`](crate::PageContent::get). A second value of the same type replaces the
    /// first.
    fn with(self, value: impl Any + Send) -> PageResponse<Self> {
        self.into_page_response().with(value)
    }

    /// Sets whether the page is compressed, as [`Response::with_compression`] does.
    fn with_compression(self, is_compressed: bool) -> PageResponse<Self> {
        self.into_page_response().with_compression(is_compressed)
    }

    /// Renders the page without the layout, as a whole document.
    fn without_layout(self) -> PageResponse<Self> {
        self.into_page_response().without_layout()
    }
}

impl<P: Page> PageExt for P {}

/// A page with its own status, header fields and title.
pub struct PageResponse<P> {
    page: P,
    top: ResponseHead,
    settings: PageSettings,
}

impl<P: fmt::Debug> fmt::Debug for PageResponse<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, top, settings } = self;
        let mut shown = f.debug_struct("PageResponse");
        shown.field("page", page).field("top", top).field("title", &settings.title);
        shown.finish_non_exhaustive()
    }
}

impl<P> PageResponse<P> {
    /// Replaces the status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
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

    /// Replaces the title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.settings.title = title.into();
        self
    }

    /// Adds a `<meta>` element.
    #[must_use]
    pub fn with_meta(
        mut self,
        name: impl Into<Cow<'static, str>>,
        content: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.settings.meta.push((name.into(), content.into()));
        self
    }

    /// Hands a value to the layout.
    #[must_use]
    pub fn with<T: Any + Send>(mut self, value: T) -> Self {
        self.settings.values.retain(|own| !own.is::<T>());
        self.settings.values.push(Box::new(value));
        self
    }

    /// Sets whether the page is compressed.
    #[must_use]
    pub fn with_compression(mut self, is_compressed: bool) -> Self {
        self.top.compression = Some(is_compressed);
        self
    }

    /// Renders the page without the layout.
    #[must_use]
    pub const fn without_layout(mut self) -> Self {
        self.settings.has_no_layout = true;
        self
    }

    /// Marks the page with its own version: open pages of a different version are refreshed.
    #[cfg_attr(not(feature = "script"), expect(dead_code, reason = "other pages are compiled"))]
    pub(crate) const fn of_version(mut self, version: u64) -> Self {
        self.settings.version = Some(version);
        self
    }
}

impl<P: Page> Respond for PageResponse<P> {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        write_page(self.page, &self.top, &self.settings, to)
    }
}

impl<P: Page + Send + 'static> From<PageResponse<P>> for Response {
    fn from(page: PageResponse<P>) -> Self {
        let PageResponse { page, top, settings } = page;
        let write = move |top: &ResponseHead, to: &mut ResponseWriter<'_, '_>| {
            write_page(page, top, &settings, to)
        };
        Self { top, content: ResponseBody::Page(Box::new(write)) }
    }
}
