//! Measures the tables and figures of Liu and Cui, "PushUp", again: client pull compared with push,
//! and a thread per poll compared with an event loop.

mod plan;
mod raw;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::followers::{Way, following, prepared};
use crate::machine;
use crate::origin::Version;
use crate::results::{Results, description};
use crate::tools::{Workspace, move_to_core_1};
use plan::{Method, Part, Point, Selection, phases, seconds};
use raw::{Measure, Record};

/// Measures the points that the folder lacks, and writes tables and figures of all points.
pub(crate) fn run(arguments: &Arguments, is_quick: bool) -> Result<()> {
    let selection = selection(arguments, is_quick)?;
    let workspace = prepared(&Method::ALL.map(|method| (method.name(), way(method))))?;
    let followers = workspace.compile("followers", &[])?;
    let folder =
        arguments.word("--into").map_or_else(|| workspace.target.join("bench/push"), PathBuf::from);
    let machine = description(&folder, &Version::of(&workspace.root), machine::facts)?;
    let mut raw = Results::<Record>::open(&folder)?;

    let points: Vec<Point> = selection.batches().into_iter().flatten().collect();
    let mut batches = selection.batches();
    for batch in &mut batches {
        batch.retain(|point| !raw.has(point));
    }
    batches.retain(|batch| !batch.is_empty());
    let mut left: f64 = batches.iter().map(|batch| seconds(batch)).sum();
    let count = batches.iter().map(Vec::len).sum::<usize>();
    eprintln!(
        "{} points, {} of them already measured; about {:.0} minutes; results are in {}",
        points.len(),
        points.len() - count,
        (left / 60.0).ceil(),
        folder.display()
    );

    move_to_core_1()?;
    let mut failed = 0;
    for batch in &batches {
        let first = &batch[0];
        eprintln!("{:.0} s left: {} in parallel, starting with {first}", left, batch.len());
        for (point, record) in batch.iter().zip(measure(&workspace, &followers, batch)?) {
            match record {
                Ok(record) => raw.add(record)?,
                Err(error) => {
                    failed += 1;
                    eprintln!("{point} was not measured: {error:#}");
                }
            }
        }
        left -= seconds(batch);
    }

    let mut records = raw.rows;
    records.retain(|record| points.contains(&record.point));
    println!("{}", report::write(&records, &machine, &folder)?);
    ensure!(failed == 0, "{failed} points were not measured; run the same command to retry");
    let is_faulty = |record: &&Record| {
        let is_whole = report::received(record) >= 100.0 && record.figure(Measure::Repeated) < 1.0;
        record.point.method == Method::Event && !is_whole
    };
    let faults = records.iter().filter(is_faulty).count();
    ensure!(faults == 0, "{faults} event-driven points had missed or repeated messages");
    Ok(())
}

fn selection(arguments: &Arguments, is_quick: bool) -> Result<Selection> {
    let parts = list(arguments, "--only")?.unwrap_or_else(|| vec![Part::Tables, Part::Figures]);
    let intervals: Option<Vec<u64>> = list(arguments, "--intervals")?;
    let mut selection = Selection {
        parts,
        peers: list(arguments, "--peers")?,
        methods: list(arguments, "--methods")?,
        intervals: intervals.unwrap_or_else(|| vec![10, 20, 30, 40, 50]),
        seconds: arguments.number("--seconds", if is_quick { 100 } else { 200 })?,
        rounds: arguments.number("--rounds", if is_quick { 1 } else { 3 })?,
        is_quick,
    };
    for numbers in [selection.peers.as_mut(), Some(&mut selection.intervals)].into_iter().flatten()
    {
        ensure!(!numbers.contains(&0), "peers and intervals must be at least 1");
        numbers.sort_unstable();
        numbers.dedup();
    }
    Ok(selection)
}

fn list<T: FromStr>(arguments: &Arguments, option: &str) -> Result<Option<Vec<T>>>
where
    Error: From<T::Err>,
{
    let Some(words) = arguments.names(option) else { return Ok(None) };
    let parse =
        |word: &str| word.parse().map_err(Error::from).with_context(|| format!("{option} {word}"));
    words.into_iter().map(parse).collect::<Result<_>>().map(Some)
}

const fn way(method: Method) -> Way {
    match method {
        Method::Pull | Method::Event => Way::Bine("hybrid"),
        Method::Thread => Way::Bine("pool"),
        Method::Nchan => Way::Nchan,
        Method::Floor => Way::Floor,
    }
}

/// Measures points in parallel, each on its own server.
fn measure(workspace: &Workspace, program: &Path, batch: &[Point]) -> Result<Vec<Result<Record>>> {
    let kernel = kernel_memory()?;
    let mut servers = Vec::new();
    for point in batch {
        servers.push(way(point.method).start(workspace, point.peers)?);
    }
    let mut followings = Vec::new();
    for ((point, running), phase) in batch.iter().zip(&servers).zip(phases(batch)) {
        let kind = if point.method == Method::Pull { "pull" } else { "poll" };
        let counts = [point.peers, point.messages, point.interval];
        let mut command = following(program, way(point.method), kind, running, counts)?;
        command.args([format!("pull={}", point.pull * 1000), format!("wait={}", point.wait)]);
        if point.part == Part::Tables {
            command.args(["probe=0", "whole=1", &format!("phase={phase}")]);
        }
        followings.push(spawn(&mut command));
    }
    let records = followings.into_iter().zip(batch).map(|(following, point)| {
        let done = following?.wait_with_output()?;
        let errors = String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            bail!("followers {}: {}", done.status, errors.trim());
        }
        Record::of(point.clone(), &String::from_utf8_lossy(&done.stdout), kernel)
    });
    let records = records.collect();
    for running in servers {
        running.stop()?;
    }
    Ok(records)
}

/// Call only from the main thread: the followers end with the thread that started them.
fn spawn(command: &mut Command) -> Result<Child> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot run followers")
}

/// Bytes of kernel memory in slabs, thread stacks and page tables.
fn kernel_memory() -> Result<f64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let kibibytes = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        Ok(word.with_context(|| format!("no {name} in /proc/meminfo"))?.parse()?)
    };
    Ok(1024.0 * (kibibytes("Slab:")? + kibibytes("KernelStack:")? + kibibytes("PageTables:")?))
}
