//! A folder for databases outside the folder of the build, whose parents other users may enter.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::machine::first_line;

/// The name of the folder, before the id of the process.
const PREFIX: &str = "bine-bench-data-";
/// Its parent: `PostgreSQL` runs as a different user, who cannot enter the folders of this user.
pub(crate) const PARENT: &str = "/var/tmp";

/// A folder for the databases of a run: one disk for all. It is removed at the end.
pub(crate) struct DataFolder(PathBuf);

impl DataFolder {
    /// Creates a folder in `parent`, and removes those of processes that were killed.
    pub(crate) fn create(parent: &Path) -> Result<Self> {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(Ok(process)) = name.strip_prefix(PREFIX).map(str::parse::<u32>) else {
                continue;
            };
            if !Path::new(&format!("/proc/{process}")).exists() {
                // The folder may belong to a different user, who removes it.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// The type of the file system.
    pub(crate) fn file_system(&self) -> String {
        first_line("findmnt", &["-n", "-o", "FSTYPE", "-T", &self.0.display().to_string()])
    }

    /// The folder of the database `name`.
    pub(crate) fn of(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // If the removal fails, the name of the folder still identifies the process.
        let _ = fs::remove_dir_all(&self.0);
    }
}
