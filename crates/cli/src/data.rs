//! Decides what the program does with a folder of tables that no server uses.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use bine::Exit;
use bine::store::disk::{Folder, RealFolder};
use bine::store::journal;

const USAGE: &str = "\
Usage: bine data check FOLDER     read everything and tell what is damaged
       bine data repair FOLDER    keep all that can be read, put what is replaced aside, tell what is lost";

/// Runs `bine data ..`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let [word, folder] = arguments else { return Exit::usage(USAGE) };
    let folder = Path::new(folder);
    match word.to_str() {
        Some("check") => told(folder, |folder| {
            let report = journal::check(folder)?;
            Ok((report.is_sound(), report.to_string()))
        }),
        Some("repair") => told(folder, |folder| Ok((true, journal::repair(folder)?.to_string()))),
        _ => Exit::usage(format!("bine: data is checked or repaired\n{USAGE}")),
    }
}

/// Prints what was found, and says by the exit status whether all is well.
fn told(
    path: &Path,
    act: impl FnOnce(&Arc<dyn Folder>) -> Result<(bool, String), journal::Error>,
) -> Exit {
    // Opening makes a folder that is not there, and nobody's data is in that.
    if !path.is_dir() {
        return Exit::failed(format!("there is no folder {}", path.display()));
    }
    let folder = match RealFolder::open(path) {
        Ok(folder) => Arc::new(folder) as Arc<dyn Folder>,
        Err(error) => return Exit::failed(error),
    };
    match act(&folder) {
        Ok((is_well, report)) => {
            print!("{report}");
            if is_well {
                Exit::fine()
            } else {
                Exit::failed(format!("run `bine data repair {}`", path.display()))
            }
        }
        Err(error) => Exit::failed(error),
    }
}
