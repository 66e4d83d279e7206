//! Runs the fuzz targets.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{paths, process, tools};

/// Tokens of HTTP, so that the fuzzer need not find them byte by byte.
const DICTIONARY: &str = "fuzz/http.dict";

/// Runs each fuzz target for `seconds`. The first crash ends the run and names its input.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets()?;
    if targets.is_empty() {
        bail!("fuzz/ has no targets");
    }
    for target in targets {
        println!("\n--- {target}, {seconds} s");
        process::run(&mut search(&target, seconds)?)?;
    }
    Ok(())
}

/// Builds the command that fuzzes one target. New inputs are written to fuzz/corpus, which git
/// ignores; fuzz/seeds is only read.
fn search(target: &str, seconds: u32) -> Result<Command> {
    let finds = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    fs::create_dir_all(paths::root().join(&finds))?;
    // No sanitizer: the crates under test forbid `unsafe`, and stable Rust offers no sanitizer.
    let mut command = fuzzer()?;
    command.args(["run", "--sanitizer", "none", target, &finds]);
    if paths::root().join(&seeds).exists() {
        command.arg(seeds);
    }
    command
        .args(["--", "-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-max_total_time={seconds}"));
    if paths::root().join(DICTIONARY).exists() {
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
        .with_context(|| format!("cannot start {}", process::command_line(&command)))?;
    if !output.status.success() {
        bail!("failed ({}); to repeat: {}", output.status, process::command_line(&command));
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

fn fuzzer() -> Result<Command> {
    let mut command = Command::new(tools::cargo_fuzz()?);
    command.arg("fuzz").current_dir(paths::root());
    Ok(command)
}
