//! Builds the tests of a crate with all mutants of the crate and their switches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::list::Mutant;
use super::weave::{self, Exclusions, Lines, Woven};
use crate::{paths, process};

/// The module that knows the active mutant; `WORDS` becomes the number of 64-bit words.
const SWITCH: &str = include_str!("switch.rs.txt");
/// The maximum number of compiler runs until every remaining mutant compiles. A run shows the
/// errors of one pass of the compiler at least, and it has about five.
const MOST_ROUNDS: usize = 40;

/// The test programs of a crate with its mutants.
pub(super) struct Build {
    pub(super) programs: Vec<PathBuf>,
    /// The folder of the crate in the copy of the checkout: where its tests run.
    pub(super) folder: PathBuf,
    /// Mutants that have a switch.
    pub(super) switched: BTreeSet<usize>,
    /// Mutants that do not compile.
    pub(super) unviable: BTreeSet<usize>,
}

/// How the tests are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Profile {
    /// Runs the tests faster and builds slower, which pays since each test runs many times.
    Optimized,
    /// The development build, which shares all dependencies with the checkout.
    Development,
}

/// Copies the checkout, adds the mutants of crate `name` with switches, and builds its tests. The
/// build omits mutants that do not compile.
pub(super) fn build(name: &str, mutants: &[Mutant], profile: Profile) -> Result<Build> {
    let tree = tree(name);
    let folder = tree.join("crates").join(name);
    copy_checkout(&tree, Some(&folder.join("src")))?;
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        files.entry(&mutant.file).or_default().push((number, mutant));
    }
    // Files without a mutant have functions that must lose their `const` too.
    let sources = rust_files(&paths::root().join("crates").join(name).join("src"))?;
    let sources = read_all(&sources)?;
    let known = KnownExclusions::of(name, &sources);
    let mut exclusions = known.read().unwrap_or_default();
    for round in 1..=MOST_ROUNDS {
        let mut woven = BTreeMap::new();
        for (file, source) in &sources {
            let of_file = files.get(file.as_str()).map_or(&[][..], Vec::as_slice);
            let result = weave::weave(source, of_file, &exclusions);
            let mut result = result.with_context(|| file.clone())?;
            if file.ends_with("/src/lib.rs") {
                result.text.push_str("\nmod mutant_switch;\n");
            }
            write_if_changed(&tree.join(file), result.text.as_bytes())?;
            woven.insert(file.clone(), result);
        }
        let words = (mutants.len() / 64 + 1).to_string();
        let switch = SWITCH.replace("WORDS", &words);
        write_if_changed(&folder.join("src/mutant_switch.rs"), switch.as_bytes())?;
        let outcome = compile(name, &tree, profile)?;
        if outcome.errors.is_empty() {
            known.write(&exclusions)?;
            let switched = woven.values().flat_map(Woven::mutants).collect();
            let Exclusions { mutants: mut unviable, .. } = exclusions;
            unviable.extend(woven.values().flat_map(|woven| &woven.invalid));
            return Ok(Build { programs: outcome.programs, folder, switched, unviable });
        }
        let before = (exclusions.mutants.len(), exclusions.const_functions.len());
        for error in &outcome.errors {
            exclude(error, &woven, &mut exclusions);
        }
        println!(
            "bine-{name}: round {round}: {} errors; {} mutants do not compile",
            outcome.errors.len(),
            exclusions.mutants.len()
        );
        if before == (exclusions.mutants.len(), exclusions.const_functions.len()) {
            bail!("no mutant explains these errors: {:#?}", outcome.errors);
        }
    }
    bail!("bine-{name} does not compile with its mutants after {MOST_ROUNDS} rounds")
}

/// Builds the tests of a crate with one mutant, without switches: constants cannot have any.
/// Returns `None` if it does not compile.
pub(super) fn build_alone(
    name: &str,
    mutant: &Mutant,
    profile: Profile,
) -> Result<Option<Vec<PathBuf>>> {
    let tree = tree(name);
    copy_checkout(&tree, None)?;
    let source = fs::read_to_string(paths::root().join(&mutant.file))?;
    let lines = Lines::new(&source);
    let (start, end) = (lines.byte(mutant.start), lines.byte(mutant.end));
    let text = format!("{}{}{}", &source[..start], mutant.replacement, &source[end..]);
    fs::write(tree.join(&mutant.file), text)?;
    let outcome = compile(name, &tree, profile)?;
    Ok(outcome.errors.is_empty().then_some(outcome.programs))
}

/// The copy of the checkout for a crate: runs for different crates at the same time need their own.
fn tree(name: &str) -> PathBuf {
    paths::target().join("mutants").join(name).join("tree")
}

/// Adds the cause of a compiler error to the exclusions.
fn exclude(error: &CompileError, woven: &BTreeMap<String, Woven>, exclusions: &mut Exclusions) {
    if error.code == "E0015" {
        exclusions.const_functions.insert(called_function(&error.message));
        return;
    }
    for (file, range) in &error.places {
        let Some(woven) = woven.get(file) else { continue };
        let suspects = woven.suspects(range);
        if !suspects.is_empty() {
            exclusions.mutants.extend(suspects);
            return;
        }
    }
}

/// The name of the function in a message of the compiler such as "cannot call non-const associated
/// function `List::<A>::new` in constants".
fn called_function(message: &str) -> String {
    let path = message.split('`').nth(1).unwrap_or_default();
    let mut depth = 0_usize;
    let without_arguments = path.chars().filter(|letter| {
        depth += usize::from(*letter == '<');
        let is_outside = depth == 0;
        depth = depth.saturating_sub(usize::from(*letter == '>'));
        is_outside
    });
    let path: String = without_arguments.collect();
    let name = path.split("::").filter(|part| !part.is_empty()).last();
    name.unwrap_or_default().to_owned()
}

/// An error of the compiler.
#[derive(Debug)]
struct CompileError {
    code: String,
    message: String,
    /// File and bytes, the most important first.
    places: Vec<(String, Range<usize>)>,
}

struct Outcome {
    programs: Vec<PathBuf>,
    errors: Vec<CompileError>,
}

fn compile(name: &str, tree: &Path, profile: Profile) -> Result<Outcome> {
    let mut command = process::cargo();
    command.args(["test", "--no-run", "--all-features", "--message-format=json"]);
    command.args(["--lib", "--tests", "--package"]).arg(format!("bine-{name}"));
    // A test of stack traces needs the lines of its crate.
    command.arg("--config");
    command.arg(format!("profile.dev.package.bine-{name}.debug=\"line-tables-only\""));
    command.current_dir(tree).env("CARGO_INCREMENTAL", "1");
    match profile {
        Profile::Optimized => {
            command.env("CARGO_TARGET_DIR", paths::target().join("mutants/build"));
            // The lints are about the original.
            command.env("RUSTFLAGS", "--cap-lints=allow");
            command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        }
        // Other flags would build all dependencies again.
        Profile::Development => _ = command.env("CARGO_TARGET_DIR", paths::target()),
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output =
        output.with_context(|| format!("cannot start {}", process::command_line(&command)))?;
    let mut outcome = Outcome { programs: Vec::new(), errors: Vec::new() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(program) = value["executable"].as_str() {
            outcome.programs.push(PathBuf::from(program));
        }
        if value["message"]["level"].as_str().is_some_and(|level| level.starts_with("error")) {
            outcome.errors.extend(compile_error(&value["message"]));
        }
    }
    outcome.programs.sort();
    if outcome.errors.is_empty() {
        outcome.programs = copy_programs(name, &outcome.programs)?;
    }
    if !output.status.success() && outcome.errors.is_empty() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{complaint}\nto repeat: {}", process::command_line(&command));
    }
    Ok(outcome)
}

/// Copies the test programs. Cargo gives those of the checkout the same paths, so a `cargo test` there
/// would replace them during a run.
fn copy_programs(name: &str, programs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let folder = tree(name).with_file_name("programs");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let copy = |program: &PathBuf| {
        let own = folder.join(program.file_name().context("a program has a name")?);
        fs::copy(program, &own).with_context(|| program.display().to_string())?;
        Ok(own)
    };
    programs.iter().map(copy).collect()
}

/// Reads an error message of rustc; `None` for the summary at the end.
fn compile_error(message: &Value) -> Option<CompileError> {
    let text = message["message"].as_str()?.to_owned();
    if text.starts_with("aborting due to") {
        return None;
    }
    let mut spans: Vec<&Value> = message["spans"].as_array()?.iter().collect();
    spans.sort_by_key(|span| span["is_primary"] != Value::Bool(true));
    let place = |span: &Value| {
        let mut span = span;
        // The place of the outermost macro call.
        while span["expansion"]["span"].is_object() {
            span = &span["expansion"]["span"];
        }
        let number = |name: &str| usize::try_from(span[name].as_u64()?).ok();
        let file = span["file_name"].as_str()?.to_owned();
        Some((file, number("byte_start")?..number("byte_end")?))
    };
    let code = message["code"]["code"].as_str().unwrap_or_default().to_owned();
    Some(CompileError {
        code,
        message: text,
        places: spans.into_iter().filter_map(place).collect(),
    })
}

/// The exclusions that a build has found, in a file for the next run with the same sources.
struct KnownExclusions {
    path: PathBuf,
    /// A hash of the sources.
    key: String,
}

impl KnownExclusions {
    fn of(name: &str, sources: &BTreeMap<String, String>) -> Self {
        let mut hasher = DefaultHasher::new();
        sources.hash(&mut hasher);
        let path = paths::target().join("mutants").join(name).join("exclusions.txt");
        Self { path, key: format!("{:016x}", hasher.finish()) }
    }

    /// `None` if the last run had other sources.
    fn read(&self) -> Option<Exclusions> {
        let text = fs::read_to_string(&self.path).ok()?;
        let mut lines = text.lines().filter(|line| !line.is_empty());
        if lines.next()? != self.key {
            return None;
        }
        let mut exclusions = Exclusions::default();
        for line in lines {
            match line.parse() {
                Ok(number) => _ = exclusions.mutants.insert(number),
                Err(_) => _ = exclusions.const_functions.insert(line.to_owned()),
            }
        }
        Some(exclusions)
    }

    fn write(&self, exclusions: &Exclusions) -> Result<()> {
        let numbers = exclusions.mutants.iter().map(|number| format!("{number}\n"));
        let functions = exclusions.const_functions.iter().map(|name| format!("{name}\n"));
        let lines: String = numbers.chain(functions).collect();
        fs::create_dir_all(self.path.parent().context("the file has a folder")?)?;
        fs::write(&self.path, format!("{}\n{lines}", self.key))?;
        Ok(())
    }
}

/// Copies the files that git knows, and new ones that it does not ignore, except for Rust files in
/// the folder `woven`. Files that have not changed keep their modification time, so that cargo does
/// not build them again.
fn copy_checkout(tree: &Path, woven: Option<&Path>) -> Result<()> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = command.current_dir(paths::root()).output().context("cannot start git")?;
    let list = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    for file in list.split('\0').filter(|file| !file.is_empty()) {
        let content = match fs::read(paths::root().join(file)) {
            // Deleted and not committed yet.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            content => content.with_context(|| file.to_owned())?,
        };
        let target = tree.join(file);
        let is_woven = woven.is_some_and(|folder| target.starts_with(folder));
        if !is_woven || target.extension().is_none_or(|extension| extension != "rs") {
            write_if_changed(&target, &content)?;
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    fs::write(path, content).with_context(|| path.display().to_string())
}

/// The texts of files by their paths from the root of the checkout.
fn read_all(files: &[PathBuf]) -> Result<BTreeMap<String, String>> {
    let read = |path: &PathBuf| {
        let file = path.strip_prefix(paths::root())?.to_str().context("a path is not UTF-8")?;
        Ok((file.to_owned(), fs::read_to_string(path)?))
    };
    files.iter().map(read).collect()
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_function_that_must_stay_const() {
        let check = |path: &str, expected: &str| {
            let message =
                format!("cannot call non-const associated function `{path}` in constants");
            assert_eq!(called_function(&message), expected);
        };
        check("new", "new");
        check("settings::Settings::new", "new");
        check("IndexOf::<a::B, (u64,)>::position", "position");
        check("<impl A<B>>::convert::<C<D>>", "convert");
    }

    #[test]
    fn reads_errors_but_not_their_summary() {
        let message = serde_json::json!({
            "message": "mismatched types",
            "code": {"code": "E0308"},
            "level": "error",
            "spans": [
                {"is_primary": false, "file_name": "a.rs", "byte_start": 1, "byte_end": 2},
                {"is_primary": true, "file_name": "b.rs", "byte_start": 3, "byte_end": 4,
                 "expansion": {"span": {"file_name": "c.rs", "byte_start": 5, "byte_end": 6}}},
            ],
        });
        let error = compile_error(&message).unwrap();
        assert_eq!(error.code, "E0308");
        assert_eq!(error.places, [("c.rs".to_owned(), 5..6), ("a.rs".to_owned(), 1..2)]);
        let summary = serde_json::json!({
            "message": "aborting due to 2 previous errors", "level": "error", "spans": [],
        });
        assert!(compile_error(&summary).is_none());
    }
}
