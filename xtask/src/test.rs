//! Decides what must hold before a change is handed in, and in which order it is looked at.

use std::process::Command;

use anyhow::Result;

use crate::report::{Report, Tally};
use crate::{evidence, fuzz, places, process, tidy, tools};

/// How much of the run is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it; what is missing is installed.
    Everything,
    /// Only what a Rust toolchain alone can show.
    Bare,
}

/// Long enough to cross every state of the machine many times; longer hunts are `cargo xtask fuzz`.
const FUZZ_SECONDS: u32 = 20;

/// Performs every step, tells each, and fails when one of them does.
///
/// Clippy, tests and documents share one build; the release build is made once.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let everything = extent == Extent::Everything;
    let mut report = Report::new();
    if everything {
        report.step("tools", |_| tools::install());
    }
    report.step("formatting", |_| cargo(&["fmt", "--all", "--", "--check"]));
    report.step("lints", |_| {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
    });
    report.step("tidy", |_| tidy::run());
    report.step("release build", |_| {
        cargo(&["build", "--release"])?;
        // In one command, so that both cores link.
        let mut words = vec!["build", "--release", "--package", "bine"];
        for example in ["actions", "board", "hello", "channels", "session", "socket", "uploads"] {
            words.extend(["--example", example]);
        }
        cargo(&words)?;
        cargo(&["build", "--release", "--package", "bine-http", "--example", "echo"])
    });
    report.step("tests", |tally| test(tally, extent));
    report.step("documents", |_| document());
    if everything {
        report.step("evidence", evidence::gather);
        report.step("conformance", evidence::streams::judge);
        report.step("fuzzing", |_| fuzz::run(FUZZ_SECONDS));
    } else {
        report.leave_out("certificates by ACME", "needs pebble, which is made with Go");
        report.leave_out(
            "evidence",
            "needs curl, httplint, html-validate, ws, websockets and Chromium",
        );
        report.leave_out("conformance", "needs npm, node and the public suite of Durable Streams");
        report.leave_out("fuzzing", "needs cargo-fuzz and a C++ compiler");
    }
    report.close()
}

fn test(tally: &mut Tally, extent: Extent) -> Result<()> {
    let mut command = Command::new("cargo");
    if extent == Extent::Everything {
        // A claim that needs it is passed over without.
        command.env("PEBBLE", tools::pebble());
    }
    command.args(["test", "--workspace", "--no-fail-fast"]).current_dir(places::root());
    process::run_reading(&mut command, |line| tally.on_line(line))
}

/// Libraries only: the program `bine` and the library `bine` would write the same page.
fn document() -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--lib", "--no-deps"]).current_dir(places::root());
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn cargo(words: &[&str]) -> Result<()> {
    process::run(Command::new("cargo").args(words).current_dir(places::root()))
}
