//! A temporary folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// A folder that is removed with everything in it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder among the temporary files of the system.
    ///
    /// # Panics
    ///
    /// The folder cannot be created.
    pub fn new() -> Self {
        Self::within(&env::temp_dir()).expect("the system has a folder for temporary files")
    }

    /// Creates an empty folder in another one.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn within(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("bine-nats-{}-{number}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains is among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
