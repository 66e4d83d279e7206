//! Compiler errors for wrong pages.
//!
//! Each file in `refused/` is a program with mistakes, with its expected errors in a `.stderr`
//! file. One run of cargo checks all of them as programs of a package in the target folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::golden;

#[test]
fn reports_each_mistake_at_its_location() {
    let cases = golden::folder("refused");
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused");
    let programs = package.join("src/bin");
    // Remove cases under former names.
    let _ = fs::remove_dir_all(&programs);
    fs::create_dir_all(&programs).unwrap();
    let mut told = BTreeMap::new();
    for case in fs::read_dir(&cases).unwrap() {
        let path = case.unwrap().path();
        let is = |wanted| path.extension().is_some_and(|extension| extension == wanted);
        if is("rs") || is("css") {
            fs::copy(&path, programs.join(path.file_name().unwrap())).unwrap();
        }
        if is("rs") {
            told.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), String::new());
        }
    }
    for diagnostic in check(&package).split("\n\n") {
        // Diagnostics without a location are summaries.
        let Some((_, place)) = diagnostic.split_once("--> src/bin/") else { continue };
        let name = place.split(".rs:").next().unwrap();
        let told = told.get_mut(name).unwrap();
        if !told.is_empty() {
            told.push('\n');
        }
        told.push_str(&as_told_of_the_case(diagnostic));
    }
    let differences = told.iter().filter_map(|(name, told)| {
        assert!(!told.is_empty(), "{name} is not refused");
        let path = cases.join(name).with_extension("stderr");
        let is_known = fs::read_to_string(&path).is_ok_and(|expected| is_alike(&expected, told));
        if is_known { None } else { golden::compare(&path, told) }
    });
    let differences: String = differences.collect();
    assert!(differences.is_empty(), "{differences}");
}

/// Whether both are equal except for indentation, which depends on whether the sources of the
/// standard library are installed.
fn is_alike(one: &str, other: &str) -> bool {
    one.lines().map(str::trim_start).eq(other.lines().map(str::trim_start))
}

/// Returns cargo's output for all programs of the package.
fn check(package: &Path) -> String {
    let bine = env!("CARGO_MANIFEST_DIR");
    let manifest = format!(
        "[package]\nname = \"refused\"\nedition = \"2024\"\n\n[dependencies]\nbine = {{ path = {bine:?} }}\n\n\
         [workspace]\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    // Use the same versions as here, so that cargo needs no network.
    fs::copy(Path::new(bine).join("../../Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["check", "--offline", "--keep-going", "--quiet", "--color", "never"]);
    command.env("CARGO_TARGET_DIR", package.join("target")).env("RUSTFLAGS", "--allow warnings");
    command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.current_dir(package).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// Summaries that cargo prints between diagnostics.
const SUMMARIES: [&str; 3] =
    ["error: could not compile", "For more information about", "Some errors have detailed"];

/// Notes with the names of compiler files.
const FILES: [&str; 2] = ["the full name for the type", "consider using `--verbose`"];

/// Returns the diagnostic without summaries and without source lines from outside the case, which
/// change often.
fn as_told_of_the_case(diagnostic: &str) -> String {
    let mut told = String::new();
    let mut is_foreign = false;
    let is_summary = |line: &&str| SUMMARIES.iter().any(|summary| line.starts_with(summary));
    let names_file = |line: &&str| FILES.iter().any(|note| line.contains(note));
    for line in diagnostic.lines().filter(|line| !is_summary(line) && !line.is_empty()) {
        if names_file(&line) {
            continue;
        }
        let text = line.trim_start();
        if let Some(place) = text.strip_prefix("--> ").or_else(|| text.strip_prefix("::: ")) {
            is_foreign = !place.starts_with("src/bin/");
        } else if !text.starts_with(['|', '.'])
            && !text.starts_with(|first: char| first.is_ascii_digit())
        {
            is_foreign = false;
        }
        if !is_foreign {
            let line = without_place_of_macro(line.trim_end());
            let is_code = text.starts_with(|first: char| first.is_ascii_digit());
            told.push_str(&if is_code { line } else { without_crate(&line) });
            told.push('\n');
        }
    }
    narrowed(&told)
}

/// Narrows the column of line numbers to the case's own need, since lines outside the case may have
/// longer numbers.
fn narrowed(told: &str) -> String {
    let digits = |line: &str| {
        let digits = line.trim_start().split(' ').next().unwrap_or_default();
        digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(digits.len())
    };
    let given = told.lines().find_map(|line| line.find("--> ")).unwrap_or_default();
    let wanted = told.lines().filter_map(digits).max().unwrap_or(given);
    let room = " ".repeat(given.saturating_sub(wanted));
    let narrow = |line: &str| format!("{}\n", line.strip_prefix(&*room).unwrap_or(line));
    told.lines().map(narrow).collect()
}

/// Removes `bine::` before types. Whether the compiler prints it depends on equal names in other
/// crates.
fn without_crate(line: &str) -> String {
    let mut parts = line.split("bine::").peekable();
    let mut told = String::new();
    while let Some(part) = parts.next() {
        told.push_str(part);
        let is_type = |next: &&str| next.starts_with(|first: char| first.is_ascii_uppercase());
        if parts.peek().is_some_and(|next| !is_type(next)) {
            told.push_str("bine::");
        }
    }
    told
}

/// Removes the locations of closures of `html!`.
fn without_place_of_macro(line: &str) -> String {
    const CLOSURE: &str = "{closure@";
    let mut parts = line.split(CLOSURE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| {
        told + CLOSURE + ".." + part.find('}').map_or(part, |end| &part[end..])
    })
}
