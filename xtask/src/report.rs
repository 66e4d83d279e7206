//! The report of a run with many steps: a headline per step, one summary, one result.

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The results of a run so far.
pub(crate) struct Report {
    steps: Vec<Step>,
    tally: Tally,
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

enum Outcome {
    Passed,
    Failed(String),
    LeftOut(&'static str),
}

/// The number of lines of a failed test's output that the summary repeats.
const LINES_OF_A_FAILURE: usize = 8;

/// Counts of single tests and checks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u32,
    /// Tests that failed.
    pub(crate) failed: u32,
    /// Tests that were skipped.
    pub(crate) ignored: u32,
    /// A headline for each test that failed, was skipped or passed at a later attempt only. That of a
    /// failed test has the beginning of its output. Often a CI service shows only the end of a log.
    failures: Vec<String>,
    /// The number of output lines that may still be added to the last of `failures`.
    lines_left: usize,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { steps: Vec::new(), tally: Tally::default() }
    }

    /// Runs one step under its headline. A failure is printed and recorded; later steps still run.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        perform: impl FnOnce(&mut Tally) -> Result<()>,
    ) {
        println!("\n=== {name}");
        let started = Instant::now();
        let mut tally = Tally::default();
        let mut result = perform(&mut tally);
        if result.is_ok() && tally.failed + tally.ignored > 0 {
            result = Err(anyhow::anyhow!("{} failed, {} skipped", tally.failed, tally.ignored));
        }
        let outcome = match result {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                println!("{name}: {error:#}");
                // A step that fails before it counts a check still counts as one failure.
                tally.failed = tally.failed.max(1);
                Outcome::Failed(format!("{error:#}"))
            }
        };
        self.tally.add(tally);
        self.steps.push(Step { name, outcome, took: started.elapsed() });
    }

    /// Records a step that this run skips, and why.
    pub(crate) fn leave_out(&mut self, name: &'static str, reason: &'static str) {
        self.steps.push(Step { name, outcome: Outcome::LeftOut(reason), took: Duration::ZERO });
    }

    /// Prints the summary. Fails if a step failed.
    pub(crate) fn close(self) -> Result<()> {
        println!("\n=== summary\n{}", self.summary());
        if self.steps.iter().any(|step| matches!(step.outcome, Outcome::Failed(_))) {
            bail!("some steps failed");
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let mut lines = self.tally.failures.clone();
        lines.extend(self.steps.iter().map(ToString::to_string));
        lines.push(format!("{} passed, {} failed", self.tally.passed, self.tally.failed));
        lines.join("\n")
    }
}

impl Tally {
    /// Counts one check and prints its result.
    pub(crate) fn check(&mut self, claim: &str, result: Result<()>) {
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("ok      {claim}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAILED  {claim}: {error:#}");
                self.failures.push(format!("FAILED  {claim}: {error:#}"));
            }
        }
    }

    /// Counts the totals in one line of a test run's output, if it has them.
    pub(crate) fn on_line(&mut self, line: &str) {
        self.on_printed(line);
        if let Some(name) =
            line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... ignored"))
        {
            self.failures.push(format!("SKIPPED {name}"));
        }
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<u32>() else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// Records the output of a failed test, which follows `---- its name stdout ----`.
    fn on_printed(&mut self, line: &str) {
        let name = line.strip_prefix("---- ").and_then(|line| line.split_once(" stdout ----"));
        if let Some((name, _)) = name {
            self.begin_failure(name);
        } else if line == "failures:" {
            self.lines_left = 0;
        } else {
            self.continue_failure(line);
        }
    }

    /// Adds the failure of the test `name` to the summary, without counting it.
    pub(crate) fn begin_failure(&mut self, name: &str) {
        self.failures.push(format!("FAILED  {name}"));
        self.lines_left = LINES_OF_A_FAILURE;
    }

    /// Adds a line of output to the failure that began last, unless that has ended or is long
    /// enough.
    pub(crate) fn continue_failure(&mut self, line: &str) {
        if self.lines_left > 0 && is_relevant(line) {
            self.lines_left -= 1;
            if let Some(failure) = self.failures.last_mut() {
                failure.push_str("\n        ");
                failure.push_str(line);
            }
        }
    }

    /// Adds a test that passed after it had failed to the summary.
    pub(crate) fn note_repeated(&mut self, name: &str) {
        self.failures.push(format!("AGAIN   {name}"));
        self.lines_left = 0;
    }

    /// The lines of the summary: a headline and the beginning of the output of each failure.
    #[cfg(test)]
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Adds the counts and failures of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
    }
}

/// Whether a line of output belongs in the summary. Of a backtrace, only paths in the workspace
/// do.
fn is_relevant(line: &str) -> bool {
    let line = line.trim();
    let is_frame = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let is_foreign = line.starts_with("at ") && !line.starts_with("at ./");
    !line.is_empty() && line != "stack backtrace:" && !is_frame && !is_foreign
}

impl Display for Step {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let seconds = self.took.as_secs_f64();
        match &self.outcome {
            Outcome::Passed => write!(formatter, "ok        {name} ({seconds:.1} s)"),
            Outcome::Failed(why) => write!(formatter, "FAILED    {name} ({seconds:.1} s): {why}"),
            Outcome::LeftOut(why) => write!(formatter, "left out  {name}: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn adds_the_totals_of_all_test_binaries() {
        let mut tally = Tally::default();
        tally.on_line("running 3 tests");
        tally.on_line(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; \
             finished in 0.01s",
        );
        tally.on_line("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured");
        assert_eq!((tally.passed, tally.failed, tally.ignored), (15, 2, 1));
    }

    #[test]
    fn lists_failed_tests_with_their_output() {
        let mut report = Report::new();
        report.step("tests", |tally| {
            let lines = [
                "test parses::a_tail ... FAILED",
                "failures:",
                "",
                "---- parses::a_tail stdout ----",
                "",
                "thread 'parses::a_tail' panicked at src/lib.rs:1:1:",
                "left is not right",
                "stack backtrace:",
                "   0: __rustc::rust_begin_unwind",
                "             at /rustc/5980/library/std/src/panicking.rs:689:5",
                "   1: parses::a_tail",
                "             at ./src/lib.rs:9:5",
                "",
                "failures:",
                "    parses::a_tail",
                "test result: FAILED. 3 passed; 1 failed; 0 ignored",
            ];
            for line in lines {
                tally.on_line(line);
            }
            Ok(())
        });
        let summary = report.summary();
        let expected = "FAILED  parses::a_tail\n        thread 'parses::a_tail' panicked at src/lib.rs:1:1:\n        left is not right\n                     at ./src/lib.rs:9:5\n";
        assert!(summary.starts_with(expected), "{summary}");
        assert_eq!(summary.matches("parses::a_tail").count(), 2, "{summary}");
    }

    #[test]
    fn lists_skipped_tests() {
        let mut report = Report::new();
        report.step("tests", |tally| {
            tally.on_line("test src/lib.rs - parse (line 9) ... ignored");
            tally.on_line("test result: ok. 3 passed; 0 failed; 1 ignored");
            Ok(())
        });
        let summary = report.summary();
        assert!(summary.starts_with("SKIPPED src/lib.rs - parse (line 9)\nFAILED"), "{summary}");
    }

    #[test]
    fn truncates_long_output() {
        let mut tally = Tally::default();
        tally.on_line("---- talks stdout ----");
        for number in 0..100 {
            tally.on_line(&format!("line {number}"));
        }
        assert_eq!(tally.failures[0].lines().count(), 1 + LINES_OF_A_FAILURE);
    }

    #[test]
    fn counts_later_steps_after_a_failed_step() {
        let mut report = Report::new();
        report.step("first", |_| Err(anyhow!("no such file")));
        report.step("second", |tally| {
            tally.check("two is two", Ok(()));
            Ok(())
        });
        assert!(report.summary().contains("FAILED    first"), "{}", report.summary());
        assert!(report.summary().ends_with("\n1 passed, 1 failed"), "{}", report.summary());
        assert!(report.close().is_err());
    }

    #[test]
    fn fails_a_step_with_a_failed_check() {
        let mut report = Report::new();
        report.step("checks", |tally| {
            tally.check("one is two", Err(anyhow!("it is not")));
            Ok(())
        });
        assert!(report.close().is_err());
    }

    #[test]
    fn fails_a_step_with_an_ignored_test() {
        let mut report = Report::new();
        report.step("tests", |tally| {
            tally.on_line("test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured");
            Ok(())
        });
        assert!(report.close().is_err());
    }

    #[test]
    fn lists_skipped_steps_with_a_reason() {
        let mut report = Report::new();
        report.leave_out("end-to-end tests", "needs curl");
        assert!(report.summary().starts_with("left out  end-to-end tests: needs curl\n"));
        assert!(report.close().is_ok());
    }
}
