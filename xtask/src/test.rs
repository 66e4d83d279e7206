//! The steps of `cargo xtask test`, and their order.

use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use anyhow::{Context, Result};

use crate::report::{Report, Tally};
use crate::{end_to_end, fuzz, paths, process, profile, tidy, tools, typescript};

/// The extent of a test run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All steps. Missing tools are installed.
    Everything,
    /// Only the steps that need no more than a Rust toolchain.
    Bare,
}

/// Enough time to cross every state of the HTTP parser many times; longer runs use `cargo xtask
/// fuzz`.
const FUZZ_SECONDS: u32 = 5;

/// Runs every step, reports each, and fails if one fails.
///
/// Clippy, tests and documents share one build; the release build runs once. The fuzz targets are
/// built in the background of the tests.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let everything = extent == Extent::Everything;
    let mut report = Report::new();
    if everything {
        report.step("tools", |_| tools::install());
    }
    report.step("formatting", |_| cargo(&["fmt", "--all", "--", "--check"]));
    report.step("lints", |_| {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
        // As a program uses it: the workspace adds the features of dependencies that tests need.
        cargo(&["check", "--package", "bine", "--features", "browser,script"])
    });
    if everything {
        report.step("lock files", |_| check_lock_files());
    }
    report.step("tidy", |_| tidy::run());
    report.step("release build", |_| build_release());
    let fuzz_build = everything.then(fuzz::BackgroundBuild::start);
    report.step("tests", |tally| test(tally, extent));
    report.step("documents", |_| document());
    if let Some(fuzz_build) = fuzz_build {
        report.step("end-to-end tests", |tally| end_to_end::run(tally, &[]));
        report.step("conformance", end_to_end::streams::check);
        report.step("types of scripts", typescript::check);
        report.step("fuzzing", |_| fuzz_build.run(FUZZ_SECONDS));
    } else {
        report.leave_out("certificates by ACME", "needs pebble, which is built with Go");
        report.leave_out("clusters of nodes", "needs nats-server from PyPI");
        report.leave_out(
            "end-to-end tests",
            "needs curl, httplint, html-validate, ws, websockets, HAProxy and Chromium",
        );
        report.leave_out("conformance", "needs npm, node and the public suite of Durable Streams");
        report.leave_out("types of scripts", "needs npm and node");
        report.leave_out("fuzzing", "needs a C++ compiler");
    }
    report.close()
}

/// Builds the programs, and runs the groups of end-to-end tests whose names contain one of these
/// words, or all without a word.
pub(crate) fn run_groups(words: &[&str]) -> Result<()> {
    let mut report = Report::new();
    report.step("release build", |_| build_release());
    report.step("end-to-end tests", |tally| end_to_end::run(tally, words));
    report.close()
}

/// Builds the programs that the end-to-end tests run.
fn build_release() -> Result<()> {
    let profile = profile::file()?;
    let profile = profile.to_str().context("the target folder has a name that is no text")?;
    // In one command, so that both cores link.
    let mut words = vec!["build", "--release", "--config", profile, "--bins"];
    for example in [
        "accounts",
        "actions",
        "auction",
        "board",
        "hello",
        "histories",
        "home",
        "channels",
        "session",
        "socket",
        "services",
        "times",
        "uploads",
    ] {
        words.extend(["--example", example]);
    }
    cargo(&words)?;
    let echo = ["--package", "bine-http", "--example", "echo"];
    cargo(&[&["build", "--release", "--config", profile][..], &echo].concat())
}

/// The number of tests that run at a time, per core. Tests of servers mostly wait: for timeouts, and
/// for programs to start and stop.
const TESTS_PER_CORE: usize = 4;

fn test(tally: &mut Tally, extent: Extent) -> Result<()> {
    const THREADS: &str = "RUST_TEST_THREADS";
    let mut command = process::cargo();
    if env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (cores * TESTS_PER_CORE).to_string());
    }
    if extent == Extent::Everything {
        // Tests that need these programs are skipped without the variables.
        command.env("PEBBLE", tools::pebble());
        command.env("NATS_SERVER", tools::nats_server());
        if tools::has_haproxy() {
            command.env("HAPROXY", tools::HAPROXY);
        }
        if tools::has_nginx() {
            command.env("NGINX", tools::NGINX);
        }
    }
    command.args(["test", "--workspace", "--no-fail-fast"]).current_dir(paths::root());
    process::run_reading(&mut command, |line| tally.on_line(line))
}

/// Checks that each workspace of the repository can be built as it is locked. Builds of the benchmarks and
/// of the fuzz targets refuse anything else, and no other step builds all of them.
fn check_lock_files() -> Result<()> {
    let mut manifests = vec![paths::root().join("Cargo.toml")];
    for folder in ["bench", "fuzz"] {
        find_locked(&paths::root().join(folder), &mut manifests)?;
    }
    for manifest in manifests {
        let manifest = manifest.to_str().context("the folder has a name that is no text")?;
        cargo(&["update", "--workspace", "--locked", "--quiet", "--manifest-path", manifest])
            .with_context(|| {
                format!("run `cargo update --workspace --manifest-path {manifest}`")
            })?;
    }
    Ok(())
}

/// Adds the manifests of `folder` that have a lock file next to them.
fn find_locked(folder: &Path, manifests: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_name() == "Cargo.lock" {
            manifests.push(folder.join("Cargo.toml"));
        } else if entry.file_type()?.is_dir() && entry.file_name() != "target" {
            find_locked(&entry.path(), manifests)?;
        }
    }
    Ok(())
}

/// Documents libraries only: the program `bine` and the library `bine` would write the same page.
fn document() -> Result<()> {
    let mut command = process::cargo();
    command.args(["doc", "--workspace", "--lib", "--no-deps"]).current_dir(paths::root());
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn cargo(words: &[&str]) -> Result<()> {
    process::run(process::cargo().args(words).current_dir(paths::root()))
}
