//! One trial of an attack: its windows, the requests of normal clients, and the server's resource
//! usage.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::figures::Latencies;
use crate::servers::Running;
use crate::tools::{pause, take_priority};

/// The sampling interval of the server's memory and CPU time.
const SAMPLED_EVERY: Duration = Duration::from_millis(200);
/// A p99 below this is never a failure: with two cores for server, attackers and clients, a client
/// sometimes waits this long for its turn.
pub(super) const FLOOR: Duration = Duration::from_millis(10);
/// The highest p99 of a normal client, as a multiple of the calm one.
pub(super) const TOLERANCE: u32 = 2;
/// The factor by which memory may exceed its limit.
pub(super) const EXCESS: f64 = 1.1;

/// The server's response to one request of a normal client.
pub(super) enum Outcome {
    Served,
    /// A status that asks the client to retry: 429, 503, 507, or 413.
    Refused(u16),
}

/// A normal client: sends a request every `interval`.
pub(super) struct Client<'run> {
    pub(super) name: &'static str,
    pub(super) interval: Duration,
    pub(super) request: Box<dyn FnMut() -> Result<Outcome> + Send + 'run>,
}

/// An attack. Ends soon after its argument is set, and returns a description.
pub(super) type Attack<'run> = Box<dyn FnOnce(&AtomicBool) -> Result<String> + Send + 'run>;

/// The lengths of the windows.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    pub(super) calm: Duration,
    pub(super) attacked: Duration,
}

/// One request of a normal client.
struct Request {
    /// The time since the trial began.
    at: Duration,
    took: Duration,
    end: End,
}

enum End {
    Served,
    Refused,
    Failed,
}

/// The requests of one client.
pub(super) struct Record {
    pub(super) name: &'static str,
    interval: Duration,
    requests: Vec<Request>,
    /// The reason of the first failed or refused request.
    pub(super) first_failure: Option<String>,
}

/// The server's resource usage at one moment.
pub(super) struct Usage {
    pub(super) at: Duration,
    /// In KiB.
    pub(super) resident: u64,
    /// In seconds.
    pub(super) cpu: f64,
}

/// The results of one trial.
pub(super) struct Trial {
    pub(super) windows: Windows,
    pub(super) records: Vec<Record>,
    pub(super) usage: Vec<Usage>,
    /// A description of the attack.
    pub(super) done: String,
}

/// The figures of one client in one window.
pub(super) struct Window {
    latencies: Latencies,
    pub(super) served: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
}

/// Runs the clients for a calm and an attacked window.
pub(super) fn run(
    server: &Running,
    windows: Windows,
    clients: Vec<Client<'_>>,
    attack: Attack<'_>,
) -> Result<Trial> {
    let begun = Instant::now();
    let stop = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    let usage = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let clients: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| client.measure(begun, &over)))
            .collect();
        let sampler = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // The clients notice if the server has ended.
                if let (Ok(memory), Ok(cpu)) = (server.memory(), server.cpu()) {
                    let sample = Usage { at: begun.elapsed(), resident: memory.resident, cpu };
                    usage.lock().expect("only pushed to").push(sample);
                }
                pause(SAMPLED_EVERY);
            }
        });
        pause(windows.calm);
        let attacker = scope.spawn(|| attack(&stop));
        pause((windows.calm + windows.attacked).saturating_sub(begun.elapsed()));
        stop.store(true, Ordering::Relaxed);
        let done = attacker.join();
        over.store(true, Ordering::Relaxed);
        let ended = |_| anyhow!("a thread of the trial panicked");
        let records = clients.into_iter().map(|client| client.join().map_err(ended));
        let records = records.collect::<Result<_>>()?;
        sampler.join().map_err(ended)?;
        let done = done.map_err(ended)??;
        let usage = std::mem::take(&mut *usage.lock().expect("its thread has ended"));
        Ok(Trial { windows, records, usage, done })
    })
}

impl Client<'_> {
    fn measure(mut self, begun: Instant, over: &AtomicBool) -> Record {
        // Granted to root; without it, the client competes with the attackers for its core.
        let _ = take_priority();
        let Self { name, interval, .. } = self;
        let mut record = Record { name, interval, requests: Vec::new(), first_failure: None };
        let mut due = Instant::now();
        while !over.load(Ordering::Relaxed) {
            pause(due.saturating_duration_since(Instant::now()));
            let at = begun.elapsed();
            let (end, failure) = match (self.request)() {
                Ok(Outcome::Served) => (End::Served, None),
                Ok(Outcome::Refused(status)) => (End::Refused, Some(format!("answered {status}"))),
                Err(error) => (End::Failed, Some(format!("{error:#}"))),
            };
            let took = begun.elapsed().saturating_sub(at);
            if let Some(failure) = failure {
                record
                    .first_failure
                    .get_or_insert(format!("at {:.1} s: {failure}", at.as_secs_f64()));
            }
            record.requests.push(Request { at, took, end });
            // Requests that were due meanwhile are not repeated; `Latencies` accounts for them.
            due = (due + interval).max(Instant::now());
        }
        record
    }
}

impl Record {
    /// The requests sent from `begin` until `end`.
    pub(super) fn between(&self, begin: Duration, end: Duration) -> Window {
        let all = self.requests.iter().filter(|request| (begin..end).contains(&request.at));
        let mut window =
            Window { latencies: Latencies::default(), served: 0, refused: 0, failed: 0 };
        let mut times = Vec::new();
        for request in all {
            times.push(request.took);
            match request.end {
                End::Served => window.served += 1,
                End::Refused => window.refused += 1,
                End::Failed => window.failed += 1,
            }
        }
        window.latencies = Latencies::of(times, self.interval);
        window
    }
}

impl Window {
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        self.latencies.percentile(percent)
    }
}

impl Trial {
    pub(super) fn calm(&self, record: &Record) -> Window {
        record.between(Duration::ZERO, self.windows.calm)
    }

    pub(super) fn attacked(&self, record: &Record) -> Window {
        record.between(self.windows.calm, self.windows.calm + self.windows.attacked)
    }

    /// The memory at the beginning of the attack and the highest memory, in MiB.
    pub(super) fn memory(&self) -> [f64; 2] {
        let calm = self.usage.iter().take_while(|usage| usage.at < self.windows.calm);
        let before = calm.last().map_or(0, |usage| usage.resident);
        let most = self.usage.iter().map(|usage| usage.resident).max().unwrap_or(0);
        [before, most].map(|kibibytes| kibibytes as f64 / 1024.0)
    }

    /// The server's CPU time between two moments, in seconds.
    pub(super) fn cpu(&self, begin: Duration, end: Duration) -> f64 {
        let mut inside = self.usage.iter().filter(|usage| usage.at >= begin && usage.at < end);
        let first = inside.next();
        let last = inside.next_back().or(first);
        first.zip(last).map_or(0.0, |(first, last)| last.cpu - first.cpu)
    }

    /// The harm to normal clients.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for record in &self.records {
            let (calm, attacked) = (self.calm(record), self.attacked(record));
            let name = record.name;
            let first = record.first_failure.as_deref().unwrap_or_default();
            let bound = (calm.percentile(99) * TOLERANCE).max(FLOOR);
            let p99 = attacked.percentile(99);
            if p99 > bound {
                faults.push(format!("{name}: p99 {p99:.1?}, bound {bound:.1?}"));
            }
            let lost = attacked.refused + attacked.failed;
            if lost > 0 {
                let all = attacked.served + lost;
                faults.push(format!("{name}: {lost} of {all} requests not served, first {first}"));
            }
            if calm.served == 0 {
                faults.push(format!("{name}: not served without the attack either, {first}"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(times: &[(u64, u64)]) -> Record {
        let millis = Duration::from_millis;
        let requests = times
            .iter()
            .map(|&(at, took)| Request { at: millis(at), took: millis(took), end: End::Served })
            .collect();
        Record { name: "a client", interval: Duration::from_secs(9), requests, first_failure: None }
    }

    fn trial(times: &[(u64, u64)]) -> Trial {
        let windows = Windows { calm: Duration::from_secs(1), attacked: Duration::from_secs(1) };
        Trial { windows, records: vec![record(times)], usage: Vec::new(), done: String::new() }
    }

    #[test]
    fn counts_a_request_in_the_window_of_its_start() {
        let trial = trial(&[(0, 5), (999, 700), (1000, 8), (2500, 9)]);
        assert_eq!(trial.calm(&trial.records[0]).served, 2);
        assert_eq!(trial.attacked(&trial.records[0]).percentile(99), Duration::from_millis(8));
    }

    #[test]
    fn reports_a_p99_above_twice_the_calm_one_and_above_the_floor() {
        assert_eq!(trial(&[(0, 1), (1000, 9)]).faults(), Vec::<String>::new());
        assert_eq!(trial(&[(0, 30), (1000, 60)]).faults(), Vec::<String>::new());
        assert_eq!(trial(&[(0, 30), (1000, 61)]).faults().len(), 1);
    }
}
