//! Compares the journal with plain appends of the same bytes, both durable.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bine_store::disk::RealFolder;
use bine_store::journal::{FileJournal, Journal, Options, RecoveryEvent};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;

/// Records per group: one writer, a few, and 64.
const GROUPS: [usize; 3] = [1, 16, 64];
const RECORD: [u8; 100] = [b'r'; 100];
/// The lowest accepted ratio of the journal's rate to the floor's.
const LEAST: f64 = 0.6;
/// The sync interval of samples with deferred durability.
const INTERVAL: Duration = Duration::from_millis(100);

/// Writes with the journal and with plain appends in turns, and compares each pair.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 9)?;
    let groups = arguments.number("--groups", 500)?;
    let facts = machine::facts();
    let scratch = Scratch::new()?;
    println!(
        "{facts}\n\n| records a group | journal, records/s | append + fdatasync, records/s | ratio |\n|---|---|---|---|"
    );
    let mut slowest = f64::INFINITY;
    for records in GROUPS {
        let mut samples = Vec::new();
        for round in 0..rounds {
            let folder = scratch.0.join(format!("{records}-{round}"));
            let file = scratch.0.join(format!("{records}-{round}.plain"));
            // The order alternates, because late work of the disk slows the second one.
            let pair = if round % 2 == 0 {
                let journal = journal(&folder, records, groups, true)?;
                (journal, plain(&file, records, groups)?)
            } else {
                let plain = plain(&file, records, groups)?;
                (journal(&folder, records, groups, true)?, plain)
            };
            eprintln!("{records} records, round {}: {:.0} and {:.0}", round + 1, pair.0, pair.1);
            samples.push(pair);
        }
        let spread = |rate: fn(&(f64, f64)) -> f64| {
            Spread::of(samples.iter().map(rate)).context("no samples")
        };
        let (ours, floor) = (spread(|pair| pair.0)?, spread(|pair| pair.1)?);
        let ratio = spread(|pair| pair.0 / pair.1)?;
        println!("| {records} | {:.0} | {:.0} | {ratio} |", ours.median, floor.median);
        slowest = slowest.min(ratio.median);
    }
    let (mut written, mut found) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let folder = scratch.0.join(format!("interval-{round}"));
        written.push(journal(&folder, 64, groups * 20, false)?);
        found.push(read(&folder)?);
    }
    let rate = |rates| Spread::of(rates).context("no samples");
    let (written, found) = (rate(written)?.median, rate(found)?.median);
    println!("| 64, a sync every {} ms | {written:.0} | | |", INTERVAL.as_millis());
    println!("| recovered at a start | {found:.0} | | |");
    ensure!(slowest >= LEAST, "the journal has {slowest:.2} of the floor's rate");
    Ok(())
}

/// Records per second through a journal in a new folder.
fn journal(folder: &Path, records: usize, groups: u64, durably: bool) -> Result<f64> {
    let to_error = |error| anyhow!("{error}");
    let folder = Arc::new(RealFolder::open(folder)?);
    let opened =
        FileJournal::open(folder, Options::default(), &mut |_| Ok(())).map_err(to_error)?;
    let mut journal = opened.journal;
    // The first group creates the segment.
    journal.append(&RECORD).and_then(|_| journal.write(true)).map_err(to_error)?;
    let begun = Instant::now();
    let mut synced = begun;
    for _ in 0..groups {
        for _ in 0..records {
            journal.append(&RECORD).map_err(to_error)?;
        }
        let is_due = durably || synced.elapsed() >= INTERVAL;
        journal.write(is_due).map_err(to_error)?;
        if is_due {
            synced = Instant::now();
        }
    }
    journal.sync().map_err(to_error)?;
    Ok(rate(records, groups, begun))
}

/// Records per second at a start.
fn read(folder: &Path) -> Result<f64> {
    let folder = Arc::new(RealFolder::open(folder)?);
    let begun = Instant::now();
    let mut records = 0;
    let opened = FileJournal::open(folder, Options::default(), &mut |loaded| {
        records += usize::from(matches!(loaded, RecoveryEvent::Record(..)));
        Ok(())
    });
    opened.map_err(|error| anyhow!("{error}"))?;
    Ok(rate(records, 1, begun))
}

/// Records per second with the minimum of work: an append of their bytes and fdatasync.
fn plain(path: &Path, records: usize, groups: u64) -> Result<f64> {
    let mut file = File::options().append(true).create_new(true).open(path)?;
    let group = RECORD.repeat(records);
    file.write_all(&RECORD)?;
    file.sync_data()?;
    let begun = Instant::now();
    for _ in 0..groups {
        file.write_all(&group)?;
        file.sync_data()?;
    }
    Ok(rate(records, groups, begun))
}

fn rate(records: usize, groups: u64, begun: Instant) -> f64 {
    records as f64 * groups as f64 / begun.elapsed().as_secs_f64()
}

/// A scratch folder next to this program, on the measured disk.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let program = std::env::current_exe()?;
        let folder = program.parent().context("a program is in a folder")?;
        let path = folder.join(format!("journal-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
