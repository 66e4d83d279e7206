//! The threads that hash passwords: they have the lowest priority of the system, so that a hash
//! takes only the time that no page needs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine_log as log;
use bine_server::{AddressBlock, lower_thread_priority, timeout};
use tokio::sync::oneshot;

use super::hash_queue::{HashQueue, TIMEOUT};
use super::password_hash::{HashMemory, HashingCost, Verification, hash, verify};

/// Hashes passwords on its own threads. Dropping it ends the threads.
pub(super) struct HashPool {
    shared: Arc<SharedQueue>,
    cost: HashingCost,
}

struct SharedQueue {
    queue: Mutex<HashQueueState>,
    arrived: Condvar,
    hashes: AtomicU64,
    microseconds: AtomicU64,
    rejected: AtomicU64,
}

struct HashQueueState {
    jobs: HashQueue<Job>,
    is_closed: bool,
}

/// A closure for one hash; it sends its own result.
type Job = Box<dyn FnOnce(&mut HashMemory, &SharedQueue) + Send>;

/// The queue is full, or the wait was too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Busy;

/// Figures for metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashFigures {
    pub(super) hashes: u64,
    pub(super) seconds: f64,
    pub(super) rejected: u64,
    pub(super) waiting: usize,
}

/// Whether threads that hash passwords have the priority of all other threads.
static KEEPS_PRIORITY: AtomicBool = AtomicBool::new(false);

/// Lets the threads for password hashes of this process keep the usual priority: for tests, where other
/// tests may use all cores for longer than a hash waits. [`Site`](crate::test::Site) calls it; a
/// program that a test starts as a process of its own calls it before it starts its server.
#[cfg(feature = "test")]
pub fn keep_hash_priority() {
    KEEPS_PRIORITY.store(true, Ordering::Relaxed);
}

impl HashPool {
    /// Starts this many threads.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(super) fn start(threads: usize, cost: HashingCost) -> std::io::Result<Self> {
        let shared = Arc::new(SharedQueue {
            queue: Mutex::new(HashQueueState { jobs: HashQueue::new(), is_closed: false }),
            arrived: Condvar::new(),
            hashes: AtomicU64::new(0),
            microseconds: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        });
        for _ in 0..threads.max(1) {
            let queue = Arc::clone(&shared);
            thread::Builder::new().name("bine hash".to_owned()).spawn(move || {
                if !KEEPS_PRIORITY.load(Ordering::Relaxed) {
                    lower_thread_priority();
                }
                run(&queue);
            })?;
        }
        Ok(Self { shared, cost })
    }

    /// Hashes a new password.
    ///
    /// # Errors
    ///
    /// Too many hashes wait.
    pub(super) async fn hash(&self, block: AddressBlock, password: &str) -> Result<String, Busy> {
        let (password, cost) = (password.to_owned(), self.cost);
        self.run(block, move |memory| hash(&password, cost, memory)).await
    }

    /// Compares a password with a stored hash.
    ///
    /// # Errors
    ///
    /// Too many hashes wait.
    pub(super) async fn verify(
        &self,
        block: AddressBlock,
        password: &str,
        stored: &str,
    ) -> Result<Verification, Busy> {
        let (password, stored, cost) = (password.to_owned(), stored.to_owned(), self.cost);
        self.run(block, move |memory| verify(&password, &stored, cost, memory)).await
    }

    /// Hashes a password on the calling thread, which may block: for commands.
    pub(super) fn hash_here(&self, password: &str) -> String {
        hash(password, self.cost, &mut HashMemory::default())
    }

    pub(super) fn figures(&self) -> HashFigures {
        let SharedQueue { hashes, microseconds, rejected, .. } = &*self.shared;
        HashFigures {
            hashes: hashes.load(Ordering::Relaxed),
            seconds: microseconds.load(Ordering::Relaxed) as f64 / 1e6,
            rejected: rejected.load(Ordering::Relaxed),
            waiting: self.shared.state().jobs.len(),
        }
    }

    /// Ends the threads after their current hash, and the calls that wait.
    pub(super) fn close(&self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.jobs = HashQueue::new();
        drop(state);
        self.shared.arrived.notify_all();
    }

    async fn run<T: Send + 'static>(
        &self,
        block: AddressBlock,
        call: impl FnOnce(&mut HashMemory) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |memory, shared| {
            // The client may have disconnected: its hash would be useless.
            if !sender.is_closed() {
                let start = Instant::now();
                let value = call(memory);
                shared.count_hash(start.elapsed());
                let _ = sender.send(value);
            }
        });
        let is_queued = self.shared.push(block, job);
        let outcome = if is_queued {
            self.shared.arrived.notify_one();
            // A job that is dropped drops its sender.
            let received = async { receiver.await.map_err(|_| Busy) };
            timeout(TIMEOUT * 2, received, async || Err(Busy)).await
        } else {
            Err(Busy)
        };
        if outcome.is_err() {
            self.shared.rejected.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

impl Drop for HashPool {
    fn drop(&mut self) {
        self.close();
    }
}

impl SharedQueue {
    fn state(&self) -> MutexGuard<'_, HashQueueState> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. Returns false if there are too many.
    fn push(&self, block: AddressBlock, job: Job) -> bool {
        let mut state = self.state();
        !state.is_closed && state.jobs.push(block, job, Instant::now()).is_ok()
    }

    fn count_hash(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.hashes.fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(time, Ordering::Relaxed);
    }

    /// Waits for a job. `None`: the pool is closed.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(job) = state.jobs.pop(Instant::now()) {
                return Some(job);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn run(shared: &SharedQueue) {
    let mut memory = HashMemory::default();
    while let Some(job) = shared.next() {
        job(&mut memory, shared);
    }
    log::debug(format_args!("a thread for password hashes has ended"));
}

#[cfg(test)]
mod tests {
    use super::super::password_hash::is_hash;
    use super::*;

    fn wait<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn hashes_and_verifies_on_its_thread() {
        let pool = HashPool::start(1, HashingCost::new(8, 1)).unwrap();
        let hash = wait(pool.hash(AddressBlock::LOCAL, "correct horse")).unwrap();
        assert!(is_hash(&hash));
        let right = wait(pool.verify(AddressBlock::LOCAL, "correct horse", &hash)).unwrap();
        assert!(right.is_right && !right.is_outdated);
        assert_eq!(pool.figures().hashes, 2);
    }

    #[test]
    fn closed_pool_answers_busy() {
        let pool = HashPool::start(1, HashingCost::new(8, 1)).unwrap();
        pool.close();
        assert_eq!(wait(pool.hash(AddressBlock::LOCAL, "correct horse")), Err(Busy));
    }

    #[test]
    fn full_queue_rejects_hashes() {
        let pool = HashPool::start(1, HashingCost::new(8, 1)).unwrap();
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let block = AddressBlock::of([192, 0, 2, 1].into());
        wait(async {
            // The first call occupies the thread, eight wait, and the tenth is one too many.
            let mut calls = Vec::new();
            let stuck = pool.run(block, move |_| gate.recv());
            let mut stuck = std::pin::pin!(stuck);
            let mut task = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(stuck.as_mut().poll(&mut task).is_pending());
            while pool.figures().waiting > 0 {
                thread::yield_now();
            }
            for _ in 0..8 {
                let mut call = Box::pin(pool.run(block, |_| ()));
                assert!(call.as_mut().poll(&mut task).is_pending());
                calls.push(call);
            }
            assert_eq!(pool.run(block, |_| ()).await, Err(Busy));
            release.send(()).unwrap();
            stuck.await.unwrap().unwrap();
            for call in calls {
                assert_eq!(call.await, Ok(()));
            }
        });
        assert_eq!(pool.figures().rejected, 1);
    }
}
