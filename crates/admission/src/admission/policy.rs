//! Decides how many sessions may be under way at one time. Pure: time and measurements are arguments.
//!
//! Whoever refuses single requests under load finishes short sessions alone (Cherkasova and Phaal; document 001 section
//! 7), so it is sessions that are counted. A session brings more load than its first request, so what one asks for on
//! average is counted for each: the limit is `0.9 * factor * capacity / rate`. The factor falls with the shortest wait of an
//! interval, which is the queue that stands: a wait that is long once is a burst, and will be gone by itself. Without one it
//! goes where six sevenths are in use: with more than that, those who were let in wait for each other.

use std::time::Duration;

use super::Terms;

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// All is calm: nothing is counted, and no reply carries a ticket.
    #[default]
    Asleep,
    /// Sessions are counted and get their tickets; nobody is refused.
    Watching,
    /// The limit is in force.
    Limiting,
}

/// What was measured in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) elapsed: Duration,
    /// Requests that were done.
    pub(super) done: u64,
    /// Requests that sessions have asked for.
    pub(super) asked: u64,
    /// The share at work of the workers, of the loops or of another thread pool, whichever is largest, 0 to 1.
    pub(super) busy: f64,
    /// The share of its cores that this process has used, 0 to 1.
    pub(super) computed: f64,
    /// Nobody was begun without a wait of the terms' length: there is a standing queue.
    pub(super) is_queued: bool,
    /// Sessions under way.
    pub(super) active: usize,
    /// Sessions that were refused.
    pub(super) refused: u64,
}

/// The limit, and all that it is made of.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) terms: Terms,
    state: State,
    factor: f64,
    done: Decaying,
    used: Decaying,
    asked: Decaying,
    active: Decaying,
    /// Seconds for which there are measurements.
    measured: Decaying,
    /// Of the last half second or so.
    recent: f64,
    /// Since something spoke against going back one state.
    calm: Duration,
}

/// What of the capacity is given away: the rest is for what comes by chance.
const SHARE: f64 = 0.9;
/// The factor's bounds, and its steps each [`INTERVAL`]: by half a percent for a queue, and for what is forgotten a tenth.
const FACTORS: (f64, f64) = (0.5, 1.3);
const CUT: f64 = 0.995;
const FORGETTING: f64 = 0.001;
/// The share in use that the limit is to lead to, and how much of what is amiss a step mends.
const TARGET: f64 = 0.86;
const MENDING: f64 = 0.02;
/// The time for which the steps are.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// Measurements count for about so long: shorter, and the limit follows chance.
const MEMORY: Duration = Duration::from_secs(4);
const RECENT: Duration = Duration::from_millis(500);
/// With so little in use the limit may end.
const FREE: f64 = 0.75;
/// With so little in use nothing needs to be counted.
const CALM: f64 = 0.6;
/// For so long nobody must have been refused before the limit ends, or been counted for nothing.
const TO_WATCHING: Duration = Duration::from_secs(2);
const TO_SLEEP: Duration = Duration::from_secs(5);
/// Less than so much of a second of use says nothing of the capacity.
const LEAST_USE: f64 = 0.05;

impl Policy {
    pub(super) const fn new(terms: Terms) -> Self {
        Self {
            terms,
            state: State::Asleep,
            factor: 1.0,
            done: Decaying(0.0),
            used: Decaying(0.0),
            asked: Decaying(0.0),
            active: Decaying(0.0),
            measured: Decaying(0.0),
            recent: 0.0,
            calm: Duration::ZERO,
        }
    }

    /// There may be too much to do.
    pub(super) fn wake(&mut self) {
        if self.state == State::Asleep {
            *self = Self { state: State::Watching, ..Self::new(self.terms.clone()) };
        }
    }

    /// An interval is over.
    pub(super) fn tick(&mut self, sample: &Sample) {
        let Sample { elapsed, is_queued, .. } = *sample;
        let used = if is_queued { 1.0 } else { sample.busy.max(sample.computed).min(1.0) };
        let seconds = elapsed.as_secs_f64();
        self.done.add(sample.done as f64, elapsed);
        self.used.add(used * seconds, elapsed);
        self.asked.add(sample.asked as f64, elapsed);
        self.active.add(sample.active as f64 * seconds, elapsed);
        self.measured.add(seconds, elapsed);
        let fresh = 1.0 - fading(elapsed, RECENT);
        self.recent += (used - self.recent) * fresh;
        let steps = seconds / INTERVAL.as_secs_f64();
        self.adjust(sample, steps);
        self.change_state(sample);
    }

    fn adjust(&mut self, sample: &Sample, steps: f64) {
        let binds = sample.refused > 0 || self.limit().is_some_and(|limit| sample.active >= limit);
        self.factor = if sample.is_queued {
            self.factor * CUT.powf(steps)
        } else if self.state == State::Limiting && binds {
            let mean = self.used.0 / self.measured.0.max(1e-6);
            self.factor + MENDING * (TARGET - mean) * steps
        } else {
            // Nothing is learned from a limit that nobody meets; what a surge has taught is forgotten slowly.
            let toward = FORGETTING * steps;
            self.factor + (1.0 - self.factor).clamp(-toward, toward)
        };
        self.factor = self.factor.clamp(FACTORS.0, FACTORS.1);
    }

    fn change_state(&mut self, sample: &Sample) {
        let bound = match self.state {
            State::Limiting if sample.refused == 0 => FREE,
            State::Limiting => 0.0,
            State::Watching | State::Asleep => CALM,
        };
        let is_calm = !sample.is_queued && self.recent < bound;
        self.calm = if is_calm { self.calm + sample.elapsed } else { Duration::ZERO };
        let next = match self.state {
            // A few peers who ask again as soon as they have their answer keep everything in use: no harm without a queue.
            State::Watching if sample.is_queued => State::Limiting,
            State::Watching if self.calm >= TO_SLEEP => State::Asleep,
            State::Limiting if self.calm >= TO_WATCHING => State::Watching,
            same => same,
        };
        if next != self.state {
            (self.state, self.calm) = (next, Duration::ZERO);
        }
    }

    /// Sessions that may be under way. `None`: too little is known.
    #[expect(clippy::cast_sign_loss, reason = "nothing that was counted is below zero")]
    pub(super) fn limit(&self) -> Option<usize> {
        let sessions = SHARE * self.factor * self.capacity()? / self.rate()?;
        // It saturates, whatever was divided by.
        Some((sessions as usize).clamp(self.terms.least, self.terms.most.max(self.terms.least)))
    }

    /// Whether one more session may begin beside `active`.
    pub(super) fn has_place(&self, active: usize) -> bool {
        match self.state {
            State::Asleep | State::Watching => active < self.terms.most,
            State::Limiting => active < self.limit().unwrap_or(self.terms.least),
        }
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn factor(&self) -> f64 {
        self.factor
    }

    /// The share in use, of the last half second or so.
    pub(super) const fn utilization(&self) -> f64 {
        self.recent
    }

    /// Requests a second that could be done.
    pub(super) fn capacity(&self) -> Option<f64> {
        (self.used.0 >= LEAST_USE).then(|| self.done.0 / self.used.0)
    }

    /// Requests a second that a session under way asks for.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.active.0 > 0.0 && self.asked.0 > 0.0).then(|| self.asked.0 / self.active.0)
    }
}

/// A sum in which what is older than [`MEMORY`] hardly counts. Of two such the quotient is a mean.
#[derive(Clone, Copy, Debug)]
struct Decaying(f64);

impl Decaying {
    fn add(&mut self, value: f64, elapsed: Duration) {
        self.0 = self.0 * fading(elapsed, MEMORY) + value;
    }
}

/// What is left of something after `elapsed`.
fn fading(elapsed: Duration, memory: Duration) -> f64 {
    (-elapsed.as_secs_f64() / memory.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::new(Terms::default());
        policy.wake();
        policy
    }

    /// A hundred requests a second, of which each session asks for one in two seconds.
    fn sample(busy: f64) -> Sample {
        Sample { elapsed: INTERVAL, done: 10, asked: 10, busy, active: 200, ..Sample::default() }
    }

    fn ticks(policy: &mut Policy, count: usize, sample: &Sample) {
        for _ in 0..count {
            policy.tick(sample);
        }
    }

    #[test]
    fn the_limit_is_the_capacity_shared_by_what_sessions_ask_for() {
        let mut policy = policy();
        ticks(&mut policy, 40, &sample(0.5));
        assert!((policy.capacity().unwrap() - 200.0).abs() < 1.0, "{policy:?}");
        assert!((policy.rate().unwrap() - 0.5).abs() < 0.01, "{policy:?}");
        assert!((359..=360).contains(&policy.limit().unwrap()));
        assert!(policy.has_place(10_000), "nobody is refused while it only watches");
    }

    #[test]
    fn what_computes_is_as_full_as_what_waits() {
        let mut policy = policy();
        ticks(&mut policy, 40, &Sample { computed: 0.5, ..sample(0.1) });
        assert!((359..=360).contains(&policy.limit().unwrap()));
    }

    #[test]
    fn a_standing_queue_lowers_the_limit_and_its_end_raises_it() {
        let mut policy = policy();
        let queued = Sample { is_queued: true, ..sample(1.0) };
        policy.tick(&queued);
        assert_eq!((policy.state(), policy.factor()), (State::Limiting, CUT));
        ticks(&mut policy, 1000, &queued);
        assert_eq!((policy.state(), policy.factor()), (State::Limiting, FACTORS.0));
        assert!(!policy.has_place(200));
        ticks(&mut policy, 2000, &Sample { refused: 1, ..sample(0.8) });
        assert!((policy.factor() - FACTORS.1).abs() < 1e-9);
    }

    #[test]
    fn peers_who_keep_everything_in_use_without_a_queue_are_not_refused() {
        let mut policy = policy();
        ticks(&mut policy, 100, &Sample { computed: 1.0, ..sample(1.0) });
        assert_eq!(policy.state(), State::Watching);
        assert!(policy.has_place(10_000), "{policy:?}");
    }

    #[test]
    fn those_who_were_let_in_do_not_fill_it_to_the_brim() {
        let mut policy = policy();
        policy.tick(&Sample { is_queued: true, ..sample(1.0) });
        ticks(&mut policy, 200, &Sample { refused: 1, ..sample(TARGET) });
        let before = policy.factor();
        ticks(&mut policy, 100, &Sample { refused: 1, ..sample(TARGET) });
        assert!((policy.factor() - before).abs() < 0.01, "it is as it should be");
        ticks(&mut policy, 100, &Sample { refused: 1, ..sample(0.95) });
        assert!(policy.factor() < before - 0.05, "{policy:?}");
    }

    #[test]
    fn it_goes_back_to_sleep_within_seconds_of_calm() {
        let mut policy = policy();
        ticks(&mut policy, 10, &Sample { is_queued: true, ..sample(1.0) });
        let calm = sample(0.3);
        let until = |policy: &mut Policy, state| {
            (1..=100).find(|_| {
                policy.tick(&calm);
                policy.state() == state
            })
        };
        assert!(until(&mut policy, State::Watching).unwrap() <= 25);
        assert!(until(&mut policy, State::Asleep).unwrap() <= 51);
    }

    #[test]
    fn nothing_done_at_all_leaves_the_least_places() {
        let mut policy = policy();
        ticks(&mut policy, 100, &Sample { done: 0, is_queued: true, ..sample(1.0) });
        let least = policy.terms.least;
        assert_eq!(policy.limit(), Some(least));
        assert!(policy.has_place(least - 1) && !policy.has_place(least));
    }

    fn samples() -> impl Strategy<Value = Sample> {
        let parts = (0u64..100_000, 0u64..5000, 0u64..5000, 0.0..2.0f64, 0.0..2.0f64);
        (parts, any::<bool>(), 0usize..100_000, 0u64..3).prop_map(
            |((milliseconds, done, asked, busy, computed), is_queued, active, refused)| Sample {
                elapsed: Duration::from_millis(milliseconds),
                done,
                asked,
                busy,
                computed,
                is_queued,
                active,
                refused,
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_is_measured_the_limit_stays_within_its_bounds(
            samples in proptest::collection::vec(samples(), 0..60),
        ) {
            let mut policy = policy();
            for sample in &samples {
                policy.tick(sample);
                prop_assert!(policy.factor() >= FACTORS.0 && policy.factor() <= FACTORS.1);
                if let Some(limit) = policy.limit() {
                    prop_assert!((policy.terms.least..=policy.terms.most).contains(&limit));
                }
                prop_assert!(policy.has_place(0), "there is always a place for one");
            }
        }
    }
}
