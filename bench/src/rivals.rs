//! Compares Bine's store with other stores: in turns, on the same rows, each sample in its own
//! process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::progress::Progress;
use crate::tools::{Workspace, output};

/// The names in `bench/rivals`.
const STORES: [&str; 10] = [
    "floor-alone",
    FLOOR,
    "bine-alone",
    BINE,
    "redb",
    "redb-grouped",
    "fjall",
    "fjall-grouped",
    "sqlite",
    "sqlite-grouped",
];
/// The baseline: also 64 threads, and only the bytes of the rows.
const FLOOR: &str = "floor-grouped";
const BINE: &str = "bine";
const WORKS: [&str; 7] =
    [SINGLE, "commit-64", "interval-1", "interval-64", "none-1", "none-64", READ];
/// The workload that is compared with the floor: with 64 rows per commit, the figure measures
/// trees, not the disk.
const SINGLE: &str = "commit-1";
const READ: &str = "read";

/// The lowest accepted ratio of Bine's rate to the floor's with durable commits.
const LEAST_SHARE: f64 = 0.6;
/// The lowest accepted rate of rows per second with deferred syncs.
const LEAST_RATE: f64 = 200_000.0;

/// The figures of one sample, by name.
type Sample = HashMap<String, f64>;

/// Measures each store in each workload once per round.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 5)?;
    let seconds = arguments.number("--seconds", 3)?;
    let stores = chosen(arguments, "--only", &STORES)?;
    let works = chosen(arguments, "--works", &WORKS)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let program = build(&workspace)?;
    let folder = workspace.work.join("rows");
    let plan = works.iter().flat_map(|work| stores.iter().map(move |store| (*work, *store)));
    let plan: Vec<_> = plan.filter(|(work, store)| *work != READ || can_read(store)).collect();
    let mut samples: HashMap<_, Vec<Sample>> = HashMap::new();
    let mut progress = Progress::new(plan.len() * rounds as usize);
    for _ in 0..rounds {
        for &(work, store) in &plan {
            let sample = sample(&program, work, store, &folder, seconds)
                .with_context(|| format!("{store} at {work}"))?;
            progress.report(format_args!("{work}, {store}: {}", shown(&sample)));
            samples.entry((work, store)).or_default().push(sample);
        }
    }
    println!("{facts} Medians of {rounds} samples of {seconds} s, by turns.");
    for work in &works {
        let of: Vec<_> =
            stores.iter().filter_map(|store| samples.get_key_value(&(*work, *store))).collect();
        let of: Vec<_> =
            of.into_iter().map(|((_, store), samples)| (*store, &samples[..])).collect();
        if *work == READ { read_table(&of)? } else { write_table(work, &of)? }
    }
    check_limits(&samples)
}

/// The names given for an option, or all.
fn chosen<'a>(
    arguments: &'a Arguments,
    option: &str,
    offered: &'static [&'static str],
) -> Result<Vec<&'static str>> {
    let Some(names): Option<Vec<&'a str>> = arguments.names(option) else {
        return Ok(offered.to_vec());
    };
    let known = |name: &str| offered.iter().copied().find(|offered| *offered == name);
    names
        .into_iter()
        .map(|name| {
            known(name).with_context(|| format!("unknown name `{name}`; use {}", offered.join(",")))
        })
        .collect()
}

/// Builds the competing stores. Their workspace is separate, so that no other build compiles them.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target.join("bench/rivals");
    let words = ["--locked", "--manifest-path", "bench/rivals/Cargo.toml", "--target-dir"];
    let mut words = words.map(OsStr::new).to_vec();
    words.push(target.as_os_str());
    workspace.build_peer(&words)?;
    Ok(target.join("release/bine-bench-rivals"))
}

/// Reads do not depend on the kind of commit, and the floor cannot read.
fn can_read(store: &str) -> bool {
    !store.contains('-')
}

fn sample(program: &Path, work: &str, store: &str, folder: &Path, seconds: u64) -> Result<Sample> {
    let seconds = seconds.to_string();
    let text = output(Command::new(program).args([store, work]).arg(folder).arg(&seconds))?;
    fs::remove_dir_all(folder)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut sample = Sample::new();
    for pair in words.chunks(2) {
        let [name, figure] = pair else { bail!("`{text}` is not in pairs") };
        sample.insert((*name).to_owned(), figure.parse().with_context(|| text.clone())?);
    }
    Ok(sample)
}

fn shown(sample: &Sample) -> String {
    match (rate(sample), sample.get("one")) {
        (Some(rate), _) => format!("{rate:.0} rows/s"),
        (_, Some(one)) => format!("{:.2} us per row", one * 1e6),
        _ => String::new(),
    }
}

fn write_table(work: &str, stores: &[(&str, &[Sample])]) -> Result<()> {
    println!(
        "\n| {work} | rows/s | x floor | CPU, us per row | written, B per row | on disk, B per row | resident, MB | rows |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let floor = stores.iter().find(|(store, _)| *store == FLOOR).map(|(_, samples)| *samples);
    for (store, samples) in stores {
        let rates = spread(samples, rate)?;
        let share = match floor {
            Some(floor) => shares(samples, floor)?.to_string(),
            None => String::from("-"),
        };
        let row = |name| move |sample: &Sample| Some(sample.get(name)? / sample.get("rows")?);
        println!(
            "| {store} | {:.0} ({:.0}-{:.0}) | {share} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} |",
            rates.median,
            rates.least,
            rates.most,
            spread(samples, row("cpu"))?.median * 1e6,
            spread(samples, row("written"))?.median,
            spread(samples, |sample| Some(sample.get("disk")? / sample.get("held")?))?.median,
            spread(samples, |sample| Some(sample.get("resident")? / 1e6))?.median,
            spread(samples, |sample| sample.get("held").copied())?.median,
        );
    }
    Ok(())
}

fn read_table(stores: &[(&str, &[Sample])]) -> Result<()> {
    println!(
        "\n| {READ}, us of CPU | a row by id | the newest 50 | 50 by an index | resident, MB |"
    );
    println!("|---|---|---|---|---|");
    for (store, samples) in stores {
        let micros = |name| spread(samples, |sample| Some(sample.get(name)? * 1e6));
        let resident = spread(samples, |sample| Some(sample.get("resident")? / 1e6))?.median;
        let [one, newest, range] = [micros("one")?, micros("newest")?, micros("range")?];
        println!("| {store} | {one} | {newest} | {range} | {resident:.0} |");
    }
    Ok(())
}

/// Fails if Bine is below its limits.
fn check_limits(samples: &HashMap<(&str, &str), Vec<Sample>>) -> Result<()> {
    let measured = (samples.get(&(SINGLE, BINE)), samples.get(&(SINGLE, FLOOR)));
    if let (Some(own), Some(floor)) = measured {
        let share = shares(own, floor)?.median;
        ensure!(share >= LEAST_SHARE, "{SINGLE}: {share:.2} of the floor's rate");
    }
    if let Some(own) = samples.get(&("interval-64", BINE)) {
        let rate = spread(own, rate)?.median;
        ensure!(rate >= LEAST_RATE, "interval-64: {rate:.0} rows/s");
    }
    Ok(())
}

/// The ratio of each rate to the floor's of the same round.
fn shares(samples: &[Sample], floor: &[Sample]) -> Result<Spread> {
    let pairs = samples.iter().zip(floor);
    Spread::of(pairs.filter_map(|(own, floor)| Some(rate(own)? / rate(floor)?)))
        .context("no samples")
}

fn spread(samples: &[Sample], figure: impl Fn(&Sample) -> Option<f64>) -> Result<Spread> {
    let figures: Option<Vec<f64>> = samples.iter().map(figure).collect();
    Spread::of(figures.context("a sample lacks a figure")?).context("no samples")
}

/// Rows per second.
fn rate(sample: &Sample) -> Option<f64> {
    Some(sample.get("rows")? / sample.get("seconds")?)
}
