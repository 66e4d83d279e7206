//! Decides what a golden file is: text that a person has read once, and that must not change unread.
//!
//! `UPDATE_GOLDENS=1 cargo test --package bine --test bine macros` writes them anew; then read the diff.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the files of one kind lie.
pub(super) fn folder(kind: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/bine/macros", kind].iter().collect()
}

/// Says how `actual` differs from what the file holds, or writes it there when that was asked for.
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
