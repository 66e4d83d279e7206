//! Rules for `unsafe`: where it is allowed, and a `SAFETY:` comment for each use.

use super::crates;
use super::rust::Rust;
use super::{Complaint, File};

/// Reports each `unsafe` outside the allowed paths, and each without a `SAFETY:` line.
pub(super) fn check(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        if word != "unsafe" {
            continue;
        }
        let line = rust.line(at);
        if !is_allowed(&file.path) {
            file.complain(complaints, line, "`unsafe` is not allowed here; see ARCHITECTURE.md");
        }
        let rest = rust.code[at + word.len()..].trim_start();
        let acts = rest.starts_with('{') || rest.starts_with("impl");
        if acts && !is_argued(rust, line) {
            file.complain(complaints, line, "`unsafe` without a `SAFETY:` line above it");
        }
    }
}

fn is_allowed(path: &str) -> bool {
    crates::of_path(path)
        .is_some_and(|(entry, rest)| entry.unsafe_in.iter().any(|prefix| rest.starts_with(prefix)))
}

/// Whether the comments directly above the statement of this line contain `SAFETY:`.
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
    fn catches_unsafe_outside_the_allowed_paths() {
        let text = "//! A.\nunsafe fn a() {}\n";
        for path in ["crates/files/src/a.rs", "crates/html/src/a.rs", "bench/src/a.rs"] {
            let expected = format!("{path}:2: `unsafe` is not allowed here; see ARCHITECTURE.md");
            check(source::check, &[(path, text)], &[&expected]);
        }
        for path in ["crates/server/src/a.rs", "crates/html/src/buffer.rs"] {
            check(source::check, &[(path, text)], &[]);
        }
    }

    #[test]
    fn catches_unsafe_without_a_safety_comment() {
        let text = "//! A.\n// SAFETY: for b only.\nfn a() {\n    unsafe { b() }\n}\n";
        let expected = ["crates/server/src/a.rs:4: `unsafe` without a `SAFETY:` line above it"];
        check(source::check, &[("crates/server/src/a.rs", text)], &expected);
    }

    #[test]
    fn accepts_a_safety_comment_above_the_statement() {
        let text = "//! A.\nfn a() {\n    // SAFETY: b.\n    // It is.\n    let c =\n        unsafe { b() };\n}\n";
        check(source::check, &[("crates/server/src/a.rs", text)], &[]);
    }

    #[test]
    fn ignores_unsafe_in_comments_and_lints() {
        let text = "//! No unsafe.\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe {\";\n";
        check(source::check, &[("crates/files/src/a.rs", text)], &[]);
    }
}
