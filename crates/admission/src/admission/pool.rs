//! Reports of other thread pools to admission: how long requests wait for the threads of a pool,
//! and the utilization of these threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::Admission;
use super::gauge::{NO_WAIT, count_consecutive, take_shortest, utilization};

/// A thread pool, in addition to the workers and the event loops, for which requests wait.
///
/// A standing queue for the pool limits sessions, as one for the workers does. Background work of
/// the pool, which belongs to no request, is reported only as [run time](Self::ended). The
/// utilization refers to the size of the pool.
#[derive(Debug)]
pub struct ThreadPool {
    admission: Arc<Admission>,
    gauge: Arc<PoolGauge>,
}

/// A request that waits for a thread of a pool. A drop before the [start](Self::start) cancels it.
#[derive(Debug)]
pub struct QueuedRequest {
    pool: Arc<ThreadPool>,
    is_first: bool,
}

/// The counters of one pool.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct PoolGauge {
    threads: usize,
    /// Threads that run a task now.
    running: AtomicUsize,
    /// Requests that wait now, at most one for each client.
    waiting: AtomicUsize,
    /// Consecutive late requests.
    late: AtomicU32,
    /// Requests that got a thread. This counter and the following ones start at zero in each
    /// interval.
    started: AtomicU64,
    run_time: AtomicU64,
    runs_ended: AtomicU64,
    /// In microseconds, or [`NO_WAIT`] if no request has started.
    shortest_wait: AtomicU64,
}

/// The counters of one pool in one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PoolReading {
    threads: usize,
    running: usize,
    waiting: usize,
    started: u64,
    run_time: Duration,
    runs_ended: u64,
    pub(super) shortest_wait: Option<Duration>,
}

impl Admission {
    /// Registers a pool of `threads`, until the end of the process.
    pub fn add_pool(self: &Arc<Self>, threads: usize) -> Arc<ThreadPool> {
        let gauge = Arc::new(PoolGauge::new(threads.max(1)));
        self.lock().pools.push(Arc::clone(&gauge));
        Arc::new(ThreadPool { admission: Arc::clone(self), gauge })
    }
}

impl ThreadPool {
    /// Records that a request waits for a thread of the pool.
    ///
    /// `is_first` means that no other request of the same client waits for the pool or uses one of
    /// its threads. A client that waits for its own requests may wait for long although the pool
    /// has no queue.
    pub fn queue(self: &Arc<Self>, is_first: bool) -> QueuedRequest {
        let Self { admission, gauge } = &**self;
        if is_first {
            gauge.waiting.fetch_add(1, Ordering::Relaxed);
            if !admission.is_awake() && gauge.is_half_busy() {
                admission.wake_if_pool_is_late(gauge.count_late(true));
            }
        }
        QueuedRequest { pool: Arc::clone(self), is_first }
    }

    /// Records that a thread of the pool has started a task.
    pub fn began(&self) {
        self.gauge.running.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a thread has ended or suspended a task after this run time.
    pub fn ended(&self, run: Duration) {
        let Self { admission, gauge } = self;
        gauge.running.fetch_sub(1, Ordering::Relaxed);
        if admission.is_awake() {
            gauge.run_time.fetch_add(run.as_micros() as u64, Ordering::Relaxed);
            gauge.runs_ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a response to a request that had waited for the pool.
    pub fn answered(&self) {
        self.admission.answered();
    }

    /// The number of threads that run a task.
    pub fn running(&self) -> usize {
        self.gauge.running.load(Ordering::Relaxed)
    }
}

impl QueuedRequest {
    /// Records that the request got a thread after this wait.
    pub fn start(self, wait: Duration) {
        let ThreadPool { admission, gauge } = &*self.pool;
        let (is_awake, is_long) = (admission.is_awake(), admission.is_long_wait(wait));
        if is_awake {
            gauge.started.fetch_add(1, Ordering::Relaxed);
        }
        let is_late = is_long || gauge.is_half_busy();
        // A long wait counts only for the first request of a client. A short wait always counts: it
        // proves that there is no queue.
        if is_awake && (self.is_first || !is_long) {
            gauge.shortest_wait.fetch_min(wait.as_micros() as u64, Ordering::Relaxed);
        }
        if self.is_first || !is_late {
            admission.wake_if_pool_is_late(gauge.count_late(is_late));
        }
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        if self.is_first {
            self.pool.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl PoolGauge {
    const fn new(threads: usize) -> Self {
        Self {
            threads,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            late: AtomicU32::new(0),
            started: AtomicU64::new(0),
            run_time: AtomicU64::new(0),
            runs_ended: AtomicU64::new(0),
            shortest_wait: AtomicU64::new(NO_WAIT),
        }
    }

    /// Records whether a request was late and returns the number of consecutive late requests.
    fn count_late(&self, is_late: bool) -> u32 {
        count_consecutive(&self.late, is_late)
    }

    pub(super) fn reset_late_count(&self) {
        self.late.store(0, Ordering::Relaxed);
    }

    fn is_half_busy(&self) -> bool {
        2 * self.running.load(Ordering::Relaxed) >= self.threads
    }

    /// Returns the counters of the interval and starts the next one.
    pub(super) fn read(&self) -> PoolReading {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        PoolReading {
            threads: self.threads,
            running: self.running.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            started: take(&self.started),
            run_time: Duration::from_micros(take(&self.run_time)),
            runs_ended: take(&self.runs_ended),
            shortest_wait: take_shortest(&self.shortest_wait),
        }
    }
}

impl PoolReading {
    /// The utilization of the pool's threads in an interval.
    pub(super) fn utilization(&self, elapsed: Duration) -> f64 {
        utilization((self.run_time, self.runs_ended), self.running, self.threads, elapsed)
    }

    /// Whether there is a standing queue: every request waited longer than `wait`, or no request
    /// has started while requests wait and nearly all threads are busy.
    pub(super) fn is_queued(&self, wait: Duration) -> bool {
        let is_saturated = self.running >= self.threads - self.threads / 4;
        let is_stuck = is_saturated && self.started == 0 && self.waiting > 0;
        is_stuck || self.shortest_wait.is_some_and(|shortest| shortest > wait)
    }
}
