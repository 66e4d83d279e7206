//! Decides how a test starts a program, talks to it and sees it end, with a bound on every wait.
#![allow(
    dead_code,
    unused_imports,
    reason = "two test binaries share these files, and neither needs all of them"
)]

mod peer;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use peer::{Peer, Reply, undated};
pub(crate) use program::{Ended, Program};

/// What is not there by now will not come: far longer than a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Every scheduler that `--scheduler` knows.
pub(crate) const SCHEDULERS: [&str; 8] =
    ["hybrid", "event", "cohort", "nothread", "one-to-one", "pool", "accept-many", "queue"];
/// Those that serve several connections at one time, and so can let one wait for news.
pub(crate) const AT_ONCE: [&str; 7] =
    ["hybrid", "event", "cohort", "one-to-one", "pool", "accept-many", "queue"];
/// One of each way to run a handler, for what does not depend on more: on a worker, on a loop, on its connection's thread.
pub(crate) const KINDS: [&str; 3] = ["hybrid", "event", "pool"];

/// A folder of one test's own, which goes with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A Unix socket's path has room for 107 bytes, so this cannot lie deep in the checkout.
        let path = std::env::temp_dir().join(format!("bine-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file into it and tells its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the temporary folder's own business.
        let _ = fs::remove_dir_all(&self.0);
    }
}
