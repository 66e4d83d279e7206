//! Decides where a program's tables are kept, and when they are opened: once, before the first request.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bine_http::Status;
use bine_log as log;

use crate::channels::{self, Channels, Refused, Settings};
use crate::configuration::Configuration;
use crate::error::Error;
use crate::store::{self, Options, Store};

/// The tables of a program, for its handlers.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    are_some: bool,
    opened: OnceLock<Store>,
}

/// The channels of a program, which are kept beside its tables.
pub(crate) struct Kept {
    pub(crate) channels: Channels,
    pub(crate) are_some: bool,
    /// Those that it has from its first start on.
    pub(crate) wanted: Vec<(&'static str, Settings)>,
    /// Once these are there.
    pub(crate) at_channels: Vec<AtChannels>,
}

/// What a program does with its channels before the first request.
pub(crate) type AtChannels = Box<dyn FnOnce(&Channels) -> Result<(), Error>>;

/// What a program does with its tables when they are open.
pub(crate) type AtOpen = Box<dyn FnOnce(&Store) -> Result<(), Error>>;

/// In the data folder.
const FOLDER: &str = "journal";
/// Where tables are kept if nothing is said.
pub(crate) const USUAL_DATA: &str = "data";
/// Whoever waits longer than this wants to know for what.
const PATIENCE: Duration = Duration::from_secs(1);

impl Tables {
    pub(crate) fn new(are_some: bool) -> Self {
        Self { are_some, opened: OnceLock::new() }
    }

    pub(crate) const fn are_none(&self) -> bool {
        !self.are_some
    }

    pub(crate) fn opened(&self) -> Option<&Store> {
        self.opened.get()
    }

    /// Opens them where the configuration says.
    ///
    /// # Errors
    ///
    /// They cannot be opened, or what the program does then has failed.
    pub(crate) fn open(
        &self,
        options: Options,
        kept: Kept,
        configuration: &Configuration,
        at_open: Vec<AtOpen>,
    ) -> Result<(), String> {
        let options = options.sync(configuration.sync).guest(kept.channels.guest());
        let store = match &configuration.data {
            Some(folder) => in_folder(&folder.join(FOLDER), options)?,
            None => {
                log::debug(format_args!("tables and channels are kept in memory"));
                Store::in_memory(options)?
            }
        };
        for warning in store.warnings() {
            log::warn(format_args!("{warning}"));
        }
        store.observe_room(tell_of_room);
        if store.figures().is_full {
            tell_of_room(true);
        }
        if kept.are_some {
            kept.begin(&store)?;
        }
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

impl Kept {
    /// The channels begin with what the store has given back, and with those that the program wants.
    fn begin(self, store: &Store) -> Result<(), String> {
        self.channels.begin(store)?;
        for (name, settings) in &self.wanted {
            match self.channels.create(name, settings.clone()).wait() {
                Ok(_) => {}
                Err(channels::Error::NotKept(store::Error::Full)) => {
                    let created = self.channels.create_owed(name, settings.clone());
                    created.map_err(|error| format!("channel `{name}`: {error}"))?;
                }
                Err(channels::Error::Refused(refused @ Refused::Conflict(_))) => {
                    log::warn(format_args!("{refused}"));
                }
                Err(error) => return Err(format!("channel `{name}`: {error}")),
            }
        }
        for run in self.at_channels {
            go_on("the channels are there", run(&self.channels))?;
        }
        Ok(())
    }
}

/// Passes over a step of the program's start that finds no room on the disk: what is there can be read without it.
fn go_on(what: &str, done: Result<(), Error>) -> Result<(), String> {
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
