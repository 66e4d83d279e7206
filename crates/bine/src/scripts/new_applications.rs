//! Reports folders that have become applications since the start, which has made all routes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bine_log as log;

use super::application::Application;
use super::folders;

/// The applications of a site that the log has named, or that are served.
pub(super) struct NewApplications {
    root: PathBuf,
    known: Mutex<HashSet<String>>,
}

impl NewApplications {
    /// The applications of a site at the start.
    pub(super) fn new(root: &Path, applications: &[Arc<Application>]) -> Self {
        let known = applications.iter().map(|app| app.url.trim_start_matches('/').to_owned());
        Self { root: root.to_owned(), known: Mutex::new(known.collect()) }
    }

    /// Logs each new application once.
    pub(super) fn report(&self) {
        for path in self.take() {
            log::notice(format_args!(
                "{} is a new application: restart the server to serve it",
                if path.is_empty() { "the site" } else { &path }
            ));
        }
    }

    /// The paths of the new ones since the last call.
    fn take(&self) -> Vec<String> {
        // A folder's own application reports its faults, or the next start does.
        let found = folders::find(&self.root).unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = found.into_iter().map(|app| app.path);
        new.filter(|path| known.insert(path.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::testing::Folder;

    #[test]
    fn names_each_new_application_once() {
        let folder = Folder::with(&[("a/index.tsx", "")]);
        let own = NewApplications::new(folder.path(), &[]);
        assert_eq!(own.take(), ["a"]);
        assert!(own.take().is_empty());
        folder.write("b/deep/index.tsx", "");
        folder.write("c/app.toml", "wrong");
        assert_eq!(own.take(), ["b/deep"]);
        assert!(own.take().is_empty());
    }
}
