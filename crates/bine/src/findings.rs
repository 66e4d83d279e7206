//! Logs problems of a tree, each once.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use bine_html::tree::Finding;
use bine_log as log;

/// The most findings that are logged in the life of the process.
const MAX_LOGGED: usize = 1000;

/// Logs a finding, unless it was logged before.
pub(crate) fn log_once(finding: &Finding) {
    static LOGGED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let finding = finding.to_string();
    // A poisoned lock is harmless: the set is consistent after any panic.
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED && !logged.contains(&finding) {
        log::warn(format_args!("{finding}"));
        logged.insert(finding);
    }
}
