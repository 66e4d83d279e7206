//! Connects the render schedule with the threads that render: hands out errands, wakes threads and
//! cancels joins whose clients have disconnected.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bine_admission::{Admission, QueuedRequest, ThreadPool};
use bine_server::{AddressBlock, InternalRequest, InternalRequestSource};

use super::Live;
use super::fair_queue::QueuePath;
use super::schedule::{RenderJob, RenderLimits, Schedule};
use super::shared_view::ViewId;

/// The renders of a program that wait and run.
#[derive(Default)]
pub(super) struct RenderQueue {
    state: Mutex<QueueState>,
    next: AtomicU64,
    hasher: RandomState,
    /// The threads that render joins, as admission counts them.
    pool: OnceLock<Arc<ThreadPool>>,
}

#[derive(Default)]
struct QueueState {
    schedule: Schedule<ViewId, PendingJoin>,
    /// The wakers of threads that wait for work.
    wakers: Vec<Option<Waker>>,
    is_closed: bool,
}

/// A join that waits for a thread.
struct PendingJoin {
    errand: InternalRequest,
    since: Instant,
    queued: Option<QueuedRequest>,
}

/// The source of work for the threads that render.
pub(super) struct RenderSource(pub(super) Arc<Live>);

/// A join that its client waits for. Dropping it cancels the render.
pub(super) struct Join<'l> {
    queue: &'l RenderQueue,
    number: u64,
    cancellation: Arc<JoinCancellation>,
}

/// Whether a client still waits for its join.
#[derive(Default)]
pub(super) struct JoinCancellation {
    is_cancelled: AtomicBool,
    /// The waker of the render, if it awaits something.
    waker: Mutex<Option<Waker>>,
}

impl RenderQueue {
    /// Renders within these limits from now on, and reports to `admission` how long joins wait for
    /// a thread. Call it once, before the first render.
    pub(super) fn limit(&self, limits: RenderLimits, admission: &Arc<Admission>) {
        let schedule = Schedule::new(limits);
        // The thread that renders only changes cannot shorten this wait.
        self.pool.get_or_init(|| admission.add_pool(schedule.join_threads()));
        self.state().schedule = schedule;
    }

    /// Returns how many threads render.
    pub(super) fn threads(&self) -> usize {
        self.state().schedule.threads()
    }

    /// Returns how many joins wait, and how many were refused since the start.
    pub(super) fn figures(&self) -> (usize, u64) {
        let state = self.state();
        (state.schedule.waiting(), state.schedule.refused())
    }

    /// Returns how many renders run, and how many joins wait.
    pub(super) fn unfinished(&self) -> (usize, usize) {
        let state = self.state();
        (state.schedule.running(), state.schedule.waiting())
    }

    /// Returns how many threads that render joins run a page now.
    pub(super) fn busy_threads(&self) -> usize {
        self.pool.get().map_or(0, |pool| pool.running())
    }

    /// The pool to which a thread reports its run time, if it renders joins.
    fn pool_of(&self, thread: usize) -> Option<Arc<ThreadPool>> {
        let renders_joins = self.state().schedule.takes_joins(thread);
        self.pool.get().filter(|_| renders_joins).cloned()
    }

    /// Returns a number for the next render.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Queues a change of the page at `address`. `owner`: the only address block that follows it,
    /// if there is one.
    pub(super) fn submit_change(&self, id: ViewId, owner: Option<AddressBlock>, address: &str) {
        let path = match owner {
            Some(block) => self.path(block, address),
            // A view with several blocks is its own flow: its first block is not charged for it.
            None => [self.hasher.hash_one((true, address)), 0, 0],
        };
        let number = self.number();
        let mut state = self.state();
        if !state.is_closed {
            state.schedule.submit_change(path, number, id);
            state.wake();
        }
    }

    /// Queues a join. A refused join is dropped, which notifies its client.
    pub(super) fn submit_join<'l>(
        &'l self,
        number: u64,
        block: AddressBlock,
        address: &str,
        (errand, cancellation): (InternalRequest, Arc<JoinCancellation>),
    ) -> Join<'l> {
        let path = self.path(block, address);
        let is_local = block.is_local();
        let mut state = self.state();
        // A block that waits for its own renders may wait long although other blocks need not: only
        // the first counts. A proxy on this machine asks for many clients.
        let is_first = is_local || !state.schedule.has_join_of(&path);
        let queued = self.pool.get().map(|pool| pool.queue(is_first));
        let join = PendingJoin { errand, since: Instant::now(), queued };
        let refused = if state.is_closed {
            Some(join)
        } else {
            state.schedule.submit_join(path, number, is_local, join)
        };
        state.wake();
        drop(state);
        // Dropping it calls its `then`, which takes the lock.
        drop(refused);
        Join { queue: self, number, cancellation }
    }

    /// Ends a render and charges its run time. Returns whether it had started.
    pub(super) fn finish(&self, number: u64, cost: Duration) -> bool {
        let mut state = self.state();
        let had_started = state.schedule.finish(number, cost);
        state.wake();
        had_started
    }

    /// Ends a join and charges its run time. It counts as an answered request if it was rendered
    /// and its client still waits.
    pub(super) fn finish_join(&self, number: u64, cost: Duration, cancellation: &JoinCancellation) {
        let had_started = self.finish(number, cost);
        if let Some(pool) = self.pool.get().filter(|_| had_started && !cancellation.is_cancelled())
        {
            pool.answered();
        }
    }

    /// Stops: no further render starts.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let ended = std::mem::take(&mut state.schedule);
        state.wakers.drain(..).flatten().for_each(Waker::wake);
        drop(state);
        drop(ended);
    }

    fn path(&self, block: AddressBlock, address: &str) -> QueuePath {
        // All queries of a path are one page.
        let view = address.split('?').next().unwrap_or(address);
        [
            self.hasher.hash_one((false, block.site())),
            self.hasher.hash_one(block),
            self.hasher.hash_one(view),
        ]
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Wakes a thread for work that may start. One idle thread is enough; without one, all that
    /// wait are woken, since each may be busy with a page.
    fn wake(&mut self) {
        let Self { schedule, wakers, .. } = self;
        let waits = |thread: &usize| wakers[*thread].is_some() && schedule.has_work_for(*thread);
        let waiting: Vec<usize> = (0..wakers.len()).filter(waits).collect();
        let idle = waiting.iter().position(|thread| schedule.is_idle(*thread));
        let woken = match idle {
            Some(place) => &waiting[place..=place],
            None => &waiting[..],
        };
        for thread in woken {
            if let Some(waker) = wakers[*thread].take() {
                waker.wake();
            }
        }
    }
}

impl InternalRequestSource for RenderSource {
    fn poll_next(&self, thread: usize, waker: &Waker) -> Poll<Option<InternalRequest>> {
        let Self(live) = self;
        loop {
            let mut state = live.queue.state();
            if state.is_closed {
                return Poll::Ready(None);
            }
            match state.schedule.start(thread) {
                Some((_, RenderJob::Join(join))) => {
                    drop(state);
                    return Poll::Ready(Some(join.start()));
                }
                Some((number, RenderJob::Change(id))) => {
                    drop(state);
                    match Arc::clone(live).begin_change(id, number) {
                        Some(errand) => return Poll::Ready(Some(errand)),
                        None => {
                            live.queue.finish(number, Duration::ZERO);
                        }
                    }
                }
                None => {
                    if state.wakers.len() <= thread {
                        state.wakers.resize(thread + 1, None);
                    }
                    state.wakers[thread] = Some(waker.clone());
                    return Poll::Pending;
                }
            }
        }
    }

    fn pool(&self, thread: usize) -> Option<Arc<ThreadPool>> {
        self.0.queue.pool_of(thread)
    }
}

impl PendingJoin {
    fn start(self) -> InternalRequest {
        let Self { errand, since, queued } = self;
        if let Some(queued) = queued {
            queued.start(since.elapsed());
        }
        errand
    }
}

impl Drop for Join<'_> {
    fn drop(&mut self) {
        self.cancellation.cancel();
        let cancelled = self.queue.state().schedule.cancel(self.number);
        // Dropping it calls its `then`, which takes the lock.
        drop(cancelled);
    }
}

impl JoinCancellation {
    /// Whether the client waits; `waker` is woken when it disconnects.
    pub(super) fn is_wanted(&self, waker: &Waker) -> bool {
        let mut own = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !own.as_ref().is_some_and(|own| own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
        !self.is_cancelled()
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use bine_admission::{AdmissionSettings, State as Admitting};
    use bine_server::{ClientAddress, ReplyHandler, RunHook};

    use super::super::testing::request;
    use super::*;

    const LIMITS: RenderLimits = RenderLimits { threads: 2, joins: 4096 };

    struct Nothing;

    impl RunHook for Nothing {
        fn around(&self, part: &mut dyn FnMut()) {
            part();
        }
    }

    fn errand() -> InternalRequest {
        InternalRequest {
            request: request(),
            around: Arc::new(Nothing),
            then: ReplyHandler::new(drop),
        }
    }

    /// A queue whose one thread for joins is busy, and the admission that it reports to.
    fn taken() -> (Arc<Admission>, RenderQueue) {
        let admission = Arc::new(Admission::new(AdmissionSettings::default(), 12));
        admission.begin_loops();
        let queue = RenderQueue::default();
        queue.limit(LIMITS, &admission);
        queue.pool.get().unwrap().began();
        (admission, queue)
    }

    /// A client with this address joins a page.
    fn join<'r>(queue: &'r RenderQueue, address: &str) -> Join<'r> {
        let ip: IpAddr = address.parse().unwrap();
        let block = ClientAddress::tcp((ip, 9).into()).block();
        queue.submit_join(queue.number(), block, "http://a/", (errand(), Arc::default()))
    }

    fn state(admission: &Admission) -> Admitting {
        admission.metrics().state
    }

    #[test]
    fn one_waiting_address_block_does_not_wake_admission() {
        let (admission, queue) = taken();
        let mut joins: Vec<Join<'_>> = (0..50).map(|_| join(&queue, "192.0.2.1")).collect();
        assert_eq!(state(&admission), Admitting::Asleep);
        // This join makes seven address blocks that find no thread.
        joins.extend((2..8).map(|last| join(&queue, &format!("192.0.2.{last}"))));
        assert_eq!(state(&admission), Admitting::Asleep);
        joins.push(join(&queue, "192.0.2.8"));
        assert_ne!(state(&admission), Admitting::Asleep);
    }

    #[test]
    fn browsers_behind_local_proxy_wake_admission() {
        let (admission, queue) = taken();
        let _joins: Vec<Join<'_>> = (0..8).map(|_| join(&queue, "127.0.0.1")).collect();
        assert_ne!(state(&admission), Admitting::Asleep);
    }

    #[test]
    fn counts_started_joins_of_waiting_browsers_as_done() {
        let (admission, queue) = taken();
        let mut joins: Vec<Join<'_>> = (0..8).map(|_| join(&queue, "127.0.0.1")).collect();
        let start = |number: u64| {
            let started = queue.state().schedule.start(1);
            assert!(matches!(started, Some((own, RenderJob::Join(_))) if own == number));
        };
        start(0);
        queue.finish_join(0, Duration::ZERO, &joins[0].cancellation);
        // Neither a second end nor the end of a join that never started counts.
        queue.finish_join(0, Duration::ZERO, &joins[0].cancellation);
        queue.finish_join(5, Duration::ZERO, &joins[5].cancellation);
        start(1);
        let cancellation = Arc::clone(&joins[1].cancellation);
        drop(joins.remove(1));
        queue.finish_join(1, Duration::ZERO, &cancellation);
        let began = Instant::now();
        while admission.metrics().done == 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "nothing was done");
        }
        assert_eq!(admission.metrics().done, 1);
    }

    #[test]
    fn only_threads_that_render_joins_report_to_admission() {
        for (threads, expected) in [(1, vec![0]), (3, vec![1, 2])] {
            let queue = RenderQueue::default();
            queue.limit(RenderLimits { threads, ..LIMITS }, &Arc::new(Admission::off()));
            let reporting = (0..threads).filter(|thread| queue.pool_of(*thread).is_some());
            assert_eq!(reporting.collect::<Vec<_>>(), expected);
        }
    }
}
