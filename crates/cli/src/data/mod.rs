//! The command `bine data`: works on a folder of tables that no server uses, and backs up one that
//! a server uses.

mod arguments;
mod backup;
mod hooked_folder;
mod keys;
#[cfg(feature = "cluster")]
mod moving;
mod pace;
mod progress;
mod read_progress;

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
use progress::{Counted, ProgressMeter};
use read_progress::ReadProgress;

const USAGE: &str = "\
Usage: bine data backup FOLDER BACKUP    copy what is new into a backup; a server may be running
       bine data restore BACKUP FOLDER   restore a backup, also as of an earlier change
       bine data move --data FOLDER --to URL | --from URL --data FOLDER
                                         take the data into a cluster of several nodes, or out again
       bine data dump FOLDER             write tables as lines of JSON
       bine data load FOLDER             load such lines into a folder
       bine data compact FOLDER          reduce the size of a folder
       bine data check FOLDER|BACKUP     read everything and report damage
       bine data repair FOLDER           keep all readable data, set replaced files aside, report losses

Each command has --help. FOLDER is the data folder of a server, which must be stopped first, except
for a backup.";

const BACKUP: &str = "\
Usage: bine data backup FOLDER BACKUP [--link] [--keep DAYS] [--share PERCENT]

Copies the changes in FOLDER that BACKUP does not have, while a server uses FOLDER or after it was
stopped. BACKUP is a folder, which is created by the first run. All changes that were acknowledged
before the command are in the backup; an interrupted run leaves the previous backup as it was. BACKUP
then has tables, channels, and the server's keys and certificates; other files are listed and not
copied.

  --link         link files that do not change any more instead of copying them. This needs BACKUP on
                 the same file system, where a failure of the disk damages both
  --keep DAYS    remove what only a restore to an earlier day needs; by default everything stays
  --share PERCENT
                 the percentage of the time in which the command works, from 1 to 100 (10); it pauses
                 after each turn of work, to leave the processor and the disk to the server";

const RESTORE: &str = "\
Usage: bine data restore BACKUP FOLDER [--at MOMENT] [--replace]

Restores BACKUP into FOLDER, verifies everything, and reports the last change. A FOLDER with data is
refused.

  --at MOMENT    restore an earlier state: the number of the last change to keep, or a time such as
                 2026-11-21T09:30:00Z, which selects the last change before this second. If changes
                 are dropped whose times are not known, because a server did not end in order, the
                 command names them
  --replace      set the data in FOLDER aside, under names that begin with `replaced-`";

const DUMP: &str = "\
Usage: bine data dump FOLDER [--table NAME]...

Writes the tables of FOLDER to standard output as lines of JSON: for each table its fields, then its
rows, the oldest first. `bine data load` restores the tables from these lines.

  --table NAME    dump only this table; repeatable";

const LOAD: &str = "\
Usage: bine data load FOLDER [FILE] [--merge]

Loads the output of `bine data dump` from FILE or standard input into FOLDER, which is created if it
does not exist. Either all lines are loaded or none; an invalid line is reported by line and column.

  --merge    load into a folder that has rows: a row with the same id is replaced, and a row that is
             `null` in FILE is removed. Without this option such a folder is refused";

const COMPACT: &str = "\
Usage: bine data compact FOLDER

Writes the contents of FOLDER as two snapshots, each of which can restore it, removes the journal up to
there, and prints how many bytes that saves. Does nothing if it would save none.";

const CHECK: &str = "\
Usage: bine data check FOLDER|BACKUP

Reads every file of a data folder or a backup and reports damage; changes nothing. For a backup it also
prints to which changes it can be restored.";

const REPAIR: &str = "\
Usage: bine data repair FOLDER

Keeps all readable data and reports losses. Replaced files remain in FOLDER under names that begin with
`damaged-`.";

/// Runs `bine data COMMAND`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let Some((word, rest)) = arguments.split_first() else { return Exit::usage(USAGE) };
    if word == "move" {
        return move_data(rest);
    }
    let (usage, max_arguments): (_, usize) = match word.to_str() {
        Some("backup") => (BACKUP, 2),
        Some("restore") => (RESTORE, 2),
        Some("dump") => (DUMP, 1),
        Some("load") => (LOAD, 2),
        Some("compact") => (COMPACT, 1),
        Some("check") => (CHECK, 1),
        Some("repair") => (REPAIR, 1),
        Some("--help" | "-h") => return print_text(USAGE),
        _ => {
            let message = "bine: unknown command of `bine data`; use backup, restore, move, dump, load, compact, check or repair";
            return Exit::usage(format!("{message}\n{USAGE}"));
        }
    };
    let arguments = match Arguments::read(rest, usage) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return print_text(usage),
        Err(message) => return Exit::usage(format!("bine: {message}\n{usage}")),
    };
    let min_arguments = if matches!(word.to_str(), Some("backup" | "restore")) { 2 } else { 1 };
    if !(min_arguments..=max_arguments).contains(&arguments.positional.len()) {
        return Exit::usage(usage);
    }
    let paths: Vec<&Path> = arguments.positional.iter().map(Path::new).collect();
    let folder = &journal_folder(Path::new(&arguments.positional[0]));
    let result = match word.to_str() {
        Some("dump") => dump(folder, &arguments.tables),
        Some("load") => load(folder, arguments.positional.get(1).map(Path::new), arguments.merge),
        Some("backup") => backup::back_up(paths[0], paths[1], &arguments),
        Some("restore") => backup::restore(paths[0], paths[1], &arguments),
        Some("compact") => compact(folder),
        Some("check") if backup::is_backup(paths[0]) => backup::check(paths[0]),
        Some("check") => check(folder),
        _ => repair(folder),
    };
    match result {
        Ok(()) => Exit::success(),
        Err(message) => Exit::failure(message),
    }
}

#[cfg(feature = "cluster")]
fn move_data(arguments: &[OsString]) -> Exit {
    moving::run(arguments)
}

#[cfg(not(feature = "cluster"))]
fn move_data(_: &[OsString]) -> Exit {
    Exit::failure("this program is built without clusters: build it with the feature `cluster`")
}

fn print_text(usage: &str) -> Exit {
    println!("{usage}");
    Exit::success()
}

fn dump(folder: &Path, tables: &[String]) -> Result<(), String> {
    let archive = open(&open_existing(folder)?)?;
    let mut output = Counted::new(io::stdout().lock(), ProgressMeter::new("written", None));
    let dumped = archive.dump(tables, &mut output);
    drop(output);
    dumped.map_err(|error| error.to_string())?;
    archive.close().map_err(|error| error.to_string())
}

fn load(folder: &Path, file: Option<&Path>, merge: bool) -> Result<(), String> {
    let cannot_read = |error: io::Error| {
        let file = file.map_or("standard input".into(), |file| file.display().to_string());
        format!("cannot read {file}: {error}")
    };
    let (input, size): (Box<dyn io::Read>, _) = match file {
        None => (Box::new(io::stdin().lock()), None),
        Some(path) => {
            let file = File::open(path).map_err(cannot_read)?;
            let size = file.metadata().map_err(cannot_read)?.len();
            (Box::new(file), Some(size))
        }
    };
    let parent = folder.parent().filter(|parent| !parent.exists());
    let is_new = !folder.exists();
    if let (true, Some(parent)) = (is_new, folder.parent()) {
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    let input = BufReader::new(Counted::new(input, ProgressMeter::new("read", size)));
    let outcome = load_from(input, folder, merge);
    if outcome.is_err() && is_new {
        // A failed load created only the lock; a folder with more in it is kept.
        let _ = fs::remove_file(folder.join("lock"));
        let _ = fs::remove_dir(folder);
        let _ = parent.map(fs::remove_dir);
    }
    let loaded = outcome?;
    if loaded.dangling > 0 {
        let rows = count_text(loaded.dangling, "row");
        eprintln!("bine: warning: {rows} in {} refer to a missing row", folder.display());
    }
    let (tables, rows) = (count_text(loaded.tables, "table"), count_text(loaded.rows, "row"));
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
            "{} has {} already: load into another folder, or replace rows of the same id with --merge",
            folder.display(),
            count_text(archive.count(), "row")
        ));
    }
    let outcome = archive.load(&mut input);
    // Dropping the input ends its progress line before other output begins.
    drop(input);
    let loaded = outcome.map_err(|error| format!("{error}\nnothing was loaded"))?;
    archive.close().map_err(|error| error.to_string())?;
    Ok(loaded)
}

fn compact(folder: &Path) -> Result<(), String> {
    let archive = open_with(&open_existing(folder)?, Some(Channels::extension()))?;
    let CompactSummary { before, after } = archive.compact().map_err(|error| error.to_string())?;
    if before == after {
        println!("{before} bytes; there is nothing to gain");
    } else {
        println!("{before} bytes before, {after} now");
    }
    Ok(())
}

fn check(folder: &Path) -> Result<(), String> {
    let report = journal::check(&with_progress(folder)?).map_err(|error| error.to_string())?;
    print!("{report}");
    if report.is_intact() {
        return Ok(());
    }
    // The report is printed before the advice.
    io::stdout().flush().map_err(|error| error.to_string())?;
    Err(format!("run `bine data repair {}`", folder.display()))
}

fn repair(folder: &Path) -> Result<(), String> {
    let repaired = journal::repair(&with_progress(folder)?).map_err(|error| error.to_string())?;
    print!("{repaired}");
    Ok(())
}

/// Opens a folder that contains tables.
fn open_existing(path: &Path) -> Result<Arc<dyn Folder>, String> {
    // Opening would create a missing folder.
    if !path.is_dir() {
        let data_folder =
            path.parent().filter(|parent| parent.is_dir() && path.ends_with("journal"));
        return Err(match (data_folder, path.parent()) {
            (Some(parent), _) => format!("there are no tables in {}", parent.display()),
            (None, Some(parent)) => format!("there is no folder {}", parent.display()),
            (None, None) => format!("there is no folder {}", path.display()),
        });
    }
    let folder = RealFolder::open(path).map_err(|error| error.to_string())?;
    if !folder.list().map_err(|error| error.to_string())?.iter().any(|name| is_table_file(name)) {
        return Err(format!("there are no tables in {}", path.display()));
    }
    Ok(Arc::new(folder))
}

/// Checks whether a file of this name belongs to the tables.
fn is_table_file(name: &str) -> bool {
    name.starts_with("journal-") || name.starts_with("snapshot-")
}

/// Returns the folder of the tables: the given folder if it was passed to `Store::open`, else
/// `journal` in the data folder of a server.
fn journal_folder(path: &Path) -> PathBuf {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut names = entries.map(|entry| entry.file_name());
    if names.any(|name| name.to_str().is_some_and(is_table_file)) {
        return path.to_owned();
    }
    path.join("journal")
}

/// Opens an existing folder that reports the progress of reads.
fn with_progress(path: &Path) -> Result<Arc<dyn Folder>, String> {
    let folder = ReadProgress::of(open_existing(path)?).map_err(|error| error.to_string())?;
    Ok(Arc::new(folder))
}

/// Opens the tables in a folder, and prints warnings.
fn open(folder: &Arc<dyn Folder>) -> Result<Archive, String> {
    open_with(folder, None)
}

/// Opens the tables with a guest that knows the other records in the journal.
fn open_with(
    folder: &Arc<dyn Folder>,
    guest: Option<Arc<dyn Extension>>,
) -> Result<Archive, String> {
    let mut meter = ProgressMeter::new("read", None);
    let mut progress = |done, all| meter.show(done, Some(all));
    let archive = Archive::open(Arc::clone(folder), guest, &mut progress)?;
    drop(meter);
    for warning in archive.warnings() {
        eprintln!("bine: warning: {warning}");
    }
    Ok(archive)
}

fn count_text(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
