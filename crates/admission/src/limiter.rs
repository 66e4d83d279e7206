//! Limits the concurrent runs of one service: the limit falls when the run time rises.
//!
//! The gradient is the long-term run time divided by the present run time, as in Netflix's
//! concurrency limits and Envoy's adaptive concurrency. Time is an argument, so that a simulation
//! can control it.

use std::time::Duration;

/// The lowest limit. With a limit of one, a single hanging run would block the service.
const MIN_LIMIT: f64 = 2.0;
/// The factor by which the run time may rise before the limit falls.
const TOLERANCE: f64 = 1.5;
/// The lowest gradient of one step. With 0.5, as in other implementations, the headroom would leave
/// a hanging service four workers, which is too many of eight.
const MIN_GRADIENT: f64 = 0.25;
/// The weight of a new limit in the smoothed one.
const STEP: f64 = 0.2;
/// The windows of the short and the long average, in runs.
const SHORT: f64 = 16.0;
const LONG: f64 = 512.0;

/// The concurrency limit of one service. The caller reports each run with [`ran`](Self::ran).
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: f64,
    /// The smoothed run time of the last [`SHORT`] runs, in seconds.
    short: f64,
    long: f64,
    /// The number of runs so far, at most [`LONG`].
    runs: f64,
}

impl Limiter {
    /// Creates a limiter whose limit starts at `most`.
    pub fn new(most: usize) -> Self {
        Self { limit: most.max(1) as f64, short: 0.0, long: 0.0, runs: 0.0 }
    }

    /// Records a run that has ended after `run`.
    ///
    /// `running` is the number of concurrent runs, this one included; `most` is the upper bound of
    /// the limit.
    pub fn ran(&mut self, run: Duration, running: usize, most: usize) {
        let run = run.as_secs_f64();
        self.runs = (self.runs + 1.0).min(LONG);
        self.short += (run - self.short) / self.runs.min(SHORT);
        self.long += (run - self.long) / self.runs;
        // The long average follows an improvement faster than a slowdown.
        if self.long > 2.0 * self.short {
            self.long *= 0.95;
        }
        let gradient = self.gradient(self.short);
        let next = gradient * self.limit + self.limit.sqrt();
        // A service that uses less than half of its limit gives no evidence for a higher one.
        if next < self.limit || running as f64 >= self.limit / 2.0 {
            self.limit += STEP * (next - self.limit);
        }
        self.limit = self.limit.min(most as f64).max(MIN_LIMIT);
    }

    /// The number of concurrent runs allowed, at most `most`.
    ///
    /// `age` is the median age of the present runs: the runs of a hanging service never end, so
    /// [`ran`](Self::ran) does not report them.
    #[expect(clippy::cast_sign_loss, reason = "the value is at least two")]
    pub fn limit(&self, age: Duration, most: usize) -> usize {
        let now = self.limit * self.gradient(age.as_secs_f64());
        (now.max(MIN_LIMIT) as usize).min(most).max(1)
    }

    /// The present run time, or zero before the first run has ended.
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.short)
    }

    fn gradient(&self, now: f64) -> f64 {
        if self.runs == 0.0 || now <= 0.0 {
            return 1.0;
        }
        (TOLERANCE * self.long / now).clamp(MIN_GRADIENT, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CALM: Duration = Duration::from_millis(10);

    fn after(runs: &[(Duration, usize)]) -> Limiter {
        let mut limiter = Limiter::new(16);
        for (run, count) in runs {
            for _ in 0..*count {
                let running = limiter.limit(Duration::ZERO, 16);
                limiter.ran(*run, running, 16);
            }
        }
        limiter
    }

    #[test]
    fn keeps_the_maximum_for_steady_run_times() {
        assert_eq!(after(&[(CALM, 1000)]).limit(Duration::ZERO, 16), 16);
        // A service that was always slow is steady too.
        assert_eq!(after(&[(CALM * 100, 1000)]).limit(Duration::ZERO, 16), 16);
    }

    #[test]
    fn falls_to_two_within_24_runs_of_a_hundredfold_slowdown() {
        let slow = after(&[(CALM, 1000), (CALM * 100, 24)]);
        assert_eq!(slow.limit(Duration::ZERO, 16), 2);
    }

    #[test]
    fn restores_the_maximum_after_a_slowdown() {
        let well = after(&[(CALM, 1000), (CALM * 100, 30), (CALM, 200)]);
        assert_eq!(well.limit(Duration::ZERO, 16), 16);
    }

    #[test]
    fn lowers_limit_of_hanging_service_before_a_run_ends() {
        let calm = after(&[(CALM, 1000)]);
        assert_eq!(calm.limit(CALM, 16), 16);
        assert_eq!(calm.limit(CALM * 3, 16), 8);
        assert_eq!(calm.limit(CALM * 100, 16), 4);
        // The first run has no earlier run time to compare with.
        assert_eq!(Limiter::new(16).limit(CALM * 100, 16), 16);
    }

    #[test]
    fn raises_limit_only_for_service_that_uses_half_of_it() {
        let limits = |running| {
            let mut limiter = Limiter::new(36);
            [(); 3].map(|()| {
                limiter.ran(CALM, running, 64);
                limiter.limit(Duration::ZERO, 64)
            })
        };
        assert_eq!(limits(17), [36, 36, 36]);
        // Each step adds a fifth of the square root.
        assert_eq!(limits(18), [37, 37, 37], "18 is less than half of 37.2");
        assert_eq!(limits(36), [37, 38, 39], "37.2, 38.4 and 39.7");
    }

    #[test]
    fn lowers_limit_of_slow_service_that_uses_little_of_it() {
        let mut limiter = after(&[(CALM, 1000)]);
        for _ in 0..24 {
            limiter.ran(CALM * 100, 1, 16);
        }
        assert_eq!(limiter.limit(Duration::ZERO, 16), 2);
    }

    /// A service that was slow until a moment ago has a run time to compare with after 100 runs,
    /// not after thousands.
    #[test]
    fn adapts_to_faster_runs_within_a_hundred_runs() {
        let fast = after(&[(CALM * 100, 1000), (CALM, 100)]);
        assert_eq!(fast.limit(CALM * 10, 16), 5);
    }

    proptest! {
        #[test]
        fn keeps_limit_between_two_and_maximum(
            runs in prop::collection::vec((0u64..10_000_000, 0usize..80), 0..300),
            most in 1usize..64,
            age in 0u64..10_000_000,
        ) {
            let mut limiter = Limiter::new(most);
            for (run, running) in runs {
                limiter.ran(Duration::from_micros(run), running, most);
                let limit = limiter.limit(Duration::from_micros(age), most);
                prop_assert!((2.min(most)..=most).contains(&limit), "{limiter:?}");
            }
        }
    }
}
