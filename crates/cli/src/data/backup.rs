//! The commands `bine data backup` and `bine data restore`, and the check of a backup.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bine::store::Time;
use bine::store::disk::{Folder, RealFolder};
use bine::store::journal::{self, BackupOptions, Error, Link, StoredFile, Until};

use super::arguments::Arguments;
use super::keys::{self, DataFiles};
use super::pace::Pace;
use super::read_progress::ReadProgress;
use super::{is_table_file, journal_folder};

/// The file that makes a folder a backup.
const MANIFEST: &str = "backup";
/// The name of a journal's folder while it is restored.
const RESTORING: &str = "restoring-";
/// The percentage of the time in which a backup works, unless an option changes it.
const SHARE: u32 = 10;
const DAY: u64 = 24 * 60 * 60;

/// Whether this is the folder of a backup.
pub(super) fn is_backup(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}

/// Copies what is new in a data folder into a backup.
pub(super) fn back_up(data: &Path, backup: &Path, arguments: &Arguments) -> Result<(), String> {
    let keep = arguments.keep.as_deref().map(parse_days).transpose()?;
    let share = arguments.share.as_deref().map_or(Ok(SHARE), parse_share)?;
    let journal = journal_folder(data);
    if !journal.is_dir() {
        return Err(format!("there are no tables in {}", data.display()));
    }
    let files = if journal == data { DataFiles::default() } else { DataFiles::read(data)? };
    let source = RealFolder::open_read_only(&journal).map_err(|error| error.to_string())?;
    let target = RealFolder::open(backup).map_err(|error| error.to_string())?;
    let pace = Pace::new(share);
    let (source, target) = (pace.folder(source), pace.folder(target));
    let link = |from: &str, to: &str| fs::hard_link(journal.join(from), backup.join(to));
    let options = BackupOptions {
        clock: &Time::now,
        files: &files.stored,
        link: arguments.link.then_some(&link as &Link<'_>),
        keep,
    };
    let summary = journal::backup(&source, &target, &options).map_err(|error| match error {
        Error::Locked { folder, process } if process.is_empty() => {
            format!("another backup writes to {folder}")
        }
        Error::Locked { folder, process } => {
            format!("another backup (process {process}) writes to {folder}")
        }
        error => error.to_string(),
    })?;
    print!("{summary}");
    if journal != data {
        print_files(&files.stored);
    }
    for name in &files.others {
        println!("not in the backup: {}", data.join(name).display());
    }
    if summary.damages.is_empty() {
        return Ok(());
    }
    flush()?;
    Err(format!("stop the server and run `bine data check {}`", data.display()))
}

/// Restores a backup into a data folder.
pub(super) fn restore(backup: &Path, data: &Path, arguments: &Arguments) -> Result<(), String> {
    let until = arguments.at.as_deref().map_or(Ok(Until::End), parse_moment)?;
    let source = RealFolder::open_read_only(backup).map_err(|error| error.to_string())?;
    let source = ReadProgress::of(Arc::new(source)).map_err(|error| error.to_string())?;
    let journal = journal_folder(data);
    let has_data = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        let names = entries.map(|entry| entry.file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .any(|name| is_table_file(&name) || name == "synced")
    };
    let refusal = || {
        let data = data.display();
        format!(
            "{data} has data already: choose another folder, or set its data aside with --replace"
        )
    };
    if is_backup(data) {
        return Err(format!("{} is a backup: choose another folder", data.display()));
    }
    if has_data(&journal) && !arguments.replace {
        return Err(refusal());
    }
    let disk = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| format!("cannot write {}: {error}", path.display())
    };
    // A running server holds this lock.
    let lock = if journal.is_dir() {
        let old = RealFolder::open(&journal).map_err(|error| error.to_string())?;
        let lock = old.lock("lock");
        Some(lock.map_err(|_| format!("a server uses {}; stop it first", journal.display()))?)
    } else {
        None
    };
    let unfinished = journal.with_file_name(format!("{RESTORING}{}", keys::file_name(&journal)));
    if unfinished.exists() {
        // An interrupted restore left it.
        fs::remove_dir_all(&unfinished).map_err(disk(&unfinished))?;
    }
    let outcome = restore_into(&source, &unfinished, until).and_then(|summary| {
        if keys::has_others(data, &summary.files) && !arguments.replace {
            return Err(refusal());
        }
        keys::write(data, &summary.files).map_err(disk(data))?;
        Ok(summary)
    });
    // Ends the line of progress.
    drop(source);
    let summary = match outcome {
        Ok(summary) => summary,
        Err(message) => {
            let _ = fs::remove_dir_all(&unfinished);
            return Err(message);
        }
    };
    let aside = set_journal_aside(&journal, has_data(&journal)).map_err(disk(&journal))?;
    fs::rename(&unfinished, &journal).map_err(disk(&journal))?;
    keys::sync_folder_of(&journal).map_err(disk(&journal))?;
    drop(lock);
    print!("{summary}");
    print_files(&summary.files);
    if let Some(aside) = aside {
        println!("the previous data is in {}", aside.display());
    }
    Ok(())
}

fn restore_into(
    source: &dyn Folder,
    folder: &Path,
    until: Until,
) -> Result<journal::RestoreSummary, String> {
    let target = RealFolder::open(folder).map_err(|error| error.to_string())?;
    journal::restore(source, &target, until).map_err(|error| match error {
        Error::Damaged(damage) => format!(
            "{damage}. Nothing was restored; `bine data check` lists all damage of a backup, and `--at` may restore an earlier change"
        ),
        error => error.to_string(),
    })
}

/// Makes the name of the journal's folder free.
fn set_journal_aside(journal: &Path, has_data: bool) -> io::Result<Option<PathBuf>> {
    if !has_data && journal.is_dir() {
        // A server that never wrote leaves a lock file. A folder with more in it is set aside.
        let _ = fs::remove_file(journal.join("lock"));
        let _ = fs::remove_dir(journal);
    }
    keys::set_aside(journal)
}

/// Reads every file of a backup.
pub(super) fn check(backup: &Path) -> Result<(), String> {
    let folder = RealFolder::open_read_only(backup).map_err(|error| error.to_string())?;
    let folder = ReadProgress::of(Arc::new(folder)).map_err(|error| error.to_string())?;
    let found = journal::check_backup(&folder);
    drop(folder);
    let found = found.map_err(|error| error.to_string())?;
    print!("{found}");
    if found.report.is_intact() {
        return Ok(());
    }
    flush()?;
    Err(format!("the backup {} is damaged: begin another one in a new folder", backup.display()))
}

/// Prints the names of the files that a backup has besides the journal.
fn print_files(files: &[StoredFile]) {
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    if !names.is_empty() {
        println!("keys and certificates: {}", names.join(", "));
    }
}

/// Prints what was written before an error follows.
fn flush() -> Result<(), String> {
    io::stdout().flush().map_err(|error| error.to_string())
}

fn parse_moment(text: &str) -> Result<Until, String> {
    if let Ok(change) = text.parse() {
        return Ok(Until::Change(change));
    }
    let time =
        text.parse().map_err(|error| format!("--at {text}: {error}; or the number of a change"))?;
    Ok(Until::Time(time))
}

fn parse_share(text: &str) -> Result<u32, String> {
    let share = text.parse().ok().filter(|share| (1..=100).contains(share));
    share.ok_or_else(|| format!("--share {text}: it must be a percentage from 1 to 100"))
}

fn parse_days(text: &str) -> Result<Duration, String> {
    let days: Option<u64> = text.parse().ok().filter(|days| *days <= 100_000);
    let days = days.ok_or_else(|| format!("--keep {text}: it must be a number of days"))?;
    Ok(Duration::from_secs(days * DAY))
}
