//! The control loop that limits concurrent sessions. Pure: time and measurements are arguments.
//!
//! A server that rejects single requests under load completes only short sessions (Cherkasova and
//! Phaal; Carrera et al., "A hybrid web server architecture for e-commerce"), so the policy limits
//! sessions. A session brings more load than its first request, so the policy counts the mean
//! request rate for each: the limit is `0.9 * factor * capacity / rate`.
//!
//! The factor falls while there is a standing queue, which the shortest wait of an interval shows:
//! a single long wait is a burst and passes. Without a queue the factor steers the utilization to
//! six sevenths; above that, admitted sessions wait for each other.

use std::time::Duration;

use super::AdmissionSettings;

/// The state of the control loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// No load: admission counts no sessions, and no response carries a ticket.
    #[default]
    Asleep,
    /// Admission counts sessions and issues tickets, and rejects no session below the maximum.
    Watching,
    /// The limit is in force.
    Limiting,
}

/// The measurements of one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) elapsed: Duration,
    /// Completed requests.
    pub(super) done: u64,
    /// Requests received from sessions.
    pub(super) requests: u64,
    /// The highest utilization of the workers, the event loops or a different thread pool, 0 to 1.
    pub(super) busy: f64,
    /// The CPU utilization of this process, 0 to 1.
    pub(super) cpu: f64,
    /// Whether there is a standing queue: every request waited longer than
    /// [`AdmissionSettings::wait`].
    pub(super) is_queued: bool,
    /// Active sessions.
    pub(super) active: usize,
    /// Rejected sessions.
    pub(super) refused: u64,
}

/// The limit of concurrent sessions and the averages from which it is computed.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) settings: AdmissionSettings,
    state: State,
    factor: f64,
    done: Decaying,
    used: Decaying,
    requests: Decaying,
    active: Decaying,
    /// The measured time in seconds.
    measured: Decaying,
    /// The utilization smoothed over [`RECENT`].
    recent: f64,
    /// How long the condition for returning to the previous state has held.
    calm: Duration,
}

/// The share of the capacity that the limit assigns. The rest absorbs random peaks.
const SHARE: f64 = 0.9;
/// The bounds of the factor, and its steps per [`INTERVAL`]: it falls by half a percent during a
/// queue, and drifts back to 1 by a tenth of a percent when the limit does not bind.
const FACTORS: (f64, f64) = (0.5, 1.3);
const QUEUE_CUT: f64 = 0.995;
const DRIFT: f64 = 0.001;
/// The target utilization, and the share of the error that one step corrects.
const TARGET: f64 = 0.86;
const GAIN: f64 = 0.02;
/// The time to which the steps of the factor refer.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// The time constant of the averages. With a shorter one the limit follows random variation.
const MEMORY: Duration = Duration::from_secs(4);
const RECENT: Duration = Duration::from_millis(500);
/// Below this utilization the limit may end.
const FREE: f64 = 0.75;
/// Below this utilization admission may stop counting sessions.
const CALM: f64 = 0.6;
/// How long the load must stay low before the limit ends, and before counting ends.
const TO_WATCHING: Duration = Duration::from_secs(2);
const TO_SLEEP: Duration = Duration::from_secs(5);
/// The least busy time, in seconds, from which the capacity is estimated.
const LEAST_USE: f64 = 0.05;

impl Policy {
    pub(super) const fn new(settings: AdmissionSettings) -> Self {
        Self {
            settings,
            state: State::Asleep,
            factor: 1.0,
            done: Decaying(0.0),
            used: Decaying(0.0),
            requests: Decaying(0.0),
            active: Decaying(0.0),
            measured: Decaying(0.0),
            recent: 0.0,
            calm: Duration::ZERO,
        }
    }

    /// Starts counting sessions, because the server may be overloaded.
    pub(super) fn wake(&mut self) {
        if self.state == State::Asleep {
            *self = Self { state: State::Watching, ..Self::new(self.settings.clone()) };
        }
    }

    /// Updates the limit and the state with the measurements of an interval.
    pub(super) fn tick(&mut self, sample: &Sample) {
        let Sample { elapsed, is_queued, .. } = *sample;
        let used = if is_queued { 1.0 } else { sample.busy.max(sample.cpu).min(1.0) };
        let seconds = elapsed.as_secs_f64();
        self.done.add(sample.done as f64, elapsed);
        self.used.add(used * seconds, elapsed);
        self.requests.add(sample.requests as f64, elapsed);
        self.active.add(sample.active as f64 * seconds, elapsed);
        self.measured.add(seconds, elapsed);
        let fresh = 1.0 - decay(elapsed, RECENT);
        self.recent += (used - self.recent) * fresh;
        let steps = seconds / INTERVAL.as_secs_f64();
        self.adjust(sample, steps);
        self.change_state(sample);
    }

    fn adjust(&mut self, sample: &Sample, steps: f64) {
        let binds = sample.refused > 0 || self.limit().is_some_and(|limit| sample.active >= limit);
        self.factor = if sample.is_queued {
            self.factor * QUEUE_CUT.powf(steps)
        } else if self.state == State::Limiting && binds {
            let mean = self.used.0 / self.measured.0.max(1e-6);
            self.factor + GAIN * (TARGET - mean) * steps
        } else {
            // A limit that rejects no session gives no evidence: the factor drifts back to 1.
            let toward = DRIFT * steps;
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
            // A few clients without think time can use all capacity: harmless without a queue.
            State::Watching if sample.is_queued => State::Limiting,
            State::Watching if self.calm >= TO_SLEEP => State::Asleep,
            State::Limiting if self.calm >= TO_WATCHING => State::Watching,
            same => same,
        };
        if next != self.state {
            (self.state, self.calm) = (next, Duration::ZERO);
        }
    }

    /// The limit of concurrent sessions, or `None` before there are enough measurements.
    #[expect(clippy::cast_sign_loss, reason = "counts are never negative")]
    pub(super) fn limit(&self) -> Option<usize> {
        let sessions = SHARE * self.factor * self.capacity()? / self.rate()?;
        // The cast saturates, even after a division by almost zero.
        Some(
            (sessions as usize)
                .clamp(self.settings.least, self.settings.most.max(self.settings.least)),
        )
    }

    /// Whether a session may begin while `active` sessions are active.
    pub(super) fn has_place(&self, active: usize) -> bool {
        match self.state {
            State::Asleep | State::Watching => active < self.settings.most,
            State::Limiting => active < self.limit().unwrap_or(self.settings.least),
        }
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn factor(&self) -> f64 {
        self.factor
    }

    /// The utilization of about the last half second.
    pub(super) const fn utilization(&self) -> f64 {
        self.recent
    }

    /// The capacity in requests per second.
    pub(super) fn capacity(&self) -> Option<f64> {
        (self.used.0 >= LEAST_USE).then(|| self.done.0 / self.used.0)
    }

    /// The mean request rate of an active session, per second.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.active.0 > 0.0 && self.requests.0 > 0.0).then(|| self.requests.0 / self.active.0)
    }
}

/// A sum that decays with the time constant [`MEMORY`]. The quotient of two is a moving average.
#[derive(Clone, Copy, Debug)]
struct Decaying(f64);

impl Decaying {
    fn add(&mut self, value: f64, elapsed: Duration) {
        self.0 = self.0 * decay(elapsed, MEMORY) + value;
    }
}

/// The weight that remains after `elapsed`.
fn decay(elapsed: Duration, memory: Duration) -> f64 {
    (-elapsed.as_secs_f64() / memory.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::new(AdmissionSettings::default());
        policy.wake();
        policy
    }

    /// 100 requests per second from 200 sessions, each with one request in two seconds.
    fn sample(busy: f64) -> Sample {
        Sample { elapsed: INTERVAL, done: 10, requests: 10, busy, active: 200, ..Sample::default() }
    }

    fn ticks(policy: &mut Policy, count: usize, sample: &Sample) {
        for _ in 0..count {
            policy.tick(sample);
        }
    }

    #[test]
    fn derives_limit_from_capacity_and_session_rate() {
        let mut policy = policy();
        ticks(&mut policy, 40, &sample(0.5));
        assert!((policy.capacity().unwrap() - 200.0).abs() < 1.0, "{policy:?}");
        assert!((policy.rate().unwrap() - 0.5).abs() < 0.01, "{policy:?}");
        assert!((359..=360).contains(&policy.limit().unwrap()));
        let most = policy.settings.most;
        assert!(policy.has_place(most - 1), "all sessions are admitted while watching");
        assert!(!policy.has_place(most));
    }

    #[test]
    fn counts_cpu_use_like_busy_workers() {
        let mut policy = policy();
        ticks(&mut policy, 40, &Sample { cpu: 0.5, ..sample(0.1) });
        assert!((359..=360).contains(&policy.limit().unwrap()));
    }

    #[test]
    fn lowers_limit_during_standing_queue_and_raises_it_after() {
        let mut policy = policy();
        let queued = Sample { is_queued: true, ..sample(1.0) };
        policy.tick(&queued);
        assert_eq!((policy.state(), policy.factor()), (State::Limiting, QUEUE_CUT));
        ticks(&mut policy, 1000, &queued);
        assert_eq!((policy.state(), policy.factor()), (State::Limiting, FACTORS.0));
        assert!(!policy.has_place(200));
        ticks(&mut policy, 2000, &Sample { refused: 1, ..sample(0.8) });
        assert!((policy.factor() - FACTORS.1).abs() < 1e-9);
    }

    #[test]
    fn admits_all_sessions_at_full_utilization_without_a_queue() {
        let mut policy = policy();
        ticks(&mut policy, 100, &Sample { cpu: 1.0, ..sample(1.0) });
        assert_eq!(policy.state(), State::Watching);
        assert!(policy.has_place(10_000), "{policy:?}");
    }

    #[test]
    fn steers_utilization_to_target() {
        let mut policy = policy();
        policy.tick(&Sample { is_queued: true, ..sample(1.0) });
        ticks(&mut policy, 200, &Sample { refused: 1, ..sample(TARGET) });
        let before = policy.factor();
        ticks(&mut policy, 100, &Sample { refused: 1, ..sample(TARGET) });
        assert!((policy.factor() - before).abs() < 0.01, "the utilization equals the target");
        ticks(&mut policy, 100, &Sample { refused: 1, ..sample(0.95) });
        assert!(policy.factor() < before - 0.05, "{policy:?}");
    }

    #[test]
    fn falls_asleep_within_seconds_of_calm() {
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
    fn keeps_minimum_limit_when_no_request_completes() {
        let mut policy = policy();
        ticks(&mut policy, 100, &Sample { done: 0, is_queued: true, ..sample(1.0) });
        let least = policy.settings.least;
        assert_eq!(policy.limit(), Some(least));
        assert!(policy.has_place(least - 1) && !policy.has_place(least));
    }

    #[test]
    fn keeps_limit_while_it_rejects_sessions() {
        let mut policy = policy();
        policy.tick(&Sample { is_queued: true, ..sample(1.0) });
        let idle = Sample { elapsed: Duration::from_secs(1000), ..sample(0.0) };
        policy.tick(&Sample { refused: 1, ..idle });
        assert_eq!((policy.state(), policy.utilization()), (State::Limiting, 0.0));
        policy.tick(&idle);
        assert_eq!(policy.state(), State::Watching);
    }

    #[test]
    fn knows_no_session_rate_without_sessions_or_requests() {
        for (active, requests, is_known) in [(0, 10, false), (200, 0, false), (200, 10, true)] {
            let mut policy = policy();
            policy.tick(&Sample { requests, active, ..sample(0.5) });
            assert_eq!(policy.rate().is_some(), is_known, "{active} {requests}");
        }
    }

    fn samples() -> impl Strategy<Value = Sample> {
        let parts = (0u64..100_000, 0u64..5000, 0u64..5000, 0.0..2.0f64, 0.0..2.0f64);
        (parts, any::<bool>(), 0usize..100_000, 0u64..3).prop_map(
            |((milliseconds, done, requests, busy, cpu), is_queued, active, refused)| Sample {
                elapsed: Duration::from_millis(milliseconds),
                done,
                requests,
                busy,
                cpu,
                is_queued,
                active,
                refused,
            },
        )
    }

    proptest! {
        #[test]
        fn keeps_limit_within_bounds_for_any_measurement(
            samples in proptest::collection::vec(samples(), 0..60),
        ) {
            let mut policy = policy();
            for sample in &samples {
                policy.tick(sample);
                prop_assert!(policy.factor() >= FACTORS.0 && policy.factor() <= FACTORS.1);
                if let Some(limit) = policy.limit() {
                    prop_assert!((policy.settings.least..=policy.settings.most).contains(&limit));
                }
                prop_assert!(policy.has_place(0), "one session is always admitted");
            }
        }
    }
}
