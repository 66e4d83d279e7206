//! Decides that what is wrong with a tree is told in the log, once each.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use bine_html::tree::Finding;
use bine_log as log;

/// So many are told; a program with more has been told enough.
const MOST: usize = 1000;

/// Notes a finding, unless it was noted before.
pub(crate) fn tell_once(finding: &Finding) {
    static TOLD: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let finding = finding.to_string();
    // A set of strings is whole whatever happened beside it.
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < MOST && !told.contains(&finding) {
        log::warn(format_args!("{finding}"));
        told.insert(finding);
    }
}
