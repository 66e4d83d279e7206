//! Decides what the public suite of the Durable Streams protocol must find in a fresh server.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::program::Program;
use crate::report::Tally;
use crate::{places, process, tools};

/// A poll without news is answered after 18 seconds; vitest gives up after 5 unless told.
const PATIENCE: &str = "--testTimeout=30000";

/// Installs the suite, builds and starts a server, lets the suite judge it and prints the counts last.
pub(crate) fn run() -> Result<()> {
    tools::install_streams()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--package", "bine", "--example", "channels"]);
    process::run(cargo.current_dir(places::root()))?;
    let mut tally = Tally::default();
    let result = judge(&mut tally);
    println!("{} passed, {} failed", tally.passed, tally.failed);
    result
}

/// Lets the suite judge a server whose data lie in a folder of its own.
pub(crate) fn judge(tally: &mut Tally) -> Result<()> {
    let data = places::target().join("conformance");
    if data.exists() {
        fs::remove_dir_all(&data).context("cannot remove what an earlier run has left")?;
    }
    let mut server = Command::new(places::release("examples/channels"));
    server.args(["--listen", "127.0.0.1:0", "--data"]).arg(&data);
    let server = Program::start(server)?;
    // It imports the suite from beside it.
    let suite = tools::streams();
    let script = "streams.test.mjs";
    fs::copy(places::root().join("xtask/conformance").join(script), suite.join(script))
        .context("cannot copy the script that begins the suite")?;
    let programs = suite.join("node_modules/.bin");
    let mut vitest = Command::new(programs.join("vitest"));
    // It runs on the Node beside it, whatever the system has.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs).chain(std::env::split_paths(&path));
    vitest.env("PATH", std::env::join_paths(path)?);
    vitest.args(["run", "--reporter=default", PATIENCE, script]).current_dir(&suite);
    vitest.env("SERVER", server.url("/channels")).env("NO_COLOR", "1");
    let judged = process::run_reading(&mut vitest, |line| count(tally, line));
    server.end()?;
    fs::remove_dir_all(&data).context("cannot remove the server's data")?;
    judged
}

/// Reads a line like `Tests  1 failed | 331 passed | 6 skipped (338)`. What is skipped is the protocol's section 6, which
/// the suite asks for by an option only.
fn count(tally: &mut Tally, line: &str) {
    let Some(counts) = line.trim().strip_prefix("Tests ") else { return };
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
    fn the_counts_are_read_from_the_last_lines() {
        let mut tally = Tally::default();
        for line in [
            " Test Files  1 failed (1)",
            "      Tests  1 failed | 331 passed | 6 skipped (338)",
            "   Start at  12:00:00",
        ] {
            count(&mut tally, line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (331, 1, 0));
    }
}
