//! Decides what the program does with a folder of tables that no server uses.

mod arguments;
mod meter;
mod watched;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bine::Exit;
use bine::channels::Channels;
use bine::store::disk::{Folder, RealFolder};
use bine::store::{Archive, CompactSummary, Extension, LoadSummary, journal};

use arguments::Arguments;
use meter::{Counted, Meter};
use watched::Watched;

const USAGE: &str = "\
Usage: bine data dump FOLDER       write tables as lines of JSON
       bine data load FOLDER       read such lines into a folder
       bine data compact FOLDER    have a folder take less room
       bine data check FOLDER      read everything and tell what is damaged
       bine data repair FOLDER     keep all that can be read, put what is replaced aside, tell what is lost

Each says more with --help. FOLDER is the data folder of a server, which must be stopped before.";

const DUMP: &str = "\
Usage: bine data dump FOLDER [--table NAME]...

Writes the tables of FOLDER to standard output as lines of JSON: what each table consists of, then its
rows, the oldest first. `bine data load` makes the same tables of them.

  --table NAME    this table, and others only if they are named too";

const LOAD: &str = "\
Usage: bine data load FOLDER [FILE] [--merge]

Reads what `bine data dump` has written, from FILE or standard input, into FOLDER, which is made if it is
not there. All of it is loaded, or nothing: a line that is wrong is told by its number and its column.

  --merge    into a folder that has rows: they stay, but a row of the same id is replaced, and one that
             is `null` in FILE is removed. Without it such a folder is refused";

const COMPACT: &str = "\
Usage: bine data compact FOLDER

Writes all that FOLDER keeps as two images, so that there are two ways to read it, removes the journal up
to there, and tells how many bytes that saves. If it would save none, nothing is done.";

const CHECK: &str = "\
Usage: bine data check FOLDER

Reads every file of FOLDER and tells what is damaged; changes nothing.";

const REPAIR: &str = "\
Usage: bine data repair FOLDER

Keeps all that can be read and tells what is lost. What is replaced stays in FOLDER under another name,
which begins with `damaged-`.";

/// Runs `bine data ..`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let Some((word, rest)) = arguments.split_first() else { return Exit::usage(USAGE) };
    let (usage, most): (_, usize) = match word.to_str() {
        Some("dump") => (DUMP, 1),
        Some("load") => (LOAD, 2),
        Some("compact") => (COMPACT, 1),
        Some("check") => (CHECK, 1),
        Some("repair") => (REPAIR, 1),
        Some("--help" | "-h") => return printed(USAGE),
        _ => {
            let message = "bine: data is dumped, loaded, compacted, checked or repaired";
            return Exit::usage(format!("{message}\n{USAGE}"));
        }
    };
    let arguments = match Arguments::read(rest, usage) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return printed(usage),
        Err(message) => return Exit::usage(format!("bine: {message}\n{usage}")),
    };
    if !(1..=most).contains(&arguments.words.len()) {
        return Exit::usage(usage);
    }
    let folder = &place(Path::new(&arguments.words[0]));
    let done = match word.to_str() {
        Some("dump") => dump(folder, &arguments.tables),
        Some("load") => load(folder, arguments.words.get(1).map(Path::new), arguments.merge),
        Some("compact") => compact(folder),
        Some("check") => check(folder),
        _ => repair(folder),
    };
    match done {
        Ok(()) => Exit::fine(),
        Err(message) => Exit::failed(message),
    }
}

fn printed(usage: &str) -> Exit {
    println!("{usage}");
    Exit::fine()
}

fn dump(folder: &Path, tables: &[String]) -> Result<(), String> {
    let archive = open(&existing(folder)?)?;
    let mut output = Counted::new(io::stdout().lock(), Meter::new("written", None));
    let dumped = archive.dump(tables, &mut output);
    drop(output);
    dumped.map_err(|error| error.to_string())?;
    archive.close().map_err(|error| error.to_string())
}

fn load(folder: &Path, file: Option<&Path>, merge: bool) -> Result<(), String> {
    let named = |error: io::Error| {
        let file = file.map_or("standard input".into(), |file| file.display().to_string());
        format!("cannot read {file}: {error}")
    };
    let (input, size): (Box<dyn io::Read>, _) = match file {
        None => (Box::new(io::stdin().lock()), None),
        Some(path) => {
            let file = File::open(path).map_err(named)?;
            let size = file.metadata().map_err(named)?.len();
            (Box::new(file), Some(size))
        }
    };
    let parent = folder.parent().filter(|parent| !parent.exists());
    let is_new = !folder.exists();
    if let (true, Some(parent)) = (is_new, folder.parent()) {
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    let input = BufReader::new(Counted::new(input, Meter::new("read", size)));
    let outcome = load_from(input, folder, merge);
    if outcome.is_err() && is_new {
        // Nothing is in it but the lock; a folder that holds more stays.
        let _ = fs::remove_file(folder.join("lock"));
        let _ = fs::remove_dir(folder);
        let _ = parent.map(fs::remove_dir);
    }
    let loaded = outcome?;
    if loaded.dangling > 0 {
        let rows = counted(loaded.dangling, "row");
        eprintln!("bine: warning: {rows} in {} refer to one that is not there", folder.display());
    }
    let (tables, rows) = (counted(loaded.tables, "table"), counted(loaded.rows, "row"));
    let removed = match loaded.removed {
        0 => String::new(),
        removed => format!(", {removed} removed"),
    };
    println!("{tables}, {rows} loaded{removed}");
    Ok(())
}

fn load_from(mut input: impl BufRead, folder: &Path, merge: bool) -> Result<LoadSummary, String> {
    let shared = RealFolder::open(folder).map_err(|error| error.to_string())?;
    let mut archive = open(&(Arc::new(shared) as Arc<dyn Folder>))?;
    if archive.count() > 0 && !merge {
        return Err(format!(
            "{} has {} already: load into another folder, or say --merge, and rows of the same id are replaced",
            folder.display(),
            counted(archive.count(), "row")
        ));
    }
    let outcome = archive.load(&mut input);
    // What it has told of its reading ends before anything else is told.
    drop(input);
    let loaded = outcome.map_err(|error| format!("{error}\nnothing was loaded"))?;
    archive.close().map_err(|error| error.to_string())?;
    Ok(loaded)
}

fn compact(folder: &Path) -> Result<(), String> {
    let archive = open_with(&existing(folder)?, Some(Channels::keeper()))?;
    let CompactSummary { before, after } = archive.compact().map_err(|error| error.to_string())?;
    if before == after {
        println!("{before} bytes; there is nothing to gain");
    } else {
        println!("{before} bytes before, {after} now");
    }
    Ok(())
}

fn check(folder: &Path) -> Result<(), String> {
    let report = journal::check(&watched(folder)?).map_err(|error| error.to_string())?;
    print!("{report}");
    if report.is_intact() {
        return Ok(());
    }
    // The report comes before the advice.
    io::stdout().flush().map_err(|error| error.to_string())?;
    Err(format!("run `bine data repair {}`", folder.display()))
}

fn repair(folder: &Path) -> Result<(), String> {
    let repaired = journal::repair(&watched(folder)?).map_err(|error| error.to_string())?;
    print!("{repaired}");
    Ok(())
}

/// A folder that has tables.
fn existing(path: &Path) -> Result<Arc<dyn Folder>, String> {
    // Opening makes a folder that is not there, and nobody's data is in that.
    if !path.is_dir() {
        let within = path.parent().filter(|parent| parent.is_dir() && path.ends_with("journal"));
        return Err(match (within, path.parent()) {
            (Some(parent), _) => format!("there are no tables in {}", parent.display()),
            (None, Some(parent)) => format!("there is no folder {}", parent.display()),
            (None, None) => format!("there is no folder {}", path.display()),
        });
    }
    let folder = RealFolder::open(path).map_err(|error| error.to_string())?;
    if !folder.list().map_err(|error| error.to_string())?.iter().any(|name| is_of_tables(name)) {
        return Err(format!("there are no tables in {}", path.display()));
    }
    Ok(Arc::new(folder))
}

/// Whether a file of this name is read for tables.
fn is_of_tables(name: &str) -> bool {
    name.starts_with("journal-") || name.starts_with("snapshot-")
}

/// Where the tables are: in a folder that was given to `Store::open`, or within the data folder of a server.
fn place(path: &Path) -> PathBuf {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut names = entries.map(|entry| entry.file_name());
    if names.any(|name| name.to_str().is_some_and(is_of_tables)) {
        return path.to_owned();
    }
    path.join("journal")
}

/// A folder that is there, of whose reading is told.
fn watched(path: &Path) -> Result<Arc<dyn Folder>, String> {
    let watched = Watched::new(existing(path)?).map_err(|error| error.to_string())?;
    Ok(Arc::new(watched))
}

/// Opens the tables in it, and says what there is to know of them.
fn open(folder: &Arc<dyn Folder>) -> Result<Archive, String> {
    open_with(folder, None)
}

/// The same, with whoever knows what else is kept there.
fn open_with(
    folder: &Arc<dyn Folder>,
    guest: Option<Arc<dyn Extension>>,
) -> Result<Archive, String> {
    let mut meter = Meter::new("read", None);
    let mut progress = |done, all| meter.show(done, Some(all));
    let archive = Archive::open(Arc::clone(folder), guest, &mut progress)?;
    drop(meter);
    for warning in archive.warnings() {
        eprintln!("bine: warning: {warning}");
    }
    Ok(archive)
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
