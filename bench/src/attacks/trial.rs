//! One run of an attack: the windows, what normal clients measure in them, and what the server uses.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::figures::Latencies;
use crate::servers::Running;
use crate::tools::{come_first, pause};

/// How often the server's memory and CPU time are sampled.
const SAMPLED_EVERY: Duration = Duration::from_millis(200);
/// A p99 below this is no fault, whatever the calm one is: with two cores for server, attackers and clients, a
/// client waits this long for its turn now and then.
pub(super) const FLOOR: Duration = Duration::from_millis(10);
/// The p99 of a normal client may be at most this multiple of the calm one.
pub(super) const TOLERANCE: u32 = 2;
/// Memory may exceed its bound by at most this factor.
pub(super) const EXCESS: f64 = 1.1;

/// How the server answered one request of a normal client.
pub(super) enum Outcome {
    Served,
    /// With a status that asks the client to come again: 429, 503, 507, or 413.
    Refused(u16),
}

/// A normal client: makes a request every `interval`.
pub(super) struct Client<'run> {
    pub(super) name: &'static str,
    pub(super) interval: Duration,
    pub(super) request: Box<dyn FnMut() -> Result<Outcome> + Send + 'run>,
}

/// What does harm. Ends soon after its argument is set, and returns what it did.
pub(super) type Attack<'run> = Box<dyn FnOnce(&AtomicBool) -> Result<String> + Send + 'run>;

/// The lengths of the windows.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    pub(super) calm: Duration,
    pub(super) attacked: Duration,
}

/// One request of a normal client.
struct Request {
    /// When it was sent, since the trial began.
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
    /// What the first request that was not served was told.
    pub(super) told: Option<String>,
}

/// What the server used at one moment.
pub(super) struct Usage {
    pub(super) at: Duration,
    /// KiB.
    pub(super) resident: u64,
    /// Seconds.
    pub(super) cpu: f64,
}

/// Everything that was measured in one trial.
pub(super) struct Trial {
    pub(super) windows: Windows,
    pub(super) records: Vec<Record>,
    pub(super) usage: Vec<Usage>,
    /// What the attack did.
    pub(super) done: String,
}

/// The figures of one client in one window.
pub(super) struct Window {
    latencies: Latencies,
    pub(super) served: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
}

/// Runs clients for a calm window and an attacked one.
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
                // A server that has ended is noticed by the clients.
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
        // Granted to root; without it the client competes with the attackers for its core.
        let _ = come_first();
        let Self { name, interval, .. } = self;
        let mut record = Record { name, interval, requests: Vec::new(), told: None };
        let mut due = Instant::now();
        while !over.load(Ordering::Relaxed) {
            pause(due.saturating_duration_since(Instant::now()));
            let at = begun.elapsed();
            let (end, told) = match (self.request)() {
                Ok(Outcome::Served) => (End::Served, None),
                Ok(Outcome::Refused(status)) => (End::Refused, Some(format!("answered {status}"))),
                Err(error) => (End::Failed, Some(format!("{error:#}"))),
            };
            let took = begun.elapsed().saturating_sub(at);
            if let Some(told) = told {
                record.told.get_or_insert(format!("at {:.1} s: {told}", at.as_secs_f64()));
            }
            record.requests.push(Request { at, took, end });
            // Requests that were due meanwhile are not made up for; `Latencies` accounts for them.
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

    /// The most memory that the server had, in MiB, and how much it had when the attack began.
    pub(super) fn memory(&self) -> [f64; 2] {
        let calm = self.usage.iter().take_while(|usage| usage.at < self.windows.calm);
        let before = calm.last().map_or(0, |usage| usage.resident);
        let most = self.usage.iter().map(|usage| usage.resident).max().unwrap_or(0);
        [before, most].map(|kibibytes| kibibytes as f64 / 1024.0)
    }

    /// The seconds of CPU time that the server used between two moments.
    pub(super) fn cpu(&self, begin: Duration, end: Duration) -> f64 {
        let mut inside = self.usage.iter().filter(|usage| usage.at >= begin && usage.at < end);
        let first = inside.next();
        let last = inside.next_back().or(first);
        first.zip(last).map_or(0.0, |(first, last)| last.cpu - first.cpu)
    }

    /// The ways in which the attack harmed normal clients.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for record in &self.records {
            let (calm, attacked) = (self.calm(record), self.attacked(record));
            let name = record.name;
            let told = record.told.as_deref().unwrap_or_default();
            let bound = (calm.percentile(99) * TOLERANCE).max(FLOOR);
            let p99 = attacked.percentile(99);
            if p99 > bound {
                faults.push(format!("{name}: p99 {p99:.1?}, bound {bound:.1?}"));
            }
            let lost = attacked.refused + attacked.failed;
            if lost > 0 {
                let all = attacked.served + lost;
                faults.push(format!("{name}: {lost} of {all} requests not served, first {told}"));
            }
            if calm.served == 0 {
                faults.push(format!("{name}: not served without the attack either, {told}"));
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
        Record { name: "a client", interval: Duration::from_secs(9), requests, told: None }
    }

    fn trial(times: &[(u64, u64)]) -> Trial {
        let windows = Windows { calm: Duration::from_secs(1), attacked: Duration::from_secs(1) };
        Trial { windows, records: vec![record(times)], usage: Vec::new(), done: String::new() }
    }

    #[test]
    fn a_request_belongs_to_the_window_in_which_it_was_sent() {
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
