//! The program's tables: where they are stored, and how they are opened once before the first
//! request.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bine_http::Status;
use bine_log as log;

use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::{Error, ErrorMapping, MappedError};
use crate::linked_feature::LinkedFeature;
use crate::problem::ArgumentError;
use crate::store::{self, CursorError, Options, Recorder, Store, Table};
use crate::visitor_message::{MessageText, VisitorMessage};

/// The tables of a program, for its handlers.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    opened: OnceLock<Store>,
}

/// Registered in a program with its own tables, as opposed to tables of sessions and channels only.
pub(crate) struct HasTables {
    /// The names of these tables.
    pub(crate) names: Box<[String]>,
}

/// A table that `#[derive(Table)]` registers with the linker.
#[derive(Debug)]
pub struct LinkedTable {
    /// The row type.
    pub row_type: fn() -> TypeId,
    /// The path of the row type.
    pub path: fn() -> &'static str,
    /// The file of the row type.
    pub file: &'static str,
    /// The line of the row type.
    pub line: u32,
}

inventory::collect!(LinkedTable);

impl LinkedTable {
    /// The tables whose path `is_own` accepts and that are not among these options.
    ///
    /// They are no reason to refuse the start: a crate may have more tables than a program uses.
    pub(crate) fn unregistered(
        options: Option<&Options>,
        is_own: impl Fn(&str) -> bool,
    ) -> Vec<&'static Self> {
        if LinkedFeature::has_many_programs() {
            return Vec::new();
        }
        let is_known = |table: &Self| options.is_some_and(|own| own.has_table((table.row_type)()));
        let linked = inventory::iter::<Self>.into_iter();
        let mut all: Vec<_> =
            linked.filter(|table| is_own((table.path)()) && !is_known(table)).collect();
        all.sort_unstable_by_key(|table| (table.file, table.line));
        all
    }
}

impl fmt::Display for LinkedTable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, file, line, .. } = self;
        let path = path();
        let name = path.rsplit("::").next().unwrap_or(path);
        write!(
            to,
            "the program does not have the table of {path} ({file}:{line}), and a request that uses it fails; add `.table::<{name}>()` to the app"
        )
    }
}

/// A type in a page or a service that reads its table, as `#[page]` and `#[service]` register it.
#[derive(Debug)]
pub struct TableReference {
    /// The path of a function inside the page or the service.
    pub place: fn() -> &'static str,
    /// The file of the type.
    pub file: &'static str,
    /// The line of the type.
    pub line: u32,
    /// The type as it is written.
    pub text: &'static str,
    /// The row type and its path, if the type has a table.
    pub find: fn() -> Option<(TypeId, &'static str)>,
}

inventory::collect!(TableReference);

/// Finds out whether a type has a table. For any other type, the compiler selects the function of
/// [`NoTable`] instead.
#[derive(Debug)]
pub struct TableProbe<T: ?Sized>(PhantomData<T>);

impl<T: Table> TableProbe<T> {
    /// The row type and its path.
    pub fn table() -> Option<(TypeId, &'static str)> {
        Some((TypeId::of::<T>(), type_name::<T>()))
    }

    /// The column with this name.
    pub fn column(name: &str) -> Option<store::Column> {
        T::schema().columns.into_iter().find(|column| column.name == name)
    }
}

/// The probe of a type without a table.
pub trait NoTable {
    /// No table.
    fn table() -> Option<(TypeId, &'static str)> {
        None
    }

    /// No column.
    fn column(_name: &str) -> Option<store::Column> {
        None
    }
}

impl<T: ?Sized> NoTable for TableProbe<T> {}

/// Checks that the program has the tables that its pages and services read, as far as they name
/// them. `functions`: the paths of these functions.
///
/// # Errors
///
/// Returns a message that names the function, the place, the table and the correction.
pub(crate) fn check_tables(functions: &[&str], options: Option<&Options>) -> Result<(), String> {
    let mut all: Vec<_> = inventory::iter::<TableReference>.into_iter().collect();
    // The order of the linker is arbitrary.
    all.sort_unstable_by_key(|reference| (reference.file, reference.line, reference.text));
    for TableReference { place, file, line, text, find } in all {
        let place = place();
        let is_around = |function: &&&str| {
            place.strip_prefix(**function).is_some_and(|inside| inside.starts_with("::"))
        };
        if let Some(function) = functions.iter().find(is_around)
            && let Some((row_type, path)) = find()
            && !options.is_some_and(|own| own.has_table(row_type))
        {
            return Err(format!(
                "{function} reads at {file}:{line} the table of {path}, which the program does not have; add `.table::<{text}>()` to the app"
            ));
        }
    }
    Ok(())
}

/// Opens the store of a program with these options.
pub(crate) type StoreOpener = Box<dyn FnOnce(Options) -> Result<Store, String>>;

/// A function that runs when the tables are open.
pub(crate) type OnStoreOpen = Box<dyn FnOnce(&Store) -> Result<(), Error>>;

/// The folder of the tables, in the data folder.
pub(crate) const JOURNAL: &str = "journal";
/// The default data folder.
pub(crate) const DEFAULT_DATA: &str = "data";
/// The interval of progress messages while the tables are read.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl Tables {
    pub(crate) fn opened(&self) -> Option<&Store> {
        self.opened.get()
    }

    /// Opens the tables by `open`. `begin` runs before the program sees
    /// them: subsystems that share the store start there.
    ///
    /// # Errors
    ///
    /// Returns an error if the tables cannot be opened, or if one of the functions fails.
    pub(crate) fn open(
        &self,
        options: Options,
        open: StoreOpener,
        begin: impl FnOnce(&Store) -> Result<(), String>,
        on_store_open: Vec<OnStoreOpen>,
    ) -> Result<(), String> {
        let store = open(options)?;
        for warning in store.warnings() {
            log::warn(format_args!("{warning}"));
        }
        store.observe_disk_space(log_disk_space);
        if store.stats().is_full {
            log_disk_space(true);
        }
        begin(&store)?;
        for run in on_store_open {
            skip_if_disk_full("the tables are open", run(&store))?;
        }
        // The program starts only once.
        let _ = self.opened.set(store);
        Ok(())
    }

    /// Describes the writes that run now.
    pub(crate) fn unfinished_work(&self) -> Option<String> {
        let activity = self.opened()?.activity();
        let mut parts = Vec::new();
        if activity.waiting > 0 {
            parts.push(format!("commits that wait for the journal: {}", activity.waiting));
        }
        if activity.is_writing {
            parts.push("the journal is being written".to_owned());
        }
        if activity.is_checkpointing {
            parts.push("a checkpoint is being written".to_owned());
        }
        (!parts.is_empty()).then(|| format!("tables ({})", parts.join(", ")))
    }

    /// Completes pending writes, and rejects new ones.
    pub(crate) fn close(&self) {
        if let Some(store) = self.opened() {
            store.close();
        }
    }
}

/// Skips a step of the program's start that finds the disk full: reads work without it.
pub(crate) fn skip_if_disk_full(what: &str, done: Result<(), Error>) -> Result<(), String> {
    match done {
        Err(error) if error.code() == Status::INSUFFICIENT_STORAGE => {
            log::error(format_args!(
                "{what}, but the disk is full, and a start function of the program failed ({error:?}): restart it when there is room"
            ));
            Ok(())
        }
        done => done.map_err(|error| format!("{what}, but: {error:?}")),
    }
}

fn log_disk_space(is_full: bool) {
    if is_full {
        log::error(format_args!(
            "the disk of the data folder is full: reads are served, changes are refused with 507 until there is room"
        ));
    } else {
        log::notice(format_args!("the disk of the data folder has room again: writes work"));
    }
}

/// Opens the tables in the data folder, or in memory.
pub(crate) fn opener(data: Option<PathBuf>) -> StoreOpener {
    Box::new(move |options| match data {
        Some(folder) => in_folder(&folder.join(JOURNAL), options),
        None => {
            log::debug(format_args!("tables and channels are kept in memory"));
            Store::in_memory(options)
        }
    })
}

fn in_folder(folder: &Path, options: Options) -> Result<Store, String> {
    let mut last_report = Instant::now();
    let mut progress = |read: u64, all: u64| {
        if last_report.elapsed() >= PROGRESS_INTERVAL {
            last_report = Instant::now();
            let (percent, megabytes) = (read * 100 / all.max(1), all >> 20);
            log::notice(format_args!("reading tables: {percent} % of {megabytes} MiB"));
        }
    };
    Store::open(folder, options, &mut progress)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// The tables that were added by [`App::table`](crate::App::table).
impl FromRequest for Store {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let store = request.app.states.find::<Tables>().and_then(Tables::opened);
        // A live page may read the tables on any thread.
        let recorded = |store: &Store| match Recorder::current() {
            Some(recorder) => store.with_recorder(&recorder),
            None => store.clone(),
        };
        let store = store.map(recorded);
        store.ok_or_else(|| Rejection::invalid(name, "needs tables, and this program has none"))
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

inventory::submit! {
    ErrorMapping(|error| Some(map_cursor_error(*error.downcast_ref()?)))
}

/// The response to a request for a page at a cursor.
fn map_cursor_error(error: CursorError) -> MappedError {
    match error {
        CursorError::Invalid => MappedError {
            message: Some(VisitorMessage::BadCursor {}.into()),
            ..MappedError::new(Status::BAD_REQUEST, None)
        },
        CursorError::TooLong => MappedError::new(Status::INTERNAL_SERVER_ERROR, None),
    }
}

/// The response to a failed table transaction.
pub(crate) fn map_store_error(unchanged: &store::Error) -> MappedError {
    let message = match unchanged {
        store::Error::InvalidValues(_) => MessageText::from(unchanged.to_string()),
        store::Error::NoSuchRow { .. } => VisitorMessage::RowGone {}.into(),
        store::Error::StillReferenced { by } => {
            VisitorMessage::RowInUse { by: by.clone().into_owned() }.into()
        }
        store::Error::Conflict => VisitorMessage::Conflict {}.into(),
        store::Error::Busy => VisitorMessage::WritesBusy {}.into(),
        store::Error::TooLarge => VisitorMessage::RowTooLarge {}.into(),
        store::Error::Full => VisitorMessage::DiskFull {}.into(),
        store::Error::Unconfirmed(_) => VisitorMessage::MaybeSaved {}.into(),
        store::Error::Broken(_) | store::Error::CutOff(_) | store::Error::Closed => {
            VisitorMessage::CannotSave {}.into()
        }
    };
    let status = match unchanged {
        store::Error::InvalidValues(wrong)
            if wrong.iter().all(|invalid| invalid.fault.is_duplicate()) =>
        {
            Status::CONFLICT
        }
        store::Error::InvalidValues(_) => Status::UNPROCESSABLE_CONTENT,
        store::Error::NoSuchRow { .. } => Status::NOT_FOUND,
        store::Error::StillReferenced { .. } | store::Error::Conflict => Status::CONFLICT,
        store::Error::TooLarge => Status::CONTENT_TOO_LARGE,
        store::Error::Full => Status::INSUFFICIENT_STORAGE,
        store::Error::Busy
        | store::Error::Broken(_)
        | store::Error::CutOff(_)
        | store::Error::Unconfirmed(_)
        | store::Error::Closed => Status::SERVICE_UNAVAILABLE,
    };
    let wrong = match unchanged {
        store::Error::InvalidValues(wrong) => wrong.iter().map(ArgumentError::of_column).collect(),
        _ => Vec::new(),
    };
    MappedError { status, message: Some(message), wrong }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Id;

    #[derive(Table)]
    #[table(crate = crate)]
    struct Forgotten {
        id: Id<Forgotten>,
        number: u8,
    }

    // As the derive does in other crates than this one.
    inventory::submit! {
        LinkedTable {
            row_type: TypeId::of::<Forgotten>,
            path: type_name::<Forgotten>,
            file: file!(),
            line: line!(),
        }
    }

    #[test]
    fn warns_about_derived_tables_that_are_not_registered() {
        let is_own = |path: &str| path.starts_with("bine::tables::tests::");
        let told = |options: &Options| {
            let unregistered = LinkedTable::unregistered(Some(options), is_own);
            unregistered.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let [warning] = &told(&Options::new())[..] else { panic!("there is one such table") };
        let place = format!("({}:", file!());
        assert!(warning.contains("the table of bine::tables::tests::Forgotten "), "{warning}");
        assert!(warning.contains(&place), "{warning}");
        assert!(warning.ends_with("add `.table::<Forgotten>()` to the app"), "{warning}");
        assert!(told(&Options::new().table::<Forgotten>()).is_empty());
        assert_eq!(LinkedTable::unregistered(None, |_| false).len(), 0);
    }
}
