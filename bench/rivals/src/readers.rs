//! The reads, and the time that one thread spends on them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::usage;
use crate::work::{Reader, Rival, Rows};

/// The number of rows in the table.
const ROWS: usize = 100_000;
/// Rows per commit while the table is filled.
const PIECE: usize = 1000;
/// The number of rows that a page lists.
const LISTED: usize = 50;
/// Reads between two looks at the clock.
const TURN: u32 = 200;
const WARM_UP: Duration = Duration::from_millis(300);

/// Fills the table.
pub(crate) fn fill(rival: &dyn Rival) -> Result<()> {
    let mut writer = rival.writer()?;
    let mut made = Rows(1);
    for _ in 0..ROWS / PIECE {
        writer.commit(made.next(PIECE))?;
    }
    drop(writer);
    rival.sync()
}

/// Measures the CPU seconds per read of each kind.
pub(crate) fn run(rival: &dyn Rival, seconds: u64) -> Result<String> {
    let mut reader = rival.reader()?;
    let ids: Vec<u128> = reader.newest(ROWS)?.iter().map(|row| row.id).collect();
    ensure!(ids.len() == ROWS, "{} of {ROWS} rows were found", ids.len());
    let time = Duration::from_secs(seconds);
    let mut made = Rows(7);
    let one = each(&mut *reader, time, |reader| {
        let id = ids[(made.draw() % ROWS as u64) as usize];
        let row = reader.row(id)?.context("a row was not found")?;
        ensure!(black_box(row).body.len() == 76, "a row has changed");
        Ok(())
    })?;
    let newest = each(&mut *reader, time, |reader| {
        let rows = reader.newest(LISTED)?;
        ensure!(black_box(rows).len() == LISTED, "the newest rows were not found");
        Ok(())
    })?;
    let range = each(&mut *reader, time, |reader| {
        // A number below half of the maximum, so that rows follow it in signed and in unsigned
        // order.
        let rows = reader.range(made.draw() >> 1, LISTED)?;
        black_box(rows);
        Ok(())
    })?;
    let resident = usage::resident()?;
    Ok(format!("one {one} newest {newest} range {range} resident {resident}"))
}

fn each(
    reader: &mut dyn Reader,
    time: Duration,
    mut read: impl FnMut(&mut dyn Reader) -> Result<()>,
) -> Result<f64> {
    let mut reads = |time: Duration| -> Result<f64> {
        let (began, cpu, mut count) = (Instant::now(), usage::cpu(), 0);
        while began.elapsed() < time {
            for _ in 0..TURN {
                read(reader)?;
            }
            count += TURN;
        }
        Ok((usage::cpu() - cpu) / f64::from(count))
    };
    reads(WARM_UP)?;
    reads(time)
}
