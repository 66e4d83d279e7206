//! Decides what every Rust file must say, and what none may.

use super::rooms;
use super::rust::Rust;
use super::{Complaint, File, Tree, attributes, functions, unsafety};

/// Past this a file is split, whatever the reason, unless no person has written it.
const LONGEST_FILE: usize = 900;

/// What the first line of a generated file says.
const GENERATED: &str = "made by `cargo xtask ";

/// Runs every rule about Rust text.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in &tree.files {
        let Some(rust) = &file.rust else { continue };
        opens_with_its_decision(file, complaints);
        is_not_too_long(file, complaints);
        says_nothing_unfinished(file, rust, complaints);
        keeps_to_the_words(file, rust, complaints);
        names_tests_as_claims(file, rust, complaints);
        stays_without_std(file, rust, complaints);
        attributes::check(file, rust, complaints);
        functions::check(file, rust, complaints);
        unsafety::check(file, rust, complaints);
    }
}

fn opens_with_its_decision(file: &File, complaints: &mut Vec<Complaint>) {
    if !file.text.starts_with("//! ") {
        file.complain(complaints, 1, "opens with no `//!` sentence that says what it decides");
    }
}

fn is_not_too_long(file: &File, complaints: &mut Vec<Complaint>) {
    let lines = file.text.lines().count();
    let is_generated = file.text.lines().next().is_some_and(|line| line.contains(GENERATED));
    if lines > LONGEST_FILE && !is_generated {
        file.complain(complaints, 0, format!("{lines} lines; split at {LONGEST_FILE}"));
    }
}

/// What a build may pass over but a reader may not: gaps, leftovers, tests that sleep or do not run.
fn says_nothing_unfinished(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        let behind = &rust.code[at + word.len()..];
        let refused = match word {
            "todo" | "unimplemented" | "dbg" => behind.starts_with('!'),
            "ignore" => rust.code[..at].ends_with("#["),
            "sleep" => is_test(file, rust, at) && rust.code[..at].ends_with("thread::"),
            _ => false,
        };
        if refused {
            file.complain(complaints, rust.line(at), format!("`{word}` has no place here"));
        }
    }
}

/// Names of rustls and instant-acme that contain the word.
const OTHERS_WORDS: [&str; 6] = [
    "ClientConfig",
    "ClientConnection",
    "ClientHello",
    "HttpClient",
    "client_hello",
    "with_no_client_auth",
];

/// One word per concept: the page's half is the browser, the other end of a connection the peer.
fn keeps_to_the_words(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    if !file.path.starts_with("crates/") {
        return;
    }
    for (at, word) in rust.words() {
        if word.to_ascii_lowercase().contains("client") && !OTHERS_WORDS.contains(&word) {
            let what = format!("`{word}`: say browser or peer");
            file.complain(complaints, rust.line(at), what);
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

fn stays_without_std(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    let Some((room, "src/lib.rs")) = rooms::of_path(&file.path) else { return };
    if room.no_std && !rust.code.contains("#![no_std]") {
        file.complain(complaints, 0, format!("{} is a room without std", room.folder));
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
    fn a_file_that_opens_with_code_is_caught() {
        let told = "a.rs:1: opens with no `//!` sentence that says what it decides";
        check(super::check, &[("a.rs", "fn a() {}\n")], &[told]);
    }

    #[test]
    fn a_file_past_nine_hundred_lines_is_caught() {
        let text = format!("//! A.\n{}", "const A: u8 = 0;\n".repeat(900));
        check(super::check, &[("a.rs", &text)], &["a.rs: 901 lines; split at 900"]);
        let text = text.replacen("A.", "A: made by `cargo xtask a`.", 1);
        check(super::check, &[("a.rs", &text)], &[]);
    }

    #[test]
    fn gaps_and_leftovers_are_caught() {
        for word in ["todo", "unimplemented", "dbg"] {
            let text = format!("//! A.\nfn a() {{ {word}!() }}\n");
            let told = format!("a.rs:2: `{word}` has no place here");
            check(super::check, &[("a.rs", &text)], &[&told]);
        }
    }

    #[test]
    fn a_test_that_does_not_run_is_caught() {
        let text = "//! A.\n#[ignore]\nfn a() {}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:2: `ignore` has no place here"]);
    }

    #[test]
    fn a_test_that_sleeps_is_caught_and_a_program_is_left_to_clippy() {
        let text = "//! A.\nfn a() { thread::sleep(b); }\n#[cfg(test)]\nmod tests {}\n";
        check(super::check, &[("a.rs", text)], &[]);
        let told = "tests/a.rs:2: `sleep` has no place here";
        check(super::check, &[("tests/a.rs", text)], &[told]);
        let text = "//! A.\n#[cfg(test)]\nmod tests {\n fn a() { std::thread::sleep(b); }\n}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:4: `sleep` has no place here"]);
    }

    #[test]
    fn a_second_word_for_a_browser_is_caught_in_the_rooms() {
        let text = "//! A client.\nstruct WebClient;\n";
        let told = "crates/bine/src/a.rs:2: `WebClient`: say browser or peer";
        check(super::check, &[("crates/bine/src/a.rs", text)], &[told]);
        check(super::check, &[("bench/src/a.rs", text)], &[]);
    }

    #[test]
    fn a_test_without_a_claim_is_caught() {
        let text = "//! A.\nfn test_a() {}\n";
        check(super::check, &[("a.rs", text)], &["a.rs:2: `test_a`: a test's name is a claim"]);
    }

    #[test]
    fn a_pure_room_with_std_is_caught() {
        let told = "crates/http/src/lib.rs: http is a room without std";
        check(super::check, &[("crates/http/src/lib.rs", "//! A.\n")], &[told]);
        check(super::check, &[("crates/http/src/lib.rs", "//! A.\n#![no_std]\n")], &[]);
        check(super::check, &[("crates/bine/src/lib.rs", "//! A.\n")], &[]);
    }
}
