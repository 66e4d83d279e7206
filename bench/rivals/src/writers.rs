//! Runs the committing threads, and counts rows and resource usage.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::usage;
use crate::work::{Durability, Rival, Rows};

/// The committing threads; each commits again when its last commit is acknowledged.
pub(crate) const WRITERS: usize = 64;
/// The sync interval of deferred durability.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// Not counted, because files are created and buffers filled.
const WARM_UP: Duration = Duration::from_millis(300);

/// The parameters of a run.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) durability: Durability,
    pub(crate) threads: usize,
    /// Rows per commit.
    pub(crate) rows: usize,
}

/// The counts of a run.
pub(crate) struct Counted {
    /// All acknowledged rows, including those of the warm-up and the end.
    pub(crate) all: u64,
    /// A line of names and figures.
    pub(crate) line: String,
}

/// Writes for this number of seconds, until all rows are durable.
pub(crate) fn run(rival: &dyn Rival, folder: &Path, load: Load, seconds: u64) -> Result<Counted> {
    let acknowledged = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let (_ticking, ticks) = mpsc::channel::<()>();
    let line = thread::scope(|scope| {
        let (acknowledged, is_over) = (&acknowledged, &is_over);
        let mut threads = Vec::new();
        for thread in 1..=load.threads {
            threads.push(scope.spawn(move || -> Result<()> {
                let mut writer = rival.writer()?;
                let mut made = Rows(thread as u64 * 0x9E37_79B9_7F4A_7C15);
                while !is_over.load(Ordering::Relaxed) {
                    writer.commit(made.next(load.rows))?;
                    acknowledged.fetch_add(load.rows as u64, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        if load.durability == Durability::Interval {
            threads.push(scope.spawn(move || -> Result<()> {
                while !is_over.load(Ordering::Relaxed) {
                    if ticks.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                        rival.sync()?;
                    }
                }
                Ok(())
            }));
        }
        let line = count(acknowledged, folder, Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a writer panicked"))??;
        }
        line
    })?;
    rival.sync()?;
    Ok(Counted { all: acknowledged.into_inner(), line })
}

fn count(acknowledged: &AtomicU64, folder: &Path, time: Duration) -> Result<String> {
    pause(WARM_UP);
    let (began, cpu, written) = (Instant::now(), usage::cpu(), usage::written()?);
    let before = acknowledged.load(Ordering::Relaxed);
    pause(time);
    let rows = acknowledged.load(Ordering::Relaxed) - before;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), usage::cpu() - cpu);
    let written = usage::written()? - written;
    let (resident, disk) = (usage::resident()?, usage::on_disk(folder)?);
    let held = before + rows;
    Ok(format!(
        "rows {rows} seconds {seconds} cpu {cpu} written {written} resident {resident} disk {disk} held {held}"
    ))
}

/// Sleeps: a benchmark controls its own pace.
fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the ban protects servers; here time itself is measured"
    )]
    thread::sleep(time);
}
