//! Rules for every Rust file.

use super::crates;
use super::rust::Rust;
use super::{Complaint, File, Tree, attributes, functions, unsafety};

/// A longer file must be split unless it is generated.
const LONGEST_FILE: usize = 900;

/// The marker in the first line of a generated file.
const GENERATED: &str = "made by `cargo xtask ";

/// Runs every rule about Rust text.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in &tree.files {
        let Some(rust) = &file.rust else { continue };
        opens_with_module_docs(file, complaints);
        is_not_too_long(file, complaints);
        has_no_leftovers(file, rust, complaints);
        runs_its_examples(file, complaints);
        names_tests_as_claims(file, rust, complaints);
        keeps_no_std(file, rust, complaints);
        attributes::check(file, rust, complaints);
        functions::check(file, rust, complaints);
        unsafety::check(file, rust, complaints);
    }
}

fn opens_with_module_docs(file: &File, complaints: &mut Vec<Complaint>) {
    if !file.text.starts_with("//! ") {
        file.complain(complaints, 1, "needs a `//!` sentence in its first line");
    }
}

fn is_not_too_long(file: &File, complaints: &mut Vec<Complaint>) {
    let lines = file.text.lines().count();
    let is_generated = file.text.lines().next().is_some_and(|line| line.contains(GENERATED));
    if lines > LONGEST_FILE && !is_generated {
        file.complain(complaints, 0, format!("{lines} lines; split at {LONGEST_FILE}"));
    }
}

/// Rejects code that compiles but must not stay: gaps, leftovers, tests that sleep or do not run.
fn has_no_leftovers(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        let rest = &rust.code[at + word.len()..];
        let refused = match word {
            "todo" | "unimplemented" | "dbg" => rest.starts_with('!'),
            "ignore" => rust.code[..at].ends_with("#["),
            "sleep" => is_test(file, rust, at) && rust.code[..at].ends_with("thread::"),
            _ => false,
        };
        if refused {
            file.complain(complaints, rust.line(at), format!("`{word}` is not allowed here"));
        }
    }
}

/// Rejects examples in documentation that `cargo test` skips.
fn runs_its_examples(file: &File, complaints: &mut Vec<Complaint>) {
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(fence) = doc.and_then(|doc| doc.trim_start().strip_prefix("```")) else {
            continue;
        };
        if fence.split(',').any(|word| word.trim().starts_with("ignore")) {
            file.complain(
                complaints,
                index + 1,
                "an example that is skipped; use `text` or run it",
            );
        }
    }
}

fn names_tests_as_claims(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        if word.starts_with("test_") && rust.code[..at].ends_with("fn ") {
            file.complain(complaints, rust.line(at), format!("`{word}`: a test's name is a claim"));
        }
    }
}

fn keeps_no_std(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    let Some((entry, "src/lib.rs")) = crates::of_path(&file.path) else { return };
    if entry.no_std && !rust.code.contains("#![no_std]") {
        file.complain(complaints, 0, format!("{} must be no_std", entry.folder));
    }
}

/// Whether a byte belongs to test code.
fn is_test(file: &File, rust: &Rust, at: usize) -> bool {
    let in_folder = file.path.starts_with("tests/") || file.path.contains("/tests/");
    in_folder || file.path.ends_with("/tests.rs") || at >= rust.tests_begin()
}

#[cfg(test)]
mod tests {
    use super::super::check;

    #[test]
    fn catches_a_file_without_module_docs() {
        let expected = "a.rs:1: needs a `//!` sentence in its first line";
        check(super::check, &[("a.rs", "fn a() {}\n")], &[expected]);
    }

    #[test]
    fn catches_a_file_of_more_than_900_lines() {
        let text = format!("//! A.\n{}", "const A: u8 = 0;\n".repeat(900));
        check(super::check, &[("a.rs", &text)], &["a.rs: 901 lines; split at 900"]);
        let text = text.replacen("A.", "A: made by `cargo xtask a`.", 1);
        check(super::check, &[("a.rs", &text)], &[]);
    }

    #[test]
    fn catches_leftovers() {
        for word in ["todo", "unimplemented", "dbg"] {
            let text = format!("//! A.\nfn a() {{ {word}!() }}\n");
            let expected = format!("a.rs:2: `{word}` is not allowed here");
            check(super::check, &[("a.rs", &text)], &[&expected]);
        }
    }

    #[test]
    fn catches_an_ignored_test() {
        let text = "//! A.\n#[ignore]\nfn a() {}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:2: `ignore` is not allowed here"]);
    }

    #[test]
    fn catches_an_example_that_is_skipped() {
        let expected = "a.rs:2: an example that is skipped; use `text` or run it";
        check(super::check, &[("a.rs", "//! A.\n/// ```ignore\nfn a() {}\n")], &[expected]);
        check(super::check, &[("a.rs", "//! A.\n/// ```rust,ignore\nfn a() {}\n")], &[expected]);
        check(super::check, &[("a.rs", "//! A.\n/// ```text\nfn a() {}\n")], &[]);
    }

    #[test]
    fn catches_a_test_that_sleeps() {
        let text = "//! A.\nfn a() { thread::sleep(b); }\n#[cfg(test)]\nmod tests {}\n";
        check(super::check, &[("a.rs", text)], &[]);
        let expected = "tests/a.rs:2: `sleep` is not allowed here";
        check(super::check, &[("tests/a.rs", text)], &[expected]);
        let text = "//! A.\n#[cfg(test)]\nmod tests {\n fn a() { std::thread::sleep(b); }\n}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:4: `sleep` is not allowed here"]);
    }

    #[test]
    fn catches_a_test_without_a_claim() {
        let text = "//! A.\nfn test_a() {}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:2: `test_a`: a test's name is a claim"]);
    }

    #[test]
    fn catches_std_in_a_no_std_crate() {
        let expected = "crates/http/src/lib.rs: http must be no_std";
        check(super::check, &[("crates/http/src/lib.rs", "//! A.\n")], &[expected]);
        check(super::check, &[("crates/http/src/lib.rs", "//! A.\n#![no_std]\n")], &[]);
        check(super::check, &[("crates/bine/src/lib.rs", "//! A.\n")], &[]);
    }
}
