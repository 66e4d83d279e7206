//! Folders of scripts for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new folder with these files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bine-scripts-{}-{number}", std::process::id());
        let own = Self(std::env::temp_dir().join(name));
        for (file, content) in files {
            own.write(file, content);
        }
        own
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders that it needs.
    pub(super) fn write(&self, file: &str, content: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
