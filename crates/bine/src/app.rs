//! The builder of a program: its pages, files, tables and settings, and the steps from start to
//! shutdown.

use std::any::type_name;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bine_log as log;
use bine_server::scheduler::Scheduler;
use bine_server::{
    AccessSettings, Handler, Server, Settings, end_with_parent, notify, reopen_logs_on_signal,
    stop_on_signals, supervise,
};

use crate::acme::Plan;
use crate::app_state::{AppState, RedirectTargets, States};
use crate::asset;
use crate::bundled_asset::BundledAsset;
use crate::channels::{self, Access, AtChannels, Channels, Face, Kept};
use crate::configuration::{Configuration, Sources};
use crate::control;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::Filter;
use crate::health::Health;
use crate::listing::{self, Listed};
use crate::live::{Events, Has, Live, waiters};
use crate::metrics::{Metrics, MetricsServer};
use crate::panics;
use crate::program::{Pages, Subsystems};
use crate::region_key::keep_region_key;
use crate::reload::{ConfiguredParts, ProgramDefinition, Reloader, Step, apply_log_settings};
use crate::request_session::SessionProvider;
use crate::route::{Endpoint, Route, RouteKind};
use crate::security::SecurityHeaders;
use crate::service::{Callable, DefaultRule, Rule, action};
use crate::sessions::{Keeper, Sessions};
use crate::store::{Options, Store, Table};
use crate::style;
use crate::tables::{AtOpen, DEFAULT_DATA, HasTables, Tables};
use crate::templates::{ErrorFunction, FunctionTemplate, LayoutFunction, Templates};
use crate::tls_state::TlsState;

/// A program: its pages, its files, and its settings.
#[derive(Default)]
#[must_use = "an app serves nothing until it runs"]
pub struct App {
    routes: Vec<Route>,
    services_for: Option<Rule>,
    filters: Vec<Box<dyn Filter>>,
    files: Option<PathBuf>,
    states: States,
    /// The type of a state that was added twice.
    repeated_state: Option<&'static str>,
    tables: Option<Options>,
    in_memory: bool,
    at_open: Vec<AtOpen>,
    channels: Option<Access>,
    wanted_channels: Vec<(&'static str, channels::Settings)>,
    sessions: Option<Sessions>,
    at_channels: Vec<AtChannels>,
    /// Names of events; `true` marks those for logged-in users only.
    events: Vec<(&'static str, bool)>,
    at_events: Vec<AtEvents>,
    templates: Templates,
    /// Paths of pages that accept submissions from other sites.
    open_paths: Vec<&'static str>,
    styles: Vec<Cow<'static, str>>,
    headers: SecurityHeaders,
    step: Option<Step>,
    at_start: Vec<Box<dyn FnOnce()>>,
    scheduler: Option<Arc<dyn Scheduler>>,
}

impl App {
    /// Creates an empty program.
    pub fn new() -> Self {
        let templates = Templates { develops: cfg!(debug_assertions), ..Templates::default() };
        Self { templates, ..Self::default() }
    }

    /// Adds a page: a function with `#[page("/path")]`.
    pub fn page(mut self, endpoint: impl Endpoint) -> Self {
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
    pub fn posts_from_anywhere(mut self, path: &'static str) -> Self {
        self.open_paths.push(path);
        self
    }

    /// Adds a service: a function with `#[service]`. Clients call it at `/<crate>/<function>`.
    pub fn service(mut self, service: impl Callable) -> Self {
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
    /// let app = App::new().services_for(Rule::USERS).service(order).service(price);
    /// # drop(app);
    /// ```
    ///
    /// An [action](crate::action!) is also limited to clients that received its page.
    pub fn services_for(mut self, rule: Rule) -> Self {
        self.services_for = Some(rule);
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
    ///     store.insert(Note { id: Id::new(), text: text.0 }).await?;
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
    pub fn at_open(mut self, run: impl FnOnce(&Store) -> Result<(), Error> + 'static) -> Self {
        self.at_open.push(Box::new(run));
        self
    }

    /// Enables channels, which handlers take as [`Channels`], and sets the access rules for
    /// `/channels` over HTTP. Their data is in the store, with the tables.
    pub fn channels(mut self, access: Access) -> Self {
        self.channels = Some(access);
        self
    }

    /// Creates a channel of this name at the first start. An existing channel keeps its settings;
    /// if they differ, the log has a warning.
    pub fn channel(mut self, name: &'static str, settings: channels::Settings) -> Self {
        self.channels = Some(self.channels.unwrap_or_default());
        self.wanted_channels.push((name, settings));
        self
    }

    /// Sets how long sessions last. A program in which a page takes a [`Session`](crate::Session)
    /// has sessions anyway. The store keeps them with the tables.
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Declares an event of this name, which every page and every other program may subscribe to.
    /// Handlers that take [`Events`](crate::Events) publish it.
    pub fn event(mut self, name: &'static str) -> Self {
        self.events.push((name, false));
        self
    }

    /// Declares an event that only logged-in users receive.
    pub fn event_for_users(mut self, name: &'static str) -> Self {
        self.events.push((name, true));
        self
    }

    /// Runs once when the events are available, before the first request: the place for threads
    /// that publish events by themselves. An error aborts the start. After shutdown
    /// [`broadcast`](crate::Events::broadcast) and [`signal`](crate::Events::signal) return an
    /// error, at which such a thread should end.
    pub fn at_events(mut self, run: impl FnOnce(&Events) -> Result<(), Error> + 'static) -> Self {
        self.at_events.push(Box::new(run));
        self
    }

    /// Tracks presence in a channel: a client is present while it follows the channel at
    /// `/channels`, and for `linger` longer, so that the gap between two polls does not count as
    /// leaving. [`Channels::present`] returns the list. The server publishes each change in the
    /// channel `NAME/presence` (`join`, `leave`, and `begin` after a start, when the list is
    /// empty). Clients cannot publish there over HTTP.
    pub fn presence(self, name: &'static str, linger: Duration) -> Self {
        self.at_channels(move |channels| Ok(channels.count(name, linger)?))
    }

    /// Runs once when the channels are open, before the first request: the place for threads that
    /// follow or publish. An error aborts the start. To change the program's tables at the start,
    /// use [`at_open`](Self::at_open).
    pub fn at_channels(
        mut self,
        run: impl FnOnce(&Channels) -> Result<(), Error> + 'static,
    ) -> Self {
        self.channels = Some(self.channels.unwrap_or_default());
        self.at_channels.push(Box::new(run));
        self
    }

    /// Keeps tables, channels and sessions in memory, unless the key `data` names a folder.
    pub fn forgetful(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Renders every page inside a layout: a plain function from [`Content`](crate::Content) to a
    /// whole page.
    ///
    /// ```
    /// use bine::{App, Content, Page, html};
    ///
    /// fn layout(content: Content<'_>) -> impl Page {
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
    pub fn layout<F: for<'a> LayoutFunction<'a> + 'static>(mut self, layout: F) -> Self {
        self.templates.layout = Some(Arc::new(FunctionTemplate(layout)));
        self
    }

    /// Appends CSS to the program's style sheet that was not known at compile time. It is not
    /// checked.
    pub fn style(mut self, css: impl Into<Cow<'static, str>>) -> Self {
        self.styles.push(css.into());
        self
    }

    /// Renders failures with the program's own page: a plain function from
    /// [`Failure`](crate::Failure) to a page. The layout applies to it too.
    pub fn error_page<F: for<'a> ErrorFunction<'a> + 'static>(mut self, page: F) -> Self {
        self.templates.error_page = Some(Arc::new(FunctionTemplate(page)));
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

    /// Adds a filter, which sees each request before the router does. Filters run in the order in
    /// which they were added.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Replaces the whole step from request to response. `step` receives the program's own handler,
    /// to delegate to. The server calls it again when it reloads the configuration; see
    /// [`step`](crate::step).
    pub fn step(
        mut self,
        step: impl Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync + 'static,
    ) -> Self {
        self.step = Some(Box::new(step));
        self
    }

    /// Runs once after the server has opened its addresses and changed to its final user, before
    /// the first request: the place for the program's own threads. It must not take long.
    pub fn at_start(mut self, run: impl FnOnce() + 'static) -> Self {
        self.at_start.push(Box::new(run));
        self
    }

    /// Runs on the program's own scheduler instead of one that `--scheduler` names.
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler>) -> Self {
        self.scheduler = Some(scheduler);
        self
    }

    /// Runs the server with the options of the command line, until SIGTERM or SIGINT.
    pub fn run(self) -> Exit {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_default();
        let name = PathBuf::from(program);
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.run_with(&format!("Usage: {name} [OPTION]..."), arguments)
    }

    /// Serves a program that has arguments of its own: `usage` is the first line of `--help`, and
    /// `arguments` are the remaining ones, for the server.
    ///
    /// With `--supervise` in `arguments`, the server runs in a child process: this program again,
    /// with the same arguments except `--supervise`.
    pub fn run_with(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let mut sources = self.sources(arguments);
        if take_flag(&mut sources, ROUTES) {
            return self.show_routes(usage, sources.arguments);
        }
        let supervises = take_flag(&mut sources, SUPERVISE);
        let configuration = match read(usage, &sources) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let has_channels = self.channels.is_some() || configuration.channels.are_some();
        let serves = !self.routes.is_empty() || self.files.is_some() || has_channels;
        if !serves && !configuration.names_files() {
            return Exit::usage(format!("which folder? Name it, or set `root`\n{usage}"));
        }
        if supervises {
            return supervised(&configuration);
        }
        match self.serve(sources, configuration) {
            Ok(()) => Exit::fine(),
            Err(message) => Exit::failed(message),
        }
    }

    /// Prints the effective configuration as a configuration file, with a comment that names the
    /// source of each value.
    pub fn show_configuration(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        match read(usage, &self.sources(arguments)) {
            Ok(configuration) => Exit::output(configuration.shown()),
            Err(exit) => exit,
        }
    }

    /// Prints the routes: each path with its handler, its arguments and its access rule; as JSON,
    /// if `--json` is among the arguments.
    pub fn show_routes(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let mut sources = self.sources(arguments);
        let is_for_programs = take_flag(&mut sources, JSON);
        let configuration = match read(usage, &sources) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let mut app = self.with_channels_of(&configuration);
        if let Err(message) = app.complete() {
            return Exit::failed(message);
        }
        let list = if is_for_programs { listing::json } else { listing::table };
        Exit::output(list(app.listed(&configuration)))
    }

    /// Lists the routes of an app that is [complete](Self::complete).
    fn listed(&self, configuration: &Configuration) -> Vec<Listed> {
        let mut listed: Vec<_> = self.routes.iter().map(Listed::route).collect();
        if !self.routes.is_empty() {
            listed.push(Listed::live());
        }
        let folder = configuration.site.root.as_ref().or(self.files.as_ref());
        listed.extend(folder.map(|folder| Listed::files("", folder)));
        for (hosts, site) in &configuration.sites {
            let hosts = hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            listed.extend(site.root.as_ref().map(|folder| Listed::files(&hosts, folder)));
        }
        if let Some(access) = &self.channels {
            listed.push(Listed::channels(access));
            let wanted = self.wanted_channels.iter();
            listed.extend(wanted.map(|(name, _)| Listed::channel(name, access)));
        }
        listed
    }

    /// Checks that this program can run with the configuration: reads everything, opens the folders
    /// and logs, and does not serve.
    pub fn check_configuration(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let configuration = match read(usage, &self.sources(arguments)) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let parts =
            self.with_channels_of(&configuration).definition().and_then(|(own, start_parts)| {
                ConfiguredParts::of(&configuration, &own, None)?;
                start_parts.tables.map_or(Ok(()), |tables| Store::in_memory(tables).map(drop))
            });
        match parts {
            Ok(()) => Exit::output("OK\n".to_owned()),
            Err(message) => Exit::failed(message),
        }
    }

    fn sources(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Sources {
        let has_some =
            self.tables.is_some() || self.channels.is_some() || self.sessions_wanted().is_some();
        let is_wanted = has_some && !self.in_memory;
        let default_data = is_wanted.then(|| DEFAULT_DATA.into());
        Sources { default_data, ..Sources::of_process(arguments) }
    }

    /// The settings of sessions, if the program has sessions.
    fn sessions_wanted(&self) -> Option<Sessions> {
        let rule = self.services_for.unwrap_or(Rule::ANYONE).access();
        let looks = |route: &Route| {
            let is_service = route.info.kind == RouteKind::Service;
            let rule = route.info.rule.unwrap_or(rule);
            route.needs.sessions || is_service && rule.needs_session
        };
        let are_looked_at = || self.routes.iter().any(looks);
        let are_wanted = || self.has_actions() || are_looked_at();
        self.sessions.clone().or_else(|| are_wanted().then(Sessions::new))
    }

    /// Whether its pages may have actions, which change tables. Actions of a library alone do not
    /// give a program sessions.
    fn has_actions(&self) -> bool {
        self.tables.is_some() && !self.routes.is_empty() && action::are_any()
    }

    /// Adds the access rules of channels that the configuration sets.
    fn with_channels_of(mut self, configuration: &Configuration) -> Self {
        let choices = &configuration.channels;
        if self.channels.is_some() || choices.are_some() {
            self.channels =
                Some(choices.added_to(
                    self.channels.unwrap_or_default(),
                    configuration.settings.guards.memory,
                ));
        }
        self
    }

    /// Adds the routes that no call names: actions, the style sheet, the script. Returns the
    /// session store.
    fn complete(&mut self) -> Result<Option<Arc<Keeper>>, String> {
        if let Some(kind) = self.repeated_state {
            return Err(format!(
                "the program has two states of type {kind}; wrap one in a type of its own"
            ));
        }
        for path in std::mem::take(&mut self.open_paths) {
            let mut at_path = self.routes.iter_mut().filter(|route| route.path == path).peekable();
            if at_path.peek().is_none() {
                return Err(format!(
                    "`.posts_from_anywhere({path:?})` names no path of a page; write it as in `#[page(..)]`"
                ));
            }
            for route in at_path {
                if route.info.kind != RouteKind::Page {
                    return Err(format!(
                        "`.posts_from_anywhere({path:?})` names {}, which is no page and which pages of other sites may never call; write a `#[page(POST ..)]` for their requests",
                        route.name
                    ));
                }
                route.from_anywhere = true;
            }
        }
        let sessions = self.sessions_wanted().map(|settings| Arc::new(Keeper::new(settings)));
        if sessions.is_some() && action::are_any() {
            self.routes.extend(action::routes()?);
            self.templates.actions = sessions.clone().map(provider);
        }
        let is_call = |kind| matches!(kind, RouteKind::Service | RouteKind::Action);
        for route in self.routes.iter_mut().filter(|route| is_call(route.info.kind)) {
            let default = || self.services_for.map(|rule| rule.access());
            route.info.rule = route.info.rule.or_else(default);
        }
        // A program that only serves files has no page that could request these.
        if !self.routes.is_empty() {
            let mut bundled: Vec<BundledAsset> =
                style::of_program(&self.styles).into_iter().collect();
            let is_called = self.routes.iter().any(|route| is_call(route.info.kind));
            let script = Has::script(is_called).then(|| BundledAsset::script(bine_browser::SCRIPT));
            let door = script.as_ref().map(BundledAsset::door);
            bundled.extend(script);
            self.templates.links = BundledAsset::links(&bundled).map(Arc::new);
            self.routes.extend(bundled.into_iter().chain(door).map(BundledAsset::route));
        }
        Ok(sessions)
    }

    /// Splits the program into the part that every reload uses and the part that only the start
    /// uses.
    fn definition(mut self) -> Result<(ProgramDefinition, StartParts), String> {
        let sessions = self.complete()?;
        if self.tables.is_none() && !self.at_open.is_empty() {
            return Err("`.at_open(..)` needs tables, and the program has none; add `.table::<..>()`, or use `.at_start(..)`".to_owned());
        }
        let channels = Channels::new();
        let has_channels = self.channels.is_some();
        let gate = Arc::new(channels.gate(self.channels.unwrap_or_default())?);
        let face = Face { channels: channels.clone(), gate };
        let live = Arc::new(Live::new(&self.events, self.step.is_some()));
        let tables = Arc::new(Tables::default());
        let mut states = self.states;
        states.share(Arc::clone(&tables));
        live.register(&mut states);
        states.add(DefaultRule(self.services_for.unwrap_or(Rule::ANYONE)));
        if self.tables.is_some() {
            states.add(HasTables);
        }
        if has_channels {
            states.add(channels.clone());
        }
        let app = AppState {
            states,
            sessions: sessions.clone().map(provider),
            templates: self.templates,
            may_ask_later: has_channels,
            redirect_targets: RedirectTargets::default(),
        };
        let subsystems = Subsystems {
            tables,
            channels: has_channels.then(|| channels.clone()),
            sessions: sessions.clone(),
            live,
            health: Health::default(),
        };
        let pages = Pages::new(self.routes, self.filters, face, app, subsystems, self.headers)?;
        let pages = Arc::new(pages);
        let tls_state = TlsState::default();
        let definition =
            ProgramDefinition { pages, folder: self.files, tls_state, step: self.step };
        let Self { scheduler, at_start, at_events, tables, .. } = self;
        let Self { at_open, wanted_channels, at_channels, .. } = self;
        let tables = if has_channels { Some(tables.unwrap_or_default()) } else { tables };
        let tables = match &sessions {
            Some(_) => Some(Keeper::declare(tables.unwrap_or_default())),
            None => tables,
        };
        let (wanted, are_some) = (wanted_channels, has_channels);
        let kept = Kept { channels, are_some, wanted, at_channels };
        let start_parts =
            StartParts { scheduler, at_start, at_events, tables, kept, sessions, at_open };
        Ok((definition, start_parts))
    }

    fn serve(self, sources: Sources, configuration: Configuration) -> Result<(), String> {
        panics::install_hook();
        apply_log_settings(&configuration.logs)?;
        configuration.warnings.iter().for_each(|warning| log::warn(format_args!("{warning}")));
        let Opened { definition, access, plan, running } = self.open(&configuration)?;
        let server = &running.server;
        stop_on_signals(server).map_err(|error| format!("cannot watch for signals: {error}"))?;
        let control = configuration.control.clone();
        let data = configuration.data.clone();
        let acme = Arc::clone(&definition.tls_state.acme);
        let reloader = Arc::new(Reloader::new(sources, definition, server, configuration, access));
        let on_hangup = Arc::clone(&reloader);
        bine_server::on_hangup(move || drop(on_hangup.reload()))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
        let _control = control::serve(&control, data.as_deref(), reloader)?;
        reopen_logs_on_signal().map_err(|error| format!("cannot watch for signals: {error}"))?;
        // This step is last: a server that fails to start must not ask an authority for a
        // certificate.
        acme.pursue(plan)?;
        announce(server, running.metrics_server.as_ref());
        notify("READY=1");
        running.run()
    }

    /// Opens the addresses, then tables and channels, and runs the program's start functions.
    fn open(self, configuration: &Configuration) -> Result<Opened, String> {
        let (definition, start_parts) = self.with_channels_of(configuration).definition()?;
        let StartParts { scheduler, at_start, at_events, tables, kept, sessions, at_open } =
            start_parts;
        let channels = kept.channels.clone();
        let parts = ConfiguredParts::of(configuration, &definition, None)?;
        let access = parts.access.clone();
        let ConfiguredParts { tls, security, hsts, .. } = parts;
        let settings = Settings { tls, security, hsts, ..configuration.settings.clone() };
        let handler = Arc::clone(&parts.handler);
        let server = Server::open(settings, parts.handler, parts.access)
            .map_err(|error| error.to_string())?;
        let server = Arc::new(server);
        let metrics = Arc::new(Metrics::new(&server, &definition.pages));
        let metrics_server =
            configuration.metrics.as_ref().map(|listen| MetricsServer::open(listen, metrics));
        let mut metrics_server = metrics_server.transpose()?;
        if let Some(user) = &configuration.user {
            user.become_it().map_err(|error| format!("cannot become that user: {error}"))?;
        }
        end_with_parent();
        let pages = Arc::clone(&definition.pages);
        let live = Arc::clone(pages.live());
        if let Some(tables) = tables {
            let tables = tables.sync(configuration.sync).extension(kept.channels.guest());
            let begin = |store: &Store| kept.begin(store);
            pages.tables().open(tables, configuration.data.as_deref(), begin, at_open)?;
            if let Some(data) = &configuration.data {
                keep_region_key(data);
            }
            if let Some((sessions, store)) = sessions.zip(pages.tables().opened()) {
                let own = channels.clone();
                let pages = Arc::clone(live.engine());
                sessions.tell(move |rows| {
                    own.end_logins(rows);
                    pages.end_logins(rows);
                });
                sessions.open(
                    store,
                    configuration.data.as_deref(),
                    configuration.session_idle,
                    configuration.session_absolute,
                )?;
            }
            if let Some(store) = pages.tables().opened() {
                live.follow(store);
            }
        }
        live.limit(configuration.live, server.admission());
        live.serve_with(&handler);
        server.set_waiters(waiters(&channels, live.engine()));
        if let Some(metrics_server) = &mut metrics_server {
            metrics_server
                .begin()
                .map_err(|error| format!("cannot create the thread for metrics: {error}"))?;
        }
        for run in at_events {
            run(live.events()).map_err(|error| format!("`.at_events(..)` failed: {error:?}"))?;
        }
        for run in at_start {
            run();
        }
        // Until this call the health check reports that the server is not ready.
        pages.health().watch(Arc::downgrade(&server));
        let running = Running { server, scheduler, channels, pages, metrics_server };
        Ok(Opened { definition, access, plan: parts.plan, running })
    }

    /// Opens the program without signals, logs and configuration files. For tests.
    #[cfg(feature = "test")]
    pub(crate) fn open_by_itself(self, arguments: &[&str]) -> Result<Running, String> {
        let arguments = arguments.iter().map(Into::into).collect();
        let configuration = Sources { arguments, ..Sources::default() }.read()?;
        self.open(&configuration).map(|opened| opened.running)
    }
}

/// An open program, and its parts that a reload needs.
struct Opened {
    definition: ProgramDefinition,
    access: Option<AccessSettings>,
    /// Certificates to order from an authority.
    plan: Option<Plan>,
    running: Running,
}

/// A program whose addresses and tables are open.
pub(crate) struct Running {
    pub(crate) server: Arc<Server>,
    scheduler: Option<Arc<dyn Scheduler>>,
    channels: Channels,
    pages: Arc<Pages>,
    metrics_server: Option<MetricsServer>,
}

impl Running {
    /// Serves until the server is stopped, then closes tables and channels.
    pub(crate) fn run(self) -> Result<(), String> {
        let outcome = match self.scheduler {
            Some(scheduler) => self.server.run_with(scheduler),
            None => self.server.run(),
        };
        self.pages.live().end();
        self.channels.end();
        self.pages.tables().close();
        drop(self.metrics_server);
        outcome.map_err(|error| error.to_string())
    }
}

/// The session store as the request handling sees it.
fn provider(keeper: Arc<Keeper>) -> Arc<dyn SessionProvider> {
    Arc::new(keeper)
}

/// A function that uses the program's events before the first request.
type AtEvents = Box<dyn FnOnce(&Events) -> Result<(), Error>>;

/// The parts of a program that only its start uses.
struct StartParts {
    scheduler: Option<Arc<dyn Scheduler>>,
    at_start: Vec<Box<dyn FnOnce()>>,
    at_events: Vec<AtEvents>,
    tables: Option<Options>,
    kept: Kept,
    sessions: Option<Arc<Keeper>>,
    at_open: Vec<AtOpen>,
}

/// The argument that runs the server in a supervised child process.
const SUPERVISE: &str = "--supervise";
/// The argument that prints the routes, and the one that prints them as JSON.
const ROUTES: &str = "--routes";
const JSON: &str = "--json";

/// Removes the flag from the arguments. Returns whether it was there.
fn take_flag(sources: &mut Sources, flag: &str) -> bool {
    let count = sources.arguments.len();
    sources.arguments.retain(|argument| argument != flag);
    sources.arguments.len() < count
}

fn read(usage: &str, sources: &Sources) -> Result<Configuration, Exit> {
    match sources.read() {
        Ok(configuration) if configuration.wants_help => {
            Err(Exit::output(format!("{usage}\n\n{}", Configuration::help())))
        }
        Ok(configuration) => Ok(configuration),
        Err(message) => Err(Exit::usage(format!("{message}\n{usage}"))),
    }
}

/// Runs this program again as a child, without the flag that asks for a supervisor.
fn supervised(configuration: &Configuration) -> Exit {
    let mut arguments = std::env::args_os();
    // The file at the original path may be a newer program by the time the server restarts.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments.filter(|argument| argument != SUPERVISE));
    match supervise(&configuration.settings.listeners, &mut command) {
        Ok(status) => Exit::with_status(u8::try_from(status).unwrap_or(1)),
        Err(error) => Exit::failed(error),
    }
}

/// Prints one line per address. The kernel queues connections from here on, so a client may connect
/// once it has read the line.
fn announce(server: &Server, metrics_server: Option<&MetricsServer>) {
    let mut out = std::io::stdout().lock();
    for address in server.urls() {
        // The server ignores an error: the reader of standard output has closed it.
        let _ = writeln!(out, "listening on {address}");
    }
    if let Some(metrics_server) = metrics_server {
        let _ = writeln!(out, "metrics at {}", metrics_server.url());
    }
    let _ = out.flush();
}
