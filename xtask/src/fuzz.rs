//! Decides how the fuzz targets are run.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{places, process, tools};

/// Runs every fuzz target for so many seconds; the first crash ends the run and names its input.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets()?;
    if targets.is_empty() {
        bail!("fuzz/ holds no target");
    }
    for target in targets {
        // No sanitizer: the rooms under test forbid `unsafe`, and stable Rust has none to offer.
        let mut command = fuzzer()?;
        command.args(["run", "--sanitizer", "none", &target, "--"]);
        command.arg(format!("-max_total_time={seconds}"));
        process::run(command.arg("-print_final_stats=1"))?;
    }
    Ok(())
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
