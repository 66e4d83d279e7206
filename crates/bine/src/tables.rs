//! Decides where a program's tables are kept, and when they are opened: once, before the first request.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bine_http::Status;
use bine_log as log;

use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::error::{Error, ErrorMapping, MappedError};
use crate::problem::Wrong;
use crate::store::{self, Options, Recorder, Store};

/// The tables of a program, for its handlers.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    opened: OnceLock<Store>,
}

/// Shared by a program that has tables of its own, beside those that sessions and channels are kept in.
pub(crate) struct HasTables;

/// What a program does with its tables when they are open.
pub(crate) type AtOpen = Box<dyn FnOnce(&Store) -> Result<(), Error>>;

/// In the data folder.
const FOLDER: &str = "journal";
/// Where tables are kept if nothing is said.
pub(crate) const USUAL_DATA: &str = "data";
/// Whoever waits longer than this wants to know for what.
const PATIENCE: Duration = Duration::from_secs(1);

impl Tables {
    pub(crate) fn opened(&self) -> Option<&Store> {
        self.opened.get()
    }

    /// Opens them in the data folder, or in memory. `begin` runs before the program sees them: subsystems that keep
    /// something beside the tables begin there.
    ///
    /// # Errors
    ///
    /// They cannot be opened, or what the program does then has failed.
    pub(crate) fn open(
        &self,
        options: Options,
        data: Option<&Path>,
        begin: impl FnOnce(&Store) -> Result<(), String>,
        at_open: Vec<AtOpen>,
    ) -> Result<(), String> {
        let store = match data {
            Some(folder) => in_folder(&folder.join(FOLDER), options)?,
            None => {
                log::debug(format_args!("tables and channels are kept in memory"));
                Store::in_memory(options)?
            }
        };
        for warning in store.warnings() {
            log::warn(format_args!("{warning}"));
        }
        store.observe_disk_space(tell_of_room);
        if store.stats().is_full {
            tell_of_room(true);
        }
        begin(&store)?;
        for run in at_open {
            go_on("the tables are open", run(&store))?;
        }
        // There is one start.
        let _ = self.opened.set(store);
        Ok(())
    }

    /// Writes what is under way, and takes nothing more.
    pub(crate) fn close(&self) {
        if let Some(store) = self.opened() {
            store.close();
        }
    }
}

/// Passes over a step of the program's start that finds no room on the disk: what is there can be read without it.
pub(crate) fn go_on(what: &str, done: Result<(), Error>) -> Result<(), String> {
    match done {
        Err(error) if error.code() == Status::INSUFFICIENT_STORAGE => {
            log::error(format_args!(
                "{what}, but the disk is full, and what the program does then was not done ({error:?}): restart it when there is room"
            ));
            Ok(())
        }
        done => done.map_err(|error| format!("{what}, but: {error:?}")),
    }
}

fn tell_of_room(is_full: bool) {
    if is_full {
        log::error(format_args!(
            "the disk of the data folder is full: reads are served, changes are refused with 507 until there is room"
        ));
    } else {
        log::notice(format_args!("the disk of the data folder has room again: changes are taken"));
    }
}

fn in_folder(folder: &Path, options: Options) -> Result<Store, String> {
    let mut told = Instant::now();
    let mut progress = |read: u64, all: u64| {
        if told.elapsed() >= PATIENCE {
            told = Instant::now();
            let (percent, megabytes) = (read * 100 / all.max(1), all >> 20);
            log::notice(format_args!("reading tables: {percent} % of {megabytes} MiB"));
        }
    };
    Store::open(folder, options, &mut progress)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// The tables that were given to [`App::table`](crate::App::table).
impl Argument for Store {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let store = request.app.states.find::<Tables>().and_then(Tables::opened);
        // A live page may read the tables on any thread.
        let recorded = |store: &Store| match Recorder::current() {
            Some(recorder) => store.with_recorder(&recorder),
            None => store.clone(),
        };
        let store = store.map(recorded);
        store.ok_or_else(|| Rejection::bad(name, "are the tables of a program that has none"))
    }

    fn needs(needs: &mut Needs) {
        needs.require::<HasTables>(
            "takes the `Store`, and the program has no tables; add `.table::<..>()` with each to the app",
        );
    }
}

inventory::submit! {
    ErrorMapping(|error| Some(map_store_error(error.downcast_ref()?)))
}

/// The answer to a change of tables that was not made.
pub(crate) fn map_store_error(unchanged: &store::Error) -> MappedError {
    let message = match unchanged {
        store::Error::Duplicate { columns, .. } => {
            format!("`{}` is taken already", columns.join("`, `"))
        }
        store::Error::NoSuchRow { .. } => "what this is about is not there any more".to_owned(),
        store::Error::Broken(_) | store::Error::Closed => {
            "nothing can be saved at the moment".to_owned()
        }
        other => other.to_string(),
    };
    let status = match unchanged {
        store::Error::InvalidValue(_) => Status::UNPROCESSABLE_CONTENT,
        store::Error::NoSuchRow { .. } => Status::NOT_FOUND,
        store::Error::Duplicate { .. }
        | store::Error::StillReferenced { .. }
        | store::Error::Conflict => Status::CONFLICT,
        store::Error::TooLarge => Status::CONTENT_TOO_LARGE,
        store::Error::Full => Status::INSUFFICIENT_STORAGE,
        store::Error::Busy | store::Error::Broken(_) | store::Error::Closed => {
            Status::SERVICE_UNAVAILABLE
        }
    };
    let wrong = match unchanged {
        store::Error::InvalidValue(wrong) => {
            vec![Wrong::new(wrong.column.clone(), wrong.reason.clone())]
        }
        _ => Vec::new(),
    };
    MappedError { status, message: Some(message), wrong }
}
