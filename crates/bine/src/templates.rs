//! The layout and the error page of a program, which all its pages share.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bine_html::{FitsIn, Flow, Fragment, Html, Page, Writer};
use bine_http::{FieldLines, Status};

use crate::error::Error;
use crate::links::Links;
use crate::request_session::SessionProvider;

/// The templates and settings that all pages of a program share.
#[derive(Clone, Default)]
pub(crate) struct Templates {
    pub(crate) layout: Option<Arc<dyn Layout>>,
    pub(crate) error_page: Option<Arc<dyn ErrorLayout>>,
    /// The style sheet and the script, if the program has them.
    pub(crate) links: Option<Arc<Links>>,
    /// The version of the program, if it has pages.
    pub(crate) version: Option<u64>,
    /// The session store that seals actions, in a program with sessions.
    pub(crate) actions: Option<Arc<dyn SessionProvider>>,
    /// Whether errors display their causes by default, when the configuration does not decide.
    pub(crate) develops: bool,
    /// Whether errors display their causes.
    pub(crate) is_in_development: Arc<AtomicBool>,
    /// The content security policy of pages, set when the configuration is known.
    pub(crate) policy: Arc<OnceLock<FieldLines>>,
}

/// The content of a page, for the layout around it: `{content}` displays it.
pub struct PageContent<'a> {
    title: &'a str,
    meta: &'a [(Cow<'static, str>, Cow<'static, str>)],
    write: &'a mut dyn FnMut(&mut Writer<'_>),
}

impl<'a> PageContent<'a> {
    pub(crate) const fn new(
        title: &'a str,
        meta: &'a [(Cow<'static, str>, Cow<'static, str>)],
        write: &'a mut dyn FnMut(&mut Writer<'_>),
    ) -> Self {
        Self { title, meta, write }
    }

    /// The title that `with_title` set, or an empty string.
    pub const fn title(&self) -> &'a str {
        self.title
    }

    /// The names and contents that `with_meta` set.
    pub fn meta(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.meta.iter().map(|(name, content)| (&**name, &**content))
    }
}

impl Page for PageContent<'_> {
    fn write(self, writer: &mut Writer<'_>) {
        (self.write)(writer);
    }
}

impl Fragment for PageContent<'_> {}
impl FitsIn<Flow> for PageContent<'_> {}
#[diagnostic::do_not_recommend]
impl Html<Flow> for PageContent<'_> {}

impl fmt::Debug for PageContent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageContent").field("title", &self.title).finish_non_exhaustive()
    }
}

/// A function that renders a page's content inside a whole page.
pub(crate) trait Layout: Send + Sync {
    /// Whether the layout renders whole documents, which are valid XML too.
    fn is_document(&self) -> bool;
    fn write(&self, content: PageContent<'_>, writer: &mut Writer<'_>);
}

/// A plain function from [`PageContent`] to a page, for any lifetime of the content.
pub trait LayoutFunction<'a>: Send + Sync {
    /// Whether the page is a whole document: see [`Page::is_document`].
    fn is_document(&self) -> bool;
    /// Writes the whole page.
    fn write_layout(&self, content: PageContent<'a>, writer: &mut Writer<'_>);
}

impl<'a, F, P> LayoutFunction<'a> for F
where
    F: Fn(PageContent<'a>) -> P + Send + Sync,
    P: Page,
{
    fn is_document(&self) -> bool {
        P::is_document()
    }

    fn write_layout(&self, content: PageContent<'a>, writer: &mut Writer<'_>) {
        self(content).write(writer);
    }
}

pub(crate) struct FunctionTemplate<F>(pub(crate) F);

impl<F: for<'a> LayoutFunction<'a>> Layout for FunctionTemplate<F> {
    fn is_document(&self) -> bool {
        self.0.is_document()
    }

    fn write(&self, content: PageContent<'_>, writer: &mut Writer<'_>) {
        self.0.write_layout(content, writer);
    }
}

/// A failed request, for the page that reports it.
#[derive(Debug)]
pub struct ErrorInfo<'a> {
    /// The status of the response.
    pub status: Status,
    /// The message for the user.
    pub message: &'a str,
    /// The error and its causes; empty unless in development.
    pub causes: &'a [String],
    /// The page of this site whose form failed, to link back to.
    pub back: Option<&'a str>,
}

/// A function that renders a failure as a page.
pub(crate) trait ErrorLayout: Send + Sync {
    fn write(&self, failure: &ErrorInfo<'_>, writer: &mut Writer<'_>);
}

/// A plain function from [`ErrorInfo`] to a page.
pub trait ErrorFunction<'a>: Send + Sync {
    /// Writes the content of the page.
    fn write_error(&self, failure: &'a ErrorInfo<'a>, writer: &mut Writer<'_>);
}

impl<'a, F, P> ErrorFunction<'a> for F
where
    F: Fn(&'a ErrorInfo<'a>) -> P + Send + Sync,
    P: Page,
{
    fn write_error(&self, failure: &'a ErrorInfo<'a>, writer: &mut Writer<'_>) {
        self(failure).write(writer);
    }
}

impl<F: for<'a> ErrorFunction<'a>> ErrorLayout for FunctionTemplate<F> {
    fn write(&self, failure: &ErrorInfo<'_>, writer: &mut Writer<'_>) {
        self.0.write_error(failure, writer);
    }
}

impl Templates {
    /// The message for the user when the details are for the log only.
    pub(crate) const GENERIC_MESSAGE: &str = "Something went wrong here. It has been noted.";

    /// The message for a path without a page.
    pub(crate) const NOT_FOUND_MESSAGE: &str = "There is nothing at this address.";

    /// The message that the user may read.
    pub(crate) fn message(error: &Error) -> &str {
        error.message().unwrap_or(Self::GENERIC_MESSAGE)
    }

    /// The causes of an error, if they may be displayed.
    pub(crate) fn causes(&self, error: &Error) -> Vec<String> {
        if self.shows_causes() { error.chain().collect() } else { Vec::new() }
    }

    pub(crate) fn shows_causes(&self) -> bool {
        self.is_in_development.load(Ordering::Relaxed)
    }

    /// Applies the configuration's setting, or else the program's.
    pub(crate) fn develop(&self, word: Option<bool>) {
        self.is_in_development.store(word.unwrap_or(self.develops), Ordering::Relaxed);
    }

    /// The markup to insert into the head of each page.
    pub(crate) fn head(&self) -> &str {
        self.links.as_ref().map_or("", |links| links.markup())
    }

    /// Writes a page, inside the layout if there is one. A page that is a whole document has no
    /// layout.
    #[inline]
    pub(crate) fn write<P: Page>(
        &self,
        page: P,
        title: &str,
        meta: &[(Cow<'static, str>, Cow<'static, str>)],
        writer: &mut Writer<'_>,
    ) {
        if self.has_no_template(&page) {
            return page.write(writer);
        }
        let mut page = Some(page);
        let mut write = |writer: &mut Writer<'_>| {
            // The layout consumes its content by displaying it, so it displays it once.
            if let Some(page) = page.take() {
                page.write(writer);
            }
        };
        let content = PageContent::new(title, meta, &mut write);
        match &self.layout {
            Some(layout) => layout.write(content, writer),
            None => document(title, meta, content).write(writer),
        }
    }

    /// Whether this page is written without anything around it. Links need a head to be inserted
    /// in.
    pub(crate) fn has_no_template(&self, page: &impl Page) -> bool {
        page.is_whole() || self.layout.is_none() && self.links.is_none()
    }

    /// Whether [`write`](Self::write) renders this page as a whole document, valid as XML too.
    #[inline]
    pub(crate) fn is_document<P: Page>(&self, page: &P) -> bool {
        match &self.layout {
            _ if self.has_no_template(page) => page.is_this_document(),
            Some(layout) => layout.is_document(),
            None => true,
        }
    }

    /// Whether [`write_failure`](Self::write_failure) renders a whole document. Without a layout it
    /// always does.
    pub(crate) fn failure_is_document(&self) -> bool {
        self.layout.as_ref().is_none_or(|layout| layout.is_document())
    }

    /// Writes the whole page that reports a failure.
    pub(crate) fn write_failure(&self, failure: &ErrorInfo<'_>, writer: &mut Writer<'_>) {
        let content =
            bine_html::page::<Flow, _>(|writer: &mut Writer<'_>| match &self.error_page {
                Some(page) => page.write(failure, writer),
                None => plain_failure(failure).write(writer),
            });
        let title = failure.status.reason();
        match &self.layout {
            Some(_) => self.write(content, title, &[], writer),
            None => document(title, &[], content).write(writer),
        }
    }
}

fn plain_failure(failure: &ErrorInfo<'_>) -> impl Page {
    let ErrorInfo { status, message, causes, back } = *failure;
    crate::html! {
        <h1>{status.reason()}</h1>
        <p>{message}</p>
        {if let Some(page) = back { <p><a href={page}>Back</a></p> }}
        {if !causes.is_empty() {
            <p>"In development only:"</p>
            <ul>{for cause in causes { <li><code>{cause}</code></li> }}</ul>
        }}
    }
}

/// Renders a whole page for a program without a layout.
fn document(
    title: &str,
    meta: &[(Cow<'static, str>, Cow<'static, str>)],
    content: impl Html<Flow>,
) -> impl Page {
    crate::html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <title>{title}</title>
                {for (name, content) in meta { <meta name={name} content={content}> }}
            </head>
            <body>{content}</body>
        </html>
    }
}
