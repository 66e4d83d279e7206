//! Decides how many workers there may be where nobody has said: more while tasks wait and processors do not.
//!
//! Handlers that wait for a disk or a database need many threads, those that compute about one a core, and most
//! programs have both. Time and what was computed are arguments, so that a simulation can move them.

use std::time::{Duration, Instant};

/// From one look to the next, while tasks wait.
const INTERVAL: Duration = Duration::from_millis(50);
/// Who has not looked for so long knows nothing of the time between.
const STALE: Duration = Duration::from_millis(500);
/// When for so long fewer would have done, there are fewer.
const CALM: Duration = Duration::from_secs(10);
/// Below this share of the cores in use another worker has something to compute on.
const FREE: f64 = 0.92;
/// Above this one, workers only take the cores from each other.
const FULL: f64 = 0.98;

/// How many workers there may be at this moment.
#[derive(Debug)]
pub struct PoolSizer {
    least: usize,
    most: usize,
    size: usize,
    cores: f64,
    looked: Option<Look>,
    grown: Option<Peak>,
}

/// The most that were at work since then.
#[derive(Clone, Copy, Debug)]
struct Peak {
    since: Instant,
    busy: usize,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    computed: Duration,
}

impl PoolSizer {
    /// Between `least` and `most`, on so many cores.
    pub fn new(least: usize, most: usize, cores: usize) -> Self {
        let least = least.max(1);
        let (most, cores) = (most.max(least), cores.max(1) as f64);
        Self { least, most, size: least, cores, looked: None, grown: None }
    }

    /// How many workers there may be.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Whether a task that waits should have it [looked at](Self::look).
    pub fn is_due(&self, now: Instant) -> bool {
        self.most > self.least
            && self.looked.is_none_or(|look| now.saturating_duration_since(look.at) >= INTERVAL)
    }

    /// A task waits. The process has computed for so long in all, on all cores together.
    pub fn look(&mut self, now: Instant, computed: Duration) {
        let Some(before) = self.looked.replace(Look { at: now, computed }) else { return };
        let elapsed = now.saturating_duration_since(before.at);
        if elapsed > STALE {
            return;
        }
        let spent = computed.saturating_sub(before.computed).as_secs_f64();
        let share = spent / elapsed.as_secs_f64() / self.cores;
        if share < FREE {
            self.size = self.most.min(self.size + self.size.div_ceil(4));
            self.grown = Some(Peak { since: now, busy: self.size });
        } else if share > FULL {
            self.size = self.fewer();
        }
    }

    /// Another is at work, `busy` now.
    pub fn began(&mut self, now: Instant, busy: usize) {
        let Some(peak) = &mut self.grown else { return };
        peak.busy = peak.busy.max(busy);
        let Peak { since, busy: most } = *peak;
        if now.saturating_duration_since(since) < CALM {
            return;
        }
        if most <= self.fewer() {
            self.size = self.fewer();
        }
        self.grown = (self.size > self.least).then_some(Peak { since: now, busy });
    }

    fn fewer(&self) -> usize {
        self.least.max(self.size - self.size.div_ceil(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 50 ms, with such a share of two cores in use; the sizes.
    fn sizes(shares: &[(f64, usize)]) -> Vec<usize> {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let (mut now, mut computed) = (Instant::now(), Duration::ZERO);
        assert!(sizer.is_due(now));
        sizer.look(now, computed);
        let mut sizes = Vec::new();
        for (share, count) in shares {
            for _ in 0..*count {
                assert!(!sizer.is_due(now));
                now += INTERVAL;
                computed += INTERVAL.mul_f64(share * 2.0);
                assert!(sizer.is_due(now));
                sizer.look(now, computed);
            }
            sizes.push(sizer.size());
        }
        sizes
    }

    #[test]
    fn it_grows_while_tasks_wait_and_cores_do_not_and_shrinks_when_they_compute() {
        assert_eq!(sizes(&[(0.1, 4), (0.1, 20), (0.9, 20), (1.0, 40)]), [40, 256, 256, 16]);
    }

    #[test]
    fn it_shrinks_to_what_it_takes_when_the_crowd_has_gone() {
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
        assert_eq!(size_with(250, 100), 256, "nobody can be spared");
        let left = size_with(100, 600);
        assert!((100..115).contains(&left), "{left}");
        assert_eq!(size_with(3, 600), 16);
    }

    #[test]
    fn who_computes_has_no_more_than_the_least() {
        assert_eq!(sizes(&[(1.0, 50)]), [16]);
    }

    #[test]
    fn a_look_after_a_pause_decides_nothing() {
        let mut sizer = PoolSizer::new(16, 256, 2);
        let now = Instant::now();
        for minute in 0..10 {
            sizer.look(now + Duration::from_mins(1) * minute, Duration::ZERO);
        }
        assert_eq!(sizer.size(), 16);
    }

    #[test]
    fn a_number_that_was_set_stays() {
        let sizer = PoolSizer::new(4, 0, 2);
        assert_eq!(sizer.size(), 4);
        assert!(!sizer.is_due(Instant::now()));
    }
}
