//! Numbers of this server, sampled once a second while a page shows them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine::{ServerHandle, ServerStats, Signal};

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The sampler ends after this many samples that no render has read.
const MAX_UNREAD: u32 = 3;
/// The seconds that the curve of requests covers.
pub(crate) const HISTORY: usize = 60;

/// The sampled numbers of a server. All clones share them.
#[derive(Clone, Default)]
pub(crate) struct LiveNumbers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Notifies the regions that show the numbers.
    sampled: Signal<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_sampling: bool,
    /// Samples since a render has read the numbers.
    unread: u32,
    latest: Option<(Instant, ServerStats)>,
    /// Requests per second, the newest last.
    rates: VecDeque<f64>,
    page_time: Duration,
}

/// The numbers at one moment.
pub(crate) struct Numbers {
    /// `None`: no server runs.
    pub(crate) stats: Option<ServerStats>,
    /// Requests in each second of the recent past, the newest last; at most [`HISTORY`].
    pub(crate) rates: Vec<f64>,
    /// How long the latest front page took to write, up to its numbers.
    pub(crate) page_time: Duration,
}

impl LiveNumbers {
    /// Reads the numbers in the front page, whose writing began at `started`.
    pub(crate) fn read_in_front_page(&self, server: &ServerHandle, started: Instant) -> Numbers {
        self.state().page_time = started.elapsed();
        self.read(server)
    }

    /// Reads the numbers in a render, which the next sample repeats if a browser follows the page.
    pub(crate) fn read(&self, server: &ServerHandle) -> Numbers {
        self.0.sampled.with(|()| {});
        let mut state = self.state();
        state.unread = 0;
        if !state.is_sampling {
            state.rates.clear();
            state.latest = server.stats().map(|stats| (Instant::now(), stats));
            let (own, server) = (self.clone(), server.clone());
            let sampler = thread::Builder::new().name("demo-numbers".into());
            // Without a thread the page shows the numbers of its request.
            state.is_sampling =
                state.latest.is_some() && sampler.spawn(move || own.sample(&server)).is_ok();
        }
        let stats = state.latest.map(|(_, stats)| stats);
        let rates = state.rates.iter().copied().collect();
        Numbers { stats, rates, page_time: state.page_time }
    }

    fn sample(&self, server: &ServerHandle) {
        loop {
            // Nothing unparks this thread; a spurious wake only shortens one interval.
            thread::park_timeout(INTERVAL);
            let now = server.stats().map(|stats| (Instant::now(), stats));
            if !self.state().add(now) {
                return;
            }
            self.0.sampled.notify();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a sample. Returns whether sampling continues: it ends with the server, and when no
    /// render has read the numbers for some time.
    fn add(&mut self, sample: Option<(Instant, ServerStats)>) -> bool {
        let before = std::mem::replace(&mut self.latest, sample);
        self.unread += 1;
        self.is_sampling = sample.is_some() && self.unread <= MAX_UNREAD;
        if let (Some((before, old)), Some((now, new))) = (before, sample) {
            let seconds = now.duration_since(before).as_secs_f64().max(0.001);
            if self.rates.len() == HISTORY {
                self.rates.pop_front();
            }
            self.rates.push_back(new.requests.saturating_sub(old.requests) as f64 / seconds);
        }
        self.is_sampling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(requests: u64) -> ServerStats {
        let cpu_time = Duration::ZERO;
        ServerStats { connections: 1, requests, sent_bytes: 0, cpu_time, resident_bytes: None }
    }

    #[test]
    fn computes_requests_per_second_and_keeps_a_minute_of_them() {
        let start = Instant::now();
        let mut state = State { latest: Some((start, stats(10))), ..State::default() };
        for second in 1..=2 * HISTORY as u64 {
            state.unread = 0;
            let now = start + Duration::from_secs(2 * second);
            assert!(state.add(Some((now, stats(10 + 3 * second)))));
        }
        assert_eq!(state.rates, vec![1.5; HISTORY]);
    }

    #[test]
    fn ends_without_readers_and_without_a_server() {
        let mut state = State::default();
        let mut sample = || state.add(Some((Instant::now(), stats(0))));
        let continued: Vec<bool> = (0..=MAX_UNREAD).map(|_| sample()).collect();
        assert_eq!(continued, [true, true, true, false]);
        assert!(!State::default().add(None));
    }
}
