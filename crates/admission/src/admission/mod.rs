//! Decides who is let in when more come than can be served: sessions that have begun, then as many new ones as fit.
//!
//! `policy` says how many, from what workers and loops ([`Admission::waited`], [`ran`](Admission::ran),
//! [`turned`](Admission::turned)) and other thread pools ([`ThreadPool`]) report; `sessions` says who has begun. Nobody keeps
//! time for it: whoever passes by a tenth of a second after the last look has the next one. While all is calm a request
//! costs one load of a state that does not change.

mod gauge;
mod metrics;
mod policy;
mod pool;
mod sessions;
mod terms;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub use metrics::{AdmissionMetrics, Refused};
pub use policy::State;
pub use pool::{Queued, ThreadPool};
pub use sessions::{CLASSES, MOST};
pub use terms::Terms;

use gauge::Gauge;
use policy::{INTERVAL, Policy, Sample};
use pool::PoolGauge;
use sessions::Sessions;

/// Who is let in. One for all threads of a server.
#[derive(Debug)]
pub struct Admission {
    front: Front,
    gauge: Gauge,
    inner: Mutex<Inner>,
    workers: usize,
    loops: usize,
    /// Loops report their turns, and workers their tasks: only then is every request that is done counted.
    is_served_by_loops: AtomicBool,
    cores: f64,
    seed: RandomState,
    /// Called when sessions begin or cease to be limited.
    observer: fn(State),
    /// Milliseconds of a clock that is told the time; for tests.
    told: Option<AtomicU64>,
}

/// What every request reads, on a cache line that hardly ever changes.
#[derive(Debug)]
#[repr(align(64))]
struct Front {
    /// A [`State`], or [`OFF`].
    state: AtomicU8,
    /// Half of the terms' wait, in microseconds: who waits for longer is late.
    patience: AtomicU64,
    /// When the next look is due, in milliseconds.
    due: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    policy: Policy,
    sessions: Sessions,
    pools: Vec<Arc<PoolGauge>>,
    /// Since when there is something to look at.
    awake: u64,
    /// The last look, and what the process had computed by then.
    looked: u64,
    computed: Duration,
    /// Since that look.
    asked: u64,
    refused: u64,
    totals: Totals,
}

/// Since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    done: u64,
    admitted: u64,
    served: u64,
    refused: Refused,
}

/// Who asks for something dynamic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asker {
    /// The session of a ticket that is genuine, or how it is not.
    pub ticket: Shown,
    /// Something dynamic was answered on this connection before.
    pub has_begun: bool,
    /// What stands for the session while it shows no ticket: its account, or its connection. `None`: that may be shared
    /// by many, as a proxy's is.
    pub stand_in: Option<u64>,
}

/// What was shown for a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shown {
    /// Nothing.
    #[default]
    Nothing,
    /// None of ours: forged, or given out for another address or account.
    Foreign,
    /// One of this session, of an hour that is long over, or that is to come: it may be a clock that has jumped.
    Old(u64),
    /// A ticket of this session.
    Ticket(u64),
}

/// A turn of a loop that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// How long it took, with those before it if they were cut short: who came meanwhile has waited for no longer.
    pub took: Duration,
    /// What was done in it had waited for no longer than this.
    pub waited: Duration,
    /// How long it took alone.
    pub worked: Duration,
}

/// Whether a request goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Known,
    /// It does, as one more of this session, which has shown no ticket that is good: its reply is to carry one.
    Again(u64),
    /// It does, as the first of this session, whose ticket its reply is to carry.
    Admitted(u64),
    /// It does not: there is no place left.
    Refused,
}

/// As the state: nothing is looked at, whatever happens.
const OFF: u8 = 9;
/// Workers that a server begins with for each core.
const USEFUL: f64 = 8.0;
/// So many late ones in a row are no accident.
const ROW: u32 = 8;

impl Admission {
    /// On these terms, for so many threads that may block.
    pub fn new(terms: Terms, workers: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let own = Self {
            front: Front {
                state: AtomicU8::new(OFF),
                patience: AtomicU64::new(0),
                due: AtomicU64::new(0),
            },
            gauge: Gauge::new(),
            inner: Mutex::new(Inner::new(Policy::new(terms.clone()))),
            workers: workers.max(1),
            loops: 1,
            is_served_by_loops: AtomicBool::new(false),
            cores: cores as f64,
            seed: RandomState::new(),
            observer: |_| {},
            told: None,
        };
        own.amend(terms);
        own
    }

    /// The same for so many event loops, instead of one.
    #[must_use]
    pub fn on_loops(self, loops: usize) -> Self {
        Self { loops: loops.max(1), ..self }
    }

    /// Calls `observer` with each new state of the policy, on the thread that looked.
    #[must_use]
    pub fn on_change(self, observer: fn(State)) -> Self {
        Self { observer, ..self }
    }

    /// Loops begin to serve. Without them thread pools alone do not wake it: it would not hear of all requests that are
    /// done, and admit too few sessions.
    pub fn begin_loops(&self) {
        self.is_served_by_loops.store(true, Ordering::Relaxed);
    }

    /// One that lets everybody in.
    pub fn off() -> Self {
        Self::new(Terms { is_on: false, ..Terms::default() }, 1)
    }

    /// Goes on on other terms. What is known stays.
    pub fn amend(&self, terms: Terms) {
        let mut inner = self.lock();
        let patience = terms.wait.as_micros() as u64 / 2;
        self.front.patience.store(patience, Ordering::Relaxed);
        if terms.is_on {
            inner.policy.terms = terms;
        } else {
            // A limit that came back with nobody known would cut off all who are under way.
            inner.policy = Policy::new(terms);
            inner.sessions.clear();
        }
        let state = if inner.policy.terms.is_on { inner.policy.state() as u8 } else { OFF };
        self.front.state.store(state, Ordering::Relaxed);
    }

    /// Whether sessions are admitted at all. If not, too much work is kept out by not accepting connections.
    pub fn is_on(&self) -> bool {
        self.front.state.load(Ordering::Relaxed) != OFF
    }

    /// Whether there is anything to look at: `false` is all that a request costs while all is calm.
    #[inline]
    pub fn is_awake(&self) -> bool {
        let state = self.front.state.load(Ordering::Relaxed);
        state == State::Watching as u8 || state == State::Limiting as u8
    }

    /// A worker begins a task that has waited for so long.
    pub fn waited(&self, wait: Duration) {
        let running = self.gauge.begin();
        if self.is_awake() {
            self.gauge.note_begun(wait);
        }
        let is_late = self.is_long(wait) || self.is_half_busy(running - 1);
        self.heed(self.gauge.count_task(is_late));
    }

    /// A worker has ended a task, which took so long, and has answered a request with it or not: a piece of a body that is
    /// stored takes the worker's time as well, but no more requests can be done for it.
    pub fn ran(&self, run: Duration, has_answered: bool) {
        self.gauge.end();
        if self.is_awake() {
            self.gauge.note_finished(run);
            if has_answered {
                self.gauge.note_done();
            }
        }
    }

    /// A task goes to the workers.
    pub fn handed_over(&self) {
        let is_late = self.is_half_busy(self.gauge.running());
        if self.is_awake() {
            self.gauge.note_handed_over();
        } else if is_late {
            self.heed(self.gauge.count_task(true));
        }
    }

    /// Something dynamic was answered without a worker.
    #[inline]
    pub fn answered(&self) {
        if self.is_awake() {
            self.gauge.note_done();
        }
    }

    /// A loop has done all there was.
    #[inline]
    pub fn turned(&self, Turn { took, waited, worked }: Turn) {
        // Early, as for workers: whoever comes into a turn as long as that would wait, if somebody did.
        let is_late = self.is_long(took);
        if self.is_awake() {
            self.gauge.note_turn(waited, worked);
            self.pass();
        } else {
            self.heed(self.gauge.count_turn(is_late));
        }
    }

    /// Whether somebody is let in. To be asked once for each request, if [there is anything to look
    /// at](Self::is_awake).
    pub fn ask(&self, asker: Asker) -> Verdict {
        let now = self.now();
        self.look(now);
        let mut inner = self.lock();
        if inner.policy.state() == State::Asleep {
            return Verdict::Known;
        }
        let count = inner.totals.served;
        inner.judge(asker, || self.seed.hash_one(count), now)
    }

    /// A session that was known under one number is under another from here on, as by a login.
    pub fn rename(&self, old: u64, new: u64) {
        let now = self.now();
        let mut inner = self.lock();
        if old != new && inner.policy.state() != State::Asleep {
            inner.sessions.rename(old, new, now);
        }
    }

    /// A number for the client at `address`, by which its session is known while it shows no ticket.
    pub fn number_of(&self, address: SocketAddr) -> u64 {
        self.seed.hash_one((address.ip(), address.port()))
    }

    /// Seconds after which who was refused may come again, out of all numbers by `chance`.
    pub fn again_after(&self, chance: u32) -> u32 {
        let retry = self.lock().policy.terms.retry.clone();
        let span = retry.end().saturating_sub(*retry.start());
        retry.start() + chance % span.saturating_add(1)
    }

    /// On which terms sessions are admitted.
    pub fn terms(&self) -> Terms {
        self.lock().policy.terms.clone()
    }

    /// Everything it knows.
    pub fn metrics(&self) -> AdmissionMetrics {
        self.look(self.now());
        let inner = self.lock();
        let Inner { policy, sessions, totals, .. } = &*inner;
        AdmissionMetrics {
            is_on: policy.terms.is_on,
            state: policy.state(),
            limit: policy.limit(),
            factor: policy.factor(),
            capacity: policy.capacity(),
            rate: policy.rate(),
            utilization: policy.utilization(),
            active: sessions.active(),
            known: sessions.known(),
            think: sessions.think(),
            running: self.gauge.running(),
            done: totals.done,
            admitted: totals.admitted,
            served: totals.served,
            refused: totals.refused,
            ended: sessions.ended(),
        }
    }

    /// Has the policy look, if a look is due.
    fn pass(&self) {
        let now = self.now();
        if now >= self.front.due.load(Ordering::Relaxed) {
            self.look(now);
        }
    }

    fn look(&self, now: u64) {
        if now < self.front.due.load(Ordering::Relaxed) || !self.is_awake() {
            return;
        }
        let mut inner = self.lock();
        let before = inner.policy.state();
        self.look_at(&mut inner, now);
        let state = inner.policy.state();
        drop(inner);
        if state != before {
            (self.observer)(state);
        }
    }

    fn look_at(&self, inner: &mut Inner, now: u64) {
        let elapsed = Duration::from_millis(now.saturating_sub(inner.looked));
        // Somebody was faster, or it was switched off.
        if elapsed < INTERVAL || !inner.policy.terms.is_on {
            return;
        }
        let (computed, reading) = (self.computed(), self.gauge.read());
        inner.totals.done += reading.done;
        let wait = inner.policy.terms.wait;
        let spent = computed.saturating_sub(inner.computed).as_secs_f64();
        let mut busy = reading
            .busy_share(self.workers, elapsed)
            .max(reading.turning_share(self.loops, elapsed));
        let mut is_queued = reading.is_queued(self.is_crowded(reading.running), wait);
        let mut longest_wait = reading.longest_wait();
        for pool in inner.pools.iter().map(|pool| pool.read()) {
            busy = busy.max(pool.busy_share(elapsed));
            is_queued |= pool.is_queued(wait);
            longest_wait = longest_wait.max(pool.shortest_wait.unwrap_or_default());
        }
        let mut sample = Sample {
            elapsed,
            done: reading.done,
            asked: std::mem::take(&mut inner.asked),
            busy,
            computed: spent / elapsed.as_secs_f64() / self.cores,
            is_queued,
            active: inner.sessions.active(),
            refused: std::mem::take(&mut inner.refused),
        };
        // Nobody may have passed by for long. A queue is no older than the longest wait in it, and before it there was none.
        let queued = INTERVAL.max(longest_wait);
        let before = elapsed.saturating_sub(queued);
        if sample.is_queued && before >= INTERVAL {
            let none = Sample { done: 0, asked: 0, refused: 0, is_queued: false, ..sample };
            inner.policy.tick(&Sample { elapsed: before, ..none });
            sample.elapsed = queued;
        }
        inner.policy.tick(&sample);
        (inner.looked, inner.computed) = (now, computed);
        let idle = inner.policy.terms.idle;
        inner.sessions.sweep(now, idle);
        let state = inner.policy.state();
        if state == State::Asleep {
            inner.sessions.clear();
        }
        self.settle(state, now);
    }

    /// So many requests in a row were late for a thread pool.
    fn heed_pool(&self, row: u32) {
        if self.is_served_by_loops.load(Ordering::Relaxed) {
            self.heed(row);
        }
    }

    /// So many in a row were late.
    #[inline]
    fn heed(&self, row: u32) {
        if row >= ROW && self.front.state.load(Ordering::Relaxed) == State::Asleep as u8 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let now = self.now();
        let mut inner = self.lock();
        // Somebody was faster, or it was switched off.
        if inner.policy.state() != State::Asleep || !inner.policy.terms.is_on {
            return;
        }
        inner.policy.wake();
        (inner.awake, inner.looked, inner.computed) = (now, now, self.computed());
        self.gauge.read();
        self.gauge.end_rows();
        for pool in &inner.pools {
            pool.read();
            pool.end_row();
        }
        self.settle(State::Watching, now);
    }

    fn settle(&self, state: State, now: u64) {
        let due = now + INTERVAL.as_millis() as u64;
        self.front.due.store(due, Ordering::Relaxed);
        if self.front.state.load(Ordering::Relaxed) != state as u8 {
            self.front.state.store(state as u8, Ordering::Relaxed);
        }
    }

    fn is_long(&self, wait: Duration) -> bool {
        wait.as_micros() as u64 > self.front.patience.load(Ordering::Relaxed)
    }

    /// Whether those who run beside a task leave less than half of what can be done. It is early to count then, but who
    /// comes now, and was never counted, would be a stranger when it is late.
    const fn is_half_busy(&self, beside: usize) -> bool {
        // More threads than that wait for something else than a core, and are as many as there need to be.
        2.0 * beside as f64 >= (USEFUL * self.cores).min(self.workers as f64)
    }

    /// Whether hardly a worker is free: of four, one.
    const fn is_crowded(&self, running: usize) -> bool {
        running >= self.workers - self.workers / 4
    }

    /// Milliseconds of a clock that all threads share.
    fn now(&self) -> u64 {
        if let Some(told) = &self.told {
            return told.load(Ordering::Relaxed);
        }
        let time = clock_gettime(ClockId::MonotonicCoarse);
        time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
    }

    /// What this process has computed since its start, on all cores together.
    fn computed(&self) -> Duration {
        if self.told.is_some() {
            return Duration::ZERO;
        }
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let part = Duration::from_nanos(time.tv_nsec.cast_unsigned());
        Duration::from_secs(time.tv_sec.cast_unsigned()) + part
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under it can panic half-way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            sessions: Sessions::new(),
            pools: Vec::new(),
            awake: 0,
            looked: 0,
            computed: Duration::ZERO,
            asked: 0,
            refused: 0,
            totals: Totals::default(),
        }
    }

    /// `number` is one that no session has.
    fn judge(&mut self, asker: Asker, number: impl FnOnce() -> u64, now: u64) -> Verdict {
        let Asker { ticket, has_begun, stand_in } = asker;
        let (shown, old) = match ticket {
            Shown::Ticket(session) => (Some(session), None),
            Shown::Old(session) => (None, Some(session)),
            Shown::Nothing | Shown::Foreign => (None, None),
        };
        let mut is_known = |session: &u64| self.sessions.touch(*session, now);
        let verdict = if shown.is_some_and(|session| is_known(&session)) {
            Verdict::Known
        // Whoever takes no cookies is known by the connection.
        } else if let Some(session) = stand_in.into_iter().chain(old).find(is_known) {
            shown.map_or(Verdict::Again(session), |_| Verdict::Known)
        } else if let Some(session) = shown.filter(|_| self.believes(now)) {
            self.sessions.enter(session, now);
            Verdict::Known
        } else if has_begun || self.policy.has_place(self.sessions.active()) {
            let session = stand_in.unwrap_or_else(number);
            self.sessions.enter(session, now);
            self.totals.admitted += 1;
            Verdict::Admitted(session)
        } else {
            self.refused += 1;
            self.totals.refused.count(ticket);
            return Verdict::Refused;
        };
        self.asked += 1;
        self.totals.served += 1;
        verdict
    }

    /// Whether somebody whom the table does not know may have been here before it knew anybody, perhaps before a restart.
    /// There is room for as many again as fit, and not for all who have gathered tickets while nobody was refused.
    fn believes(&self, now: u64) -> bool {
        let is_early = now.saturating_sub(self.awake) <= self.policy.terms.idle.as_millis() as u64;
        let most = self.policy.limit().unwrap_or(self.policy.terms.most);
        is_early && self.sessions.active() < most.saturating_mul(2)
    }
}
