//! Runs the tests that reach a mutant.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::parallel;

/// Virtual memory of a test program, in KiB: a mutant may allocate without end.
const MOST_MEMORY: u32 = 16 << 20;
/// Size of a file, in blocks of 512 bytes: a mutant may write without end.
const MOST_FILE: u32 = 4 << 20;
/// The signal that ends a test whose time is over: `timeout` sends it to its group, and the kernel
/// at the limit of CPU time.
const KILL: i32 = 9;
/// Time that the tests of the first batches take. Most mutants fail one of the quickest tests.
const BATCHES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(10)];

/// Shorter durations are not distinguished: on a busy machine they depend on chance.
const SHORTEST: Duration = Duration::from_millis(20);

/// Smaller sizes of tests that repeat a random trial, by crate: a mutant that many trials detect is
/// found by the first ones.
const QUICK_SIZES: [(&str, &[(&str, &str)]); 2] = [
    (
        "store",
        &[
            ("BINE_SIMULATED_RUNS", "60"),
            ("BINE_KILLS", "3"),
            ("BINE_HISTORIES", "6"),
            ("BINE_COMMITS", "100"),
            ("BINE_TRIALS", "8"),
        ],
    ),
    ("server", &[("BINE_SIMULATED_RUNS", "6")]),
];

/// A test, and its duration without a mutant. Tests are ordered by their cost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Test {
    /// The duration, at least [`SHORTEST`], for each mutant that the test reaches. A test that
    /// reaches few mutants checks these more closely than a test of the whole server.
    cost: Duration,
    duration: Duration,
    program: usize,
    name: String,
}

/// The time limits of a test program. A mutant that loops reaches the limit of CPU time. The other
/// limit is for mutants that wait for ever; it is longer, since a test also waits for the CPU while
/// other programs run.
#[derive(Clone, Copy)]
struct TimeLimit {
    wall: Duration,
    cpu: Duration,
}

impl TimeLimit {
    /// The limits of tests that take this time without a mutant.
    fn of(duration: Duration) -> Self {
        let cpu = Duration::from_secs(5) + 5 * duration;
        Self { wall: Duration::from_secs(8) + 8 * duration, cpu }
    }
}

/// The tests of a crate.
pub(super) struct Suite {
    programs: Vec<PathBuf>,
    /// Where tests run.
    folder: PathBuf,
    /// A folder for temporary files of tests.
    scratch: PathBuf,
    /// Environment variables that make tests smaller.
    sizes: &'static [(&'static str, &'static str)],
    /// All tests, the cheapest first.
    tests: Vec<Test>,
    /// The tests that reach each mutant, the cheapest first.
    reaching: BTreeMap<usize, Vec<Test>>,
}

/// The result of the tests for a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A test failed.
    Caught,
    /// A test did not end in time.
    TimedOut,
    /// All tests that reach it passed.
    Missed,
    /// No test reaches it.
    Unreached,
}

impl Suite {
    /// Runs each test alone, without a mutant, and records the mutants that it reaches.
    pub(super) fn trace(
        programs: Vec<PathBuf>,
        folder: PathBuf,
        scratch: PathBuf,
        sizes: &'static [(&'static str, &'static str)],
        jobs: usize,
    ) -> Result<Self> {
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&scratch)?,
        }
        let (tests, reaching) = (Vec::new(), BTreeMap::new());
        let mut suite = Self { programs, folder, scratch, sizes, tests, reaching };
        let mut names = Vec::new();
        for (index, program) in suite.programs.iter().enumerate() {
            let output = Command::new(program).args(["--list", "--format", "terse"]).output()?;
            let list = String::from_utf8_lossy(&output.stdout);
            let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
            names.extend(tests.map(|name| (index, name.to_owned())));
        }
        let traced = parallel::map(names.into_iter().enumerate().collect(), jobs, |test| {
            let (number, (program, name)) = test;
            let trace = suite.scratch.join(format!("trace-{number}"));
            let begin = Instant::now();
            let limit = TimeLimit::of(Duration::from_mins(1));
            let mut command = suite.command(program, [name.as_str()], limit);
            let status = command.env("BINE_MUTANT_TRACE", &trace).status()?;
            if !status.success() {
                println!("left out, since it fails without a mutant ({status}): {name}");
                return Ok(None);
            }
            let text = fs::read_to_string(&trace).unwrap_or_default();
            let reached: Vec<usize> = text.lines().filter_map(|line| line.parse().ok()).collect();
            let duration = begin.elapsed();
            Ok(Some((Test { cost: Duration::ZERO, duration, program, name }, reached)))
        })?;
        let mut traced: Vec<(Test, Vec<usize>)> = traced.into_iter().flatten().collect();
        // The start of a program takes longer than most tests, and a batch has one start.
        let start = traced.iter().map(|(test, _)| test.duration).min().unwrap_or_default();
        for (test, reached) in &mut traced {
            test.duration -= start;
            test.cost = test.duration.max(SHORTEST).saturating_mul(reached.len() as u32);
        }
        for (test, reached) in traced {
            for number in reached {
                suite.reaching.entry(number).or_default().push(test.clone());
            }
            suite.tests.push(test);
        }
        suite.tests.sort_unstable();
        suite.reaching.values_mut().for_each(|tests| {
            tests.sort_unstable();
            tests.dedup();
        });
        Ok(suite)
    }

    /// Omits tests that took longer than `longest` without a mutant, and returns their number. A
    /// mutant that only they reach counts as unreached, so the share of survivors is an upper bound.
    pub(super) fn omit_tests_longer_than(&mut self, longest: Duration) -> usize {
        let count = self.tests.len();
        self.tests.retain(|test| test.duration <= longest);
        self.reaching.retain(|_, tests| {
            tests.retain(|test| test.duration <= longest);
            !tests.is_empty()
        });
        count - self.tests.len()
    }

    /// Limits the time of the tests of each mutant, without the mutant, to `most`: omits its costliest
    /// tests, but not the only one. Returns the number of mutants that lose tests; for these a survivor may be detected by
    /// a test that did not run.
    pub(super) fn bound_tests_of_mutants(&mut self, most: Duration) -> usize {
        let mut count = 0;
        for tests in self.reaching.values_mut() {
            let all = tests.len();
            let (mut sum, mut is_first) = (Duration::ZERO, true);
            tests.retain(|test| {
                let is_first = std::mem::take(&mut is_first);
                sum += test.duration;
                is_first || sum <= most
            });
            count += usize::from(tests.len() < all);
        }
        count
    }

    /// The number of tests, their time, and the slowest.
    pub(super) fn summary(&self) -> String {
        let total: Duration = self.tests.iter().map(|test| test.duration).sum();
        let mut slowest: Vec<&Test> = self.tests.iter().collect();
        slowest.sort_by_key(|test| Reverse(test.duration));
        let slowest = slowest.into_iter().take(5);
        let slowest =
            slowest.map(|test| format!("{} {:.1} s", test.name, test.duration.as_secs_f64()));
        let slowest = slowest.collect::<Vec<_>>().join(", ");
        format!(
            "{} tests in {:.0} s; the slowest: {slowest}",
            self.tests.len(),
            total.as_secs_f64()
        )
    }

    pub(super) fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// Runs the tests that reach a mutant until one fails.
    pub(super) fn verdict(&self, mutant: usize) -> Result<Verdict> {
        let Some(tests) = self.reaching.get(&mutant) else { return Ok(Verdict::Unreached) };
        self.run(tests, Some(mutant))
    }

    /// Runs all tests until one fails, in programs that contain one mutant without a switch.
    pub(super) fn verdict_alone(&self) -> Result<Verdict> {
        self.run(&self.tests, None)
    }

    fn run(&self, tests: &[Test], mutant: Option<usize>) -> Result<Verdict> {
        for batch in batches(tests) {
            let duration: Duration = batch.iter().map(|test| test.duration).sum();
            let names = batch.iter().map(|test| test.name.as_str());
            let limit = TimeLimit::of(duration);
            let mut command = self.command(batch[0].program, names, limit);
            if let Some(mutant) = mutant {
                command.env("BINE_MUTANT", mutant.to_string());
            }
            let status = command.status()?;
            if status.signal() == Some(KILL) {
                return Ok(Verdict::TimedOut);
            }
            if !status.success() {
                return Ok(Verdict::Caught);
            }
        }
        Ok(Verdict::Missed)
    }

    fn command<'a>(
        &self,
        program: usize,
        tests: impl IntoIterator<Item = &'a str>,
        limit: TimeLimit,
    ) -> Command {
        // Kills the whole process group when the time is over.
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL"]).arg(format!("{:.3}", limit.wall.as_secs_f64()));
        let limits = format!(
            "ulimit -v {MOST_MEMORY}; ulimit -f {MOST_FILE}; ulimit -t {}; exec \"$@\"",
            limit.cpu.as_secs()
        );
        command.args(["sh", "-c"]).arg(limits).arg("sh");
        command.arg(&self.programs[program]).args(["--exact", "--test-threads=1"]).args(tests);
        command.current_dir(&self.folder).env("TMPDIR", &self.scratch);
        command.env("CARGO_MANIFEST_DIR", &self.folder).env("RUST_BACKTRACE", "0");
        // A failure is enough; its smallest form is not needed.
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("MALLOC_ARENA_MAX", "2");
        command.envs(self.sizes.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Splits tests, the cheapest first, into batches of one program each.
fn batches(tests: &[Test]) -> Vec<Vec<&Test>> {
    let mut batches: Vec<Vec<&Test>> = Vec::new();
    let mut rest = tests;
    for limit in BATCHES.into_iter().chain([Duration::MAX]) {
        let mut sum = Duration::ZERO;
        let fits = |test: &&Test| {
            sum = sum.saturating_add(test.duration);
            sum <= limit
        };
        let count = rest.iter().take_while(fits).count();
        let mut of_program: BTreeMap<usize, Vec<&Test>> = BTreeMap::new();
        for test in &rest[..count] {
            of_program.entry(test.program).or_default().push(test);
        }
        batches.extend(of_program.into_values());
        rest = &rest[count..];
    }
    batches
}

/// The environment variables that make the tests of a crate smaller.
pub(super) fn quick_sizes(name: &str) -> &'static [(&'static str, &'static str)] {
    let of_crate = QUICK_SIZES.iter().find(|(own, _)| *own == name);
    of_crate.map_or(&[], |(_, sizes)| sizes)
}

/// The folder of the tests' temporary files for a crate.
pub(super) fn scratch(target: &Path, name: &str) -> Result<PathBuf> {
    let folder = target.join("mutants").join(name).join("scratch");
    let parent = folder.parent().context("the folder has a parent")?;
    fs::create_dir_all(parent)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_slow_tests_and_keeps_mutants_that_others_reach() {
        let test = |name: &str, seconds| Test {
            cost: Duration::from_secs(seconds),
            duration: Duration::from_secs(seconds),
            program: 0,
            name: name.to_owned(),
        };
        let (quick, slow) = (test("quick", 1), test("slow", 3));
        let mut suite = Suite {
            programs: Vec::new(),
            folder: PathBuf::new(),
            scratch: PathBuf::new(),
            sizes: &[],
            tests: vec![quick.clone(), slow.clone()],
            reaching: BTreeMap::from([(7, vec![quick.clone(), slow.clone()]), (8, vec![slow])]),
        };
        assert_eq!(suite.omit_tests_longer_than(Duration::from_secs(1)), 1);
        assert_eq!(suite.tests, std::slice::from_ref(&quick));
        assert_eq!(suite.reaching, BTreeMap::from([(7, vec![quick])]));
    }

    #[test]
    fn bounds_the_time_of_the_tests_of_a_mutant() {
        let test = |seconds| Test {
            cost: Duration::from_secs(seconds),
            duration: Duration::from_secs(seconds),
            program: 0,
            name: seconds.to_string(),
        };
        let tests = || vec![test(1), test(2), test(3)];
        let mut suite = Suite {
            programs: Vec::new(),
            folder: PathBuf::new(),
            scratch: PathBuf::new(),
            sizes: &[],
            tests: tests(),
            reaching: BTreeMap::from([(7, tests()), (8, vec![test(4)])]),
        };
        assert_eq!(suite.bound_tests_of_mutants(Duration::from_secs(3)), 1);
        let left = BTreeMap::from([(7, vec![test(1), test(2)]), (8, vec![test(4)])]);
        assert_eq!((suite.tests.len(), suite.reaching), (3, left));
    }
}
