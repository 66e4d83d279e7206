//! Decides what stands around a program's pages, and what a page of an error looks like.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bine_html::{FitsIn, Flow, Fragment, Html, Page, Writer};
use bine_http::{FieldLines, Status};

use crate::error::Error;
use crate::links::Links;
use crate::request_session::SessionProvider;

/// What all pages of a program share.
#[derive(Clone, Default)]
pub(crate) struct Look {
    pub(crate) layout: Option<Arc<dyn Layout>>,
    pub(crate) error_page: Option<Arc<dyn ErrorLayout>>,
    /// The style sheet and the script, if it has them.
    pub(crate) links: Option<Arc<Links>>,
    /// Whose sessions actions are sealed for, of a program that has some.
    pub(crate) actions: Option<Arc<dyn SessionProvider>>,
    /// Errors are shown with their causes, if the configuration does not say.
    pub(crate) develops: bool,
    /// They are.
    pub(crate) is_in_development: Arc<AtomicBool>,
    /// The content security policy of pages, once the configuration is known.
    pub(crate) policy: Arc<OnceLock<FieldLines>>,
}

/// The content of a page, for the layout that stands around it: `{content}` shows it.
pub struct Content<'a> {
    title: &'a str,
    meta: &'a [(Cow<'static, str>, Cow<'static, str>)],
    write: &'a mut dyn FnMut(&mut Writer<'_>),
}

impl<'a> Content<'a> {
    pub(crate) const fn new(
        title: &'a str,
        meta: &'a [(Cow<'static, str>, Cow<'static, str>)],
        write: &'a mut dyn FnMut(&mut Writer<'_>),
    ) -> Self {
        Self { title, meta, write }
    }

    /// What `with_title` said, or nothing.
    pub const fn title(&self) -> &'a str {
        self.title
    }

    /// What `with_meta` said: names and contents.
    pub fn meta(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.meta.iter().map(|(name, content)| (&**name, &**content))
    }
}

impl Page for Content<'_> {
    fn write(self, writer: &mut Writer<'_>) {
        (self.write)(writer);
    }
}

impl Fragment for Content<'_> {}
impl FitsIn<Flow> for Content<'_> {}
#[diagnostic::do_not_recommend]
impl Html<Flow> for Content<'_> {}

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("title", &self.title).finish_non_exhaustive()
    }
}

/// A function that puts a page's content into a whole page.
pub(crate) trait Layout: Send + Sync {
    /// Whether it makes whole documents, in XML too.
    fn is_document(&self) -> bool;
    fn write(&self, content: Content<'_>, writer: &mut Writer<'_>);
}

/// A plain function from [`Content`] to a page, for any lifetime of the content.
pub trait LayoutFunction<'a>: Send + Sync {
    /// Whether the page is a whole document: see [`Page::is_document`].
    fn is_document(&self) -> bool;
    /// Writes the whole page.
    fn write_layout(&self, content: Content<'a>, writer: &mut Writer<'_>);
}

impl<'a, F, P> LayoutFunction<'a> for F
where
    F: Fn(Content<'a>) -> P + Send + Sync,
    P: Page,
{
    fn is_document(&self) -> bool {
        P::is_document()
    }

    fn write_layout(&self, content: Content<'a>, writer: &mut Writer<'_>) {
        self(content).write(writer);
    }
}

pub(crate) struct ByFunction<F>(pub(crate) F);

impl<F: for<'a> LayoutFunction<'a>> Layout for ByFunction<F> {
    fn is_document(&self) -> bool {
        self.0.is_document()
    }

    fn write(&self, content: Content<'_>, writer: &mut Writer<'_>) {
        self.0.write_layout(content, writer);
    }
}

/// What went wrong, for a page that tells it.
#[derive(Debug)]
pub struct Failure<'a> {
    /// The status of the answer.
    pub status: Status,
    /// What the user may know.
    pub message: &'a str,
    /// The error and its causes; empty but in development.
    pub causes: &'a [String],
    /// The page of this site whose form has failed, to go back to.
    pub back: Option<&'a str>,
}

/// A function that makes a page of a failure.
pub(crate) trait ErrorLayout: Send + Sync {
    fn write(&self, failure: &Failure<'_>, writer: &mut Writer<'_>);
}

/// A plain function from [`Failure`] to a page.
pub trait ErrorFunction<'a>: Send + Sync {
    /// Writes the content of the page.
    fn write_error(&self, failure: &'a Failure<'a>, writer: &mut Writer<'_>);
}

impl<'a, F, P> ErrorFunction<'a> for F
where
    F: Fn(&'a Failure<'a>) -> P + Send + Sync,
    P: Page,
{
    fn write_error(&self, failure: &'a Failure<'a>, writer: &mut Writer<'_>) {
        self(failure).write(writer);
    }
}

impl<F: for<'a> ErrorFunction<'a>> ErrorLayout for ByFunction<F> {
    fn write(&self, failure: &Failure<'_>, writer: &mut Writer<'_>) {
        self.0.write_error(failure, writer);
    }
}

impl Look {
    /// What the user may know of what only the log tells.
    pub(crate) const APOLOGY: &str = "Something went wrong here. It has been noted.";

    /// What the user is told where nothing is.
    pub(crate) const NOWHERE: &str = "There is nothing at this address.";

    /// What the user may know of an error.
    pub(crate) fn message(error: &Error) -> &str {
        error.message().unwrap_or(Self::APOLOGY)
    }

    /// The causes of an error, if they may be shown.
    pub(crate) fn causes(&self, error: &Error) -> Vec<String> {
        if self.shows_causes() { error.chain().collect() } else { Vec::new() }
    }

    pub(crate) fn shows_causes(&self) -> bool {
        self.is_in_development.load(Ordering::Relaxed)
    }

    /// Follows the configuration's word, or the program's where that has none.
    pub(crate) fn develop(&self, word: Option<bool>) {
        self.is_in_development.store(word.unwrap_or(self.develops), Ordering::Relaxed);
    }

    /// What belongs into the head of each page.
    pub(crate) fn head(&self) -> &str {
        self.links.as_ref().map_or("", |links| links.markup())
    }

    /// Writes a page, in its layout if there is one. A document is whole by itself.
    #[inline]
    pub(crate) fn write<P: Page>(
        &self,
        page: P,
        title: &str,
        meta: &[(Cow<'static, str>, Cow<'static, str>)],
        writer: &mut Writer<'_>,
    ) {
        if self.is_left_alone(&page) {
            return page.write(writer);
        }
        let mut page = Some(page);
        let mut write = |writer: &mut Writer<'_>| {
            // A layout shows its content once, since it is consumed by being shown.
            if let Some(page) = page.take() {
                page.write(writer);
            }
        };
        let content = Content::new(title, meta, &mut write);
        match &self.layout {
            Some(layout) => layout.write(content, writer),
            None => document(title, meta, content).write(writer),
        }
    }

    /// Whether nothing is put around this page. What it links needs a head to be named in.
    pub(crate) fn is_left_alone(&self, page: &impl Page) -> bool {
        page.is_whole() || self.layout.is_none() && self.links.is_none()
    }

    /// Whether what [`write`](Self::write) makes of such a page is a whole document, in XML too.
    #[inline]
    pub(crate) fn is_document<P: Page>(&self, page: &P) -> bool {
        match &self.layout {
            _ if self.is_left_alone(page) => page.is_this_document(),
            Some(layout) => layout.is_document(),
            None => true,
        }
    }

    /// The same of [`write_failure`](Self::write_failure), which sees to a document itself.
    pub(crate) fn failure_is_document(&self) -> bool {
        self.layout.as_ref().is_none_or(|layout| layout.is_document())
    }

    /// Writes the whole page that tells of a failure.
    pub(crate) fn write_failure(&self, failure: &Failure<'_>, writer: &mut Writer<'_>) {
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

fn plain_failure(failure: &Failure<'_>) -> impl Page {
    let Failure { status, message, causes, back } = *failure;
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

/// A whole page for a program without a layout.
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
