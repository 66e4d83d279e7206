//! The pace of a view's renders: a few may start without a pause; while changes last, one starts in
//! each interval, and it shows all changes since the one before.

use std::time::{Duration, Instant};

/// When a view may render again. Each render owes one interval, and time pays it off.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// Renders that may start without a pause, at least one.
    burst: u32,
    /// When the last render began.
    began: Instant,
    /// What the renders owed when it began, its own interval included.
    owed: Duration,
}

/// The interval of a page that costs little: a screen shows 60 frames a second, so a browser has no
/// use for more.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(16);
/// The interval of a page that costs much.
const MAX_INTERVAL: Duration = Duration::from_millis(40);
/// The interval after a failed render, and of a page that changes tables while it renders.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Renders that may start without a pause.
const BURST: u32 = 8;
/// The interval is as many times as long as a render and its deliveries, so that one view has an
/// eighth of a core, unless `MAX_INTERVAL` gives it more.
const INTERVAL_PER_COST: u32 = 8;
/// CPU time of a delivery to one follower, measured with 1 000: docs/measurements/board/board.md.
const DELIVERY_COST: Duration = Duration::from_micros(5);

impl Pace {
    /// The pace of a view whose first render begins now.
    pub(super) const fn new(now: Instant) -> Self {
        Self { interval: MAX_INTERVAL, burst: BURST, began: now, owed: MAX_INTERVAL }
    }

    /// When the next render may start, if not before `now`.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let allowance = self.interval * (self.burst - 1);
        now.max(self.began + self.owed.saturating_sub(allowance))
    }

    /// Notes that a render begins.
    pub(super) fn begin(&mut self, now: Instant) {
        let paid = now.saturating_duration_since(self.began);
        (self.owed, self.began) = (self.owed.saturating_sub(paid) + self.interval, now);
    }

    /// Sets the interval by the run time of a render and the number of clients that receive it.
    pub(super) fn adjust(&mut self, cost: Duration, followers: usize) {
        let followers = u32::try_from(followers).unwrap_or(u32::MAX);
        let cost = cost.saturating_add(DELIVERY_COST.saturating_mul(followers));
        let interval = cost.saturating_mul(INTERVAL_PER_COST).clamp(MIN_INTERVAL, MAX_INTERVAL);
        // As many renders are owed as before. Less than ten seconds are owed, so nothing overflows.
        let scaled = self.owed.as_nanos() * interval.as_nanos() / self.interval.as_nanos();
        self.owed = Duration::from_nanos(scaled as u64);
        (self.interval, self.burst) = (interval, BURST);
    }

    /// Lets one render start in each [`RETRY_INTERVAL`], without a burst.
    pub(super) const fn slow_down(&mut self) {
        (self.interval, self.burst, self.owed) = (RETRY_INTERVAL, 1, RETRY_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    /// How many renders start until `end`, in milliseconds, if changes come all the time.
    fn count(pace: &mut Pace, start: Instant, end: u32) -> usize {
        let starts = (0..end).filter(|passed| {
            let now = start + MILLISECOND * *passed;
            let starts = pace.next(now) <= now;
            if starts {
                pace.begin(now);
            }
            starts
        });
        starts.count()
    }

    #[test]
    fn starts_a_burst_at_once_and_then_one_render_in_each_interval() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.adjust(Duration::ZERO, 1);
        // The render of the first client is one of the burst.
        assert_eq!(count(&mut pace, start, 1), 1);
        assert_eq!(count(&mut pace, start, 16), 6);
        // 984 ms more.
        assert_eq!(count(&mut pace, start + MILLISECOND * 16, 984), 62);
        let mut pace = Pace::new(start);
        pace.adjust(Duration::ZERO, 1_000_000);
        assert_eq!(count(&mut pace, start, 10_000), 7 + 249);
    }

    #[test]
    fn rest_of_any_length_allows_one_burst() {
        for rest in [SECOND, SECOND * 86_400 * 3650] {
            let start = Instant::now();
            let mut pace = Pace::new(start);
            pace.adjust(Duration::ZERO, 1);
            count(&mut pace, start, 10_000);
            let later = start + SECOND * 10 + rest;
            assert_eq!(pace.next(later), later);
            let at_once = (0..100).filter(|_| {
                let starts = pace.next(later) <= later;
                if starts {
                    pace.begin(later);
                }
                starts
            });
            assert_eq!(at_once.count(), BURST as usize, "{rest:?}");
        }
    }

    #[test]
    fn interval_follows_the_cost() {
        let mut pace = Pace::new(Instant::now());
        let mut interval = |cost, followers| {
            pace.adjust(cost, followers);
            pace.interval
        };
        assert_eq!(interval(Duration::ZERO, 0), MIN_INTERVAL);
        assert_eq!(interval(MILLISECOND * 2, 0), MIN_INTERVAL);
        assert_eq!(interval(MILLISECOND * 3, 0), MILLISECOND * 24);
        assert_eq!(interval(MILLISECOND, 400), MILLISECOND * 24);
        assert_eq!(interval(MILLISECOND, 1000), MAX_INTERVAL);
        assert_eq!(interval(Duration::MAX, usize::MAX), MAX_INTERVAL);
    }

    #[test]
    fn owes_as_many_renders_after_a_change_of_the_interval() {
        let start = Instant::now();
        for (before, after, expected) in [(1000, 0, MIN_INTERVAL), (0, 1000, MAX_INTERVAL)] {
            let mut pace = Pace::new(start);
            pace.adjust(MILLISECOND, before);
            (1..BURST).for_each(|_| pace.begin(start));
            pace.adjust(MILLISECOND, after);
            // The burst is used up, by the new interval too.
            assert_eq!(pace.next(start), start + expected);
        }
    }

    #[test]
    fn slow_pace_has_no_burst() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.slow_down();
        assert_eq!(pace.next(start), start + SECOND);
        pace.begin(start + SECOND);
        assert_eq!(pace.next(start + SECOND), start + SECOND * 2);
        pace.begin(start + SECOND * 2);
        // After a burst the pause is no longer.
        let mut busy = Pace::new(start);
        (0..BURST).for_each(|_| busy.begin(start));
        busy.slow_down();
        assert_eq!(busy.next(start), start + SECOND);
        // It is over: the next renders may start at once again.
        pace.adjust(Duration::ZERO, 1);
        assert_eq!(pace.next(start + SECOND * 2), start + SECOND * 2);
    }
}
