//! Decides where `unsafe` may stand, and that each use of it argues why it is sound.

use super::rooms;
use super::rust::Rust;
use super::{Complaint, File};

/// Tells each `unsafe` in a place where none may be, and each without a `SAFETY:` line.
pub(super) fn check(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        if word != "unsafe" {
            continue;
        }
        let line = rust.line(at);
        if !may_stand(&file.path) {
            file.complain(complaints, line, "`unsafe` may not stand here; see ARCHITECTURE.md");
        }
        let behind = rust.code[at + word.len()..].trim_start();
        let acts = behind.starts_with('{') || behind.starts_with("impl");
        if acts && !is_argued(rust, line) {
            file.complain(complaints, line, "`unsafe` without a `SAFETY:` line above it");
        }
    }
}

fn may_stand(path: &str) -> bool {
    rooms::of_path(path)
        .is_some_and(|(room, rest)| room.unsafe_in.iter().any(|prefix| rest.starts_with(prefix)))
}

/// Whether the comments right above the statement that holds this line say `SAFETY:`.
fn is_argued(rust: &Rust, line: usize) -> bool {
    let code: Vec<&str> = rust.code.lines().take(line).collect();
    let comments: Vec<&str> = rust.comments.lines().take(line).collect();
    let mut at = line - 1;
    loop {
        if comments[at].contains("SAFETY:") {
            return true;
        }
        let Some(above) = at.checked_sub(1) else { return false };
        let code_above = code[above].trim();
        let is_blank = code_above.is_empty() && comments[above].trim().is_empty();
        let ends_another = code_above.ends_with([';', '{', '}']);
        if is_blank || ends_another {
            return false;
        }
        at = above;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, source};

    #[test]
    fn unsafe_outside_its_few_places_is_caught() {
        let text = "//! A.\nunsafe fn a() {}\n";
        for path in ["crates/files/src/a.rs", "crates/html/src/a.rs", "bench/src/a.rs"] {
            let told = format!("{path}:2: `unsafe` may not stand here; see ARCHITECTURE.md");
            check(source::check, &[(path, text)], &[&told]);
        }
        for path in ["crates/pipeline/src/a.rs", "crates/html/src/buffer.rs"] {
            check(source::check, &[(path, text)], &[]);
        }
    }

    #[test]
    fn unsafe_without_an_argument_is_caught() {
        let text = "//! A.\n// SAFETY: for b only.\nfn a() {\n    unsafe { b() }\n}\n";
        let told = ["crates/pipeline/src/a.rs:4: `unsafe` without a `SAFETY:` line above it"];
        check(source::check, &[("crates/pipeline/src/a.rs", text)], &told);
    }

    #[test]
    fn the_argument_stands_above_the_statement() {
        let text = "//! A.\nfn a() {\n    // SAFETY: b.\n    // It is.\n    let c =\n        unsafe { b() };\n}\n";
        check(source::check, &[("crates/pipeline/src/a.rs", text)], &[]);
    }

    #[test]
    fn words_in_comments_and_lints_are_no_unsafe() {
        let text = "//! No unsafe.\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe {\";\n";
        check(source::check, &[("crates/files/src/a.rs", text)], &[]);
    }
}
