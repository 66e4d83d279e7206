//! Session admission: under overload, existing sessions are served, and as many new ones as fit.
//!
//! `policy` computes the limit from the reports of the workers and event loops
//! ([`Admission::waited`], [`ran`](Admission::ran), [`turned`](Admission::turned)) and of other
//! thread pools ([`ThreadPool`]). `sessions` is the table of existing sessions. Admission has no
//! timer: the first call 100 ms after the last measurement does the next one. Without load, a
//! request costs one load of a state that does not change.

mod gauge;
mod metrics;
mod policy;
mod pool;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub use metrics::{AdmissionMetrics, RejectionCounts};
pub use policy::State;
pub use pool::{QueuedRequest, ThreadPool};
pub use sessions::{CLASSES, MOST};
pub use settings::AdmissionSettings;

use gauge::Gauge;
use policy::{INTERVAL, Policy, Sample};
use pool::PoolGauge;
use sessions::Sessions;

/// Decides which sessions are admitted. All threads of a server share one instance.
#[derive(Debug)]
pub struct Admission {
    hot: HotState,
    gauge: Gauge,
    inner: Mutex<Inner>,
    workers: usize,
    loops: usize,
    /// Whether event loops serve requests. They report their turns, and workers report their
    /// tasks, so every completed request is counted.
    is_served_by_loops: AtomicBool,
    cores: f64,
    seed: RandomState,
    /// Called when a measurement changes the state.
    observer: fn(State),
    test_clock: Option<TestClock>,
}

/// The times that a test sets, in milliseconds.
#[derive(Debug, Default)]
struct TestClock {
    now: AtomicU64,
    /// The CPU time of the process.
    cpu: AtomicU64,
}

/// The state that every request reads, on a cache line that rarely changes.
#[derive(Debug)]
#[repr(align(64))]
struct HotState {
    /// A [`State`], or [`OFF`].
    state: AtomicU8,
    /// The wait above which a request is late, in microseconds: half of the wait in the terms.
    late_after: AtomicU64,
    /// When the next measurement is due, in milliseconds.
    due: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    policy: Policy,
    sessions: Sessions,
    pools: Vec<Arc<PoolGauge>>,
    /// When admission woke, in milliseconds.
    awake_since: u64,
    /// The time of the last measurement in milliseconds, and the CPU time of the process then.
    measured_at: u64,
    cpu_time: Duration,
    /// Requests and rejections since the last measurement.
    requests: u64,
    refused: u64,
    totals: Totals,
}

/// The counters since the start of the server.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    done: u64,
    admitted: u64,
    served: u64,
    refused: RejectionCounts,
}

/// The client of a request for dynamic content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestIdentity {
    /// The ticket of the request.
    pub ticket: PresentedTicket,
    /// Whether the server has sent dynamic content on this connection before.
    pub has_begun: bool,
    /// Identifies the session while it has no ticket: a number for its account or its connection.
    /// `None` if many clients may share the connection, as with a proxy.
    pub stand_in: Option<u64>,
}

/// The result of checking the ticket of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PresentedTicket {
    /// The request has no ticket.
    #[default]
    None,
    /// The ticket is invalid: forged, or issued for a different address or account.
    Invalid,
    /// A ticket of this session with a time too far in the past or in the future. A jump of the
    /// clock can cause that.
    Expired(u64),
    /// A valid ticket of this session.
    Valid(u64),
}

/// A completed turn of an event loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopTurn {
    /// The duration of the turn, plus the preceding turns if they were cut short: an upper bound
    /// for the wait of an event that arrived meanwhile.
    pub took: Duration,
    /// An upper bound for the wait of the events that the turn handled.
    pub waited: Duration,
    /// The duration of the turn alone.
    pub worked: Duration,
}

/// The decision about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdmissionOutcome {
    /// The request is served: its session is known.
    Known,
    /// The request is served: it belongs to this known session, but has no valid ticket. The
    /// response must issue one.
    Reissue(u64),
    /// The request is served as the first of this new session. The response must issue its ticket.
    Admitted(u64),
    /// The request is rejected: the limit is reached.
    Rejected,
}

/// The value of the state while admission is disabled.
const OFF: u8 = 9;
/// The initial number of workers for each core.
const INITIAL_WORKERS: f64 = 8.0;
/// The number of consecutive late requests that wakes admission. Fewer can be a coincidence.
const LATE_TO_WAKE: u32 = 8;

impl Admission {
    /// Creates admission for a number of workers.
    pub fn new(settings: AdmissionSettings, workers: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let own = Self {
            hot: HotState {
                state: AtomicU8::new(OFF),
                late_after: AtomicU64::new(0),
                due: AtomicU64::new(0),
            },
            gauge: Gauge::new(),
            inner: Mutex::new(Inner::new(Policy::new(settings.clone()))),
            workers: workers.max(1),
            loops: 1,
            is_served_by_loops: AtomicBool::new(false),
            cores: cores as f64,
            seed: RandomState::new(),
            observer: |_| {},
            test_clock: None,
        };
        own.amend(settings);
        own
    }

    /// Sets the number of event loops. The default is one.
    #[must_use]
    pub fn on_loops(self, loops: usize) -> Self {
        Self { loops: loops.max(1), ..self }
    }

    /// Calls `observer` with the new state when a measurement changes it, on the thread that
    /// measures.
    #[must_use]
    pub fn on_change(self, observer: fn(State)) -> Self {
        Self { observer, ..self }
    }

    /// Records that event loops serve requests.
    ///
    /// Without event loops, thread pools do not wake admission: it would not count all completed
    /// requests, and would admit too few sessions.
    pub fn begin_loops(&self) {
        self.is_served_by_loops.store(true, Ordering::Relaxed);
    }

    /// Creates disabled admission, which admits every session.
    pub fn off() -> Self {
        Self::new(AdmissionSettings { is_on: false, ..AdmissionSettings::default() }, 1)
    }

    /// Changes the terms. Measurements and sessions are kept, unless the new terms disable
    /// admission.
    pub fn amend(&self, settings: AdmissionSettings) {
        let mut inner = self.lock();
        let late_after = settings.wait.as_micros() as u64 / 2;
        self.hot.late_after.store(late_after, Ordering::Relaxed);
        if settings.is_on {
            inner.policy.settings = settings;
        } else {
            // The policy is reset too: with its old limit and without known sessions it would
            // reject all existing sessions when it is enabled again.
            inner.policy = Policy::new(settings);
            inner.sessions.clear();
        }
        let state = if inner.policy.settings.is_on { inner.policy.state() as u8 } else { OFF };
        self.hot.state.store(state, Ordering::Relaxed);
    }

    /// Whether admission is enabled. If not, the server limits load by not accepting connections.
    pub fn is_on(&self) -> bool {
        self.hot.state.load(Ordering::Relaxed) != OFF
    }

    /// Whether admission counts sessions. Without load this is false, and the check is the whole
    /// cost of a request.
    #[inline]
    pub fn is_awake(&self) -> bool {
        let state = self.hot.state.load(Ordering::Relaxed);
        state == State::Watching as u8 || state == State::Limiting as u8
    }

    /// Records that a worker has started a task after this wait.
    pub fn waited(&self, wait: Duration) {
        let running = self.gauge.start_task();
        if self.is_awake() {
            self.gauge.record_start(wait);
        }
        let is_late = self.is_long_wait(wait) || self.is_half_busy(running - 1);
        self.wake_if_late(self.gauge.count_late_task(is_late));
    }

    /// Records that a worker has ended a task after this run time.
    ///
    /// `has_answered` is whether the task completed a request. Storing a chunk of a body takes time
    /// of a worker too, but completes no request.
    pub fn ran(&self, run: Duration, has_answered: bool) {
        self.gauge.end_task();
        if self.is_awake() {
            self.gauge.record_run(run);
            if has_answered {
                self.gauge.record_completed();
            }
        }
    }

    /// Records that a task was handed over to the workers.
    pub fn handed_over(&self) {
        let is_late = self.is_half_busy(self.gauge.running());
        if self.is_awake() {
            self.gauge.record_handed_over();
        } else if is_late {
            self.wake_if_late(self.gauge.count_late_task(true));
        }
    }

    /// Records a response with dynamic content that needed no worker.
    #[inline]
    pub fn answered(&self) {
        if self.is_awake() {
            self.gauge.record_completed();
        }
    }

    /// Records a completed turn of an event loop.
    #[inline]
    pub fn turned(&self, LoopTurn { took, waited, worked }: LoopTurn) {
        // To wake early, as with workers, the whole turn counts: an event that had arrived at its
        // start would have waited for that long.
        let is_late = self.is_long_wait(took);
        if self.is_awake() {
            self.gauge.record_turn(waited, worked);
            self.measure_if_due();
        } else {
            self.wake_if_late(self.gauge.count_late_turn(is_late));
        }
    }

    /// Decides whether to serve a request. Call it once for each request while admission [is
    /// awake](Self::is_awake).
    pub fn admit(&self, identity: RequestIdentity) -> AdmissionOutcome {
        let now = self.now();
        self.measure_at(now);
        let mut inner = self.lock();
        if inner.policy.state() == State::Asleep {
            return AdmissionOutcome::Known;
        }
        let count = inner.totals.served;
        inner.decide(identity, || self.seed.hash_one(count), now)
    }

    /// Changes the id of a session, for example after a login.
    pub fn rename(&self, old: u64, new: u64) {
        let now = self.now();
        let mut inner = self.lock();
        if old != new && inner.policy.state() != State::Asleep {
            inner.sessions.rename(old, new, now);
        }
    }

    /// Returns an id for the client at `address`, which identifies its session while it has no
    /// ticket.
    pub fn number_of(&self, address: SocketAddr) -> u64 {
        self.seed.hash_one((address.ip(), address.port()))
    }

    /// Returns a value for `Retry-After`, in seconds, selected from the range of the terms by the
    /// random number `chance`.
    pub fn again_after(&self, chance: u32) -> u32 {
        let retry = self.lock().policy.settings.retry.clone();
        let span = retry.end().saturating_sub(*retry.start());
        retry.start() + chance % span.saturating_add(1)
    }

    /// The current terms.
    pub fn settings(&self) -> AdmissionSettings {
        self.lock().policy.settings.clone()
    }

    /// The current metrics.
    pub fn metrics(&self) -> AdmissionMetrics {
        self.measure_at(self.now());
        let inner = self.lock();
        let Inner { policy, sessions, totals, .. } = &*inner;
        AdmissionMetrics {
            is_on: policy.settings.is_on,
            state: policy.state(),
            limit: policy.limit(),
            factor: policy.factor(),
            capacity: policy.capacity(),
            rate: policy.rate(),
            utilization: policy.utilization(),
            active: sessions.active(),
            known: sessions.known(),
            think: sessions.think_time(),
            running: self.gauge.running(),
            done: totals.done,
            admitted: totals.admitted,
            served: totals.served,
            refused: totals.refused,
            ended: sessions.ended(),
        }
    }

    /// Measures if a measurement is due. Checks without the lock.
    fn measure_if_due(&self) {
        let now = self.now();
        if now >= self.hot.due.load(Ordering::Relaxed) {
            self.measure_at(now);
        }
    }

    /// Measures at the time `now`, if a measurement is due and admission is awake.
    fn measure_at(&self, now: u64) {
        if now < self.hot.due.load(Ordering::Relaxed) || !self.is_awake() {
            return;
        }
        let mut inner = self.lock();
        let before = inner.policy.state();
        self.measure(&mut inner, now);
        let state = inner.policy.state();
        drop(inner);
        if state != before {
            (self.observer)(state);
        }
    }

    /// Passes the measurements of the last interval to the policy.
    fn measure(&self, inner: &mut Inner, now: u64) {
        let elapsed = Duration::from_millis(now.saturating_sub(inner.measured_at));
        // A different thread was faster, or admission was disabled meanwhile.
        if elapsed < INTERVAL || !inner.policy.settings.is_on {
            return;
        }
        let cpu_time = self.cpu_time();
        let reading = self.gauge.read();
        inner.totals.done += reading.completed;
        let wait = inner.policy.settings.wait;
        let spent = cpu_time.saturating_sub(inner.cpu_time).as_secs_f64();
        let mut busy = reading
            .worker_utilization(self.workers, elapsed)
            .max(reading.loop_utilization(self.loops, elapsed));
        let mut is_queued = reading.is_queued(self.is_saturated(reading.running), wait);
        let mut longest_wait = reading.longest_wait();
        for pool in inner.pools.iter().map(|pool| pool.read()) {
            busy = busy.max(pool.utilization(elapsed));
            is_queued |= pool.is_queued(wait);
            longest_wait = longest_wait.max(pool.shortest_wait.unwrap_or_default());
        }
        let mut sample = Sample {
            elapsed,
            done: reading.completed,
            requests: std::mem::take(&mut inner.requests),
            busy,
            cpu: spent / elapsed.as_secs_f64() / self.cores,
            is_queued,
            active: inner.sessions.active(),
            refused: std::mem::take(&mut inner.refused),
        };
        // The interval may be long, because a measurement needs a call. A queue is at most as old
        // as the longest wait in it, so the time before counts as time without a queue.
        let queued = INTERVAL.max(longest_wait);
        let unqueued = elapsed.saturating_sub(queued);
        if sample.is_queued && unqueued >= INTERVAL {
            let idle = Sample { done: 0, requests: 0, refused: 0, is_queued: false, ..sample };
            inner.policy.tick(&Sample { elapsed: unqueued, ..idle });
            sample.elapsed = queued;
        }
        inner.policy.tick(&sample);
        inner.measured_at = now;
        inner.cpu_time = cpu_time;
        let idle = inner.policy.settings.idle;
        inner.sessions.expire(now, idle);
        let state = inner.policy.state();
        if state == State::Asleep {
            inner.sessions.clear();
        }
        self.publish(state, now);
    }

    /// Wakes admission if enough consecutive requests were late for a thread pool.
    fn wake_if_pool_is_late(&self, late: u32) {
        if self.is_served_by_loops.load(Ordering::Relaxed) {
            self.wake_if_late(late);
        }
    }

    /// Wakes admission if enough consecutive requests were late.
    #[inline]
    fn wake_if_late(&self, late: u32) {
        if late >= LATE_TO_WAKE && self.hot.state.load(Ordering::Relaxed) == State::Asleep as u8 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let now = self.now();
        let mut inner = self.lock();
        // A different thread was faster, or admission was disabled meanwhile.
        if inner.policy.state() != State::Asleep || !inner.policy.settings.is_on {
            return;
        }
        inner.policy.wake();
        inner.awake_since = now;
        inner.measured_at = now;
        inner.cpu_time = self.cpu_time();
        self.gauge.read();
        self.gauge.reset_late_counts();
        for pool in &inner.pools {
            pool.read();
            pool.reset_late_count();
        }
        self.publish(State::Watching, now);
    }

    /// Publishes the state for all threads and schedules the next measurement.
    fn publish(&self, state: State, now: u64) {
        let due = now + INTERVAL.as_millis() as u64;
        self.hot.due.store(due, Ordering::Relaxed);
        if self.hot.state.load(Ordering::Relaxed) != state as u8 {
            self.hot.state.store(state as u8, Ordering::Relaxed);
        }
    }

    /// Whether a request with this wait is late.
    fn is_long_wait(&self, wait: Duration) -> bool {
        wait.as_micros() as u64 > self.hot.late_after.load(Ordering::Relaxed)
    }

    /// Whether the other running tasks use at least half of the capacity.
    ///
    /// Admission wakes that early because a session that starts now must be counted: otherwise it
    /// would be unknown when the limit begins to apply.
    const fn is_half_busy(&self, running: usize) -> bool {
        // Workers beyond the initial number wait for something other than a core. The pool adds
        // threads as needed, so they are not a limit of the capacity.
        2.0 * running as f64 >= (INITIAL_WORKERS * self.cores).min(self.workers as f64)
    }

    /// Whether at most a quarter of the workers is idle.
    const fn is_saturated(&self, running: usize) -> bool {
        running >= self.workers - self.workers / 4
    }

    /// The monotonic time in milliseconds, which is the same for all threads.
    fn now(&self) -> u64 {
        if let Some(clock) = &self.test_clock {
            return clock.now.load(Ordering::Relaxed);
        }
        let time = clock_gettime(ClockId::MonotonicCoarse);
        time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
    }

    /// The CPU time of this process since its start, over all cores.
    fn cpu_time(&self) -> Duration {
        if let Some(clock) = &self.test_clock {
            return Duration::from_millis(clock.cpu.load(Ordering::Relaxed));
        }
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let nanoseconds = Duration::from_nanos(time.tv_nsec.cast_unsigned());
        Duration::from_secs(time.tv_sec.cast_unsigned()) + nanoseconds
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code panics while it changes the data under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            sessions: Sessions::new(),
            pools: Vec::new(),
            awake_since: 0,
            measured_at: 0,
            cpu_time: Duration::ZERO,
            requests: 0,
            refused: 0,
            totals: Totals::default(),
        }
    }

    /// Decides whether to serve a request. `new_id` creates an unused session id.
    fn decide(
        &mut self,
        identity: RequestIdentity,
        new_id: impl FnOnce() -> u64,
        now: u64,
    ) -> AdmissionOutcome {
        let RequestIdentity { ticket, has_begun, stand_in } = identity;
        let (shown, old) = match ticket {
            PresentedTicket::Valid(session) => (Some(session), None),
            PresentedTicket::Expired(session) => (None, Some(session)),
            PresentedTicket::None | PresentedTicket::Invalid => (None, None),
        };
        let mut is_known = |session: &u64| self.sessions.touch(*session, now);
        let verdict = if shown.is_some_and(|session| is_known(&session)) {
            AdmissionOutcome::Known
        // A client without cookies is identified by its connection.
        } else if let Some(session) = stand_in.into_iter().chain(old).find(is_known) {
            shown.map_or(AdmissionOutcome::Reissue(session), |_| AdmissionOutcome::Known)
        } else if let Some(session) = shown.filter(|_| self.trusts_unknown_tickets(now)) {
            self.sessions.insert(session, now);
            AdmissionOutcome::Known
        } else if has_begun || self.policy.has_place(self.sessions.active()) {
            let session = stand_in.unwrap_or_else(new_id);
            self.sessions.insert(session, now);
            self.totals.admitted += 1;
            AdmissionOutcome::Admitted(session)
        } else {
            self.refused += 1;
            self.totals.refused.count(ticket);
            return AdmissionOutcome::Rejected;
        };
        self.requests += 1;
        self.totals.served += 1;
        verdict
    }

    /// Whether to serve an unknown session with a valid ticket: it may be older than the table, for
    /// example older than a restart.
    ///
    /// The bound is twice the limit, because clients may have collected many tickets while all
    /// sessions were admitted.
    fn trusts_unknown_tickets(&self, now: u64) -> bool {
        let is_early =
            now.saturating_sub(self.awake_since) <= self.policy.settings.idle.as_millis() as u64;
        let most = self.policy.limit().unwrap_or(self.policy.settings.most);
        is_early && self.sessions.active() < most.saturating_mul(2)
    }
}
