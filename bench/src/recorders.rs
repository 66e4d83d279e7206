//! The cost of the recorders of a program, allocations and spans: built in and unused, and in use.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::plot::thousands;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Content, Running, free_port};
use crate::tools::{Workspace, move_to_core_1, require};
use crate::wrk::Load;

pub(crate) const OPTIONS: [&str; 4] = ["--connections", "--rounds", "--seconds", "--into"];

/// The length of the load before a sample.
const WARM_UP: u64 = 1;
/// The features of `bine` that build the recorders in.
const FEATURES: &str = "bine/profile,bine/tracing";
/// Spans of a recording, more than a sample has.
const SPANS: &str = "100000000";

/// A build of the example `hello`, and its use.
#[derive(Clone, Copy)]
struct Variant {
    title: &'static str,
    has_features: bool,
    /// The option with the file of a recording.
    records: Option<&'static str>,
}

const VARIANTS: [Variant; 4] = [
    Variant { title: "without both features", has_features: false, records: None },
    Variant {
        title: "`profile` and `tracing`, nothing recorded",
        has_features: true,
        records: None,
    },
    Variant {
        title: "allocations are recorded",
        has_features: true,
        records: Some("--profile-allocations"),
    },
    Variant { title: "spans are recorded", has_features: true, records: Some("--trace-stages") },
];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// CPU time of a request in microseconds.
    cpu: f64,
    /// Responses per second.
    rate: f64,
}

figures!(Sample { cpu: "cpu_us", rate: "rate" });

/// Samples each variant once per round, and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    require("wrk", "wrk")?;
    let (rounds, seconds) = (arguments.number("--rounds", 7)?, arguments.number("--seconds", 3)?);
    let connections = arguments.number("--connections", 64)?;
    let workspace = Workspace::open()?;
    let programs = [false, true].map(|has_features| build(&workspace, has_features));
    let [plain, whole] = programs;
    let (plain, whole) = (plain?, whole?);
    let facts = machine::facts();
    move_to_core_1()?;
    let mut all: Vec<Vec<Sample>> = vec![Vec::new(); VARIANTS.len()];
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = VARIANTS.len() * rounds as usize;
    let mut samples = Samples::open("recorders", "program", &run, count)?;
    for round in 1..=rounds {
        for (variant, own) in VARIANTS.iter().zip(&mut all) {
            let program = if variant.has_features { &whole } else { &plain };
            own.push(samples.take(&[variant.title], round, || {
                variant.measure(&workspace, program, connections, seconds)
            })?);
        }
    }
    println!("{facts}\n\n{}", table(&all));
    println!(
        "Medians (least-most) of {rounds} rounds of {seconds} s: the page of `hello`, {connections} kept connections of wrk \
         on core 1, the server on core 0. `x without` is the median of the ratios of the CPU times of one round."
    );
    samples.finish()
}

/// Builds the example and copies it, because both builds have the same path.
fn build(workspace: &Workspace, has_features: bool) -> Result<PathBuf> {
    let mut words = ["-p", "bine-examples", "--example", "hello"].map(OsStr::new).to_vec();
    if has_features {
        words.extend(["--features", FEATURES].map(OsStr::new));
    }
    workspace.build_bine(&words)?;
    let copy = workspace.work.join(if has_features { "hello-whole" } else { "hello-plain" });
    fs::copy(workspace.bine("examples/hello"), &copy)?;
    Ok(copy)
}

impl Variant {
    fn measure(
        self,
        workspace: &Workspace,
        program: &Path,
        connections: u64,
        seconds: u64,
    ) -> Result<Sample> {
        let port = free_port()?;
        let (program, listen) = (program.display().to_string(), format!("127.0.0.1:{port}"));
        let record = workspace.work.join("recording").display().to_string();
        let mut words = vec![&*program, "--listen", &listen, "--loops", "1", "--access-log", "off"];
        if let Some(option) = self.records {
            words.extend([option, &record]);
        }
        if self.records == Some("--trace-stages") {
            words.extend(["--trace-spans", SPANS]);
        }
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let path = Content::Page.path();
        let running = Running::start(&words, port, &path, &workspace.work.join("recorders.log"))?;
        let load = |seconds: u64| {
            let (path, folder) = (&*path, &*workspace.work);
            Load { port, connections, seconds, path, script: None, folder }.send()
        };
        load(WARM_UP)?;
        let before = running.cpu()?;
        let report = load(seconds)?;
        let cpu = running.cpu()? - before;
        running.stop()?;
        Ok(Sample { cpu: 1e6 * cpu / report.requests, rate: report.rate })
    }
}

fn table(all: &[Vec<Sample>]) -> String {
    let mut lines = vec![
        String::from("| program | CPU, us | x without | requests/s |"),
        String::from("|---|---|---|---|"),
    ];
    for (variant, samples) in VARIANTS.iter().zip(all) {
        let shown = |spread: Option<Spread>| {
            spread.map_or_else(|| String::from("-"), |spread| spread.to_string())
        };
        let pairs = all.first().into_iter().flatten().zip(samples);
        let rate = Spread::of(samples.iter().map(|sample| sample.rate));
        lines.push(format!(
            "| {} | {} | {} | {} |",
            variant.title,
            shown(Spread::of(samples.iter().map(|sample| sample.cpu))),
            shown(Spread::of(pairs.map(|(plain, sample)| sample.cpu / plain.cpu))),
            rate.map_or_else(|| String::from("-"), |rate| thousands(rate.median)),
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_with_the_plain_program_of_the_same_round() {
        let samples = |cpu: [f64; 2]| cpu.map(|cpu| Sample { cpu, rate: 1000.0 }).to_vec();
        let all = [samples([2.0, 4.0]), samples([3.0, 4.0]), samples([4.0, 8.0]), Vec::new()];
        let text = table(&all);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert!(
            lines[0].ends_with("| 3.50 (3.00-4.00) | 1.25 (1.00-1.50) | 1 000 |"),
            "{}",
            lines[0]
        );
        assert!(lines[1].ends_with("| 2.00 (2.00-2.00) | 1 000 |"), "{}", lines[1]);
        assert_eq!(lines[2], "| spans are recorded | - | - | - |");
    }
}
