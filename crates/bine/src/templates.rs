//! The layout and the error page of a program, which all its pages share.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bine_html::{FitsIn, Flow, Fragment, Html, Page, Writer};
use bine_http::{FieldLines, Status};

use crate::error::Error;
use crate::languages::{Languages, VisitorWords};
use crate::links::Links;
use crate::request_session::SessionProvider;
use crate::request_summary::RequestSummary;
use crate::text::Text;
use crate::visitor_message::VisitorMessage;

/// The templates and settings that all pages of a program share.
#[derive(Clone, Default)]
pub(crate) struct Templates {
    pub(crate) layout: Option<Arc<dyn Layout>>,
    pub(crate) error_page: Option<Arc<dyn ErrorLayout>>,
    /// The program's own words for the messages of the framework, if it has some.
    pub(crate) languages: Option<Languages>,
    /// The style sheet and the script, if the program has them.
    pub(crate) links: Option<Arc<Links>>,
    /// The version of the program, if it has pages.
    pub(crate) version: Option<u64>,
    /// The session store that seals actions, in a program with sessions.
    pub(crate) actions: Option<Arc<dyn SessionProvider>>,
    /// The session store, in a program whose layout takes the user.
    pub(crate) layout_sessions: Option<Arc<dyn SessionProvider>>,
    /// Whether errors display their causes by default, when the configuration does not decide.
    pub(crate) develops: bool,
    /// Whether errors display their causes.
    pub(crate) is_in_development: Arc<AtomicBool>,
    /// The content security policy of pages, set when the configuration is known.
    pub(crate) policy: Arc<OnceLock<FieldLines>>,
}

/// The values that a page passes to the layout around it.
#[derive(Default)]
pub(crate) struct PageSettings {
    pub(crate) title: Cow<'static, str>,
    pub(crate) meta: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// Values of the page's own, at most one of each type.
    pub(crate) values: Vec<Box<dyn Any + Send>>,
    /// Whether the page is a whole document and has no layout.
    pub(crate) has_no_layout: bool,
    /// The version of the page, if it can change while the program runs.
    pub(crate) version: Option<u64>,
}

/// A page's settings, and the properties of the request that the layout may read.
#[derive(Clone, Copy)]
pub(crate) struct LayoutContext<'a> {
    pub(crate) settings: &'a PageSettings,
    pub(crate) request: RequestSummary<'a>,
    /// The logged-in user, if the layout takes the user.
    pub(crate) user: Option<&'a Text>,
}

/// The content of a page, for the layout around it: `{content}` displays it.
///
/// The layout may also read the address of the page, and the values that the page has added by
/// [`with`](crate::PageExt::with). All of it works in the layout of an error page, too, which has no
/// values.
///
/// ```
/// use bine::prelude::*;
///
/// struct Breadcrumbs(Vec<&'static str>);
///
/// fn layout(content: PageContent<'_>) -> impl Page {
///     let is_home = content.path() == "/";
///     let crumbs = content.get::<Breadcrumbs>().map_or(&[][..], |crumbs| &crumbs.0);
///     html! {
///         <!DOCTYPE html>
///         <html lang="en">
///             <head><title>{content.title()}</title></head>
///             <body>
///                 <nav><a href="/" aria-current={is_home.then_some("page")}>Home</a></nav>
///                 <ol>{for crumb in crumbs { <li>{*crumb}</li> }}</ol>
///                 {content}
///             </body>
///         </html>
///     }
/// }
///
/// #[page("/boats")]
/// async fn boats() -> impl Respond {
///     html!(<h1>Boats</h1>).with(Breadcrumbs(vec!["Home", "Boats"]))
/// }
/// # drop(App::new().layout(layout).page(boats));
/// ```
pub struct PageContent<'a> {
    context: LayoutContext<'a>,
    write: &'a mut dyn FnMut(&mut Writer<'_>),
}

impl<'a> PageContent<'a> {
    pub(crate) const fn new(
        context: LayoutContext<'a>,
        write: &'a mut dyn FnMut(&mut Writer<'_>),
    ) -> Self {
        Self { context, write }
    }

    /// The title that `with_title` set, or an empty string.
    pub fn title(&self) -> &'a str {
        &self.context.settings.title
    }

    /// The names and contents that `with_meta` set.
    pub fn meta(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.context.settings.meta.iter().map(|(name, content)| (&**name, &**content))
    }

    /// The decoded path of the request, such as `/boats/7`. It begins with `/`, or is `*`. A layout
    /// marks the current entry of its navigation by it.
    pub fn path(&self) -> Cow<'a, str> {
        self.context.request.path()
    }

    /// The query of the request as the client sent it, without the `?`.
    pub fn query(&self) -> Option<&'a str> {
        self.context.request.query()
    }

    /// The value of type `T` that the page added by [`with`](crate::PageExt::with). `None` if the
    /// page added no value of this type, and in the layout of an error page.
    pub fn get<T: 'static>(&self) -> Option<&'a T> {
        self.context.settings.values.iter().find_map(|value| value.downcast_ref())
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
        f.debug_struct("PageContent").field("title", &self.title()).finish_non_exhaustive()
    }
}

/// A function that renders a page's content inside a whole page.
pub(crate) trait Layout: Send + Sync {
    /// Whether the layout renders whole documents, which are valid XML too.
    fn is_document(&self) -> bool;
    /// Whether the layout takes the logged-in user.
    fn takes_user(&self) -> bool;
    fn write(&self, content: PageContent<'_>, writer: &mut Writer<'_>);
}

/// A plain function from [`PageContent`] to a page, for any lifetime of the content. It may take the
/// user as its second argument.
///
/// The user is an argument and no method of the content, so that the server knows before it writes
/// the head whether the response belongs to one user. `Kind` only separates the implementations for
/// the compiler, which infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layout",
    note = "a layout is a function of `PageContent<'_>`, or of `PageContent<'_>` and `Option<User>`, that returns `impl Page`"
)]
pub trait LayoutFunction<'a, Kind>: Send + Sync {
    /// Whether the function takes the logged-in user.
    const TAKES_USER: bool;
    /// Whether the page is a whole document: see [`Page::is_document`].
    fn is_document(&self) -> bool;
    /// Writes the whole page.
    fn write_layout(&self, content: PageContent<'a>, writer: &mut Writer<'_>);
}

/// The kind of a [`LayoutFunction`] that takes only the content.
#[derive(Debug)]
pub enum ContentLayout {}

/// The type of a user, for a layout.
pub trait LayoutUser {
    /// Creates the user of this name.
    fn named(name: Text) -> Self;
}

impl<'a, F, P> LayoutFunction<'a, ContentLayout> for F
where
    F: Fn(PageContent<'a>) -> P + Send + Sync,
    P: Page,
{
    const TAKES_USER: bool = false;

    fn is_document(&self) -> bool {
        P::is_document()
    }

    fn write_layout(&self, content: PageContent<'a>, writer: &mut Writer<'_>) {
        self(content).write(writer);
    }
}

impl<'a, F, P, U> LayoutFunction<'a, Option<U>> for F
where
    F: Fn(PageContent<'a>, Option<U>) -> P + Send + Sync,
    P: Page,
    U: LayoutUser,
{
    const TAKES_USER: bool = true;

    fn is_document(&self) -> bool {
        P::is_document()
    }

    fn write_layout(&self, content: PageContent<'a>, writer: &mut Writer<'_>) {
        let user = content.context.user.cloned().map(U::named);
        self(content, user).write(writer);
    }
}

/// A layout and its [kind](LayoutFunction).
pub(crate) struct FunctionLayout<F, Kind> {
    pub(crate) function: F,
    pub(crate) kind: PhantomData<fn() -> Kind>,
}

impl<F: for<'a> LayoutFunction<'a, Kind>, Kind> Layout for FunctionLayout<F, Kind> {
    fn is_document(&self) -> bool {
        self.function.is_document()
    }

    fn takes_user(&self) -> bool {
        <F as LayoutFunction<'_, Kind>>::TAKES_USER
    }

    fn write(&self, content: PageContent<'_>, writer: &mut Writer<'_>) {
        self.function.write_layout(content, writer);
    }
}

/// An error page.
pub(crate) struct FunctionTemplate<F>(pub(crate) F);

/// A failed request, for the page that reports it.
#[derive(Debug)]
pub struct ErrorInfo<'a> {
    /// The status of the response.
    pub status: Status,
    /// The reason phrase of the status, or the program's own title from
    /// [`App::messages`](crate::App::messages).
    pub title: &'a str,
    /// The language of the message, if [`App::messages`](crate::App::messages) names languages.
    pub language: Option<&'static str>,
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
    /// The causes of an error, if they may be displayed.
    pub(crate) fn causes(&self, error: &Error) -> Vec<String> {
        if self.shows_causes() { error.chain().collect() } else { Vec::new() }
    }

    pub(crate) fn shows_causes(&self) -> bool {
        self.is_in_development.load(Ordering::Relaxed)
    }

    /// Whether the layout takes the logged-in user.
    pub(crate) fn takes_user(&self) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.takes_user())
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
        context: LayoutContext<'_>,
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
        let content = PageContent::new(context, &mut write);
        match &self.layout {
            Some(layout) => layout.write(content, writer),
            None => document("en", context.settings, content).write(writer),
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
    pub(crate) fn write_failure(
        &self,
        failure: &ErrorInfo<'_>,
        request: RequestSummary<'_>,
        user: Option<&Text>,
        words: &VisitorWords,
        writer: &mut Writer<'_>,
    ) {
        let content =
            bine_html::page::<Flow, _>(|writer: &mut Writer<'_>| match &self.error_page {
                Some(page) => page.write(failure, writer),
                None => plain_failure(failure, words).write(writer),
            });
        let settings =
            &PageSettings { title: failure.title.to_owned().into(), ..PageSettings::default() };
        match &self.layout {
            Some(_) => self.write(content, LayoutContext { settings, request, user }, writer),
            None => document(failure.language.unwrap_or("en"), settings, content).write(writer),
        }
    }
}

fn plain_failure(failure: &ErrorInfo<'_>, words: &VisitorWords) -> impl Page {
    let ErrorInfo { title, message, causes, back, .. } = *failure;
    let back_text = words.say(&VisitorMessage::Back {});
    crate::html! {
        <h1>{title}</h1>
        <p>{message}</p>
        {if let Some(page) = back { <p><a href={page}>{back_text}</a></p> }}
        {if !causes.is_empty() {
            <p>"In development only:"</p>
            <ul>{for cause in causes { <li><pre>{cause}</pre></li> }}</ul>
        }}
    }
}

/// Renders a whole page for a program without a layout.
fn document(language: &str, settings: &PageSettings, content: impl Html<Flow>) -> impl Page {
    let PageSettings { title, meta, .. } = settings;
    crate::html! {
        <!DOCTYPE html>
        <html lang={language}>
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
