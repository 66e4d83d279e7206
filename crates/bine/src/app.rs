//! Decides what a program serves, and runs it.

use std::any::type_name;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bine_files::Root;
use bine_pipeline::log::Writer;
use bine_pipeline::scheduler::Scheduler;
use bine_pipeline::{Handler, Server, stop_on_signals};

use crate::arguments::States;
use crate::asset;
use crate::choices::Choices;
use crate::exit::Exit;
use crate::filter::Filter;
use crate::look::{ByFunction, ErrorFunction, LayoutFunction, Look};
use crate::panics;
use crate::program::Program;
use crate::route::{Endpoint, House, Route};

/// A program: its pages, its files, and how it is served.
#[derive(Default)]
#[must_use = "an app serves nothing until it runs"]
pub struct App {
    routes: Vec<Route>,
    filters: Vec<Box<dyn Filter>>,
    files: Option<PathBuf>,
    states: States,
    /// The type of a state that came twice.
    repeated_state: Option<&'static str>,
    look: Look,
    step: Option<Replacement>,
    at_start: Vec<Box<dyn FnOnce()>>,
    scheduler: Option<Arc<dyn Scheduler>>,
}

/// What makes another step of the program's own.
type Replacement = Box<dyn FnOnce(Arc<dyn Handler>) -> Arc<dyn Handler>>;

impl App {
    /// A program that serves nothing yet.
    pub fn new() -> Self {
        let look = Look { is_in_development: cfg!(debug_assertions), ..Look::default() };
        Self { look, ..Self::default() }
    }

    /// Serves a page: a function with `#[page("/path")]` above it.
    pub fn page(mut self, endpoint: impl Endpoint) -> Self {
        self.routes.push(endpoint.route());
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

    /// Tells what went wrong by a page of the program's own: a plain function from
    /// [`Failure`](crate::Failure) to a page, which the layout stands around.
    pub fn error_page<F: for<'a> ErrorFunction<'a> + 'static>(mut self, page: F) -> Self {
        self.look.error_page = Some(Arc::new(ByFunction(page)));
        self
    }

    /// Shows errors with their causes. On in a debug build unless it is said here.
    pub fn development(mut self, on: bool) -> Self {
        self.look.is_in_development = on;
        self
    }

    /// Lets a filter see each request before its route is chosen, behind the filters that are here already.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Replaces the whole step from request to response. `step` is given the program's own, to leave to it what
    /// it does not do itself; see [`step`](crate::step).
    pub fn step(
        mut self,
        step: impl FnOnce(Arc<dyn Handler>) -> Arc<dyn Handler> + 'static,
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
    pub fn run_with(
        self,
        usage: &str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Exit {
        let choices = match Choices::from_arguments(arguments) {
            Ok(choices) if choices.wants_help => {
                return Exit::told(format!("{usage}\n\n{}", Choices::help()));
            }
            Ok(choices) => choices,
            Err(message) => return Exit::usage(format!("{message}\n{usage}")),
        };
        match self.serve(choices) {
            Ok(()) => Exit::fine(),
            Err(message) => Exit::failed(message),
        }
    }

    fn serve(self, choices: Choices) -> Result<(), String> {
        panics::log_them();
        let root = self.files.map(|folder| Root::open(&folder)).transpose();
        let root = root.map_err(|error| error.to_string())?;
        if let Some(kind) = self.repeated_state {
            return Err(format!("the program has two states of the type {kind}; wrap one of them"));
        }
        let house = House { states: self.states, look: self.look };
        let program = Arc::new(Program::new(self.routes, self.filters, root, house)?);
        let handler = match self.step {
            Some(step) => step(program),
            None => program,
        };
        let access = choices.access_log.as_deref().map(Writer::to_file).transpose();
        let access = access.map_err(|error| error.to_string())?;
        let server =
            Server::open(choices.settings, handler, access).map_err(|error| error.to_string())?;
        let server = Arc::new(server);
        if let Some(user) = choices.user {
            user.become_it().map_err(|error| format!("cannot become that user: {error}"))?;
        }
        for run in self.at_start {
            run();
        }
        stop_on_signals(&server).map_err(|error| format!("cannot watch for signals: {error}"))?;
        announce(&server);
        let outcome = match self.scheduler {
            Some(scheduler) => server.run_with(scheduler),
            None => server.run(),
        };
        outcome.map_err(|error| error.to_string())
    }
}

/// One line per address. The kernel queues connections from here on, so whoever waits for the line
/// may connect.
fn announce(server: &Server) {
    let mut out = std::io::stdout().lock();
    for address in server.addresses() {
        // Whoever closed our standard output does not want to know.
        let _ = writeln!(out, "listening on {address}");
    }
    let _ = out.flush();
}
