//! Runs the fuzz targets.

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, thread, vec};

use anyhow::{Context, Result, bail};

use crate::{paths, process, tools};

/// Tokens of HTTP, so that the fuzzer need not find them byte by byte.
const DICTIONARY: &str = "fuzz/http.dict";

/// Runs each fuzz target for `seconds`, as many at a time as there are cores. A crash ends the run
/// and names its input.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets()?;
    if targets.is_empty() {
        bail!("fuzz/ has no targets");
    }
    // One build for all: the runs find nothing to compile, and do not wait for each other.
    let mut build = fuzzer()?;
    process::run(build.args(["build", "--sanitizer", "none"]))?;
    let queue = Mutex::new(targets.into_iter());
    let work = || -> Result<()> {
        while let Some(target) = next(&queue) {
            println!("--- {target} runs for {seconds} s");
            let outcome = search(&target, seconds).and_then(|mut command| capture(&mut command));
            // In one piece, since targets run at the same time.
            match outcome {
                Ok(output) => println!("\n--- {target}\n{output}"),
                Err(error) => {
                    *lock(&queue) = Vec::new().into_iter();
                    return Err(error.context(format!("the fuzz target {target} failed")));
                }
            }
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let outcomes = workers.into_iter().map(|worker| worker.join().expect("it does not panic"));
        // All workers end before the first failure is returned.
        outcomes.collect::<Vec<_>>().into_iter().collect()
    })
}

fn next(queue: &Mutex<vec::IntoIter<String>>) -> Option<String> {
    lock(queue).next()
}

fn lock(queue: &Mutex<vec::IntoIter<String>>) -> MutexGuard<'_, vec::IntoIter<String>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
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
