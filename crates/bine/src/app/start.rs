//! The steps of a program from its start to its shutdown.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bine_log as log;
use bine_log::SecretTargets;
use bine_server::scheduler::Scheduler;
use bine_server::{
    AccessSettings, Server, Settings, end_with_parent, notify, reopen_logs_on_signal,
    stop_on_signals, supervise,
};

use super::App;
use crate::app_state::{AppState, OwnHandler, RedirectTargets};
use crate::asset_folder;
use crate::authority::CertificatePlan;
use crate::bundled_asset::BundledAsset;
use crate::configuration::{Configuration, Sources};
use crate::control;
use crate::exit::Exit;
use crate::linked_feature::LinkedFeature;
use crate::listing::{self, Listed};
use crate::panics;
use crate::program::{PageParts, Pages};
use crate::program_version::program_version;
use crate::reload::{ConfiguredParts, ProgramDefinition, Reloader, apply_log_settings};
use crate::request_session::SessionProvider;
use crate::route::{Route, RouteKind};
use crate::service::in_process::ServiceDirectory;
use crate::service::reference::{check_references, is_of_program, log_references};
use crate::service::{DefaultRule, Rule, action};
use crate::store::{Options, Store};
use crate::style;
use crate::subsystem::{Definition, Outline, Running, Shared, Start, Subsystem, Subsystems};
use crate::tables::{
    self, DEFAULT_DATA, HasTables, LinkedTable, OnStoreOpen, Tables, check_tables,
};
use crate::tls_state::TlsState;

impl App {
    /// Runs the server with the options of the command line, until SIGTERM or SIGINT.
    pub fn run(self) -> Exit {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_default();
        let name = PathBuf::from(program);
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.run_with(&format!("Usage: {name} [OPTION]..."), arguments)
    }

    /// Serves a program that has its own arguments: `usage` is the first line of `--help`, and
    /// `arguments` are the remaining ones, for the server.
    ///
    /// With `--supervise` in `arguments`, the server runs in a child process: this program again,
    /// with the same arguments except `--supervise`.
    pub fn run_with(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let mut app = self;
        let mut sources = app.sources(arguments);
        if take_flag(&mut sources, ROUTES) {
            return app.show_routes(usage, sources.arguments);
        }
        if take_flag(&mut sources, TYPES) {
            return app.write_types(usage, &sources);
        }
        if take_flag(&mut sources, CHECK) {
            return app.check_sources(usage, sources.arguments);
        }
        let supervises = take_flag(&mut sources, SUPERVISE);
        let configuration = match app.read_configuration(usage, &mut sources) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let has_files = app.files.is_some() || !app.asset_folders.is_empty();
        let has_routes = !app.routes.is_empty() || has_files;
        let has_content = app.subsystems.iter().any(Subsystem::has_content);
        let is_configured = configuration.names_files() || configuration.adds_content();
        if !has_routes && !has_content && !is_configured {
            return Exit::usage(format!("which folder? Name it, or set `root`\n{usage}"));
        }
        if supervises {
            return supervised(&configuration);
        }
        match app.serve(sources, configuration) {
            Ok(()) => Exit::success(),
            Err(message) => Exit::failure(message),
        }
    }

    /// Prints the effective configuration as a configuration file, with a comment that names the
    /// source of each value.
    pub fn show_configuration(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let mut sources = self.sources(arguments);
        let mut app = self;
        match app.read_configuration(usage, &mut sources) {
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
        let mut app = self;
        let configuration = match app.complete_with(usage, &sources) {
            Ok(configuration) => configuration,
            Err(exit) => return exit,
        };
        let list = if is_for_programs { listing::json } else { listing::table };
        Exit::output(list(app.listed(&configuration)))
    }

    /// Reads the configuration, and completes the app without a start of the server.
    fn complete_with(&mut self, usage: &str, sources: &Sources) -> Result<Configuration, Exit> {
        let configuration = read(usage, sources)?;
        self.subsystems.configure(&configuration);
        self.complete().map_err(Exit::failure)?;
        Ok(configuration)
    }

    /// Writes the types of the program for editors, and prints the names of the files.
    fn write_types(mut self, usage: &str, sources: &Sources) -> Exit {
        if let Err(exit) = self.complete_with(usage, sources) {
            return exit;
        }
        let outline = self.outline();
        let written = self.subsystems.iter().filter_map(|one| one.write_types(&outline));
        match written.collect::<Result<String, String>>() {
            Ok(written) if written.is_empty() => Exit::failure(format!(
                "`{TYPES}` writes types for applications in TSX and for files of the browser, and this program has none: add `.scripts(folder)` to the app"
            )),
            Ok(written) => Exit::output(written),
            Err(message) => Exit::failure(message),
        }
    }

    /// Checks the applications in TSX without running them, and prints their mistakes; as JSON, if
    /// `--json` is among the arguments. Types are checked by `tsc`, if it is installed.
    pub fn check_sources(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let mut sources = self.sources(arguments);
        let is_json = take_flag(&mut sources, JSON);
        let mut app = self;
        if let Err(exit) = app.complete_with(usage, &sources) {
            return exit;
        }
        let outline = app.outline();
        let mut checks =
            app.subsystems.iter().filter_map(|one| one.check_sources(&outline, is_json));
        checks.next().unwrap_or_else(|| {
            Exit::failure(
                "there is no application in TSX here: name the folder of a site, in which an application has an `index.tsx`",
            )
        })
    }

    /// Lists the routes of an app that is [complete](Self::complete).
    fn listed(&self, configuration: &Configuration) -> Vec<Listed> {
        let mut listed: Vec<_> = self.routes.iter().map(Listed::route).collect();
        let folder = configuration.site.root.as_ref().or(self.files.as_ref());
        listed.extend(folder.map(|folder| Listed::files("", folder)));
        for (hosts, site) in &configuration.sites {
            let hosts = hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            listed.extend(site.root.as_ref().map(|folder| Listed::files(&hosts, folder)));
        }
        // The first subsystems run last: they see the lines of those that follow them.
        let subsystems: Vec<_> = self.subsystems.iter().collect();
        subsystems.iter().rev().for_each(|one| one.list(&self.outline(), &mut listed));
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
        let parts = self.definition(&configuration).and_then(|(own, start_parts)| {
            ConfiguredParts::of(&configuration, &own, None)?;
            start_parts.tables.map_or(Ok(()), |tables| Store::in_memory(tables).map(drop))
        });
        match parts {
            Ok(()) => Exit::output("OK\n".to_owned()),
            Err(message) => Exit::failure(message),
        }
    }

    /// Reads the configuration, and applies it to the subsystems. A subsystem may have a different
    /// data folder than the program.
    fn read_configuration(
        &mut self,
        usage: &str,
        sources: &mut Sources,
    ) -> Result<Configuration, Exit> {
        let configuration = read(usage, sources)?;
        self.subsystems.configure(&configuration);
        let own = self.subsystems.iter().find_map(Subsystem::default_data);
        let Some(own) = own.filter(|_| !self.in_memory) else { return Ok(configuration) };
        sources.default_data = Some(own);
        read(usage, sources)
    }

    fn sources(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Sources {
        let default_data =
            (self.needs_store() && !self.in_memory).then(|| PathBuf::from(DEFAULT_DATA));
        Sources { default_data, ..Sources::of_process(arguments) }
    }

    /// Whether the program stores data, as far as its own code decides it.
    fn needs_store(&self) -> bool {
        let outline = self.outline();
        self.tables.is_some() || self.subsystems.iter().any(|one| one.needs_store(&outline))
    }

    fn outline(&self) -> Outline<'_> {
        let has_tables = self.tables.is_some();
        Outline {
            routes: &self.routes,
            default_rule: self.default_service_rule.unwrap_or(Rule::ANYONE).access(),
            // Actions change tables, and actions of a library alone do not give a program sessions.
            layout_takes_user: self.templates.takes_user(),
            has_tables: self.tables.is_some(),
            has_actions: has_tables && !self.routes.is_empty() && action::are_any(),
            needs_sessions: false,
            declared_rules: self.subsystems.declared_rules(),
        }
    }

    /// Adds the routes of subsystems, except where the program has a route of its own.
    fn add_subsystem_routes(&mut self) {
        let mut subsystems = std::mem::take(&mut self.subsystems);
        for one in subsystems.iter_mut() {
            for route in one.routes(&self.outline()) {
                let is_replaced =
                    |own: &Route| own.path == route.path && own.methods.overlaps(route.methods);
                if !self.routes.iter().any(is_replaced) {
                    self.routes.push(route);
                }
            }
        }
        self.subsystems = subsystems;
    }

    /// Adds the routes that no call names: actions, the style sheet, the script. Returns the
    /// sessions, if the program has sessions.
    fn complete(&mut self) -> Result<Option<Arc<dyn SessionProvider>>, String> {
        if let Some(kind) = self.repeated_state {
            return Err(format!(
                "the program has two states of type {kind}; wrap one in a type of its own"
            ));
        }
        for path in std::mem::take(&mut self.open_paths) {
            let mut at_path = self.routes.iter_mut().filter(|route| route.path == path).peekable();
            if at_path.peek().is_none() {
                return Err(format!(
                    "`.allow_cross_origin_posts({path:?})` names no path of a page; write it as in `#[page(..)]`"
                ));
            }
            for route in at_path {
                if route.info.kind != RouteKind::Page {
                    return Err(format!(
                        "`.allow_cross_origin_posts({path:?})` names {}, which is no page and which pages of other sites may never call; write a `#[page(POST ..)]` for their requests",
                        route.name
                    ));
                }
                route.from_anywhere = true;
            }
        }
        self.add_subsystem_routes();
        check_references(&self.functions, &self.routes)?;
        check_tables(&self.functions, self.tables.as_ref())?;
        let assets = asset_folder::routes(&self.asset_folders, &self.functions)?;
        let sessions = self.create_sessions();
        if self.templates.takes_user() {
            self.templates.layout_sessions.clone_from(&sessions);
        }
        if sessions.is_some() && action::are_any() {
            self.routes.extend(action::routes()?);
            self.templates.actions.clone_from(&sessions);
        }
        let is_call = |kind| matches!(kind, RouteKind::Service | RouteKind::Action);
        for route in self.routes.iter_mut().filter(|route| is_call(route.info.kind)) {
            let default = || self.default_service_rule.map(|rule| rule.access());
            route.info.rule = route.info.rule.or_else(default);
        }
        // A program that only serves files has no page that could request these.
        if !self.routes.is_empty() {
            let style = if self.omits_linked_styles {
                style::of_added(&self.styles)
            } else {
                style::of_program(&self.styles)
            };
            let mut bundled: Vec<BundledAsset> = style.into_iter().collect();
            let is_called = self.routes.iter().any(|route| is_call(route.info.kind));
            let script = LinkedFeature::script(is_called)
                .then(|| BundledAsset::script(bine_browser::SCRIPT));
            let door = script.as_ref().map(BundledAsset::door);
            bundled.extend(script);
            bundled.extend(LinkedFeature::times().then(BundledAsset::times));
            self.templates.links = BundledAsset::links(&bundled).map(Arc::new);
            let assets = self.templates.links.as_ref().map_or("", |links| links.hash());
            self.templates.version = Some(program_version(assets));
            self.routes.extend(bundled.into_iter().chain(door).map(BundledAsset::route));
        }
        self.routes.extend(assets);
        Ok(sessions)
    }

    /// Creates the sessions, if the program has sessions.
    fn create_sessions(&mut self) -> Option<Arc<dyn SessionProvider>> {
        let mut subsystems = std::mem::take(&mut self.subsystems);
        let mut outline = self.outline();
        outline.declared_rules = subsystems.declared_rules();
        outline.needs_sessions = subsystems.iter().any(|one| one.needs_sessions(&outline));
        let sessions = subsystems.iter_mut().find_map(|one| one.sessions(&outline));
        self.subsystems = subsystems;
        sessions
    }

    /// Splits the program into the part that every reload uses and the part that only the start
    /// uses.
    fn definition(
        mut self,
        configuration: &Configuration,
    ) -> Result<(ProgramDefinition, StartParts), String> {
        self.subsystems.configure(configuration);
        let sessions = self.complete()?;
        if self.tables.is_none() && !self.on_store_open.is_empty() {
            return Err("`.on_store_open(..)` needs tables, and the program has none; add `.table::<..>()`, or use `.on_start(..)`".to_owned());
        }
        let needs_store = self.needs_store();
        let tables = Arc::new(Tables::default());
        let mut definition = Definition::new(self.states, self.middleware.is_some());
        definition.states.share(Arc::clone(&tables));
        definition.secret_paths = self.secret_paths;
        definition.states.add(DefaultRule(self.default_service_rule.unwrap_or(Rule::ANYONE)));
        if let Some(tables) = &self.tables {
            let names = tables.table_names().map(str::to_owned).collect();
            definition.states.add(HasTables { names });
        }
        definition.states.add(ServiceDirectory::of(&self.routes));
        self.subsystems.each(|one| one.define(&mut definition))?;
        definition.connect(sessions.as_ref());
        let filters = definition.filters.drain(..).chain(self.filters).collect();
        let scheduler = match (self.scheduler, definition.scheduler.take()) {
            (Some(_), Some(_)) => {
                return Err("the program has two schedulers: its own by `.scheduler(..)`, and that of `start.ts`; remove one of them".to_owned());
            }
            (own, other) => own.or(other),
        };
        let has_credentials = definition.credentials.is_some();
        let secrets = SecretTargets::new(&definition.secret_paths);
        let Definition { states, mounts, functions, running, admission, authority, guard, .. } =
            definition;
        let response_stages = definition.response_stages;
        let fallbacks = definition.fallbacks;
        let app = AppState {
            states,
            sessions,
            guard,
            has_credentials,
            templates: self.templates,
            may_need_request: definition.may_need_request,
            redirect_targets: RedirectTargets::default(),
            own_handler: OwnHandler::default(),
        };
        let shared = Arc::new(Shared::new(tables, running, definition.staleness));
        let pages = Pages::new(PageParts {
            routes: self.routes,
            filters,
            mounts,
            fallbacks,
            functions,
            app,
            admission,
            shared,
            headers: self.headers,
            has_other_content: self.subsystems.iter().any(Subsystem::has_content),
        })?;
        let definition = ProgramDefinition {
            pages: Arc::new(pages),
            folder: self.files,
            tls_state: TlsState::new(authority),
            middleware: self.middleware,
            response_stages,
            secrets,
        };
        let declare = |tables, one: &dyn Subsystem| one.declare(tables);
        let tables = self.tables.or_else(|| needs_store.then(Options::default));
        let tables = tables.map(|tables| self.subsystems.iter().fold(tables, declare));
        let start_parts = StartParts {
            scheduler,
            on_start: self.on_start,
            tables,
            on_store_open: self.on_store_open,
            subsystems: self.subsystems,
        };
        Ok((definition, start_parts))
    }

    fn serve(self, sources: Sources, configuration: Configuration) -> Result<(), String> {
        panics::install_hook();
        apply_log_settings(&configuration.logs)?;
        configuration.warnings.iter().for_each(|warning| log::warn(format_args!("{warning}")));
        self.log_unregistered();
        let Opened { definition, access, plan, running } = self.open(&configuration)?;
        let server = &running.server;
        stop_on_signals(server).map_err(|error| format!("cannot watch for signals: {error}"))?;
        let control = configuration.control.clone();
        let data = configuration.data.clone();
        let reloader = Arc::new(Reloader::new(sources, definition, server, configuration, access));
        // A weak reference: the reloader owns what it is set in.
        let by_request = Arc::downgrade(&reloader);
        let reload = move || match by_request.upgrade() {
            Some(reloader) => reloader.reload(),
            None => Err("the server has ended".to_owned()),
        };
        // The program starts once, so the cell is empty.
        let _ = running.shared.reload.set(Box::new(reload));
        let on_hangup = Arc::clone(&reloader);
        bine_server::on_hangup(move || drop(on_hangup.reload()))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
        let _control = control::serve(&control, data.as_deref(), Arc::clone(&reloader))?;
        reopen_logs_on_signal().map_err(|error| format!("cannot watch for signals: {error}"))?;
        // This step is last: a server that fails to start must not ask an authority for a
        // certificate.
        reloader.pursue(plan)?;
        announce(server, &running.shared.running);
        notify("READY=1");
        running.run()
    }

    /// Logs the services and tables that the program may use and does not have.
    fn log_unregistered(&self) {
        log_references(&self.functions, &self.routes);
        let is_own = |path: &str| is_of_program(&self.functions, path);
        for table in LinkedTable::unregistered(self.tables.as_ref(), is_own) {
            log::warn(format_args!("{table}"));
        }
    }

    /// Opens the addresses, then tables and channels, and runs the program's start functions.
    fn open(self, configuration: &Configuration) -> Result<Opened, String> {
        let (definition, start_parts) = self.definition(configuration)?;
        let StartParts { scheduler, on_start, tables, on_store_open, mut subsystems } = start_parts;
        let parts = ConfiguredParts::of(configuration, &definition, None)?;
        let access = parts.access.clone();
        let ConfiguredParts { tls, security, hsts, .. } = parts;
        let settings = Settings { tls, security, hsts, ..configuration.settings.clone() };
        let handler = Arc::clone(&parts.handler);
        let server = Server::open(settings, parts.handler, parts.access)
            .map_err(|error| error.to_string())?;
        let server = Arc::new(server);
        definition.pages.develop(configuration.development);
        definition.pages.use_handler(&handler);
        let shared = Arc::clone(definition.pages.shared());
        let app = Arc::clone(definition.pages.app());
        let start =
            Start { configuration, server: &server, handler: &handler, app: &app, shared: &shared };
        subsystems.each(|one| one.bind(&start))?;
        if let Some(user) = &configuration.user {
            user.become_it().map_err(|error| format!("cannot become that user: {error}"))?;
        }
        end_with_parent();
        if let Some(tables) = tables {
            let tables = tables.sync(configuration.sync);
            let opener = subsystems.iter_mut().find_map(Subsystem::store_opener);
            let restore = |store: &Store| subsystems.each(|one| one.restore(store));
            let data = configuration.data.as_deref();
            let open = opener.unwrap_or_else(|| tables::opener(data.map(Path::to_owned)));
            shared.tables.open(tables, open, restore, on_store_open)?;
        }
        subsystems.each(|one| one.start(&start))?;
        for run in on_start {
            run();
        }
        // Until this call the health check reports that the server is not ready.
        shared.health.watch(Arc::downgrade(&server));
        let work = Arc::downgrade(&shared);
        server.set_work_report(Arc::new(move |tell| {
            if let Some(shared) = work.upgrade() {
                shared.describe_unfinished_work(tell);
            }
        }));
        let told = Arc::downgrade(&shared);
        server.set_leave_hook(Box::new(move || {
            if let Some(shared) = told.upgrade() {
                shared.running.iter().for_each(|running| running.leave());
            }
        }));
        let running = RunningProgram { server, scheduler, shared };
        Ok(Opened { definition, access, plan: parts.plan, running })
    }

    /// Opens the program without signals, logs and configuration files. For tests.
    #[cfg(feature = "test")]
    pub(crate) fn open_by_itself(self, arguments: &[&str]) -> Result<RunningProgram, String> {
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
    plan: Option<CertificatePlan>,
    running: RunningProgram,
}

/// A program whose addresses and tables are open.
pub(crate) struct RunningProgram {
    pub(crate) server: Arc<Server>,
    scheduler: Option<Arc<dyn Scheduler>>,
    shared: Arc<Shared>,
}

impl RunningProgram {
    /// Serves until the server is stopped, then stops the subsystems and closes the tables.
    pub(crate) fn run(self) -> Result<(), String> {
        let outcome = match self.scheduler {
            Some(scheduler) => self.server.run_with(scheduler),
            None => self.server.run(),
        };
        self.shared.running.iter().rev().for_each(|running| running.stop());
        self.shared.tables.close();
        outcome.map_err(|error| error.to_string())?;
        let failure = self.shared.running.iter().find_map(|running| running.failure());
        failure.map_or(Ok(()), Err)
    }
}

/// The parts of a program that only its start uses.
struct StartParts {
    scheduler: Option<Arc<dyn Scheduler>>,
    on_start: Vec<Box<dyn FnOnce()>>,
    tables: Option<Options>,
    on_store_open: Vec<OnStoreOpen>,
    subsystems: Subsystems,
}

/// The argument that runs the server in a supervised child process.
const SUPERVISE: &str = "--supervise";
/// The argument that prints the routes, and the one that prints them as JSON.
const ROUTES: &str = "--routes";
const JSON: &str = "--json";
/// The argument that writes the types of the program for editors.
const TYPES: &str = "--types";
/// The argument that checks the sources of the program.
const CHECK: &str = "--check";

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
        Err(error) => Exit::failure(error),
    }
}

/// Prints one line per address. The kernel queues connections from here on, so a client may connect
/// once it has read the line.
fn announce(server: &Server, running: &[Arc<dyn Running>]) {
    let mut out = std::io::stdout().lock();
    for address in server.urls() {
        // The server ignores an error: the reader of standard output has closed it.
        let _ = writeln!(out, "listening on {address}");
    }
    for line in running.iter().filter_map(|running| running.announcement()) {
        let _ = writeln!(out, "{line}");
    }
    let _ = out.flush();
}
