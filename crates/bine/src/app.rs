//! Decides what a program serves, and runs it.

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
use crate::app_state::{AppState, Places, States};
use crate::asset;
use crate::channels::{self, Access, AtChannels, Channels, Face, Kept};
use crate::configuration::{Configuration, Sources};
use crate::control;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::Filter;
use crate::health::Health;
use crate::linked::Linked;
use crate::listing::{self, Listed};
use crate::live::{Events, Has, Live, waiters};
use crate::look::{ByFunction, ErrorFunction, LayoutFunction, Look};
use crate::metrics::{Desk, Metrics};
use crate::panics;
use crate::program::{Pages, Subsystems};
use crate::region_key::keep_region_key;
use crate::reload::{Blueprint, Parts, Reloader, Step, tell_where_wanted};
use crate::request_session::SessionProvider;
use crate::route::{Endpoint, Kind, Route};
use crate::secrecy::Secrets;
use crate::security::SecurityHeaders;
use crate::service::{Callable, DefaultRule, Rule, action};
use crate::sessions::{Keeper, Sessions};
use crate::store::{Options, Store, Table};
use crate::style;
use crate::tables::{AtOpen, HasTables, Tables, USUAL_DATA};

/// A program: its pages, its files, and how it is served.
#[derive(Default)]
#[must_use = "an app serves nothing until it runs"]
pub struct App {
    routes: Vec<Route>,
    services_for: Option<Rule>,
    filters: Vec<Box<dyn Filter>>,
    files: Option<PathBuf>,
    states: States,
    /// The type of a state that came twice.
    repeated_state: Option<&'static str>,
    tables: Option<Options>,
    forgets: bool,
    at_open: Vec<AtOpen>,
    channels: Option<Access>,
    wanted_channels: Vec<(&'static str, channels::Settings)>,
    sessions: Option<Sessions>,
    at_channels: Vec<AtChannels>,
    /// Those for users alone are marked.
    events: Vec<(&'static str, bool)>,
    at_events: Vec<AtEvents>,
    look: Look,
    /// Of pages to which other sites may send.
    open_paths: Vec<&'static str>,
    styles: Vec<Cow<'static, str>>,
    headers: SecurityHeaders,
    step: Option<Step>,
    at_start: Vec<Box<dyn FnOnce()>>,
    scheduler: Option<Arc<dyn Scheduler>>,
}

impl App {
    /// A program that serves nothing yet.
    pub fn new() -> Self {
        let look = Look { develops: cfg!(debug_assertions), ..Look::default() };
        Self { look, ..Self::default() }
    }

    /// Serves a page: a function with `#[page("/path")]` above it.
    pub fn page(mut self, endpoint: impl Endpoint) -> Self {
        self.routes.push(endpoint.route());
        self
    }

    /// Lets forms and scripts of other sites send to the pages at this path, such as `/saml/{name}`: for a payment, or a
    /// login elsewhere, that comes back by POST.
    ///
    /// In a program with sessions what a browser sends by POST and the like is otherwise refused (403), if it comes from a
    /// page of another site: it might send a visitor's words, or log somebody in whom the visitor is not. Programs that are
    /// no browsers are not asked where they come from.
    pub fn posts_from_anywhere(mut self, path: &'static str) -> Self {
        self.open_paths.push(path);
        self
    }

    /// Serves a service: a function with `#[service]` above it, which is called at `/<crate>/<function>`.
    pub fn service(mut self, service: impl Callable) -> Self {
        self.routes.push(service.service().route());
        self
    }

    /// Says who may call the services and actions that do not say it by `who = ..`; anyone, unless this is said.
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
    /// An [action](crate::action!) is for these of whoever was given its page.
    pub fn services_for(mut self, rule: Rule) -> Self {
        self.services_for = Some(rule);
        self
    }

    /// Serves bytes that are compiled into the program, at `path`.
    pub fn asset(
        mut self,
        path: &'static str,
        media_type: &'static str,
        bytes: &'static [u8],
    ) -> Self {
        self.routes.push(asset::route(path, media_type, bytes));
        self
    }

    /// Serves the files below `folder` wherever no page has the path.
    pub fn files(mut self, folder: impl Into<PathBuf>) -> Self {
        self.files = Some(folder.into());
        self
    }

    /// Shares a value with all pages: a page takes it as [`State<T>`](crate::State). One of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        if !self.states.add(state) {
            self.repeated_state = Some(type_name::<T>());
        }
        self
    }

    /// Keeps a table of `T` in the program's store: a page takes all tables as [`Store`](crate::store::Store).
    ///
    /// They live in the folder `journal` of the data folder, which is `data` where the program was started if the key
    /// `data` does not say another.
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

    /// Runs once when the tables are open, before the first request: the place for first rows, and for threads that
    /// change tables. An error ends the start.
    pub fn at_open(mut self, run: impl FnOnce(&Store) -> Result<(), Error> + 'static) -> Self {
        self.at_open.push(Box::new(run));
        self
    }

    /// Has channels, which a page takes as [`Channels`], and says who may reach them at `/channels` over HTTP. They live
    /// beside the tables, and end when these do.
    pub fn channels(mut self, access: Access) -> Self {
        self.channels = Some(access);
        self
    }

    /// Has a channel of this name from the first start on. One that is there with other settings stays as it is, which
    /// the log tells.
    pub fn channel(mut self, name: &'static str, settings: channels::Settings) -> Self {
        self.channels = Some(self.channels.unwrap_or_default());
        self.wanted_channels.push((name, settings));
        self
    }

    /// Says how long sessions last. A program with a page that takes a [`Session`](crate::Session) has them anyway; they
    /// live beside the tables.
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Has an event of this name, which every page and every other program may listen to; those that take
    /// [`Events`](crate::Events) call them.
    pub fn event(mut self, name: &'static str) -> Self {
        self.events.push((name, false));
        self
    }

    /// The same with an event that only those hear who have logged in.
    pub fn event_for_users(mut self, name: &'static str) -> Self {
        self.events.push((name, true));
        self
    }

    /// Runs once when the events are there, before the first request: the place for threads that tell of something by
    /// themselves. An error ends the start. When the server has ended there is nobody to tell, which is an error of
    /// [`broadcast`](crate::Events::broadcast) and [`signal`](crate::Events::signal): such a thread ends, too.
    pub fn at_events(mut self, run: impl FnOnce(&Events) -> Result<(), Error> + 'static) -> Self {
        self.at_events.push(Box::new(run));
        self
    }

    /// Counts who is present in a channel: whoever follows it at `/channels`, and for `linger` longer, so that a poll
    /// which comes again in that time is no going and coming. [`Channels::present`] tells who is, and messages in the
    /// channel `NAME/presence` tell each coming and going (`join`, `leave`; `begin` after a start, when nobody is), in
    /// which nobody else can write over HTTP.
    pub fn presence(self, name: &'static str, linger: Duration) -> Self {
        self.at_channels(move |channels| Ok(channels.count(name, linger)?))
    }

    /// Runs once when the channels are there, before the first request: the place for threads that follow them, or
    /// publish. An error ends the start. The program's tables can be changed by [`at_open`](Self::at_open).
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
        self.forgets = true;
        self
    }

    /// Puts every page into a layout: a plain function from [`Content`](crate::Content) to a whole page.
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
    /// A page says its title by `with_title`, and `without_layout` that it is whole by itself.
    pub fn layout<F: for<'a> LayoutFunction<'a> + 'static>(mut self, layout: F) -> Self {
        self.look.layout = Some(Arc::new(ByFunction(layout)));
        self
    }

    /// Adds CSS to the program's style sheet that was not known when it was compiled, behind all that was. Nobody
    /// checks it.
    pub fn style(mut self, css: impl Into<Cow<'static, str>>) -> Self {
        self.styles.push(css.into());
        self
    }

    /// Tells what went wrong by a page of the program's own: a plain function from
    /// [`Failure`](crate::Failure) to a page, which the layout stands around.
    pub fn error_page<F: for<'a> ErrorFunction<'a> + 'static>(mut self, page: F) -> Self {
        self.look.error_page = Some(Arc::new(ByFunction(page)));
        self
    }

    /// Shows errors with their causes. On in a debug build unless it is said here; the key `development` says it last.
    pub fn development(mut self, on: bool) -> Self {
        self.look.develops = on;
        self
    }

    /// Chooses the security headers of all responses.
    pub fn security_headers(mut self, headers: SecurityHeaders) -> Self {
        self.headers = headers;
        self
    }

    /// Lets a filter see each request before its route is chosen, behind the filters that are here already.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Replaces the whole step from request to response. `step` is given the program's own, to leave to it what
    /// it does not do itself, and is asked again when the configuration is read again; see [`step`](crate::step).
    pub fn step(
        mut self,
        step: impl Fn(Arc<dyn Handler>) -> Arc<dyn Handler> + Send + Sync + 'static,
    ) -> Self {
        self.step = Some(Box::new(step));
        self
    }

    /// Runs once the addresses are open and the user is the one that stays, before the first request: the place
    /// for threads of the program's own. It must not take long.
    pub fn at_start(mut self, run: impl FnOnce() + 'static) -> Self {
        self.at_start.push(Box::new(run));
        self
    }

    /// Runs on a scheduler of the program's own instead of one that `--scheduler` names.
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler>) -> Self {
        self.scheduler = Some(scheduler);
        self
    }

    /// Serves as the command line says, until SIGTERM or SIGINT.
    pub fn run(self) -> Exit {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_default();
        let name = PathBuf::from(program);
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.run_with(&format!("Usage: {name} [OPTION]..."), arguments)
    }

    /// The same for a program with arguments of its own: `usage` is the first line of `--help`, and
    /// `arguments` are what is left for the server.
    ///
    /// With `--supervise` among them the server is a process of its own, which runs this program
    /// again with the same arguments and without that one.
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

    /// Prints what would be served under as a configuration file, with a comment where each value came
    /// from.
    pub fn show_configuration(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        match read(usage, &self.sources(arguments)) {
            Ok(configuration) => Exit::told(configuration.shown()),
            Err(exit) => exit,
        }
    }

    /// Prints what is served: each path with what answers there, what it takes, and for whom; for programs, if `--json` is
    /// among the arguments.
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
        Exit::told(list(app.listed(&configuration)))
    }

    /// What is served by an app that is [complete](Self::complete).
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

    /// Says whether this program could be served so: reads everything, opens the folders and logs,
    /// and serves nothing.
    pub fn check_configuration(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let configuration = match read(usage, &self.sources(arguments)) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let parts = self.with_channels_of(&configuration).blueprint().and_then(|(own, once)| {
            Parts::of(&configuration, &own, None)?;
            once.tables.map_or(Ok(()), |tables| Store::in_memory(tables).map(drop))
        });
        match parts {
            Ok(()) => Exit::told("OK\n".to_owned()),
            Err(message) => Exit::failed(message),
        }
    }

    fn sources(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Sources {
        let has_some =
            self.tables.is_some() || self.channels.is_some() || self.sessions_wanted().is_some();
        let is_wanted = has_some && !self.forgets;
        let usual_data = is_wanted.then(|| USUAL_DATA.into());
        Sources { usual_data, ..Sources::of_process(arguments) }
    }

    /// How long sessions last, if there are any.
    fn sessions_wanted(&self) -> Option<Sessions> {
        let rule = self.services_for.unwrap_or(Rule::ANYONE).access();
        let looks = |route: &Route| {
            let is_service = route.told.kind == Kind::Service;
            let rule = route.told.rule.unwrap_or(rule);
            route.needs.sessions || is_service && rule.needs_session
        };
        let are_looked_at = || self.routes.iter().any(looks);
        let are_wanted = || self.has_actions() || are_looked_at();
        self.sessions.clone().or_else(|| are_wanted().then(Sessions::new))
    }

    /// Whether its pages may have actions, which change tables. Those of a library do not make a program have sessions.
    fn has_actions(&self) -> bool {
        self.tables.is_some() && !self.routes.is_empty() && action::are_any()
    }

    /// Lets those reach channels too whom the configuration lets.
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

    /// Adds what is served without being named: actions, the style sheet, the script. Returns whose sessions it has.
    fn complete(&mut self) -> Result<Option<Arc<Keeper>>, String> {
        if let Some(kind) = self.repeated_state {
            return Err(format!("the program has two states of the type {kind}; wrap one of them"));
        }
        for path in std::mem::take(&mut self.open_paths) {
            let mut at_path = self.routes.iter_mut().filter(|route| route.path == path).peekable();
            if at_path.peek().is_none() {
                return Err(format!(
                    "`.posts_from_anywhere({path:?})` names no path of a page; write it as in `#[page(..)]`"
                ));
            }
            for route in at_path {
                if route.told.kind != Kind::Page {
                    return Err(format!(
                        "`.posts_from_anywhere({path:?})` names {}, which is no page, and which a page of another site may never call; write a `#[page(POST ..)]` for what others send",
                        route.name
                    ));
                }
                route.from_anywhere = true;
            }
        }
        let sessions = self.sessions_wanted().map(|wish| Arc::new(Keeper::new(wish)));
        if sessions.is_some() && action::are_any() {
            self.routes.extend(action::routes()?);
            self.look.actions = sessions.clone().map(provider);
        }
        let is_call = |kind| matches!(kind, Kind::Service | Kind::Action);
        for route in self.routes.iter_mut().filter(|route| is_call(route.told.kind)) {
            let default = || self.services_for.map(|rule| rule.access());
            route.told.rule = route.told.rule.or_else(default);
        }
        // Who serves only files has no page that could ask for it.
        if !self.routes.is_empty() {
            let mut linked: Vec<Linked> = style::of_program(&self.styles).into_iter().collect();
            let is_called = self.routes.iter().any(|route| is_call(route.told.kind));
            let script = Has::script(is_called).then(|| Linked::script(bine_browser::SCRIPT));
            let door = script.as_ref().map(Linked::door);
            linked.extend(script);
            self.look.links = Linked::links(&linked).map(Arc::new);
            self.routes.extend(linked.into_iter().chain(door).map(Linked::route));
        }
        Ok(sessions)
    }

    /// What it serves whatever its configuration, and what is wanted only once.
    fn blueprint(mut self) -> Result<(Blueprint, Once), String> {
        let sessions = self.complete()?;
        if self.tables.is_none() && !self.at_open.is_empty() {
            return Err("`.at_open(..)` waits for tables, and the program has none; add `.table::<..>()`, or use `.at_start(..)`".to_owned());
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
            look: self.look,
            may_ask_later: has_channels,
            places: Places::default(),
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
        let secrets = Secrets::default();
        let blueprint = Blueprint { pages, folder: self.files, secrets, step: self.step };
        let Self { scheduler, at_start, at_events, tables, .. } = self;
        let Self { at_open, wanted_channels, at_channels, .. } = self;
        let tables = if has_channels { Some(tables.unwrap_or_default()) } else { tables };
        let tables = match &sessions {
            Some(_) => Some(Keeper::declare(tables.unwrap_or_default())),
            None => tables,
        };
        let (wanted, are_some) = (wanted_channels, has_channels);
        let kept = Kept { channels, are_some, wanted, at_channels };
        let once = Once { scheduler, at_start, at_events, tables, kept, sessions, at_open };
        Ok((blueprint, once))
    }

    fn serve(self, sources: Sources, configuration: Configuration) -> Result<(), String> {
        panics::log_them();
        tell_where_wanted(&configuration.logs)?;
        configuration.doubts.iter().for_each(|doubt| log::warn(format_args!("{doubt}")));
        let (blueprint, access, plan, running) = self.open(&configuration)?;
        let server = &running.server;
        stop_on_signals(server).map_err(|error| format!("cannot watch for signals: {error}"))?;
        let control = configuration.control.clone();
        let data = configuration.data.clone();
        let acme = Arc::clone(&blueprint.secrets.acme);
        let reloader = Arc::new(Reloader::new(sources, blueprint, server, configuration, access));
        let on_hangup = Arc::clone(&reloader);
        bine_server::on_hangup(move || drop(on_hangup.reload()))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
        let _control = control::serve(&control, data.as_deref(), reloader)?;
        reopen_logs_on_signal().map_err(|error| format!("cannot watch for signals: {error}"))?;
        // Last: an authority is not asked for a server that does not start.
        acme.pursue(plan)?;
        announce(server, running.desk.as_ref());
        notify("READY=1");
        running.run()
    }

    /// Opens its addresses, then its tables and channels, and begins whatever it wants to have begun.
    fn open(self, configuration: &Configuration) -> Result<Opened, String> {
        let (blueprint, once) = self.with_channels_of(configuration).blueprint()?;
        let Once { scheduler, at_start, at_events, tables, kept, sessions, at_open } = once;
        let channels = kept.channels.clone();
        let parts = Parts::of(configuration, &blueprint, None)?;
        let access = parts.access.clone();
        let Parts { tls, security, hsts, .. } = parts;
        let settings = Settings { tls, security, hsts, ..configuration.settings.clone() };
        let handler = Arc::clone(&parts.handler);
        let server = Server::open(settings, parts.handler, parts.access)
            .map_err(|error| error.to_string())?;
        let server = Arc::new(server);
        let metrics = Arc::new(Metrics::new(&server, &blueprint.pages));
        let desk = configuration.metrics.as_ref().map(|listen| Desk::open(listen, metrics));
        let mut desk = desk.transpose()?;
        if let Some(user) = &configuration.user {
            user.become_it().map_err(|error| format!("cannot become that user: {error}"))?;
        }
        end_with_parent();
        let pages = Arc::clone(&blueprint.pages);
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
        if let Some(desk) = &mut desk {
            desk.begin().map_err(|error| format!("no thread for figures: {error}"))?;
        }
        for run in at_events {
            run(live.events()).map_err(|error| format!("the events are there, but: {error:?}"))?;
        }
        for run in at_start {
            run();
        }
        // Until then it is not ready, and says so.
        pages.health().watch(Arc::downgrade(&server));
        Ok((blueprint, access, parts.plan, Running { server, scheduler, channels, pages, desk }))
    }

    /// The same without anything of the process but threads: no signal, no log, no configuration file. For tests.
    #[cfg(feature = "test")]
    pub(crate) fn open_by_itself(self, arguments: &[&str]) -> Result<Running, String> {
        let arguments = arguments.iter().map(Into::into).collect();
        let configuration = Sources { arguments, ..Sources::default() }.read()?;
        self.open(&configuration).map(|(_, _, _, running)| running)
    }
}

/// What a program is when it is open, and what of it a reload will want.
type Opened = (Blueprint, Option<AccessSettings>, Option<Plan>, Running);

/// A program that is open, and will serve.
pub(crate) struct Running {
    pub(crate) server: Arc<Server>,
    scheduler: Option<Arc<dyn Scheduler>>,
    channels: Channels,
    pages: Arc<Pages>,
    desk: Option<Desk>,
}

impl Running {
    /// Serves until the server is stopped, then closes what is kept.
    pub(crate) fn run(self) -> Result<(), String> {
        let outcome = match self.scheduler {
            Some(scheduler) => self.server.run_with(scheduler),
            None => self.server.run(),
        };
        self.pages.live().end();
        self.channels.end();
        self.pages.tables().close();
        drop(self.desk);
        outcome.map_err(|error| error.to_string())
    }
}

/// The sessions as the web core sees them.
fn provider(keeper: Arc<Keeper>) -> Arc<dyn SessionProvider> {
    Arc::new(keeper)
}

/// What a program does with its events before the first request.
type AtEvents = Box<dyn FnOnce(&Events) -> Result<(), Error>>;

/// What a program gives to its one start.
struct Once {
    scheduler: Option<Arc<dyn Scheduler>>,
    at_start: Vec<Box<dyn FnOnce()>>,
    at_events: Vec<AtEvents>,
    tables: Option<Options>,
    kept: Kept,
    sessions: Option<Arc<Keeper>>,
    at_open: Vec<AtOpen>,
}

/// The argument that asks for a parent.
const SUPERVISE: &str = "--supervise";
/// The one that asks what is served, and the one that has programs told.
const ROUTES: &str = "--routes";
const JSON: &str = "--json";

/// Whether it was among the arguments, where it is not any more.
fn take_flag(sources: &mut Sources, flag: &str) -> bool {
    let count = sources.arguments.len();
    sources.arguments.retain(|argument| argument != flag);
    sources.arguments.len() < count
}

fn read(usage: &str, sources: &Sources) -> Result<Configuration, Exit> {
    match sources.read() {
        Ok(configuration) if configuration.wants_help => {
            Err(Exit::told(format!("{usage}\n\n{}", Configuration::help())))
        }
        Ok(configuration) => Ok(configuration),
        Err(message) => Err(Exit::usage(format!("{message}\n{usage}"))),
    }
}

/// Runs this very program again, without the wish for a parent.
fn supervised(configuration: &Configuration) -> Exit {
    let mut arguments = std::env::args_os();
    // The path itself may be that of a newer program by the time the server is started again.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments.filter(|argument| argument != SUPERVISE));
    match supervise(&configuration.settings.listeners, &mut command) {
        Ok(status) => Exit::like(u8::try_from(status).unwrap_or(1)),
        Err(error) => Exit::failed(error),
    }
}

/// One line per address. The kernel queues connections from here on, so whoever waits for the line
/// may connect.
fn announce(server: &Server, desk: Option<&Desk>) {
    let mut out = std::io::stdout().lock();
    for address in server.urls() {
        // Whoever closed our standard output does not want to know.
        let _ = writeln!(out, "listening on {address}");
    }
    if let Some(desk) = desk {
        let _ = writeln!(out, "metrics at {}", desk.url());
    }
    let _ = out.flush();
}
