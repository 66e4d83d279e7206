//! Builds and runs the fuzz targets.
//!
//! `cargo fuzz` is not needed: it takes a minute to install, and it builds with one codegen unit
//! and with all unused code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::{fs, thread};

use anyhow::{Context, Result, anyhow, bail};

use crate::{parallel, paths, process};

/// The workspace of the fuzz targets.
const MANIFEST: &str = "fuzz/Cargo.toml";
/// The source files of the targets; each file is named after one target.
const SOURCES: &str = "fuzz/fuzz_targets";
/// Tokens of HTTP, so that the fuzzer need not find them byte by byte.
const DICTIONARY: &str = "fuzz/http.dict";

/// The options that make the compiler add coverage counters for libFuzzer, as cargo-fuzz 0.13 sets
/// them. Sanitizers are not used: the crates under test forbid `unsafe`, and stable Rust offers no
/// sanitizer.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-sanitizer-coverage-stack-depth \
    --cfg fuzzing";

/// Runs each fuzz target for `seconds`, at most one target per core at a time. A crash ends the run
/// and names its input.
pub(crate) fn run(seconds: u32) -> Result<()> {
    search_all(&build()?, seconds)
}

/// A build of all targets that runs while its caller does other work.
pub(crate) struct BackgroundBuild(JoinHandle<Result<PathBuf>>);

impl BackgroundBuild {
    /// Starts the build. It runs under `SCHED_IDLE`, so that it uses only CPU time that other steps
    /// do not need: tests of servers mostly wait. A `nice` value would slow down password hashes,
    /// which run under `SCHED_IDLE` too.
    pub(crate) fn start() -> Self {
        Self(thread::spawn(|| {
            let mut command = Command::new("chrt");
            process::forget_package(&mut command);
            let output = capture(add_build(command.args(["--idle", "0", "cargo"]), &host()?));
            output.context("the fuzz targets cannot be built")?;
            programs()
        }))
    }

    /// Waits for the build and runs each target, as [`run`] does.
    pub(crate) fn run(self, seconds: u32) -> Result<()> {
        let built = self.0.join().map_err(|_| anyhow!("the build of the fuzz targets panicked"))?;
        search_all(&built?, seconds)
    }
}

fn search_all(programs: &Path, seconds: u32) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    parallel::map(targets()?, cores, |target| {
        println!("--- {target} runs for {seconds} s");
        let output = search(programs, &target, seconds)
            .and_then(|mut command| capture(&mut command))
            .with_context(|| format!("the fuzz target {target} failed"))?;
        // In one piece, since targets run at the same time.
        println!("\n--- {target}\n{output}");
        Ok(())
    })?;
    Ok(())
}

/// Builds all targets, and returns the folder of their programs.
fn build() -> Result<PathBuf> {
    process::run(add_build(&mut process::cargo(), &host()?))?;
    programs()
}

/// Adds the arguments and options of the build to a command that ends with `cargo`.
fn add_build<'c>(cargo: &'c mut Command, host: &str) -> &'c mut Command {
    // With `--target`, the options apply to the crates, but not to build scripts and macros.
    cargo.args(["build", "--release", "--manifest-path", MANIFEST, "--target", host]);
    cargo.arg("--target-dir").arg(folder()).env("RUSTFLAGS", COVERAGE);
    cargo.current_dir(paths::root())
}

fn folder() -> PathBuf {
    paths::target().join("fuzz")
}

/// The folder of the built programs.
fn programs() -> Result<PathBuf> {
    if targets()?.is_empty() {
        bail!("{SOURCES} has no targets");
    }
    Ok(folder().join(host()?).join("release"))
}

/// The platform that the compiler builds for by default, such as `x86_64-unknown-linux-gnu`.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let output = String::from_utf8(output.stdout)?;
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Runs a command and returns what it prints.
fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", process::command_line(command)))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !output.status.success() {
        bail!("{text}\nfailed ({}); to repeat: {}", output.status, process::command_line(command));
    }
    Ok(text)
}

/// Creates the command that fuzzes one target. New inputs are written to fuzz/corpus and failing
/// ones to fuzz/artifacts, which git ignores; fuzz/seeds is only read.
fn search(programs: &Path, target: &str, seconds: u32) -> Result<Command> {
    let corpus = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    let failures = format!("fuzz/artifacts/{target}");
    for folder in [&corpus, &failures] {
        fs::create_dir_all(paths::root().join(folder))?;
    }
    let mut command = Command::new(programs.join(target));
    command.current_dir(paths::root());
    command
        .args(["-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={failures}/"));
    if paths::root().join(DICTIONARY).exists() {
        command.arg(format!("-dict={DICTIONARY}"));
    }
    command.arg(corpus);
    if paths::root().join(&seeds).exists() {
        command.arg(seeds);
    }
    Ok(command)
}

/// The names of all targets, in alphabetic order.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(paths::root().join(SOURCES))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn declares_each_source_as_a_program() {
        let manifest = fs::read_to_string(paths::root().join(MANIFEST)).unwrap();
        let declared: BTreeSet<String> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
            .map(str::to_owned)
            .collect();
        assert_eq!(targets().unwrap().into_iter().collect::<BTreeSet<_>>(), declared);
    }
}
