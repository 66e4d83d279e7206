//! Golden files: reviewed output that must not change unnoticed.
//!
//! `UPDATE_GOLDENS=1 cargo test --package bine --test bine macros` rewrites them. Review the diff.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of one kind of golden files.
pub(super) fn folder(kind: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/bine/macros", kind].iter().collect()
}

/// Compares `actual` with the file and describes the difference, or updates the file if requested.
pub(super) fn compare(path: &Path, actual: &str) -> Option<String> {
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == actual {
        return None;
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(path, actual).unwrap();
        return None;
    }
    let name = path.file_name().unwrap().display();
    Some(format!("{name} says:\n{expected}\nbut it is:\n{actual}\n"))
}
