//! Runs the public suite of the Durable Streams protocol against a new server, and against a node of
//! a cluster.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::nats::Nats;
use super::program::Program;
use crate::report::Tally;
use crate::{parallel, paths, process, profile, tools};

/// The server answers a long poll without new messages after 18 seconds; the default of vitest is
/// 5.
const PATIENCE: &str = "--testTimeout=30000";
/// Tests of expiry fail on a machine that stops for half a second: they extend a lifetime of 2 seconds
/// after 1.5. The summary of the whole run names each test that passed at a later attempt only.
const ATTEMPTS: &str = "--retry=2";

/// Installs the suite, builds and starts a server, runs the suite and prints the counts.
pub(crate) fn run() -> Result<()> {
    tools::install_streams()?;
    tools::install_nats_server()?;
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--package", "bine-examples", "--example", "channels"]);
    cargo.args(["--features", "cluster", "--config"]).arg(profile::file()?);
    process::run(cargo.current_dir(paths::root()))?;
    let mut tally = Tally::default();
    let result = check(&mut tally);
    println!("{} passed, {} failed", tally.passed, tally.failed);
    result
}

/// The name of the script that starts the suite.
const SCRIPT: &str = "streams.test.mjs";

/// Runs the suite against a server with a new data folder, and against a node of two. Both runs mostly
/// wait, so they run at the same time.
pub(crate) fn check(tally: &mut Tally) -> Result<()> {
    // The script imports the suite from its own folder.
    let script = paths::root().join("xtask/conformance").join(SCRIPT);
    fs::copy(script, tools::streams().join(SCRIPT))
        .context("cannot copy the script that starts the suite")?;
    let checks = [("a server alone", check_alone as Check), ("a node of a cluster", check_node)];
    let results = parallel::map(checks.to_vec(), checks.len(), |(what, check)| {
        let mut tally = Tally::default();
        let result = check(&mut tally).context(what);
        Ok((tally, result))
    })?;
    let mut outcome = Ok(());
    for (counts, result) in results {
        tally.add(counts);
        outcome = outcome.and(result);
    }
    outcome
}

type Check = fn(&mut Tally) -> Result<()>;

fn check_alone(tally: &mut Tally) -> Result<()> {
    let data = paths::target().join("conformance");
    if data.exists() {
        fs::remove_dir_all(&data).context("cannot remove the data of an earlier run")?;
    }
    let server = Program::start(channels(|command| command.arg("--data").arg(&data)))?;
    let result = run_suite(tally, &server);
    server.end()?;
    fs::remove_dir_all(&data).context("cannot remove the server's data")?;
    result
}

fn check_node(tally: &mut Tally) -> Result<()> {
    let nats = Nats::start()?;
    let node = |name| {
        let options = ["--data", "memory", "--leave-time", "off", "--cluster", nats.url()];
        channels(|command| command.args(options).args(["--cluster-node", name]))
    };
    let (first, second) = (Program::start(node("first"))?, Program::start(node("second"))?);
    let result = run_suite(tally, &first);
    first.end()?;
    second.end()?;
    result
}

/// A server with the settings that `set` adds.
fn channels(set: impl FnOnce(&mut Command) -> &mut Command) -> Command {
    let mut server = Command::new(paths::release("examples/channels"));
    set(server.args(["--listen", "127.0.0.1:0"]));
    server
}

fn run_suite(tally: &mut Tally, server: &Program) -> Result<()> {
    let suite = tools::streams();
    let programs = suite.join("node_modules/.bin");
    let mut vitest = Command::new(programs.join("vitest"));
    // vitest runs on the Node of the same folder, not on the one of the system.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs).chain(std::env::split_paths(&path));
    vitest.env("PATH", std::env::join_paths(path)?);
    vitest.args(["run", "--reporter=verbose", PATIENCE, ATTEMPTS, SCRIPT]).current_dir(&suite);
    vitest.env("SERVER", server.url("/channels")).env("NO_COLOR", "1");
    process::run_reading(&mut vitest, |line| on_line(tally, line))
}

/// Reads a line of the verbose output of vitest:
/// - a failed test, as `file > section > test 30ms` after a multiplication sign, and after it the reason
///   of each attempt after an arrow,
/// - a test that passed at a later attempt, as `file > section > test 30ms (retry x1)` after a check mark,
/// - the counts, as `Tests  1 failed | 331 passed | 6 skipped (338)`. The skipped tests are those of
///   the protocol's section 6, which only an option of the suite enables.
fn on_line(tally: &mut Tally, line: &str) {
    let line = line.trim();
    let name = |line: &str| line.split_once(" > ").map_or(line, |(_, name)| name).to_owned();
    if let Some(failed) = line.strip_prefix('\u{d7}') {
        tally.begin_failure(&name(failed));
    } else if let Some(reason) = line.strip_prefix('\u{2192}') {
        tally.continue_failure(reason.trim());
    } else if let Some(passed) = line.strip_prefix('\u{2713}')
        && passed.contains("(retry x")
    {
        tally.note_repeated(&name(passed));
    } else if let Some(counts) = line.strip_prefix("Tests ") {
        count(tally, counts);
    }
}

fn count(tally: &mut Tally, counts: &str) {
    for part in counts.split('|') {
        let mut words = part.split_whitespace();
        let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
        let Ok(number) = number.parse::<u32>() else { continue };
        match what {
            "passed" => tally.passed += number,
            "failed" => tally.failed += number,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_failures_the_repetitions_and_the_counts() {
        let mut tally = Tally::default();
        for line in [
            " \u{2713} streams.test.mjs > Basics > should create 4ms",
            " \u{2713} streams.test.mjs > TTL > should extend 3504ms (retry x1)",
            " \u{d7} streams.test.mjs > TTL > should expire 1504ms (retry x2)",
            "   \u{2192} expected 404 to be 200 // Object.is equality",
            "",
            " Test Files  1 failed (1)",
            "      Tests  1 failed | 331 passed | 6 skipped (338)",
            "   Start at  12:00:00",
        ] {
            on_line(&mut tally, line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (331, 1, 0));
        let notes = [
            "AGAIN   TTL > should extend 3504ms (retry x1)",
            "FAILED  TTL > should expire 1504ms (retry x2)\n        expected 404 to be 200 // Object.is equality",
        ];
        assert_eq!(tally.failures(), notes);
    }
}
