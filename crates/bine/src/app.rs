//! Decides what a program serves, and runs it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bine_files::Root;
use bine_pipeline::log::{self, LogSettings, Writer};
use bine_pipeline::scheduler::Scheduler;
use bine_pipeline::{AccessSettings, Server, reopen_logs_on_signal, stop_on_signals};

use crate::asset;
use crate::choices::Choices;
use crate::exit::Exit;
use crate::panics;
use crate::program::{Claimed, Program};
use crate::route::{Endpoint, Route};

/// A program: its pages, its files, and how it is served.
#[derive(Default)]
#[must_use = "an app serves nothing until it runs"]
pub struct App {
    routes: Vec<Route>,
    files: Option<PathBuf>,
    scheduler: Option<Arc<dyn Scheduler>>,
}

impl App {
    /// A program that serves nothing yet.
    pub fn new() -> Self {
        Self::default()
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
        let program = Program::new(self.routes, root).map_err(|claimed| {
            let Claimed { path, by: [one, other] } = claimed;
            format!("{one} and {other} are both at {path}; give one of them another path")
        })?;
        if let Some(path) = choices.error_log {
            log::to_file(path).map_err(|error| error.to_string())?;
        }
        let access = choices.access_log.map(|path| {
            Writer::open(LogSettings {
                when_full: choices.access_when_full,
                ..LogSettings::at(path)
            })
        });
        let access = access.transpose();
        let format = Arc::new(choices.access_format);
        let access = access.map_err(|error| error.to_string())?;
        let access = access.map(|writer| AccessSettings { writer, format });
        let server = Server::open(choices.settings, Arc::new(program), access)
            .map_err(|error| error.to_string())?;
        let server = Arc::new(server);
        if let Some(user) = choices.user {
            user.become_it().map_err(|error| format!("cannot become that user: {error}"))?;
        }
        stop_on_signals(&server).map_err(|error| format!("cannot watch for signals: {error}"))?;
        reopen_logs_on_signal().map_err(|error| format!("cannot watch for signals: {error}"))?;
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
