//! The files of a data folder besides the journal: the server's keys and certificates.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bine::store::journal::StoredFile;

/// The keys that a server stores in its data folder.
const FILES: [&str; 3] = ["session-keys", "region-key", "self-signed.pem"];
/// The folder of certificates and accounts of certificate authorities.
const CERTIFICATES: &str = "acme";
/// The folder of the journal.
const JOURNAL: &str = "journal";
/// The prefix of names under which a restore sets files aside.
const ASIDE: &str = "replaced-";
/// The longest file that is stored in bytes: certificate chains with their keys are far shorter.
const MAX_LENGTH: u64 = 1 << 20;

/// The files that a backup of a data folder stores, and the names of those that it does not.
#[derive(Default)]
pub(super) struct DataFiles {
    pub(super) stored: Vec<StoredFile>,
    pub(super) others: Vec<String>,
}

impl DataFiles {
    /// Reads the files in a data folder.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let mut files = Self::default();
        for name in names(folder)? {
            if FILES.contains(&&*name) {
                files.read_file(folder, name)?;
            } else if name == CERTIFICATES && folder.join(&name).is_dir() {
                for file in names(&folder.join(&name))? {
                    files.read_file(folder, format!("{name}/{file}"))?;
                }
            } else if name != JOURNAL && !name.starts_with(ASIDE) {
                files.others.push(name);
            }
        }
        Ok(files)
    }

    fn read_file(&mut self, folder: &Path, name: String) -> Result<(), String> {
        let path = folder.join(&name);
        let read = || -> io::Result<Option<Vec<u8>>> {
            let file = match File::open(&path) {
                // The server has just removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
            let mut bytes = Vec::new();
            file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read().map_err(|error| format!("cannot read {}: {error}", path.display()))? {
            None => {}
            Some(bytes) if bytes.len() as u64 > MAX_LENGTH => self.others.push(name),
            Some(bytes) => self.stored.push(StoredFile { name, bytes }),
        }
        Ok(())
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let named = |error: io::Error| format!("cannot read {}: {error}", folder.display());
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).map_err(named)?.collect();
    let names = entries.map_err(named)?.into_iter();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Whether a folder has such a file with different content.
pub(super) fn has_others(folder: &Path, files: &[StoredFile]) -> bool {
    files
        .iter()
        .any(|file| fs::read(folder.join(&file.name)).is_ok_and(|found| found != file.bytes))
}

/// Writes the files into a data folder, readable by the owner only. A file with different content
/// is set aside.
pub(super) fn write(folder: &Path, files: &[StoredFile]) -> io::Result<()> {
    for StoredFile { name, bytes } in files {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|found| found == *bytes) {
            continue;
        }
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        set_aside(&path)?;
        let unfinished = path.with_file_name(format!("{}.new", file_name(&path)));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder_of(&path)?;
    }
    Ok(())
}

/// Gives a file or a folder, if it exists, a free name that begins with `replaced-`, and returns it.
pub(super) fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let name = file_name(path);
    let plain = path.with_file_name(format!("{ASIDE}{name}"));
    let numbered = (2..).map(|number: u64| path.with_file_name(format!("{ASIDE}{name}.{number}")));
    let mut free = [plain].into_iter().chain(numbered).filter(|aside| !aside.exists());
    let Some(aside) = free.next().filter(|_| path.exists()) else { return Ok(None) };
    fs::rename(path, &aside)?;
    sync_folder_of(path)?;
    Ok(Some(aside))
}

/// Makes the names in the folder of this file durable.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
