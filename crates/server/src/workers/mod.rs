//! The worker pool: a bounded number of threads that run blocking tasks from a queue with a time
//! limit.

mod relay;

use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine_admission::queue::{
    QueueOutcome, ReadyTask, Run, ServiceMetrics, TaskQueue, TaskRequest, WorkerCounts,
};
use bine_admission::{Admission, PoolSizer};
use rustix::time::{ClockId, clock_gettime};

use crate::discard::discard;
use crate::handler::{
    FilePart, Finished, Incoming, Outgoing, Retained, STORING, Work, page_cache, reply_after_panic,
    run_work,
};
use crate::mailbox::{Letter, Ticket};
use crate::metrics::{WaitMetrics, Waits};
use crate::time::Clock;
use relay::ResponseStreamer;

/// Idle time after which a worker thread ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A task that runs outside the event loop because it may block.
pub struct Task {
    pub(crate) job: Job,
    pub(crate) ticket: Ticket,
    /// Maximum time that the task may wait for a thread.
    pub(crate) patience: Duration,
    /// Start of the wait.
    pub(crate) since: Instant,
    /// Admission control, which receives the wait time and the run time.
    pub(crate) admission: Arc<Admission>,
}

pub(crate) enum Job {
    /// Run a handler, with an empty buffer for its response.
    Answer { work: Arc<dyn Work>, request: Box<Retained>, bytes: Vec<u8> },
    /// Read a part of a file into the page cache.
    WarmUp(FilePart),
}

impl Task {
    /// Returns the ticket that identifies the waiting connection.
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns the name of the handler that the task runs.
    pub fn handler(&self) -> &'static str {
        match &self.job {
            Job::Answer { work, .. } => work.name(),
            Job::WarmUp(_) => "(files)",
        }
    }

    /// Returns the path of the request, or `None` when the task reads a part of a file.
    pub fn path(&self) -> Option<Cow<'_, str>> {
        match &self.job {
            Job::Answer { request, .. } => Some(request.incoming().head.path()),
            Job::WarmUp(_) => None,
        }
    }

    /// Returns the request, if the task runs a handler of the program. Other tasks read a part of a
    /// file, or store a piece of a body: they are short, and a request that has begun waits for them.
    pub fn request(&self) -> Option<Incoming<'_>> {
        match &self.job {
            Job::Answer { work, request, .. } if work.name() != STORING => Some(request.incoming()),
            Job::Answer { .. } | Job::WarmUp(_) => None,
        }
    }

    /// Runs the task on this thread and posts the result to its mailbox. Blocks as long as the
    /// handler does. The panic of a handler results in an error response.
    pub fn run(self) {
        let clock = Clock::kernel();
        let waited = self.since.elapsed();
        let began = Instant::now();
        let completed = self.run_with(&clock, waited);
        completed.report(began.elapsed());
    }

    /// Refuses the task for lack of time: the client gets a 503.
    pub fn refuse(self) {
        let Self { job, ticket, .. } = self;
        let letter = match job {
            Job::Answer { request, .. } => Letter::Refused(ticket.token, request),
            // The event loop sends the file anyway, and may block on the disk.
            Job::WarmUp(_) => Letter::Warm(ticket.token),
        };
        ticket.reply_to.post(letter);
    }

    /// Runs the task and reports its wait to admission control.
    fn run_with(self, clock: &Clock, waited: Duration) -> CompletedTask {
        let Self { job, ticket, admission, .. } = self;
        admission.waited(waited);
        clock.turn();
        let mut has_answered = false;
        let letter = match job {
            Job::Answer { work, request, bytes } => {
                let finished = run_handler(&*work, &request, bytes, clock, &ticket);
                // This can be the last reference to a program.
                discard(work);
                has_answered = finished.as_ref().is_none_or(|finished| !finished.is_nothing());
                finished.map(|finished| Letter::Finished(ticket.token, request, finished))
            }
            Job::WarmUp(part) => {
                page_cache::read_into_cache(&part);
                Some(Letter::Warm(ticket.token))
            }
        };
        if let Some(letter) = letter {
            ticket.reply_to.post(letter);
        }
        CompletedTask { admission, has_answered }
    }

    /// Returns the request, if the task runs a handler.
    pub(crate) fn into_request(self) -> Option<Box<Retained>> {
        match self.job {
            Job::Answer { request, .. } => Some(request),
            Job::WarmUp(_) => None,
        }
    }
}

/// A completed task.
struct CompletedTask {
    admission: Arc<Admission>,
    /// Whether the task produced a response, rather than storing a piece of a body or reading a
    /// file.
    has_answered: bool,
}

impl CompletedTask {
    /// Reports the run time to admission control.
    fn report(&self, took: Duration) {
        self.admission.ran(took, self.has_answered);
    }
}

/// The worker pool: threads, started on demand, and their queue.
#[derive(Clone)]
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    queue: Mutex<PoolState>,
    arrived: Condvar,
    /// Histogram of the wait times of started tasks.
    waits: Waits,
}

struct PoolState {
    waiting: TaskQueue<Task>,
    sizer: PoolSizer,
    threads: usize,
    /// Threads that run a task.
    busy: usize,
    /// Busy threads whose task is overdue: its client has its answer already. Each may have a
    /// substitute.
    overdue: usize,
    is_stopped: bool,
}

impl PoolState {
    /// Returns the maximum number of threads. Substitutes for overdue threads are limited to three
    /// times the size of the pool, which bounds handlers that never return.
    fn allowed(&self) -> usize {
        let size = self.sizer.size();
        size.saturating_add(self.overdue.min(size.saturating_mul(3)))
    }
}

impl Workers {
    /// Creates a pool whose size `sizer` controls, with room for `most_waiting` tasks.
    pub(crate) fn new(sizer: PoolSizer, most_waiting: usize) -> Self {
        let waiting = TaskQueue::new(most_waiting);
        let queue =
            PoolState { waiting, sizer, threads: 0, busy: 0, overdue: 0, is_stopped: false };
        Self(Arc::new(Shared {
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
            waits: Waits::default(),
        }))
    }

    /// Queues `task`, or returns it when it would wait too long.
    pub(crate) fn spawn(&self, task: Task) -> Result<(), Task> {
        let task_request =
            TaskRequest { name: task.handler(), patience: task.patience, now: task.since };
        let mut queue = self.0.lock();
        let waits = queue.busy + queue.waiting.len() >= queue.allowed();
        if waits && queue.sizer.is_due(task_request.now) {
            queue.sizer.look(task_request.now, cpu_time());
        }
        self.start_threads(&mut queue, 1);
        if queue.threads == 0 {
            // The system does not allow a single thread.
            return Err(task);
        }
        let all = queue.allowed();
        let free = all.saturating_sub(queue.busy);
        queue.waiting.push(task, task_request, WorkerCounts { all, free })?;
        drop(queue);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Removes a task that has not started.
    pub(crate) fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        self.0.lock().waiting.withdraw(Instant::now(), |task| task.ticket == *ticket)
    }

    /// Whether tasks wait too long: the queue refused a task recently, has started none in good
    /// time since, and no worker is idle.
    pub(crate) fn is_overloaded(&self) -> bool {
        let queue = self.0.lock();
        queue.busy >= queue.allowed() && queue.waiting.is_over(Instant::now())
    }

    /// Returns the wait times of tasks.
    pub(crate) fn waits(&self) -> WaitMetrics {
        self.0.waits.metrics()
    }

    /// Returns the metrics of each service.
    pub(crate) fn metrics(&self) -> Vec<ServiceMetrics> {
        let queue = self.0.lock();
        queue.waiting.metrics(queue.allowed(), Instant::now())
    }

    /// Allows a substitute for a thread whose task is overdue.
    pub(crate) fn replace(&self) {
        let mut queue = self.0.lock();
        let before = queue.allowed();
        queue.overdue += 1;
        if queue.allowed() > before {
            queue.waiting.replaced();
        }
        self.start_threads(&mut queue, 0);
    }

    /// Ends the substitution after an overdue task has returned. A thread above the limit then
    /// ends.
    pub(crate) fn on_returned(&self) {
        let mut queue = self.0.lock();
        queue.overdue = queue.overdue.saturating_sub(1);
    }

    /// Returns the share of busy threads, 0 to 1.
    pub(crate) fn load(&self) -> f32 {
        let queue = self.0.lock();
        (queue.busy as f32 / queue.sizer.size() as f32).min(1.0)
    }

    /// Describes the load in one line of text.
    pub(crate) fn status(&self) -> String {
        let queue = self.0.lock();
        let (busy, waiting) = (queue.busy, queue.waiting.len());
        format!("{busy} of {} workers are busy, {waiting} requests wait", queue.sizer.size())
    }

    /// Stops the pool: idle workers end at once, busy ones after their task.
    pub(crate) fn stop(&self) {
        self.0.lock().is_stopped = true;
        self.0.arrived.notify_all();
    }

    /// Starts threads until there is an idle one for each waiting task and for `extra` more, or the
    /// limit is reached.
    fn start_threads(&self, queue: &mut PoolState, extra: usize) {
        while queue.threads - queue.busy < queue.waiting.len() + extra
            && queue.threads < queue.allowed()
        {
            let shared = Arc::clone(&self.0);
            let name = "bine worker".to_owned();
            // When the thread cannot start, a running one takes the task, or its wait ends in a
            // 503.
            if thread::Builder::new().name(name).spawn(move || shared.run()).is_err() {
                return;
            }
            queue.threads += 1;
        }
    }
}

/// Returns the CPU time of this process on all cores.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs a handler. Returns `None` when its response was streamed while the handler wrote it.
fn run_handler(
    work: &dyn Work,
    request: &Retained,
    mut bytes: Vec<u8>,
    clock: &Clock,
    ticket: &Ticket,
) -> Option<Finished> {
    let mut streamer = ResponseStreamer::new(ticket, request);
    let mut drain = |buffer: &mut Vec<u8>| streamer.send(buffer);
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut drain };
    let done = run_work(work, request, clock, &mut out);
    if streamer.has_sent() {
        streamer.send(&mut bytes);
        streamer.end(done.is_some());
        return None;
    }
    let done = done.unwrap_or_else(|| reply_after_panic(work, request, clock, &mut bytes));
    Some(Finished { bytes, follow: done.follow, close: done.close })
}

impl Shared {
    fn run(&self) {
        let clock = Clock::kernel();
        let mut turn = self.first();
        while let Some(ReadyTask { task, run, waited }) = turn {
            self.waits.count(waited);
            let completed = task.run_with(&clock, waited);
            turn = self.next(run, &completed);
        }
    }

    fn first(&self) -> Option<ReadyTask<Task>> {
        let queue = self.lock();
        self.take(queue)
    }

    fn next(&self, run: Run, completed: &CompletedTask) -> Option<ReadyTask<Task>> {
        let mut queue = self.lock();
        queue.busy -= 1;
        let all = queue.allowed();
        let took = queue.waiting.ended(run, all, Instant::now());
        completed.report(took);
        self.take(queue)
    }

    /// Waits for a task. Returns `None` to end the thread, and no longer counts it.
    fn take<'q>(&'q self, mut queue: MutexGuard<'q, PoolState>) -> Option<ReadyTask<Task>> {
        loop {
            let all = queue.allowed();
            let is_above_limit = queue.threads > all;
            let now = Instant::now();
            let next = if is_above_limit { None } else { queue.waiting.next(all, now) };
            match next {
                Some(QueueOutcome::Run(turn)) => {
                    queue.busy += 1;
                    let busy = queue.busy;
                    queue.sizer.began(now, busy);
                    // A task that was not allowed to run before may run now, and a thread is idle.
                    if !queue.waiting.is_empty() && queue.threads > queue.busy {
                        self.arrived.notify_one();
                    }
                    return Some(turn);
                }
                Some(QueueOutcome::Late(task)) => {
                    drop(queue);
                    task.refuse();
                    queue = self.lock();
                    continue;
                }
                None => {}
            }
            let ends = if is_above_limit || queue.is_stopped {
                true
            } else {
                let waited = self.arrived.wait_timeout(queue, IDLE_TIMEOUT);
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                timeout.timed_out() && queue.waiting.is_empty()
            };
            if ends {
                queue.threads -= 1;
                // This thread may have consumed the notification for a task: pass it on.
                if !queue.waiting.is_empty() {
                    self.arrived.notify_one();
                }
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Handlers run outside of the lock and no code panics while it holds it, so a poisoned
        // state is still consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use bine_http::{Event, Limits, RequestParser};

    use super::*;
    use crate::address::ClientAddress;
    use crate::handler::{Body, Done, Identity};
    use crate::mailbox::Mailbox;
    use crate::slab::Token;

    /// A handler that reports its start and blocks until the test releases it.
    struct BlockedWork(Sender<()>, Mutex<Receiver<()>>);

    impl Work for BlockedWork {
        fn run(&self, _request: &Retained, _clock: &Clock, out: &mut Outgoing<'_>) -> Done {
            out.buffer.extend_from_slice(b"ran");
            self.0.send(()).unwrap();
            self.1.lock().unwrap().recv().unwrap();
            Done::default()
        }

        fn name(&self) -> &'static str {
            "held"
        }
    }

    fn request() -> Box<Retained> {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let step = RequestParser::new().receive(bytes, &Limits::default());
        let Event::Head(head) = step.event else { unreachable!("the bytes contain a whole head") };
        let exchange = head.exchange();
        let incoming = Incoming {
            head,
            body: Body::None,
            peer: ClientAddress::UNIX,
            identity: &Identity::Anonymous,
            arrival: 0,
            has_begun: false,
            exchange,
        };
        Box::new(Retained::of(&incoming))
    }

    /// A worker pool with handlers that report their start and block until the test releases them.
    struct TestPool {
        workers: Workers,
        mailbox: Arc<Mailbox>,
        work: Arc<dyn Work>,
        starts: Receiver<()>,
        let_go: Sender<()>,
    }

    impl TestPool {
        fn new(workers: usize, most_waiting: usize) -> Self {
            let (started, starts) = channel();
            let (let_go, released) = channel();
            Self {
                workers: Workers::new(PoolSizer::new(workers, workers, 1), most_waiting),
                mailbox: Arc::new(Mailbox::new().unwrap()),
                work: Arc::new(BlockedWork(started, Mutex::new(released))),
                starts,
                let_go,
            }
        }

        fn task(&self, index: u32, work: &Arc<dyn Work>, patience: Duration) -> Task {
            let token = Token { index, generation: 0 };
            let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
            let work = Arc::clone(work);
            let job = Job::Answer { work, request: request(), bytes: Vec::new() };
            let (since, admission) = (Instant::now(), Arc::new(Admission::off()));
            Task { job, ticket, patience, since, admission }
        }

        fn spawn(&self, index: u32, patience: Duration) -> Result<(), Task> {
            self.workers.spawn(self.task(index, &self.work, patience))
        }

        /// Waits until every worker is idle.
        fn await_idle(&self) {
            while self.workers.load() > 0.0 {
                thread::yield_now();
            }
        }
    }

    /// A handler that stores a piece of the body of a request.
    struct Storing;

    impl Work for Storing {
        fn run(&self, _request: &Retained, _clock: &Clock, _out: &mut Outgoing<'_>) -> Done {
            Done::default()
        }

        fn name(&self) -> &'static str {
            STORING
        }
    }

    /// A scheduler of the program decides only about requests.
    #[test]
    fn shows_schedulers_the_requests_of_handlers_only() {
        let pool = TestPool::new(1, 10);
        let task = pool.task(0, &pool.work, IDLE_TIMEOUT);
        assert_eq!(
            task.request().map(|request| request.head.path().into_owned()).as_deref(),
            Some("/")
        );
        assert_eq!((task.handler(), task.path().as_deref()), ("held", Some("/")));
        let storing: Arc<dyn Work> = Arc::new(Storing);
        assert!(pool.task(0, &storing, IDLE_TIMEOUT).request().is_none());
        pool.workers.stop();
    }

    #[test]
    fn refuses_an_expired_task_and_runs_the_next_one() {
        let pool = TestPool::new(1, 10);
        assert!(pool.spawn(0, IDLE_TIMEOUT).is_ok());
        pool.starts.recv().unwrap();
        assert!(pool.spawn(1, Duration::ZERO).is_ok());
        assert!(pool.spawn(2, IDLE_TIMEOUT).is_ok());
        for _ in 0..2 {
            pool.let_go.send(()).unwrap();
        }
        pool.starts.recv().unwrap();
        let mut letters = Vec::new();
        pool.mailbox.take(&mut letters);
        let results = letters.iter().map(|letter| match letter {
            Letter::Finished(token, _, finished) => (token.index, &*finished.bytes),
            Letter::Refused(token, _) => (token.index, &b"refused"[..]),
            _ => unreachable!("nothing else is posted"),
        });
        assert_eq!(results.take(2).collect::<Vec<_>>(), [(0, &b"ran"[..]), (1, b"refused")]);
        let metrics = pool.workers.metrics();
        assert_eq!((metrics[0].name, metrics[0].begun, metrics[0].refused), ("held", 2, 1));
        pool.workers.stop();
    }

    /// A handler that stores a piece of a body and produces no response.
    struct Stored;

    impl Work for Stored {
        fn run(&self, _request: &Retained, _clock: &Clock, _out: &mut Outgoing<'_>) -> Done {
            Done::default()
        }

        fn name(&self) -> &'static str {
            "stored"
        }
    }

    #[test]
    fn counts_only_responses_as_answers() {
        let pool = TestPool::new(1, 1);
        pool.let_go.send(()).unwrap();
        let has_answered = |work| {
            let completed =
                pool.task(0, work, IDLE_TIMEOUT).run_with(&Clock::kernel(), Duration::ZERO);
            completed.has_answered
        };
        assert!(has_answered(&pool.work));
        let stored: Arc<dyn Work> = Arc::new(Stored);
        assert!(!has_answered(&stored));
    }

    #[test]
    fn surplus_worker_passes_its_notification_on() {
        let pool = TestPool::new(1, 10);
        assert!(pool.spawn(0, IDLE_TIMEOUT).is_ok());
        pool.starts.recv().unwrap();
        pool.workers.replace();
        assert!(pool.spawn(1, IDLE_TIMEOUT).is_ok());
        pool.starts.recv().unwrap();
        for _ in 0..2 {
            pool.let_go.send(()).unwrap();
        }
        pool.await_idle();
        // Two workers are idle, and the one that wakes must end, whichever it is.
        pool.workers.on_returned();
        assert!(pool.spawn(2, IDLE_TIMEOUT).is_ok());
        assert_eq!(
            pool.starts.recv_timeout(IDLE_TIMEOUT / 2),
            Ok(()),
            "no worker has started the task"
        );
        pool.let_go.send(()).unwrap();
        pool.workers.stop();
    }

    #[test]
    fn unbounded_pool_starts_one_worker_per_task() {
        let pool = TestPool::new(usize::MAX, usize::MAX);
        pool.workers.replace();
        for index in 0..3 {
            assert!(pool.spawn(index, IDLE_TIMEOUT).is_ok());
        }
        (0..3).for_each(|_| pool.starts.recv().unwrap());
        assert!(!pool.workers.is_overloaded());
        (0..3).for_each(|_| pool.let_go.send(()).unwrap());
        pool.workers.stop();
    }

    /// While overloaded, the server accepts no connections, so no new task would ever end the
    /// overload.
    #[test]
    fn substitutes_for_hanging_workers_end_the_overload() {
        let pool = TestPool::new(1, 0);
        assert!(pool.spawn(0, IDLE_TIMEOUT).is_ok());
        pool.starts.recv().unwrap();
        assert!(pool.spawn(1, IDLE_TIMEOUT).is_err());
        assert!(pool.workers.is_overloaded());
        pool.workers.replace();
        assert!(!pool.workers.is_overloaded());
        pool.let_go.send(()).unwrap();
        pool.workers.stop();
    }

    /// Writes a response with a drain before its end, and may then panic.
    struct Drained {
        panics: bool,
    }

    impl Work for Drained {
        fn run(&self, _request: &Retained, _clock: &Clock, out: &mut Outgoing<'_>) -> Done {
            out.buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nfirst");
            (out.drain)(out.buffer);
            assert!(out.buffer.is_empty(), "it was sent");
            out.buffer.extend_from_slice(b", last");
            assert!(!self.panics, "a panic of the test");
            Done::default()
        }

        fn name(&self) -> &'static str {
            "drained"
        }
    }

    #[test]
    fn streams_the_response_of_a_handler_that_drains_it() {
        let messages = bine_log::test_support::capture();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (panics, expected) in [(false, Some("first, last")), (true, None)] {
            let pool = TestPool::new(1, 1);
            let work: Arc<dyn Work> = Arc::new(Drained { panics });
            let completed =
                pool.task(3, &work, IDLE_TIMEOUT).run_with(&Clock::kernel(), IDLE_TIMEOUT);
            assert!(completed.has_answered);
            let mut letters = Vec::new();
            pool.mailbox.take(&mut letters);
            let [Letter::Finished(token, _, finished)] = &mut letters[..] else {
                panic!("one response was posted");
            };
            assert_eq!((token.index, finished.close), (3, false));
            assert_eq!(finished.bytes, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
            let Some(crate::handler::Follow::Stream(stream)) = finished.follow.take() else {
                panic!("its content follows");
            };
            let content = runtime.block_on(stream.gather()).ok();
            assert_eq!(content.as_deref(), expected.map(str::as_bytes));
        }
        drop(messages);
    }

    #[test]
    fn allows_up_to_three_substitutes_for_each_worker() {
        let pool = TestPool::new(2, 4);
        let allowed = || pool.workers.0.lock().allowed();
        assert_eq!(allowed(), 2);
        pool.workers.on_returned();
        assert_eq!(allowed(), 2, "none was overdue");
        let growing = [(); 7].map(|()| {
            pool.workers.replace();
            allowed()
        });
        assert_eq!(growing, [3, 4, 5, 6, 7, 8, 8]);
        let shrinking = [(); 3].map(|()| {
            pool.workers.on_returned();
            allowed()
        });
        assert_eq!(shrinking, [8, 7, 6]);
    }

    /// The pool measures its load only for tasks that wait, and at intervals.
    #[test]
    fn grows_while_tasks_wait_and_cores_are_idle() {
        let mut pool = TestPool::new(1, 10);
        pool.workers = Workers::new(PoolSizer::new(1, 8, 1000), 10);
        let begin = Instant::now();
        let spawn = |index, milliseconds| {
            let since = begin + Duration::from_millis(milliseconds);
            let task = Task { since, ..pool.task(index, &pool.work, IDLE_TIMEOUT) };
            assert!(pool.workers.spawn(task).is_ok());
            pool.workers.0.lock().sizer.size()
        };
        let first = spawn(0, 0);
        pool.starts.recv().unwrap();
        // The first task found an idle worker, so the second one begins to measure.
        let sizes = [(1, 100), (2, 101), (3, 200), (4, 201), (5, 300)];
        let sizes = sizes.map(|(index, milliseconds)| spawn(index, milliseconds));
        assert_eq!((first, sizes), (1, [1, 1, 2, 2, 3]));
        pool.workers.stop();
        for _ in 0..6 {
            pool.let_go.send(()).unwrap();
        }
    }
}
