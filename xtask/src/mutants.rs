//! Mutation testing: which changes of the code no test notices (cargo-mutants).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{paths, process, tools};

/// The crates whose tests are measured.
const CRATES: [&str; 7] = ["http", "store", "push", "files", "log", "admission", "server"];
/// The highest accepted share of surviving mutants, in percent of the viable ones.
const MOST_PERCENT: f64 = 8.0;
/// The document that explains the survivors that stay.
const REASONS: &str = "docs/mutants.md";
/// The exit status of coreutils' `timeout` when the time is over.
const TIMED_OUT: i32 = 124;

/// The options of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan {
    crates: Vec<String>,
    /// `K/N`: part K of N parts of each crate's mutants, counted from 0.
    shard: Option<String>,
    /// The time limit per crate. Mutants tested by then count.
    minutes: Option<u32>,
    jobs: u32,
}

/// Mutates each crate with the options in `words`, and fails when too many mutants survive.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let plan = plan(words)?;
    let reasons = fs::read_to_string(paths::root().join(REASONS)).unwrap_or_default();
    let mut all = Counts::default();
    for name in &plan.crates {
        println!("\n--- bine-{name}");
        let folder = mutate(name, &plan)?;
        let counts = counts(&folder, &reasons)?;
        println!("bine-{name}: {}; details are in {}", counts.summary(), folder.display());
        for mutant in &counts.unexplained {
            println!("  survives without a reason in {REASONS}: {mutant}");
        }
        all.add(counts);
    }
    println!("\n{}", all.summary());
    if all.tested() == 0 {
        bail!("no mutant was tested; give it more --minutes or another --shard");
    }
    if all.survivors_percent() > MOST_PERCENT {
        bail!(
            "more than {MOST_PERCENT} % of the viable mutants survive; write tests for the ones above"
        );
    }
    Ok(())
}

fn plan(words: &[&str]) -> Result<Plan> {
    let mut plan = Plan { crates: Vec::new(), shard: None, minutes: None, jobs: 1 };
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let Some(value) = words.next() else { bail!("{option} needs a value") };
        let number = || -> Result<u32> {
            match value.parse::<u32>() {
                Ok(number @ 1..) => Ok(number),
                _ => bail!("{option} needs a whole number of at least 1, not `{value}`"),
            }
        };
        match *option {
            "--crate" if CRATES.contains(value) => plan.crates.push((*value).to_owned()),
            "--crate" => bail!("--crate needs one of {}, not `{value}`", CRATES.join(", ")),
            "--shard" if is_shard(value) => plan.shard = Some((*value).to_owned()),
            "--shard" => bail!("--shard needs K/N with K from 0 to N - 1, not `{value}`"),
            "--minutes" => plan.minutes = Some(number()?),
            "--jobs" => plan.jobs = number()?,
            _ => bail!("`{option}` is not an option of mutants; see cargo xtask --help"),
        }
    }
    if plan.crates.is_empty() {
        plan.crates = CRATES.map(str::to_owned).to_vec();
    }
    Ok(plan)
}

fn is_shard(text: &str) -> bool {
    let numbers = text.split_once('/').map(|(part, parts)| (part.parse(), parts.parse()));
    matches!(numbers, Some((Ok::<u32, _>(part), Ok::<u32, _>(parts))) if part < parts)
}

/// Runs cargo-mutants for one crate. Returns the folder with its results.
fn mutate(name: &str, plan: &Plan) -> Result<PathBuf> {
    let program = tools::cargo_mutants()?;
    let folder = paths::target().join("mutants").join(name);
    // Removes the results of an earlier run.
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&folder)?,
    }
    let mut command = match plan.minutes {
        Some(minutes) => {
            let mut command = Command::new("timeout");
            // cargo-mutants ends its children and writes its results on SIGINT.
            command.args(["--signal=INT", "--kill-after=60s"]).arg(format!("{minutes}m"));
            command.arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(["mutants", "--package"]).arg(format!("bine-{name}"));
    command.arg("--output").arg(&folder);
    command.args(["--no-times", "--colors=never", "--jobs"]).arg(plan.jobs.to_string());
    if let Some(shard) = &plan.shard {
        // With round-robin, each part has mutants of all files.
        command.args(["--sharding=round-robin", "--shard"]).arg(shard);
    }
    let status = command
        .current_dir(paths::root())
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", process::command_line(&command)))?;
    // 2: mutants survive; 3: some timed out. The caller evaluates both.
    match status.code() {
        Some(0 | 2 | 3 | TIMED_OUT) => Ok(folder.join("mutants.out")),
        _ => bail!("failed ({status}); to repeat: {}", process::command_line(&command)),
    }
}

/// The results of a run, by outcome.
#[derive(Default)]
struct Counts {
    caught: usize,
    missed: usize,
    timeout: usize,
    unviable: usize,
    /// Missed mutants that the document with reasons does not name.
    unexplained: Vec<String>,
}

fn counts(folder: &Path, reasons: &str) -> Result<Counts> {
    let read = |name: &str| -> Result<Vec<String>> {
        let path = folder.join(name);
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let missed = read("missed.txt")?;
    let unexplained = missed.iter().filter(|mutant| !is_explained(mutant, reasons));
    Ok(Counts {
        unexplained: unexplained.cloned().collect(),
        missed: missed.len(),
        caught: read("caught.txt")?.len(),
        timeout: read("timeout.txt")?.len(),
        unviable: read("unviable.txt")?.len(),
    })
}

/// Whether the reasons name this mutant. Line numbers change, so the key is the file and the
/// change: `file.rs:12:3: replace a with b`.
fn is_explained(mutant: &str, reasons: &str) -> bool {
    let Some((place, change)) = mutant.split_once(": ") else { return false };
    let file = place.split(':').next().unwrap_or(place);
    reasons.contains(&format!("`{file}: {change}`"))
}

impl Counts {
    /// Viable mutants that were tested. A mutant that times out counts as caught.
    const fn tested(&self) -> usize {
        self.caught + self.missed + self.timeout
    }

    fn survivors_percent(&self) -> f64 {
        100.0 * self.missed as f64 / self.tested().max(1) as f64
    }

    fn summary(&self) -> String {
        format!(
            "{} of {} viable mutants survive ({:.1} %; {} caught, {} by timeout; {} not viable)",
            self.missed,
            self.tested(),
            self.survivors_percent(),
            self.caught,
            self.timeout,
            self.unviable
        )
    }

    fn add(&mut self, other: Self) {
        self.caught += other.caught;
        self.missed += other.missed;
        self.timeout += other.timeout;
        self.unviable += other.unviable;
        self.unexplained.extend(other.unexplained);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_crates_shard_and_time_limit() {
        let all = plan(&[]).unwrap();
        assert_eq!((all.crates.len(), all.jobs, all.shard), (CRATES.len(), 1, None));
        let some = plan(&["--crate", "push", "--shard", "3/8", "--minutes", "10"]).unwrap();
        assert_eq!(some.crates, ["push"]);
        assert_eq!((some.shard.as_deref(), some.minutes), (Some("3/8"), Some(10)));
    }

    #[test]
    fn rejects_invalid_options() {
        for wrong in [
            &["--crate"][..],
            &["--crate", "html"],
            &["--shard", "8/8"],
            &["--shard", "1"],
            &["--minutes", "0"],
            &["--hours", "1"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn counts_survivors_among_viable_mutants() {
        let counts =
            Counts { caught: 90, missed: 8, timeout: 2, unviable: 50, ..Counts::default() };
        assert_eq!(counts.tested(), 100);
        assert!((counts.survivors_percent() - 8.0).abs() < 1e-9);
        assert!((Counts::default().survivors_percent()).abs() < 1e-9);
    }

    #[test]
    fn matches_reasons_by_file_and_change() {
        let reasons = "- `crates/push/src/a.rs: replace f -> u64 with 1 in b`: it is a hint.";
        assert!(is_explained("crates/push/src/a.rs:10:5: replace f -> u64 with 1 in b", reasons));
        assert!(!is_explained("crates/push/src/a.rs:10:5: replace f -> u64 with 0 in b", reasons));
        assert!(!is_explained("crates/push/src/b.rs:10:5: replace f -> u64 with 1 in b", reasons));
    }
}
