//! A temporary directory for tests, with a root and files outside it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bine_files::{Files, Root};

/// A temporary directory, removed on drop. It contains `site`, which is served, and `outside`,
/// which is not.
pub(crate) struct TestSite {
    top: PathBuf,
}

impl TestSite {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("bine-files-{}-{number}", process::id()));
        fs::create_dir_all(top.join("site")).expect("a directory for temporary files is writable");
        fs::create_dir(top.join("outside")).expect("its parent was made just now");
        Self { top }
    }

    /// Creates a directory with files in its root.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let site = Self::new();
        for (name, content) in files {
            site.write(name, content);
        }
        site
    }

    /// Returns the path of the root.
    pub(crate) fn root(&self) -> PathBuf {
        self.top.join("site")
    }

    /// Returns the path of a name below the root, or of `../outside/..`.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file and creates its parent directories.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.top)).expect("the site is writable");
        fs::write(path, content).expect("the site is writable");
    }

    /// Replaces a file atomically.
    pub(crate) fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        self.write("../new", content);
        fs::rename(self.at("../new"), self.at(name)).expect("the site is writable");
    }

    /// Creates a link below the root.
    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.at(name)).expect("the site is writable");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.at(name)).expect("the test made it");
    }

    /// Creates a thread's cache of the root.
    pub(crate) fn files(&self) -> Files {
        Files::new(
            Arc::new(Root::open(&self.root()).expect("the root was made with the site")),
            Arc::default(),
        )
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        // A directory that cannot be removed stays among temporary files. A failed test shows its
        // own message.
        let _ = fs::remove_dir_all(&self.top);
    }
}
