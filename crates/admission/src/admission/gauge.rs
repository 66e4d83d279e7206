//! Decides what is measured between two looks of the policy: counts that any thread adds to, without a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Counts on cache lines of their own: what changes with each task is apart from what each request reads.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Gauge {
    /// Tasks that workers are at.
    running: AtomicUsize,
    /// In a row, of tasks: begun after a wait, or handed over while half of the workers were busy.
    late_tasks: AtomicU32,
    late_turns: Row,
    /// Since the last look.
    handed_over: AtomicU64,
    begun: AtomicU64,
    done: AtomicU64,
    busy: AtomicU64,
    finished: AtomicU64,
    turning: AtomicU64,
    /// The shortest waits, in microseconds; [`NO_WAIT`] if nobody has waited.
    of_tasks: AtomicU64,
    of_turns: AtomicU64,
}

/// Late turns in a row, which each turn of each loop reads.
#[derive(Debug)]
#[repr(align(64))]
struct Row(AtomicU32);

/// What the gauge says of the time since the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reading {
    pub(super) handed_over: u64,
    pub(super) begun: u64,
    pub(super) done: u64,
    /// What tasks that have ended took together, and how many they were.
    pub(super) busy: Duration,
    pub(super) finished: u64,
    /// What turns took together.
    pub(super) turning: Duration,
    pub(super) running: usize,
    pub(super) wait_of_tasks: Option<Duration>,
    pub(super) wait_of_turns: Option<Duration>,
}

/// As a shortest wait: there was none.
pub(super) const NO_WAIT: u64 = u64::MAX;

impl Gauge {
    pub(super) const fn new() -> Self {
        Self {
            running: AtomicUsize::new(0),
            late_tasks: AtomicU32::new(0),
            late_turns: Row(AtomicU32::new(0)),
            handed_over: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            turning: AtomicU64::new(0),
            of_tasks: AtomicU64::new(NO_WAIT),
            of_turns: AtomicU64::new(NO_WAIT),
        }
    }

    /// A task has begun. Returns how many run.
    pub(super) fn begin(&self) -> usize {
        self.running.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A task has ended.
    pub(super) fn end(&self) {
        // Who was begun before anybody counted is not counted now.
        let less = |running: usize| running.checked_sub(1);
        let _ = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// How many tasks in a row were late, with this one.
    pub(super) fn count_task(&self, is_late: bool) -> u32 {
        count_row(&self.late_tasks, is_late)
    }

    /// The same of turns.
    pub(super) fn count_turn(&self, is_late: bool) -> u32 {
        count_row(&self.late_turns.0, is_late)
    }

    /// No row goes on.
    pub(super) fn end_rows(&self) {
        self.late_tasks.store(0, Ordering::Relaxed);
        self.late_turns.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn note_handed_over(&self) {
        self.handed_over.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_begun(&self, wait: Duration) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.of_tasks.fetch_min(wait.as_micros() as u64, Ordering::Relaxed);
    }

    pub(super) fn note_finished(&self, run: Duration) {
        self.busy.fetch_add(run.as_micros() as u64, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_turn(&self, wait: Duration, worked: Duration) {
        // Most are shorter than the clock can tell.
        if !worked.is_zero() {
            self.turning.fetch_add(worked.as_micros() as u64, Ordering::Relaxed);
        }
        let wait = wait.as_micros() as u64;
        // Most turns are no shorter than the shortest.
        if wait < self.of_turns.load(Ordering::Relaxed) {
            self.of_turns.fetch_min(wait, Ordering::Relaxed);
        }
    }

    /// Says what there was since the last look, and begins anew.
    pub(super) fn read(&self) -> Reading {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Reading {
            handed_over: take(&self.handed_over),
            begun: take(&self.begun),
            done: take(&self.done),
            busy: Duration::from_micros(take(&self.busy)),
            finished: take(&self.finished),
            turning: Duration::from_micros(take(&self.turning)),
            running: self.running(),
            wait_of_tasks: shortest(&self.of_tasks),
            wait_of_turns: shortest(&self.of_turns),
        }
    }
}

/// Takes the shortest wait that was noted, if there was one.
pub(super) fn shortest(wait: &AtomicU64) -> Option<Duration> {
    let wait = wait.swap(NO_WAIT, Ordering::Relaxed);
    (wait != NO_WAIT).then(|| Duration::from_micros(wait))
}

/// Counts how many in a row were late.
pub(super) fn count_row(row: &AtomicU32, is_late: bool) -> u32 {
    if is_late {
        return row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    }
    // Read first: it is nearly always zero already, and stays in every thread's cache.
    if row.load(Ordering::Relaxed) != 0 {
        row.store(0, Ordering::Relaxed);
    }
    0
}

/// The share of so many threads that was at work in an interval, by what runs have `ended` in it and how long these took
/// together. Runs that take long end too seldom to tell: of those it is counted how many run.
pub(super) fn busy_share(
    (busy, ended): (Duration, u64),
    running: usize,
    threads: usize,
    elapsed: Duration,
) -> f64 {
    let most = threads.max(1) as f64;
    let share = busy.as_secs_f64() / elapsed.as_secs_f64().max(1e-6) / most;
    let is_short = ended > 0 && busy / ended as u32 * 2 < elapsed;
    if is_short { share } else { running as f64 / most }
}

impl Reading {
    /// The share of so many workers that was at work in an interval.
    pub(super) fn busy_share(&self, workers: usize, elapsed: Duration) -> f64 {
        busy_share((self.busy, self.finished), self.running, workers, elapsed)
    }

    /// The share of so many loops that was at work in an interval.
    pub(super) fn turning_share(&self, loops: usize, elapsed: Duration) -> f64 {
        self.turning.as_secs_f64() / elapsed.as_secs_f64().max(1e-6) / loops.max(1) as f64
    }

    /// Of the shortest waits.
    pub(super) fn longest_wait(&self) -> Duration {
        self.wait_of_tasks.max(self.wait_of_turns).unwrap_or_default()
    }

    /// Whether nobody has begun, or had a turn, without a wait longer than this.
    pub(super) fn is_queued(&self, is_crowded: bool, wait: Duration) -> bool {
        let is_long = |shortest: Option<Duration>| shortest.is_some_and(|shortest| shortest > wait);
        // With hardly a worker free and nothing begun, whoever came waits still.
        let is_stuck = is_crowded && self.begun == 0 && self.handed_over > 0;
        is_long(self.wait_of_tasks) || is_long(self.wait_of_turns) || is_stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn measures_time_since_previous_reading() {
        let gauge = Gauge::new();
        gauge.begin();
        gauge.note_begun(30 * MS);
        gauge.note_begun(21 * MS);
        gauge.note_finished(10 * MS);
        gauge.note_done();
        gauge.end();
        gauge.note_turn(3 * MS, 25 * MS);
        let reading = gauge.read();
        assert_eq!((reading.begun, reading.done, reading.running), (2, 1, 0));
        assert_eq!(reading.wait_of_tasks, Some(21 * MS));
        assert!(reading.is_queued(false, 20 * MS) && !reading.is_queued(false, 21 * MS));
        assert!((reading.busy_share(2, 100 * MS) - 0.05).abs() < 1e-9);
        assert!((reading.turning_share(1, 100 * MS) - 0.25).abs() < 1e-9);
        assert_eq!(gauge.read(), Reading::default());
    }

    #[test]
    fn counts_hanging_workers_as_busy_and_their_waiters_as_queued() {
        let gauge = Gauge::new();
        gauge.begin();
        gauge.begin();
        assert!(!gauge.read().is_queued(true, MS), "nobody waits");
        gauge.note_handed_over();
        let reading = gauge.read();
        assert!(reading.is_queued(true, MS) && !reading.is_queued(false, MS));
        assert!((reading.busy_share(2, 100 * MS) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn ends_a_run_of_late_requests_at_first_timely_one() {
        let gauge = Gauge::new();
        assert_eq!(
            [true, true, false, true].map(|is_late| gauge.count_task(is_late)),
            [1, 2, 0, 1]
        );
    }
}
