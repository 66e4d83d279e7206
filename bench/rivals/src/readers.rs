//! Decides what is read, and how long one thread is given to do it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::usage;
use crate::work::{Reader, Rival, Rows};

/// In the table.
const ROWS: usize = 100_000;
/// Rows of a commit while it is filled.
const PIECE: usize = 1000;
/// As many as a page lists.
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

/// Seconds of CPU of one read of each kind.
pub(crate) fn run(rival: &dyn Rival, seconds: u64) -> Result<String> {
    let mut reader = rival.reader()?;
    let ids: Vec<u128> = reader.newest(ROWS)?.iter().map(|row| row.id).collect();
    ensure!(ids.len() == ROWS, "{} rows of {ROWS} are found", ids.len());
    let time = Duration::from_secs(seconds);
    let mut made = Rows(7);
    let one = each(&mut *reader, time, |reader| {
        let id = ids[(made.draw() % ROWS as u64) as usize];
        let row = reader.row(id)?.context("a row is not found")?;
        ensure!(black_box(row).body.len() == 76, "a row is not as it was");
        Ok(())
    })?;
    let newest = each(&mut *reader, time, |reader| {
        let rows = reader.newest(LISTED)?;
        ensure!(black_box(rows).len() == LISTED, "newest rows are not found");
        Ok(())
    })?;
    let range = each(&mut *reader, time, |reader| {
        // Half of all numbers, so that it ends within them, with a sign and without.
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
