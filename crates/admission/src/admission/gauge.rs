//! The counters of one measurement interval. Any thread updates them, without a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The counters of workers and event loops. They have separate cache lines, because each task
/// changes them, while each request reads the fields next to them.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Gauge {
    /// Tasks in progress on workers.
    running: AtomicUsize,
    /// Consecutive late tasks: started after a long wait, or handed over while half of the workers
    /// were busy.
    late_tasks: AtomicU32,
    late_turns: LateTurns,
    /// Tasks handed over to the workers. This counter and the following ones start at zero in each
    /// interval.
    handed_over: AtomicU64,
    started: AtomicU64,
    completed: AtomicU64,
    task_time: AtomicU64,
    tasks_ended: AtomicU64,
    turn_time: AtomicU64,
    /// The shortest waits, in microseconds, or [`NO_WAIT`].
    shortest_task_wait: AtomicU64,
    shortest_turn_wait: AtomicU64,
}

/// Consecutive late turns, on a separate cache line, because each turn of each event loop reads
/// them.
#[derive(Debug)]
#[repr(align(64))]
struct LateTurns(AtomicU32);

/// The counters of one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reading {
    pub(super) handed_over: u64,
    pub(super) started: u64,
    pub(super) completed: u64,
    /// The total run time of the tasks that have ended, and their number.
    pub(super) task_time: Duration,
    pub(super) tasks_ended: u64,
    /// The total time of the turns of event loops.
    pub(super) turn_time: Duration,
    pub(super) running: usize,
    pub(super) task_wait: Option<Duration>,
    pub(super) turn_wait: Option<Duration>,
}

/// The value of a shortest wait while no wait has been recorded.
pub(super) const NO_WAIT: u64 = u64::MAX;

impl Gauge {
    pub(super) const fn new() -> Self {
        Self {
            running: AtomicUsize::new(0),
            late_tasks: AtomicU32::new(0),
            late_turns: LateTurns(AtomicU32::new(0)),
            handed_over: AtomicU64::new(0),
            started: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            task_time: AtomicU64::new(0),
            tasks_ended: AtomicU64::new(0),
            turn_time: AtomicU64::new(0),
            shortest_task_wait: AtomicU64::new(NO_WAIT),
            shortest_turn_wait: AtomicU64::new(NO_WAIT),
        }
    }

    /// Records the start of a task and returns the number of tasks in progress.
    pub(super) fn start_task(&self) -> usize {
        self.running.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records the end of a task.
    pub(super) fn end_task(&self) {
        // A task that started before counting began must not make the counter negative.
        let less = |running: usize| running.checked_sub(1);
        let _ = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Records whether a task was late and returns the number of consecutive late tasks.
    pub(super) fn count_late_task(&self, is_late: bool) -> u32 {
        count_consecutive(&self.late_tasks, is_late)
    }

    /// Records whether a turn was late and returns the number of consecutive late turns.
    pub(super) fn count_late_turn(&self, is_late: bool) -> u32 {
        count_consecutive(&self.late_turns.0, is_late)
    }

    /// Resets the numbers of consecutive late tasks and turns.
    pub(super) fn reset_late_counts(&self) {
        self.late_tasks.store(0, Ordering::Relaxed);
        self.late_turns.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn record_handed_over(&self) {
        self.handed_over.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn record_start(&self, wait: Duration) {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.shortest_task_wait.fetch_min(wait.as_micros() as u64, Ordering::Relaxed);
    }

    pub(super) fn record_run(&self, run: Duration) {
        self.task_time.fetch_add(run.as_micros() as u64, Ordering::Relaxed);
        self.tasks_ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn record_completed(&self) {
        self.completed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn record_turn(&self, wait: Duration, worked: Duration) {
        // Most turns are shorter than the resolution of the clock.
        if !worked.is_zero() {
            self.turn_time.fetch_add(worked.as_micros() as u64, Ordering::Relaxed);
        }
        let wait = wait.as_micros() as u64;
        // A load is cheaper than a `fetch_min`, and most waits are not the shortest.
        if wait < self.shortest_turn_wait.load(Ordering::Relaxed) {
            self.shortest_turn_wait.fetch_min(wait, Ordering::Relaxed);
        }
    }

    /// Returns the counters of the interval and starts the next one.
    pub(super) fn read(&self) -> Reading {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Reading {
            handed_over: take(&self.handed_over),
            started: take(&self.started),
            completed: take(&self.completed),
            task_time: Duration::from_micros(take(&self.task_time)),
            tasks_ended: take(&self.tasks_ended),
            turn_time: Duration::from_micros(take(&self.turn_time)),
            running: self.running(),
            task_wait: take_shortest(&self.shortest_task_wait),
            turn_wait: take_shortest(&self.shortest_turn_wait),
        }
    }
}

/// Takes the shortest recorded wait, if there is one.
pub(super) fn take_shortest(wait: &AtomicU64) -> Option<Duration> {
    let wait = wait.swap(NO_WAIT, Ordering::Relaxed);
    (wait != NO_WAIT).then(|| Duration::from_micros(wait))
}

/// Records whether an event was late and returns the number of consecutive late ones.
pub(super) fn count_consecutive(count: &AtomicU32, is_late: bool) -> u32 {
    if is_late {
        return count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    }
    // Without a write, the counter stays in the cache of every thread. It is zero almost always.
    if count.load(Ordering::Relaxed) != 0 {
        count.store(0, Ordering::Relaxed);
    }
    0
}

/// The utilization of `threads` in an interval in which `ended` runs with a total time of
/// `run_time` have ended.
///
/// If runs are long, few of them end within an interval. The utilization is then the share of
/// threads that are running now.
pub(super) fn utilization(
    (run_time, ended): (Duration, u64),
    running: usize,
    threads: usize,
    elapsed: Duration,
) -> f64 {
    let most = threads.max(1) as f64;
    let share = run_time.as_secs_f64() / elapsed.as_secs_f64().max(1e-6) / most;
    let is_short = ended > 0 && run_time / ended as u32 * 2 < elapsed;
    if is_short { share } else { running as f64 / most }
}

impl Reading {
    /// The utilization of `workers` in an interval.
    pub(super) fn worker_utilization(&self, workers: usize, elapsed: Duration) -> f64 {
        utilization((self.task_time, self.tasks_ended), self.running, workers, elapsed)
    }

    /// The utilization of `loops` event loops in an interval.
    pub(super) fn loop_utilization(&self, loops: usize, elapsed: Duration) -> f64 {
        self.turn_time.as_secs_f64() / elapsed.as_secs_f64().max(1e-6) / loops.max(1) as f64
    }

    /// The longer of the two shortest waits.
    pub(super) fn longest_wait(&self) -> Duration {
        self.task_wait.max(self.turn_wait).unwrap_or_default()
    }

    /// Whether there is a standing queue: every task, or every turn, had a longer wait than `wait`.
    pub(super) fn is_queued(&self, is_saturated: bool, wait: Duration) -> bool {
        let is_long = |shortest: Option<Duration>| shortest.is_some_and(|shortest| shortest > wait);
        // If nearly all workers are busy and no task has started, the tasks handed over still wait.
        let is_stuck = is_saturated && self.started == 0 && self.handed_over > 0;
        is_long(self.task_wait) || is_long(self.turn_wait) || is_stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn measures_time_since_previous_reading() {
        let gauge = Gauge::new();
        gauge.start_task();
        gauge.record_start(30 * MS);
        gauge.record_start(21 * MS);
        gauge.record_run(10 * MS);
        gauge.record_completed();
        gauge.end_task();
        gauge.record_turn(3 * MS, 25 * MS);
        let reading = gauge.read();
        assert_eq!((reading.started, reading.completed, reading.running), (2, 1, 0));
        assert_eq!(reading.task_wait, Some(21 * MS));
        assert!(reading.is_queued(false, 20 * MS) && !reading.is_queued(false, 21 * MS));
        assert!((reading.worker_utilization(2, 100 * MS) - 0.05).abs() < 1e-9);
        assert!((reading.loop_utilization(1, 100 * MS) - 0.25).abs() < 1e-9);
        assert_eq!(gauge.read(), Reading::default());
    }

    #[test]
    fn counts_hanging_workers_as_busy_and_their_waiters_as_queued() {
        let gauge = Gauge::new();
        gauge.start_task();
        gauge.start_task();
        assert!(!gauge.read().is_queued(true, MS), "no task waits");
        gauge.record_handed_over();
        let reading = gauge.read();
        assert!(reading.is_queued(true, MS) && !reading.is_queued(false, MS));
        assert!((reading.worker_utilization(2, 100 * MS) - 1.0).abs() < 1e-9);
    }

    /// Runs of half of the interval or more are long: too few of them end to measure their share.
    #[test]
    fn measures_long_runs_by_the_threads_that_run_now() {
        for (run, expected) in [(49, 0.245), (50, 0.5), (90, 0.5)] {
            let gauge = Gauge::new();
            gauge.start_task();
            gauge.record_run(run * MS);
            let utilization = gauge.read().worker_utilization(2, 100 * MS);
            assert!((utilization - expected).abs() < 1e-9, "{run} ms: {utilization}");
        }
    }

    #[test]
    fn resets_late_count_after_a_timely_task() {
        let gauge = Gauge::new();
        assert_eq!(
            [true, true, false, true].map(|is_late| gauge.count_late_task(is_late)),
            [1, 2, 0, 1]
        );
    }
}
