//! Test harness: starts programs, sends requests and observes exits, with a time limit on each
//! wait.
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

/// Time limit for anything a test waits for: far longer than a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// All values of `--scheduler`.
pub(crate) const SCHEDULERS: [&str; 8] =
    ["hybrid", "event", "cohort", "nothread", "one-to-one", "pool", "accept-many", "queue"];
/// The schedulers that serve several connections at a time, so that a request may wait for an
/// event.
pub(crate) const AT_ONCE: [&str; 7] =
    ["hybrid", "event", "cohort", "one-to-one", "pool", "accept-many", "queue"];
/// One scheduler for each way to run a handler: on a worker, on an event loop, and on its
/// connection's thread.
pub(crate) const KINDS: [&str; 3] = ["hybrid", "event", "pool"];

/// Returns a string member of a JSON object, without unescaping.
#[track_caller]
pub(crate) fn member(json: &str, name: &str) -> String {
    find_member(json, name).unwrap_or_else(|| panic!("no {name} in {json}"))
}

/// Returns a string member of a JSON object, without unescaping, if it exists.
pub(crate) fn find_member(json: &str, name: &str) -> Option<String> {
    let (_, value) = json.split_once(&format!("\"{name}\":\""))?;
    Some(value.split('"').next()?.to_owned())
}

/// A temporary folder of one test, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A Unix socket's path is limited to 107 bytes, which excludes folders deep in the
        // checkout.
        let path = std::env::temp_dir().join(format!("bine-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file into the folder and returns its path.
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
        // Files that cannot be removed stay in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
