//! The builder of a program: its pages, files, tables and settings. Subsystems add methods of their
//! own.

mod start;

use std::any::{type_name, type_name_of_val};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use bine_server::Handler;
use bine_server::scheduler::Scheduler;

use crate::app_state::States;
use crate::asset;
use crate::asset_folder::AssetFolder;
use crate::error::Error;
use crate::filter::Filter;
use crate::languages::Languages;
use crate::reload::Middleware;
use crate::route::{Endpoint, Route};
use crate::security::SecurityHeaders;
use crate::service::{Callable, Rule};
use crate::store::{Options, Store, Table};
use crate::subsystem::Subsystems;
use crate::tables::OnStoreOpen;
use crate::templates::{
    ErrorFunction, FunctionLayout, FunctionTemplate, LayoutFunction, Templates,
};
use crate::visitor_message::VisitorMessage;

/// A program: its pages, its files, and its settings.
#[derive(Default)]
#[must_use = "an app serves nothing until it runs"]
pub struct App {
    routes: Vec<Route>,
    /// The paths of the functions that render pages: pages, services, the layout, the error page.
    functions: Vec<&'static str>,
    default_service_rule: Option<Rule>,
    filters: Vec<Box<dyn Filter>>,
    asset_folders: Vec<&'static AssetFolder>,
    files: Option<PathBuf>,
    states: States,
    /// The type of a state that was added twice.
    repeated_state: Option<&'static str>,
    tables: Option<Options>,
    in_memory: bool,
    on_store_open: Vec<OnStoreOpen>,
    /// The settings from methods of subsystems.
    pub(crate) subsystems: Subsystems,
    templates: Templates,
    /// Paths of pages that accept submissions from other sites.
    open_paths: Vec<&'static str>,
    styles: Vec<Cow<'static, str>>,
    /// Whether the style sheet has only `styles`.
    omits_linked_styles: bool,
    /// Paths with parts that no log shows.
    secret_paths: Vec<Cow<'static, str>>,
    headers: SecurityHeaders,
    middleware: Option<Middleware>,
    on_start: Vec<Box<dyn FnOnce()>>,
    scheduler: Option<Arc<dyn Scheduler>>,
}

impl App {
    /// Creates an empty program.
    pub fn new() -> Self {
        let templates = Templates { develops: cfg!(debug_assertions), ..Templates::default() };
        Self { templates, ..Self::default() }
    }

    /// Adds a page: a function with `#[page("/path")]`.
    ///
    /// The program does not start if a form or a button in the function names a service that the
    /// program does not have.
    pub fn page(mut self, endpoint: impl Endpoint) -> Self {
        self.functions.push(type_name_of_val(&endpoint));
        self.routes.push(endpoint.route());
        self
    }

    /// Accepts forms and scripts of other sites at this path, such as `/saml/{name}`: for a payment
    /// or a single sign-on that returns by POST.
    ///
    /// A program with sessions otherwise rejects (403) POST and other unsafe requests that a
    /// browser sends from a page of another site, because such a page could submit data in the
    /// user's name or log the user in to a foreign account. The check applies to browsers only,
    /// because programs do not send an origin.
    pub fn allow_cross_origin_posts(mut self, path: &'static str) -> Self {
        self.open_paths.push(path);
        self
    }

    /// Adds a service: a function with `#[service]`. Clients call it at `/<crate>/<function>`.
    pub fn service(mut self, service: impl Callable) -> Self {
        self.functions.push(type_name_of_val(&service));
        self.routes.push(service.service().route());
        self
    }

    /// Sets the access rule of services and actions that have no `who = ..` of their own. The
    /// default is anyone.
    ///
    /// ```
    /// use bine::prelude::*;
    /// use bine::Rule;
    ///
    /// #[service]
    /// fn order(item: Text) {
    ///     drop(item);
    /// }
    ///
    /// #[service(safe, who = "anyone")]
    /// fn price(item: Text) -> usize {
    ///     item.len()
    /// }
    ///
    /// let app = App::new().default_service_rule(Rule::USERS).service(order).service(price);
    /// # drop(app);
    /// ```
    ///
    /// An [action](crate::action!) is also limited to clients that received its page.
    pub fn default_service_rule(mut self, rule: Rule) -> Self {
        self.default_service_rule = Some(rule);
        self
    }

    /// Serves bytes that are compiled into the program at `path`.
    pub fn asset(
        mut self,
        path: &'static str,
        media_type: &'static str,
        bytes: &'static [u8],
    ) -> Self {
        self.routes.push(asset::route(path, media_type, bytes));
        self
    }

    /// Serves the files of an [`AssetFolder`]. Their URLs contain a hash, so browsers cache them
    /// forever; pages write the URLs by [`asset!`](crate::asset!).
    pub fn asset_folder(mut self, folder: &'static AssetFolder) -> Self {
        self.asset_folders.push(folder);
        self
    }

    /// Serves the files below `folder` at all paths that no page has.
    pub fn files(mut self, folder: impl Into<PathBuf>) -> Self {
        self.files = Some(folder.into());
        self
    }

    /// Shares a value with all handlers, which take it as [`State<T>`](crate::State). A program has
    /// one value of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        if !self.states.add(state) {
            self.repeated_state = Some(type_name::<T>());
        }
        self
    }

    /// Keeps a table of `T` in the program's store. Handlers access all tables through
    /// [`Store`](crate::store::Store).
    ///
    /// The program does not start if a page or a service names a table without this call in a read.
    /// Any other request that uses such a table gets a 500, and the log names the table. At the
    /// start, the log warns about each `#[derive(Table)]` in the crates of the program's pages and
    /// services whose table is not added.
    ///
    /// The store is in the folder `journal` of the data folder. The key `data` names the data
    /// folder; the default is `data` in the folder where the program was started.
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// #[derive(Table)]
    /// struct Note {
    ///     id: Id<Note>,
    ///     text: Text,
    /// }
    ///
    /// #[page("/")]
    /// async fn notes(store: Store) -> impl Page {
    ///     let notes = store.read().newest::<Note>(20);
    ///     html!(<ul>{for note in notes { <li>{note.text}</li> }}</ul>)
    /// }
    ///
    /// #[page(POST "/")]
    /// async fn write(store: Store, text: Form<Text>) -> Result<Response, Error> {
    ///     store.insert(Note { id: Id::unassigned(), text: text.0 }).await?;
    ///     Ok(Response::see_other("/"))
    /// }
    ///
    /// let app = App::new().table::<Note>().page(notes).page(write);
    /// # drop(app);
    /// ```
    pub fn table<T: Table>(mut self) -> Self {
        self.tables = Some(self.tables.unwrap_or_default().table::<T>());
        self
    }

    /// Runs once when the tables are open, before the first request: the place for initial rows,
    /// and for threads that change tables. An error aborts the start.
    pub fn on_store_open(
        mut self,
        run: impl FnOnce(&Store) -> Result<(), Error> + 'static,
    ) -> Self {
        self.on_store_open.push(Box::new(run));
        self
    }

    /// Keeps tables, channels and sessions in memory, unless the key `data` names a folder.
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Renders every page inside a layout: a plain function from
    /// [`PageContent`](crate::PageContent) to a whole page.
    ///
    /// ```
    /// use bine::{App, Page, PageContent, html};
    ///
    /// fn layout(content: PageContent<'_>) -> impl Page {
    ///     html! {
    ///         <!DOCTYPE html>
    ///         <html lang="en">
    ///             <head><title>{content.title()}</title></head>
    ///             <body>{content}</body>
    ///         </html>
    ///     }
    /// }
    /// let app = App::new().layout(layout);
    /// # drop(app);
    /// ```
    ///
    /// A page sets its title by `with_title`; `without_layout` marks a page as a whole document.
    ///
    /// The layout may take the logged-in user as a second argument, `Option<User>`. Each page
    /// inside it then belongs to that user, as if the page took an `Option<User>` itself, and the
    /// program has sessions:
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// fn layout(content: PageContent<'_>, user: Option<User>) -> impl Page {
    ///     html! {
    ///         <!DOCTYPE html>
    ///         <html lang="en">
    ///             <head><title>{content.title()}</title></head>
    ///             <body>
    ///                 <header>{match user {
    ///                     Some(user) => { Hello {user} }
    ///                     None => { <a href="/login">Log in</a> }
    ///                 }}</header>
    ///                 {content}
    ///             </body>
    ///         </html>
    ///     }
    /// }
    /// let app = App::new().layout(layout);
    /// # drop(app);
    /// ```
    pub fn layout<F, Kind>(mut self, layout: F) -> Self
    where
        F: for<'a> LayoutFunction<'a, Kind> + 'static,
        Kind: 'static,
    {
        self.functions.push(type_name::<F>());
        self.templates.layout =
            Some(Arc::new(FunctionLayout { function: layout, kind: PhantomData }));
        self
    }

    /// Appends CSS to the program's style sheet that was not known at compile time. It is not
    /// checked.
    pub fn style(mut self, css: impl Into<Cow<'static, str>>) -> Self {
        self.styles.push(css.into());
        self
    }

    /// Omits the CSS of `css!` and `css_file!`, for one of several sites in a program: the linker
    /// adds it to all sites.
    pub fn without_linked_styles(mut self) -> Self {
        self.omits_linked_styles = true;
        self
    }

    /// Renders failures with the program's own page: a plain function from
    /// [`ErrorInfo`](crate::ErrorInfo) to a page. The layout applies to it too.
    pub fn error_page<F: for<'a> ErrorFunction<'a> + 'static>(mut self, page: F) -> Self {
        self.functions.push(type_name::<F>());
        self.templates.error_page = Some(Arc::new(FunctionTemplate(page)));
        self
    }

    /// Replaces or translates the texts of the framework that visitors read.
    ///
    /// `languages` are the language tags of the program's words (BCP 47), the default first. For each
    /// [`VisitorMessage`], `words` gets the one that fits the `Accept-Language` field of the visitor
    /// best (RFC 4647 section 3.4), and returns the text; for `None`, the visitor reads the English
    /// text. With several languages, such a response has the fields `Vary: Accept-Language` and
    /// `Content-Language`.
    ///
    /// ```
    /// use bine::{App, VisitorMessage};
    ///
    /// let app = App::new().messages(&["en", "de"], |message, language| {
    ///     if language != "de" {
    ///         return None;
    ///     }
    ///     Some(match message {
    ///         VisitorMessage::Required { .. } => "darf nicht leer sein".into(),
    ///         VisitorMessage::Taken { .. } => "ist schon vergeben".into(),
    ///         VisitorMessage::Range { least, most, .. } => {
    ///             format!("muss von {least} bis {most} sein").into()
    ///         }
    ///         _ => return None,
    ///     })
    /// });
    /// # drop(app);
    /// ```
    pub fn messages(
        mut self,
        languages: &'static [&'static str],
        words: impl Fn(&VisitorMessage, &str) -> Option<Cow<'static, str>> + Send + Sync + 'static,
    ) -> Self {
        self.templates.languages = Some(Languages::new(languages, words));
        self
    }

    /// Shows errors with their causes. The default is on in debug builds. The key `development`
    /// overrides this call.
    pub fn development(mut self, on: bool) -> Self {
        self.templates.develops = on;
        self
    }

    /// Sets the security headers of all responses.
    pub fn security_headers(mut self, headers: SecurityHeaders) -> Self {
        self.headers = headers;
        self
    }

    /// Keeps secrets of a path out of the access log, which shows `...` in their place: all segments
    /// in braces of `/join/{token}`, or the query value of `/sign-up?invitation`. The path may be
    /// that of a page, and it also covers longer paths.
    ///
    /// ```
    /// let app = bine::App::new().secret_path("/join/{token}").secret_path("/sign-up?invitation");
    /// # drop(app);
    /// ```
    ///
    /// A browser may send the address of a page to the sites that the page links to, as the field
    /// `Referer`: add `Referrer-Policy: no-referrer` to the response.
    pub fn secret_path(mut self, path: &'static str) -> Self {
        self.secret_paths.push(path.into());
        self
    }

    /// Adds a filter, which sees each request before the router does. Filters run in the order in
    /// which they were added.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Wraps the program's request handler. `middleware` receives the program's own handler and
    /// returns the handler to use, which may delegate to it. The server calls it again when it
    /// reloads the configuration; see [`middleware`](crate::middleware).
    pub fn middleware(
        mut self,
        middleware: impl Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync + 'static,
    ) -> Self {
        self.middleware = Some(Box::new(middleware));
        self
    }

    /// Runs once after the server has opened its addresses and changed to its final user, before
    /// the first request: the place for the program's own threads. It must not take long.
    pub fn on_start(mut self, run: impl FnOnce() + 'static) -> Self {
        self.on_start.push(Box::new(run));
        self
    }

    /// Runs on the program's own scheduler instead of one that `--scheduler` names.
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler>) -> Self {
        self.scheduler = Some(scheduler);
        self
    }
}
