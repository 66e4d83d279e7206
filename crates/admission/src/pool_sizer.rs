//! Sizes a worker pool without a configured size: it grows while tasks wait and cores are idle.
//!
//! Handlers that wait for a disk or a database need many threads, handlers that compute need about
//! one a core, and most programs have both. Time and CPU time are arguments, so that a simulation
//! can control them.

use std::time::{Duration, Instant};

/// The time between two measurements while tasks wait.
const INTERVAL: Duration = Duration::from_millis(50);
/// A measurement is ignored when the previous one is older than this.
const STALE: Duration = Duration::from_millis(500);
/// The pool shrinks when a smaller size would have sufficed for this long.
const CALM: Duration = Duration::from_secs(10);
/// Below this CPU utilization a new worker still finds an idle core.
const FREE: f64 = 0.92;
/// Above this CPU utilization the workers compete for the cores.
const FULL: f64 = 0.98;

/// The size of a worker pool, between a minimum and a maximum.
#[derive(Debug)]
pub struct PoolSizer {
    least: usize,
    most: usize,
    size: usize,
    cores: f64,
    last_measurement: Option<Measurement>,
    peak_since_growth: Option<Peak>,
}

/// The highest number of busy workers since a given time.
#[derive(Clone, Copy, Debug)]
struct Peak {
    since: Instant,
    busy: usize,
}

#[derive(Clone, Copy, Debug)]
struct Measurement {
    at: Instant,
    computed: Duration,
}

impl PoolSizer {
    /// Creates a sizer between `least` and `most` workers, for a number of cores.
    pub fn new(least: usize, most: usize, cores: usize) -> Self {
        let least = least.max(1);
        let (most, cores) = (most.max(least), cores.max(1) as f64);
        Self { least, most, size: least, cores, last_measurement: None, peak_since_growth: None }
    }

    /// The number of workers allowed.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Whether a waiting task should trigger a [measurement](Self::look).
    pub fn is_due(&self, now: Instant) -> bool {
        self.most > self.least
            && self
                .last_measurement
                .is_none_or(|last| now.saturating_duration_since(last.at) >= INTERVAL)
    }

    /// Measures the utilization because a task waits.
    ///
    /// `computed` is the CPU time of the process since its start, over all cores.
    pub fn look(&mut self, now: Instant, computed: Duration) {
        let Some(before) = self.last_measurement.replace(Measurement { at: now, computed }) else {
            return;
        };
        let elapsed = now.saturating_duration_since(before.at);
        if elapsed > STALE {
            return;
        }
        let cpu_time = computed.saturating_sub(before.computed).as_secs_f64();
        let utilization = cpu_time / elapsed.as_secs_f64() / self.cores;
        if utilization < FREE {
            self.size = self.most.min(self.size + self.size.div_ceil(4));
            self.peak_since_growth = Some(Peak { since: now, busy: self.size });
        } else if utilization > FULL {
            self.size = self.smaller_size();
        }
    }

    /// Records that a worker has started a task, which makes `busy` busy workers.
    pub fn began(&mut self, now: Instant, busy: usize) {
        let Some(peak) = &mut self.peak_since_growth else { return };
        peak.busy = peak.busy.max(busy);
        let Peak { since, busy: most } = *peak;
        if now.saturating_duration_since(since) < CALM {
            return;
        }
        if most <= self.smaller_size() {
            self.size = self.smaller_size();
        }
        self.peak_since_growth = (self.size > self.least).then_some(Peak { since: now, busy });
    }

    fn smaller_size(&self) -> usize {
        self.least.max(self.size - self.size.div_ceil(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures every 50 ms at the given utilization of two cores, and returns the sizes.
    fn sizes(shares: &[(f64, usize)]) -> Vec<usize> {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let (mut now, mut computed) = (Instant::now(), Duration::ZERO);
        assert!(sizer.is_due(now));
        sizer.look(now, computed);
        let mut sizes = Vec::new();
        for (utilization, count) in shares {
            for _ in 0..*count {
                assert!(!sizer.is_due(now));
                now += INTERVAL;
                computed += INTERVAL.mul_f64(utilization * 2.0);
                assert!(sizer.is_due(now));
                sizer.look(now, computed);
            }
            sizes.push(sizer.size());
        }
        sizes
    }

    #[test]
    fn grows_while_cores_are_idle_and_shrinks_while_they_are_full() {
        assert_eq!(sizes(&[(0.1, 4), (0.1, 20), (0.9, 20), (1.0, 40)]), [40, 256, 256, 16]);
    }

    #[test]
    fn shrinks_after_load_drops() {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let mut now = Instant::now();
        for _ in 0..20 {
            sizer.look(now, Duration::ZERO);
            now += INTERVAL;
        }
        let mut size_with = |busy, seconds| {
            for _ in 0..seconds {
                now += Duration::from_secs(1);
                sizer.began(now, busy);
                sizer.began(now, 1);
            }
            sizer.size()
        };
        assert_eq!(size_with(250, 100), 256, "nearly all workers are busy");
        let size = size_with(100, 600);
        assert!((100..115).contains(&size), "{size}");
        assert_eq!(size_with(3, 600), 16);
    }

    #[test]
    fn stays_at_minimum_for_compute_bound_tasks() {
        assert_eq!(sizes(&[(1.0, 50)]), [16]);
    }

    #[test]
    fn ignores_measurement_after_a_pause() {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let now = Instant::now();
        for minute in 0..10 {
            sizer.look(now + Duration::from_mins(1) * minute, Duration::ZERO);
        }
        assert_eq!(sizer.size(), 16);
    }

    #[test]
    fn changes_size_only_beyond_the_bounds_of_utilization() {
        // CPU time in half a second: 92 % and 98 % of one core keep the size.
        for (milliseconds, size) in [(459, 13), (460, 10), (490, 10), (491, 8)] {
            let mut sizer = PoolSizer { size: 10, ..PoolSizer::new(4, 64, 1) };
            let now = Instant::now();
            sizer.look(now, Duration::ZERO);
            sizer.look(now + STALE, Duration::from_millis(milliseconds));
            assert_eq!(sizer.size(), size, "{milliseconds} ms");
        }
    }

    #[test]
    fn shrinks_after_ten_calm_seconds() {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let now = Instant::now();
        sizer.look(now, Duration::ZERO);
        sizer.look(now + INTERVAL, Duration::ZERO);
        sizer.look(now + 2 * INTERVAL, Duration::ZERO);
        let (grown, start) = (sizer.size(), now + 2 * INTERVAL);
        let almost = CALM.saturating_sub(Duration::from_nanos(1));
        sizer.began(start + almost, 1);
        assert_eq!(sizer.size(), grown);
        // All workers counted as busy when the pool grew, so a second period begins.
        sizer.began(start + CALM, 1);
        sizer.began(start + CALM + almost, 1);
        assert_eq!(sizer.size(), grown);
        sizer.began(start + CALM + CALM, 1);
        assert_eq!(sizer.size(), grown - grown.div_ceil(8));
    }

    #[test]
    fn keeps_a_fixed_size() {
        let sizer = PoolSizer::new(4, 0, 2);
        assert_eq!(sizer.size(), 4);
        assert!(!sizer.is_due(Instant::now()));
    }
}
