//! Decides how the fuzz targets are run.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{places, process, tools};

/// Words of the protocol, so that the search need not guess them letter by letter.
const DICTIONARY: &str = "fuzz/http.dict";

/// Runs every fuzz target for so many seconds; the first crash ends the run and names its input.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets()?;
    if targets.is_empty() {
        bail!("fuzz/ holds no target");
    }
    for target in targets {
        println!("\n--- {target}, {seconds} s");
        process::run(&mut search(&target, seconds)?)?;
    }
    Ok(())
}

/// The search of one target: finds go to fuzz/corpus, which nobody keeps; seeds are kept and only read.
fn search(target: &str, seconds: u32) -> Result<Command> {
    let finds = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    fs::create_dir_all(places::root().join(&finds))?;
    // No sanitizer: the rooms under test forbid `unsafe`, and stable Rust has none to offer.
    let mut command = fuzzer()?;
    command.args(["run", "--sanitizer", "none", target, &finds]);
    if places::root().join(&seeds).exists() {
        command.arg(seeds);
    }
    command
        .args(["--", "-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-max_total_time={seconds}"));
    if places::root().join(DICTIONARY).exists() {
        command.arg(format!("-dict={DICTIONARY}"));
    }
    Ok(command)
}

fn targets() -> Result<Vec<String>> {
    let mut command = fuzzer()?;
    let output = command
        .arg("list")
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", process::shown(&command)))?;
    if !output.status.success() {
        bail!("failed ({}); to repeat: {}", output.status, process::shown(&command));
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

fn fuzzer() -> Result<Command> {
    let mut command = Command::new(tools::cargo_fuzz()?);
    command.arg("fuzz").current_dir(places::root());
    Ok(command)
}
