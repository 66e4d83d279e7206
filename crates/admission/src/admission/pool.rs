//! What a thread pool other than the workers reports to admission: how long requests wait for its threads, and how busy
//! these are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::Admission;
use super::gauge::{NO_WAIT, busy_share, count_row, shortest};

/// A thread pool, beside the workers and the loops, for which requests wait. It is counted under its own size.
///
/// Admission counts sessions when requests wait for the pool in a standing queue, as it does for the workers. Work of the
/// pool that is for no single request is reported as [run time](Self::ended) alone.
#[derive(Debug)]
pub struct ThreadPool {
    admission: Arc<Admission>,
    gauge: Arc<PoolGauge>,
}

/// A request that waits for a thread of a pool. Dropped before it [starts](Self::start), it has been cancelled.
#[derive(Debug)]
pub struct Queued {
    pool: Arc<ThreadPool>,
    is_first: bool,
}

/// The counts of one pool since the last look, except where something else is said.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct PoolGauge {
    threads: usize,
    /// Threads that run something now.
    running: AtomicUsize,
    /// Requests that wait now, one for each client.
    waiting: AtomicUsize,
    /// Late requests in a row.
    late: AtomicU32,
    begun: AtomicU64,
    busy: AtomicU64,
    ended: AtomicU64,
    /// In microseconds; [`NO_WAIT`] if no request has begun.
    shortest_wait: AtomicU64,
}

/// What a pool's gauge says of the time since the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PoolReading {
    threads: usize,
    running: usize,
    waiting: usize,
    begun: u64,
    busy: Duration,
    ended: u64,
    pub(super) shortest_wait: Option<Duration>,
}

impl Admission {
    /// Counts a pool of so many threads, too. It is counted until the end of the server.
    pub fn add_pool(self: &Arc<Self>, threads: usize) -> Arc<ThreadPool> {
        let gauge = Arc::new(PoolGauge::new(threads.max(1)));
        self.lock().pools.push(Arc::clone(&gauge));
        Arc::new(ThreadPool { admission: Arc::clone(self), gauge })
    }
}

impl ThreadPool {
    /// A request needs a thread of the pool. `is_first`: no other request of the same client waits for the pool or has a
    /// thread of it. A client that waits for its own requests waits long although others need not.
    pub fn queue(self: &Arc<Self>, is_first: bool) -> Queued {
        let Self { admission, gauge } = &**self;
        if is_first {
            gauge.waiting.fetch_add(1, Ordering::Relaxed);
            if !admission.is_awake() && gauge.is_half_busy() {
                admission.heed_pool(gauge.count(true));
            }
        }
        Queued { pool: Arc::clone(self), is_first }
    }

    /// A thread of the pool begins to run something.
    pub fn began(&self) {
        self.gauge.running.fetch_add(1, Ordering::Relaxed);
    }

    /// It has run for so long, and waits or has ended.
    pub fn ended(&self, run: Duration) {
        let Self { admission, gauge } = self;
        gauge.running.fetch_sub(1, Ordering::Relaxed);
        if admission.is_awake() {
            gauge.busy.fetch_add(run.as_micros() as u64, Ordering::Relaxed);
            gauge.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request that had waited for the pool was answered.
    pub fn answered(&self) {
        self.admission.answered();
    }

    /// How many of its threads run something.
    pub fn running(&self) -> usize {
        self.gauge.running.load(Ordering::Relaxed)
    }
}

impl Queued {
    /// The request has got a thread, for which it had waited so long.
    pub fn start(self, wait: Duration) {
        let ThreadPool { admission, gauge } = &*self.pool;
        let (is_awake, is_long) = (admission.is_awake(), admission.is_long(wait));
        if is_awake {
            gauge.begun.fetch_add(1, Ordering::Relaxed);
        }
        let is_late = is_long || gauge.is_half_busy();
        // Only a client's first request says that others are late; that they are not, any request says.
        if is_awake && (self.is_first || !is_long) {
            gauge.shortest_wait.fetch_min(wait.as_micros() as u64, Ordering::Relaxed);
        }
        if self.is_first || !is_late {
            admission.heed_pool(gauge.count(is_late));
        }
    }
}

impl Drop for Queued {
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
            begun: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            shortest_wait: AtomicU64::new(NO_WAIT),
        }
    }

    /// How many requests in a row were late, with this one.
    fn count(&self, is_late: bool) -> u32 {
        count_row(&self.late, is_late)
    }

    pub(super) fn end_row(&self) {
        self.late.store(0, Ordering::Relaxed);
    }

    fn is_half_busy(&self) -> bool {
        2 * self.running.load(Ordering::Relaxed) >= self.threads
    }

    /// Reads the counts since the last look, and begins anew.
    pub(super) fn read(&self) -> PoolReading {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        PoolReading {
            threads: self.threads,
            running: self.running.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            begun: take(&self.begun),
            busy: Duration::from_micros(take(&self.busy)),
            ended: take(&self.ended),
            shortest_wait: shortest(&self.shortest_wait),
        }
    }
}

impl PoolReading {
    /// The share of the pool's threads that was at work in an interval.
    pub(super) fn busy_share(&self, elapsed: Duration) -> f64 {
        busy_share((self.busy, self.ended), self.running, self.threads, elapsed)
    }

    /// Whether no request has begun without a wait longer than this. With hardly a thread free and nothing begun, a
    /// request that waits waits still.
    pub(super) fn is_queued(&self, wait: Duration) -> bool {
        let is_crowded = self.running >= self.threads - self.threads / 4;
        let is_stuck = is_crowded && self.begun == 0 && self.waiting > 0;
        is_stuck || self.shortest_wait.is_some_and(|shortest| shortest > wait)
    }
}
