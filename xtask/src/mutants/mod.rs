//! Mutation testing: finds changes of the code that no test detects.
//!
//! cargo-mutants lists the mutants, but builds once per mutant, about ten thousand times. This module
//! puts all mutants of a crate into one build, each with a switch. A mutant then costs only the run of
//! the tests that reach it.

mod build;
mod list;
mod run;
mod weave;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::build::Profile;
use self::list::Mutant;
use self::run::{Suite, Verdict};
use crate::{parallel, paths};

/// The crates whose tests are measured.
const CRATES: [&str; 7] = ["http", "store", "push", "files", "log", "admission", "server"];
/// The highest accepted share of surviving mutants, in percent of the viable ones.
const MOST_PERCENT: f64 = 8.0;
/// The document that explains the survivors that stay.
const REASONS: &str = "docs/mutants.md";
/// Time between two lines about the progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(20);

/// The options of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan {
    crates: Vec<String>,
    /// Only files whose path contains this text.
    file: Option<String>,
    /// K and N: part K of N parts of each crate's mutants, counted from 0.
    shard: Option<(usize, usize)>,
    /// The time for the mutants of a crate, once its tests are built. Mutants tested within it count.
    minutes: Option<u64>,
    /// Tests that take longer than this without a mutant do not run.
    longest_test: Option<Duration>,
    /// The time of the tests of one mutant, the cheapest first. Tests beyond it do not run.
    most_per_mutant: Option<Duration>,
    /// Only the survivors of the run before.
    only_survivors: bool,
    /// Whether tests that repeat a random trial run fewer trials.
    is_quick: bool,
    profile: Profile,
    jobs: usize,
}

impl Plan {
    /// Whether a mutant is tested. `before`: the survivors of the run before.
    fn chooses(&self, number: usize, mutant: &Mutant, before: &BTreeSet<String>) -> bool {
        self.file.as_ref().is_none_or(|part| mutant.file.contains(part))
            && self.shard.is_none_or(|(part, parts)| number % parts == part)
            && (!self.only_survivors || before.contains(&mutant.key()))
    }
}

/// Mutates each crate with the options in `words`, and fails when too many mutants survive.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let plan = plan(words)?;
    let reasons = fs::read_to_string(paths::root().join(REASONS)).unwrap_or_default();
    let mut all = Counts::default();
    for name in &plan.crates {
        println!("\n--- bine-{name}");
        let counts = mutate(name, &plan, &reasons)?;
        let folder = paths::target().join("mutants").join(name);
        println!("bine-{name}: {}; details are in {}", counts.summary(), folder.display());
        all.add(&counts);
    }
    println!("\n{}", all.summary());
    if all.tested() == 0 {
        bail!("no mutant was tested; give it another --file or --shard");
    }
    if all.survivors_percent() > MOST_PERCENT {
        bail!(
            "more than {MOST_PERCENT} % of the viable mutants survive; write tests for the ones above"
        );
    }
    Ok(())
}

fn plan(words: &[&str]) -> Result<Plan> {
    let mut plan = Plan {
        crates: Vec::new(),
        file: None,
        shard: None,
        minutes: None,
        longest_test: None,
        most_per_mutant: None,
        only_survivors: false,
        is_quick: false,
        profile: Profile::Optimized,
        jobs: 2,
    };
    let mut words = words.iter();
    while let Some(option) = words.next() {
        if *option == "--survivors" {
            plan.only_survivors = true;
            continue;
        }
        if *option == "--quick" {
            plan.is_quick = true;
            continue;
        }
        if *option == "--dev" {
            plan.profile = Profile::Development;
            continue;
        }
        let Some(value) = words.next() else { bail!("{option} needs a value") };
        match *option {
            "--crate" if CRATES.contains(value) => plan.crates.push((*value).to_owned()),
            "--crate" => bail!("--crate needs one of {}, not `{value}`", CRATES.join(", ")),
            "--file" => plan.file = Some((*value).to_owned()),
            "--shard" => match shard(value) {
                Some(shard) => plan.shard = Some(shard),
                None => bail!("--shard needs K/N with K from 0 to N - 1, not `{value}`"),
            },
            "--minutes" => match value.parse() {
                Ok(number @ 1..) => plan.minutes = Some(number),
                _ => bail!("--minutes needs a whole number of at least 1, not `{value}`"),
            },
            "--test-seconds" => match value.parse() {
                Ok(number @ 1..) => plan.longest_test = Some(Duration::from_secs(number)),
                _ => bail!("--test-seconds needs a whole number of at least 1, not `{value}`"),
            },
            "--mutant-seconds" => match value.parse() {
                Ok(number @ 1..) => plan.most_per_mutant = Some(Duration::from_secs(number)),
                _ => bail!("--mutant-seconds needs a whole number of at least 1, not `{value}`"),
            },
            "--jobs" => match value.parse() {
                Ok(number @ 1..) => plan.jobs = number,
                _ => bail!("--jobs needs a whole number of at least 1, not `{value}`"),
            },
            _ => bail!("`{option}` is not an option of mutants; see cargo xtask --help"),
        }
    }
    if plan.crates.is_empty() {
        plan.crates = CRATES.map(str::to_owned).to_vec();
    }
    Ok(plan)
}

fn shard(text: &str) -> Option<(usize, usize)> {
    let (part, parts) = text.split_once('/')?;
    let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
    (part < parts).then_some((part, parts))
}

/// Tests the mutants of one crate, and writes a list for each outcome.
fn mutate(name: &str, plan: &Plan, reasons: &str) -> Result<Counts> {
    let begin = Instant::now();
    let mutants = list::list(&format!("bine-{name}"))?;
    let folder = paths::target().join("mutants").join(name);
    let before = fs::read_to_string(folder.join("missed.txt")).unwrap_or_default();
    let before: BTreeSet<String> = before.lines().map(list::key).collect();
    let build = build::build(name, &mutants, plan.profile)?;
    let chosen = |numbers: &BTreeSet<usize>| -> Vec<usize> {
        let is_chosen = |number: &usize| plan.chooses(*number, &mutants[*number], &before);
        numbers.iter().copied().filter(is_chosen).collect()
    };
    let without_switch: BTreeSet<usize> = (0..mutants.len())
        .filter(|number| !build.switched.contains(number) && !build.unviable.contains(number))
        .collect();
    let (switched, mut unviable) = (chosen(&build.switched), chosen(&build.unviable));
    let without_switch = chosen(&without_switch);
    println!(
        "bine-{name}: {} mutants in one build after {} s; {} do not compile, {} need a build each",
        switched.len(),
        begin.elapsed().as_secs(),
        unviable.len(),
        without_switch.len()
    );
    let scratch = run::scratch(&paths::target(), name)?;
    let sizes = if plan.is_quick { run::quick_sizes(name) } else { &[] };
    let mut suite = Suite::trace(build.programs, build.folder, scratch, sizes, plan.jobs)?;
    println!("bine-{name}: traced {}", suite.summary());
    omit_tests(&mut suite, name, plan);
    let total = switched.len() + without_switch.len();
    let progress = Progress::new(name, &mutants, reasons, total);
    let mut verdicts = run_switched(switched, plan, &suite, &progress)?;
    for number in without_switch {
        if progress.is_over(plan) {
            println!("bine-{name}: the time is over");
            break;
        }
        match build::build_alone(name, &mutants[number], plan.profile)? {
            Some(programs) => {
                if programs != suite.programs() {
                    bail!("cargo gave the test programs other names: {programs:?}");
                }
                let verdict = suite.verdict_alone()?;
                progress.count(number, verdict);
                verdicts.push((number, verdict));
            }
            None => unviable.push(number),
        }
    }
    let mut outcomes = [const { Vec::new() }; 4];
    for (number, verdict) in verdicts {
        outcomes[verdict as usize].push(number);
    }
    for numbers in &mut outcomes {
        numbers.sort_unstable();
    }
    let [caught, timed_out, missed, unreached] = outcomes;
    let mut survivors = missed.clone();
    survivors.extend(&unreached);
    survivors.sort_unstable();
    for (file, numbers) in [
        ("caught.txt", &caught),
        ("timeout.txt", &timed_out),
        ("missed.txt", &survivors),
        ("unreached.txt", &unreached),
        ("unviable.txt", &unviable),
    ] {
        write(&folder.join(file), &mutants, numbers)?;
    }
    Ok(Counts {
        caught: caught.len(),
        timed_out: timed_out.len(),
        missed: missed.len(),
        unreached: unreached.len(),
        unviable: unviable.len(),
    })
}

/// Omits tests that the plan has no time for.
fn omit_tests(suite: &mut Suite, name: &str, plan: &Plan) {
    if let Some(longest) = plan.longest_test {
        let omitted = suite.omit_tests_longer_than(longest);
        println!("bine-{name}: {omitted} tests take longer than {longest:?} and do not run");
    }
    if let Some(most) = plan.most_per_mutant {
        let shortened = suite.bound_tests_of_mutants(most);
        println!(
            "bine-{name}: {shortened} mutants have tests of more than {most:?}; the costliest do not run"
        );
    }
}

/// Tests mutants with switches, until the time of the plan is over.
fn run_switched(
    mut mutants: Vec<usize>,
    plan: &Plan,
    suite: &Suite,
    progress: &Progress<'_>,
) -> Result<Vec<(usize, Verdict)>> {
    // Scattered over all files, so that a run that ends early has tested some of each.
    mutants.sort_by_key(|number| (number % 61, *number));
    let verdicts = parallel::map(mutants, plan.jobs, |number| {
        if progress.is_over(plan) {
            return Ok(None);
        }
        let verdict = suite.verdict(number)?;
        progress.count(number, verdict);
        Ok(Some((number, verdict)))
    })?;
    Ok(verdicts.into_iter().flatten().collect())
}

fn write(path: &Path, mutants: &[Mutant], numbers: &[usize]) -> Result<()> {
    let lines = numbers.iter().map(|number| format!("{}\n", mutants[*number].name));
    fs::write(path, lines.collect::<String>()).with_context(|| path.display().to_string())
}

/// Whether the reasons name this mutant: `` `file.rs: replace a with b in c` ``.
fn is_explained(mutant: &Mutant, reasons: &str) -> bool {
    reasons.contains(&format!("`{}`", mutant.key()))
}

/// Prints the progress of the run, and each survivor when it is found.
struct Progress<'a> {
    name: &'a str,
    mutants: &'a [Mutant],
    reasons: &'a str,
    total: usize,
    begin: Instant,
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    tested: usize,
    survivors: usize,
    printed: Option<Instant>,
}

impl<'a> Progress<'a> {
    fn new(name: &'a str, mutants: &'a [Mutant], reasons: &'a str, total: usize) -> Self {
        let state = Mutex::default();
        Self { name, mutants, reasons, total, begin: Instant::now(), state }
    }

    fn is_over(&self, plan: &Plan) -> bool {
        let limit = plan.minutes.map(Duration::from_mins);
        limit.is_some_and(|limit| self.begin.elapsed() >= limit)
    }

    fn count(&self, number: usize, verdict: Verdict) {
        let mut state = self.state.lock().expect("no thread panics while it holds the lock");
        state.tested += 1;
        if matches!(verdict, Verdict::Missed | Verdict::Unreached) {
            state.survivors += 1;
            let mutant = &self.mutants[number];
            if !is_explained(mutant, self.reasons) {
                println!("  survives without a reason in {REASONS}: {}", mutant.name);
            }
        }
        if state.printed.unwrap_or(self.begin).elapsed() < PROGRESS_EVERY {
            return;
        }
        state.printed = Some(Instant::now());
        let left = self.begin.elapsed().mul_f64(self.total as f64 / state.tested as f64 - 1.0);
        println!(
            "bine-{}: {} of {} mutants tested, {} survive; about {} min left",
            self.name,
            state.tested,
            self.total,
            state.survivors,
            left.as_secs() / 60 + 1
        );
    }
}

/// The results of a run, by outcome.
#[derive(Default)]
struct Counts {
    caught: usize,
    timed_out: usize,
    missed: usize,
    unreached: usize,
    unviable: usize,
}

impl Counts {
    /// Viable mutants that were tested. A mutant that times out counts as caught.
    const fn tested(&self) -> usize {
        self.caught + self.timed_out + self.survivors()
    }

    const fn survivors(&self) -> usize {
        self.missed + self.unreached
    }

    fn survivors_percent(&self) -> f64 {
        100.0 * self.survivors() as f64 / self.tested().max(1) as f64
    }

    fn summary(&self) -> String {
        format!(
            "{} of {} viable mutants survive ({:.1} %), {} of them in code that no test reaches; \
             {} caught, {} by timeout; {} do not compile",
            self.survivors(),
            self.tested(),
            self.survivors_percent(),
            self.unreached,
            self.caught,
            self.timed_out,
            self.unviable
        )
    }

    const fn add(&mut self, other: &Self) {
        self.caught += other.caught;
        self.timed_out += other.timed_out;
        self.missed += other.missed;
        self.unreached += other.unreached;
        self.unviable += other.unviable;
    }
}

#[cfg(test)]
mod tests {
    use super::list::{Kind, Position};
    use super::*;

    #[test]
    fn parses_crates_shard_and_files() {
        let all = plan(&[]).unwrap();
        assert_eq!((all.crates.len(), all.jobs, all.shard), (CRATES.len(), 2, None));
        let some = plan(&["--crate", "push", "--shard", "3/8", "--file", "hub", "--survivors"]);
        let some = some.unwrap();
        assert_eq!(some.crates, ["push"]);
        assert_eq!((some.shard, some.file.as_deref()), (Some((3, 8)), Some("hub")));
        assert!(some.only_survivors);
        let quick = plan(&["--test-seconds", "3"]).unwrap();
        assert_eq!(quick.longest_test, Some(Duration::from_secs(3)));
        assert_eq!((quick.most_per_mutant, quick.profile), (None, Profile::Optimized));
        let bounded = plan(&["--mutant-seconds", "9"]).unwrap();
        assert_eq!(bounded.most_per_mutant, Some(Duration::from_secs(9)));
        assert_eq!(plan(&["--dev"]).unwrap().profile, Profile::Development);
        assert!(!quick.is_quick && plan(&["--quick"]).unwrap().is_quick);
    }

    #[test]
    fn rejects_invalid_options() {
        for wrong in [
            &["--crate"][..],
            &["--crate", "html"],
            &["--shard", "8/8"],
            &["--shard", "1"],
            &["--jobs", "0"],
            &["--minutes", "0"],
            &["--test-seconds", "0"],
            &["--mutant-seconds", "0"],
            &["--hours", "1"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn counts_survivors_among_viable_mutants() {
        let counts = Counts { caught: 90, timed_out: 2, missed: 5, unreached: 3, unviable: 50 };
        assert_eq!(counts.tested(), 100);
        assert!((counts.survivors_percent() - 8.0).abs() < 1e-9);
        assert!((Counts::default().survivors_percent()).abs() < 1e-9);
    }

    #[test]
    fn matches_reasons_by_file_and_change() {
        let reasons = "- `crates/push/src/a.rs: replace f -> u64 with 1 in b`: it is a hint.";
        let mutant = |name: &str| Mutant {
            name: name.to_owned(),
            file: String::new(),
            kind: Kind::FunctionBody,
            start: Position { line: 1, column: 1 },
            end: Position { line: 1, column: 2 },
            replacement: String::new(),
        };
        let is_explained = |name: &str| is_explained(&mutant(name), reasons);
        assert!(is_explained("crates/push/src/a.rs:10:5: replace f -> u64 with 1 in b"));
        assert!(!is_explained("crates/push/src/a.rs:10:5: replace f -> u64 with 0 in b"));
        assert!(!is_explained("crates/push/src/b.rs:10:5: replace f -> u64 with 1 in b"));
    }
}
