//! How often a filter has exceeded its limits, and whether it is run.

use std::time::{Duration, Instant};

/// A filter that has exceeded its limit this often within [`BREACH_INTERVAL`] is not run for
/// [`SUSPENSION`], so that it takes no time from other requests of the thread.
const MAX_BREACHES: usize = 3;
const BREACH_INTERVAL: Duration = Duration::from_secs(10);
const SUSPENSION: Duration = Duration::from_secs(5);

/// When a filter has exceeded its limit, as far as that still matters. At most [`MAX_BREACHES`] times.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<Instant>);

impl Breaches {
    /// Notes that the filter has exceeded its limit.
    pub(super) fn note(&mut self, now: Instant) {
        if self.0.len() == MAX_BREACHES {
            self.0.remove(0);
        }
        self.0.push(now);
    }

    /// Whether the filter has exceeded its limit too often to be run now.
    pub(super) fn is_suspended(&mut self, now: Instant) -> bool {
        let Some(last) = self.0.last() else { return false };
        if self.0.len() == MAX_BREACHES {
            if now.saturating_duration_since(*last) < SUSPENSION {
                return true;
            }
            // It may try again, and is suspended at its next breach.
            self.0.remove(0);
        }
        self.0.retain(|breach| now.saturating_duration_since(*breach) < BREACH_INTERVAL);
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn suspends_at_the_third_breach_and_again_at_the_next_one() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut breaches = Breaches::default();
        for time in [0, 1000, 2000] {
            assert!(!breaches.is_suspended(at(time)), "{time}");
            breaches.note(at(time));
        }
        assert!(breaches.is_suspended(at(2000)));
        assert!(breaches.is_suspended(at(6999)));
        assert!(!breaches.is_suspended(at(7000)));
        breaches.note(at(7001));
        assert!(breaches.is_suspended(at(7001)));
        assert!(!breaches.is_suspended(at(12_001)));
        // After a rest it begins anew.
        let rested = start + 3 * DAY;
        assert!(!breaches.is_suspended(rested));
        breaches.note(rested);
        assert!(!breaches.is_suspended(rested));
    }

    /// A request after some milliseconds, and whether the filter exceeds its limit if it runs.
    fn requests() -> impl Strategy<Value = Vec<(u64, bool)>> {
        let rest = prop_oneof![
            8 => 0..200_u64,
            4 => 0..4_000_u64,
            2 => 0..20_000_u64,
            1 => 0..86_400_000_u64,
        ];
        proptest::collection::vec((rest, any::<bool>()), 1..300)
    }

    fn count_within(times: &[Instant], now: Instant, span: Duration) -> usize {
        times.iter().filter(|time| now - **time < span).count()
    }

    proptest! {
        /// Days of requests in bursts and rests.
        #[test]
        fn runs_a_filter_unless_it_has_just_exceeded_its_limit_often(requests in requests()) {
            let mut now = Instant::now();
            let (mut breaches, mut times) = (Breaches::default(), Vec::<Instant>::new());
            for (rest, fails) in requests {
                now += Duration::from_millis(rest);
                let is_suspended = breaches.is_suspended(now);
                if is_suspended {
                    // It has exceeded its limit within the time of a suspension, and often before it.
                    prop_assert!(count_within(&times, now, SUSPENSION) > 0);
                    let most = BREACH_INTERVAL + 2 * SUSPENSION;
                    prop_assert!(count_within(&times, now, most) >= MAX_BREACHES, "{times:?}");
                } else if fails {
                    breaches.note(now);
                    times.push(now);
                }
                prop_assert!(breaches.0.len() <= MAX_BREACHES);
                // It never runs more often in vain than the limit allows.
                prop_assert!(count_within(&times, now, SUSPENSION) <= MAX_BREACHES);
            }
        }
    }
}
