//! Decides how many runs of one service may be under way at one time: fewer when they take longer than they used to.
//!
//! The gradient is that of Netflix's concurrency limits and Envoy's adaptive concurrency: what a run took over the
//! long term, divided by what it takes now. Time is an argument, so that a simulation can move it.

use std::time::Duration;

/// No service has fewer, or one run that hangs would stop it.
const LEAST: f64 = 2.0;
/// A run may take this much longer than it used to before that counts as slower.
const TOLERANCE: f64 = 1.5;
/// The limit falls to this share at most in one step. With a half, as others have it, the headroom would keep a
/// service that hangs at four workers; of eight that is too many.
const STEEPEST: f64 = 0.25;
/// A new limit counts for this much.
const STEP: f64 = 0.2;
/// Runs that the short and the long average look back on.
const SHORT: f64 = 16.0;
const LONG: f64 = 512.0;

/// The limit of one service. Tell it of each run by [`ran`](Self::ran).
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: f64,
    /// Smoothed run time, seconds.
    short: f64,
    long: f64,
    /// Runs so far, as far as the averages care.
    runs: f64,
}

impl Limiter {
    /// Begins with `most`: nothing is known that speaks against it.
    pub fn new(most: usize) -> Self {
        Self { limit: most.max(1) as f64, short: 0.0, long: 0.0, runs: 0.0 }
    }

    /// A run took so long. `running` were under way, itself included, of `most` that there may ever be.
    pub fn ran(&mut self, run: Duration, running: usize, most: usize) {
        let run = run.as_secs_f64();
        self.runs = (self.runs + 1.0).min(LONG);
        self.short += (run - self.short) / self.runs.min(SHORT);
        self.long += (run - self.long) / self.runs;
        // Better times are believed sooner than worse ones.
        if self.long > 2.0 * self.short {
            self.long *= 0.95;
        }
        let gradient = self.gradient(self.short);
        let next = gradient * self.limit + self.limit.sqrt();
        // Who does not use the limit learns nothing of a higher one.
        if next < self.limit || running as f64 >= self.limit / 2.0 {
            self.limit += STEP * (next - self.limit);
        }
        self.limit = self.limit.min(most as f64).max(LEAST);
    }

    /// How many may run, of `most`. `age` is how long those that run have been at it, in the middle: of a service
    /// that hangs no run ends and tells.
    #[expect(clippy::cast_sign_loss, reason = "it is two at the least")]
    pub fn limit(&self, age: Duration, most: usize) -> usize {
        let now = self.limit * self.gradient(age.as_secs_f64());
        (now.max(LEAST) as usize).min(most).max(1)
    }

    /// What a run takes at present, zero before the first has ended.
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.short)
    }

    fn gradient(&self, now: f64) -> f64 {
        if self.runs == 0.0 || now <= 0.0 {
            return 1.0;
        }
        (TOLERANCE * self.long / now).clamp(STEEPEST, 1.0)
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
    fn a_steady_service_has_all_there_are() {
        assert_eq!(after(&[(CALM, 1000)]).limit(Duration::ZERO, 16), 16);
        // One that is slow and always was is steady too.
        assert_eq!(after(&[(CALM * 100, 1000)]).limit(Duration::ZERO, 16), 16);
    }

    #[test]
    fn a_service_that_gets_a_hundred_times_slower_is_at_two_within_twenty_four_runs() {
        let slow = after(&[(CALM, 1000), (CALM * 100, 24)]);
        assert_eq!(slow.limit(Duration::ZERO, 16), 2);
    }

    #[test]
    fn it_has_all_again_when_it_is_fast_again() {
        let well = after(&[(CALM, 1000), (CALM * 100, 30), (CALM, 200)]);
        assert_eq!(well.limit(Duration::ZERO, 16), 16);
    }

    #[test]
    fn a_service_that_hangs_is_known_before_a_run_ends() {
        let calm = after(&[(CALM, 1000)]);
        assert_eq!(calm.limit(CALM, 16), 16);
        assert_eq!(calm.limit(CALM * 3, 16), 8);
        assert_eq!(calm.limit(CALM * 100, 16), 4);
        // Nothing is known of the first run of all, however long it takes.
        assert_eq!(Limiter::new(16).limit(CALM * 100, 16), 16);
    }

    proptest! {
        #[test]
        fn the_limit_stays_between_two_and_all(
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
