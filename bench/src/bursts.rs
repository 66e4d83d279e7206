//! A load of short sessions that arrive at a rate, each on a new connection, and the cost of this
//! load for a server.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::emulator::script::{Page, Parts, Request, Script};
use crate::emulator::{Run, Stretch, Tally};
use crate::servers::Running;
use crate::tools::pause;

/// Sockets of the load generator.
const SOCKETS: usize = 15_000;
/// The time between two samples of memory.
const SAMPLE: Duration = Duration::from_millis(200);
const SEED: u64 = 1;

/// A load.
pub(crate) struct Bursts<'run> {
    /// The processes of the server; more than one program for a cache with its origin.
    pub(crate) running: &'run [Running],
    pub(crate) port: u16,
    pub(crate) path: &'static str,
    /// Requests of a session, without pauses.
    pub(crate) requests: u64,
    /// The time limit for a response.
    pub(crate) patience: Duration,
    /// Sessions per second. They arrive at random, whether or not the server keeps up.
    pub(crate) rate: f64,
    pub(crate) seconds: u64,
    /// The time after the load in which its connections end.
    pub(crate) drain: Duration,
}

/// The results of a load.
pub(crate) struct BurstCosts {
    /// Counts all but the first fifth of the load, which is the way up.
    pub(crate) tally: Tally,
    /// Responses of the whole load.
    pub(crate) replies: f64,
    /// CPU time of the server, in seconds.
    pub(crate) cpu: f64,
    /// Proportional memory in KiB before the load, and the most during it.
    pub(crate) before: u64,
    pub(crate) peak: u64,
}

impl Bursts<'_> {
    /// Loads the server, while a second thread samples the memory of the server.
    pub(crate) fn measure(&self) -> Result<BurstCosts> {
        let length = Duration::from_secs(self.seconds);
        let load = Run {
            port: self.port,
            load: vec![
                Stretch { length, rate: self.rate },
                Stretch { length: self.drain, rate: 0.0 },
            ],
            window: length / 5..length,
            patience: self.patience,
            sockets: SOCKETS,
            seed: SEED,
            is_secure: false,
            bounds: &[],
        };
        let before = memory(self.running)?;
        let (peak, is_over) = (AtomicU64::new(before), AtomicBool::new(false));
        let begun = cpu(self.running)?;
        let (path, requests) = (self.path, self.requests);
        let tally = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // A process may end meanwhile.
                    peak.fetch_max(memory(self.running).unwrap_or(0), Ordering::Relaxed);
                    pause(SAMPLE);
                }
            });
            let tally =
                load.emulate(&mut |_| Box::new(Burst { path, left: requests, length: requests }));
            is_over.store(true, Ordering::Relaxed);
            tally
        })?;
        let replies = tally.slots.iter().map(|slot| slot.replies).sum::<u64>() as f64;
        let cpu = cpu(self.running)? - begun;
        Ok(BurstCosts { tally, replies, cpu, before, peak: peak.into_inner() })
    }
}

impl BurstCosts {
    /// The length of the counted part, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.tally.window.end.saturating_sub(self.tally.window.start).as_secs_f64()
    }
}

/// A session of some requests without a pause.
struct Burst {
    path: &'static str,
    left: u64,
    length: u64,
}

impl Script for Burst {
    fn next(&mut self) -> Option<Page> {
        self.left = self.left.checked_sub(1)?;
        Some(Page { wait: 0.0, request: Request::get(self.path) })
    }

    fn parts(&mut self, _: &[u8]) -> Parts {
        Parts::default()
    }

    fn reads(&self) -> bool {
        false
    }

    fn length(&self) -> u64 {
        self.length
    }
}

/// The CPU seconds of all processes so far.
pub(crate) fn cpu(running: &[Running]) -> Result<f64> {
    running.iter().map(Running::cpu).sum()
}

/// The ids of all processes.
pub(crate) fn processes(running: &[Running]) -> Result<Vec<u32>> {
    let all: Vec<Vec<u32>> = running.iter().map(Running::processes).collect::<Result<_>>()?;
    Ok(all.concat())
}

/// The proportional memory of all processes, in KiB: pages that several share count once.
fn memory(running: &[Running]) -> Result<u64> {
    let mut sum = 0;
    for process in processes(running)? {
        let path = format!("/proc/{process}/smaps_rollup");
        // The process may have ended.
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let word = line.and_then(|line| line.split_whitespace().next());
        sum += word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// The ticks for which core 1, that of the load generator, has been busy.
pub(crate) fn busy_of_core_1() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu1 "));
    let line = line.context("the kernel has no core 1: benchmarks need two cores")?;
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // User, nice, system, idle, waiting for a disk, interrupts; guests are part of the first two.
    Ok([0, 1, 2, 5, 6, 7].into_iter().filter_map(|place| ticks.get(place)).sum())
}
