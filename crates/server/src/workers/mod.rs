//! Decides who runs what may block: a bounded number of threads behind a queue that is bounded by time.

mod relay;

use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine_admission::queue::{Next, Run, ServiceMetrics, TaskQueue, Threads, Turn, Wish};
use bine_admission::{Admission, PoolSizer};
use rustix::time::{ClockId, clock_gettime};

use crate::discard::discard;
use crate::handler::{FilePart, Finished, Outgoing, Retained, Work, excuse, run_work, warmth};
use crate::mailbox::{Letter, Ticket};
use crate::metrics::{WaitMetrics, Waits};
use crate::time::Clock;
use relay::Courier;

/// A worker with nothing to do goes after this long.
const REST: Duration = Duration::from_secs(30);

/// What is done away from its loop because it may block.
pub struct Task {
    pub(crate) job: Job,
    pub(crate) ticket: Ticket,
    /// How long it may wait for a thread.
    pub(crate) patience: Duration,
    /// Since when it does.
    pub(crate) since: Instant,
    /// Told of its wait and its run.
    pub(crate) admission: Arc<Admission>,
}

pub(crate) enum Job {
    /// Run a handler, with an empty buffer for its reply.
    Answer { work: Arc<dyn Work>, request: Box<Retained>, bytes: Vec<u8> },
    /// Bring a part of a file into memory.
    WarmUp(FilePart),
}

impl Task {
    /// Who waits for it.
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The service that it is a run of.
    fn service(&self) -> &'static str {
        match &self.job {
            Job::Answer { work, .. } => work.name(),
            Job::WarmUp(_) => "(files)",
        }
    }

    /// The path of the request that is to be answered; `None` when it is a part of a file that its reply
    /// waits for.
    pub fn path(&self) -> Option<Cow<'_, str>> {
        match &self.job {
            Job::Answer { request, .. } => Some(request.incoming().head.path()),
            Job::WarmUp(_) => None,
        }
    }

    /// Does it on this thread, which may block for as long as its handler does, and answers who waits for
    /// it. A handler that panics is answered for.
    pub fn run(self) {
        let clock = Clock::kernel();
        let waited = self.since.elapsed();
        let began = Instant::now();
        let ran = self.run_by(&clock, waited);
        ran.tell(began.elapsed());
    }

    /// Tells who waits for it that there is no time for it: they get a 503.
    pub fn refuse(self) {
        let Self { job, ticket, .. } = self;
        let letter = match job {
            Job::Answer { request, .. } => Letter::Refused(ticket.token, request),
            // The file is sent as it is: whoever sends it waits for the disk.
            Job::WarmUp(_) => Letter::Warm(ticket.token),
        };
        ticket.reply_to.post(letter);
    }

    /// Runs it after such a wait.
    fn run_by(self, clock: &Clock, waited: Duration) -> Ran {
        let Self { job, ticket, admission, .. } = self;
        admission.waited(waited);
        clock.turn();
        let mut has_answered = false;
        let letter = match job {
            Job::Answer { work, request, bytes } => {
                let finished = answer(&*work, &request, bytes, clock, &ticket);
                // The last owner of a program may be here.
                discard(work);
                has_answered = finished.as_ref().is_none_or(|finished| !finished.is_nothing());
                finished.map(|finished| Letter::Finished(ticket.token, request, finished))
            }
            Job::WarmUp(part) => {
                warmth::warm_up(&part);
                Some(Letter::Warm(ticket.token))
            }
        };
        if let Some(letter) = letter {
            ticket.reply_to.post(letter);
        }
        Ran { admission, has_answered }
    }

    /// The request that is to be answered, if that is what it is.
    pub(crate) fn into_request(self) -> Option<Box<Retained>> {
        match self.job {
            Job::Answer { request, .. } => Some(request),
            Job::WarmUp(_) => None,
        }
    }
}

/// A task that was run.
struct Ran {
    admission: Arc<Admission>,
    /// With it a request was answered, and not a piece of its body stored, or of a file brought into memory.
    has_answered: bool,
}

impl Ran {
    /// Tells how long that took.
    fn tell(&self, took: Duration) {
        self.admission.ran(took, self.has_answered);
    }
}

/// The threads and their queue. Threads start when there is work for them.
#[derive(Clone)]
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// How long tasks waited before they were begun.
    waits: Waits,
}

struct Queue {
    waiting: TaskQueue<Task>,
    sizer: PoolSizer,
    threads: usize,
    /// Threads at a task.
    busy: usize,
    /// Of these, at one that nobody waits for; as many others may run in their place.
    overdue: usize,
    stopped: bool,
}

impl Queue {
    /// Threads that may run. Handlers that never return are bounded too: past three times the
    /// threads that were wished for, nobody takes their place.
    fn allowed(&self) -> usize {
        let size = self.sizer.size();
        size.saturating_add(self.overdue.min(size.saturating_mul(3)))
    }
}

impl Workers {
    /// As many threads as `sizer` says, for whom so many tasks may wait.
    pub(crate) fn new(sizer: PoolSizer, most_waiting: usize) -> Self {
        let waiting = TaskQueue::new(most_waiting);
        let queue = Queue { waiting, sizer, threads: 0, busy: 0, overdue: 0, stopped: false };
        Self(Arc::new(Shared {
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
            waits: Waits::default(),
        }))
    }

    /// Queues `task`, or gives it back when it would wait for too long.
    pub(crate) fn spawn(&self, task: Task) -> Result<(), Task> {
        let wish = Wish { name: task.service(), patience: task.patience, now: task.since };
        let mut queue = self.0.lock();
        let waits = queue.busy + queue.waiting.len() >= queue.allowed();
        if waits && queue.sizer.is_due(wish.now) {
            queue.sizer.look(wish.now, computed());
        }
        self.hire(&mut queue, 1);
        if queue.threads == 0 {
            // No thread can be had at all.
            return Err(task);
        }
        let all = queue.allowed();
        let free = all.saturating_sub(queue.busy);
        queue.waiting.push(task, wish, Threads { all, free })?;
        drop(queue);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Takes back a task that nobody has begun.
    pub(crate) fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        self.0.lock().waiting.withdraw(Instant::now(), |task| task.ticket == *ticket)
    }

    /// Tasks wait for too long: somebody was refused not long ago, nobody has had a worker in good time since, and
    /// none has nothing to do.
    pub(crate) fn is_overloaded(&self) -> bool {
        let queue = self.0.lock();
        queue.busy >= queue.allowed() && queue.waiting.is_over(Instant::now())
    }

    /// How long tasks have waited for a thread.
    pub(crate) fn waits(&self) -> WaitMetrics {
        self.0.waits.metrics()
    }

    /// What is known of each service.
    pub(crate) fn metrics(&self) -> Vec<ServiceMetrics> {
        let queue = self.0.lock();
        queue.waiting.metrics(queue.allowed(), Instant::now())
    }

    /// A thread is away with a task that nobody waits for: another may take its place.
    pub(crate) fn replace(&self) {
        let mut queue = self.0.lock();
        let before = queue.allowed();
        queue.overdue += 1;
        if queue.allowed() > before {
            queue.waiting.replaced();
        }
        self.hire(&mut queue, 0);
    }

    /// Such a thread is back; there may now be one too many, which ends.
    pub(crate) fn welcome_back(&self) {
        let mut queue = self.0.lock();
        queue.overdue = queue.overdue.saturating_sub(1);
    }

    /// The share of threads at work, 0 to 1.
    pub(crate) fn load(&self) -> f32 {
        let queue = self.0.lock();
        (queue.busy as f32 / queue.sizer.size() as f32).min(1.0)
    }

    /// How busy they are, for people.
    pub(crate) fn status(&self) -> String {
        let queue = self.0.lock();
        let (busy, waiting) = (queue.busy, queue.waiting.len());
        format!("{busy} of {} workers are busy, {waiting} requests wait", queue.sizer.size())
    }

    /// Lets resting workers go; those at work end with their call.
    pub(crate) fn stop(&self) {
        self.0.lock().stopped = true;
        self.0.arrived.notify_all();
    }

    /// Starts threads until those that rest are as many as the tasks that wait, and those that come: each is good for
    /// one.
    fn hire(&self, queue: &mut Queue, come: usize) {
        while queue.threads - queue.busy < queue.waiting.len() + come
            && queue.threads < queue.allowed()
        {
            let shared = Arc::clone(&self.0);
            let name = "bine worker".to_owned();
            // Without another thread those that run will come to it, or its wait ends in a 503.
            if thread::Builder::new().name(name).spawn(move || shared.run()).is_err() {
                return;
            }
            queue.threads += 1;
        }
    }
}

/// How long this process has computed, on all cores together.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs a handler. `None`: its reply has left while it was written.
fn answer(
    work: &dyn Work,
    request: &Retained,
    mut bytes: Vec<u8>,
    clock: &Clock,
    ticket: &Ticket,
) -> Option<Finished> {
    let mut courier = Courier::new(ticket, request);
    let mut drain = |buffer: &mut Vec<u8>| courier.carry(buffer);
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut drain };
    let done = run_work(work, request, clock, &mut out);
    if courier.has_left() {
        courier.carry(&mut bytes);
        courier.end(done.is_some());
        return None;
    }
    let done = done.unwrap_or_else(|| excuse(work, request, clock, &mut bytes));
    Some(Finished { bytes, follow: done.follow, close: done.close })
}

impl Shared {
    fn run(&self) {
        let clock = Clock::kernel();
        let mut turn = self.first();
        while let Some(Turn { task, run, waited }) = turn {
            self.waits.count(waited);
            let ran = task.run_by(&clock, waited);
            turn = self.next(run, &ran);
        }
    }

    fn first(&self) -> Option<Turn<Task>> {
        let queue = self.lock();
        self.take(queue)
    }

    fn next(&self, run: Run, ran: &Ran) -> Option<Turn<Task>> {
        let mut queue = self.lock();
        queue.busy -= 1;
        let all = queue.allowed();
        let took = queue.waiting.ended(run, all, Instant::now());
        ran.tell(took);
        self.take(queue)
    }

    /// Waits for a task; `None` ends the thread, which is no longer counted.
    fn take<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> Option<Turn<Task>> {
        loop {
            let all = queue.allowed();
            let too_many = queue.threads > all;
            let now = Instant::now();
            let next = if too_many { None } else { queue.waiting.next(all, now) };
            match next {
                Some(Next::Run(turn)) => {
                    queue.busy += 1;
                    let busy = queue.busy;
                    queue.sizer.began(now, busy);
                    // What could not run before may do so now, and there is a thread for it.
                    if !queue.waiting.is_empty() && queue.threads > queue.busy {
                        self.arrived.notify_one();
                    }
                    return Some(turn);
                }
                Some(Next::Late(task)) => {
                    drop(queue);
                    task.refuse();
                    queue = self.lock();
                    continue;
                }
                None => {}
            }
            let rest = if too_many || queue.stopped {
                true
            } else {
                let waited = self.arrived.wait_timeout(queue, REST);
                let (woken, rest) = waited.unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                rest.timed_out() && queue.waiting.is_empty()
            };
            if rest {
                queue.threads -= 1;
                // It may have been called for a task, which is for another then.
                if !queue.waiting.is_empty() {
                    self.arrived.notify_one();
                }
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Handlers run outside the lock, and nothing under it can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use bine_http::{Event, Limits, RequestParser};

    use super::*;
    use crate::address::Peer;
    use crate::handler::{Body, Done, Incoming, Who};
    use crate::mailbox::Mailbox;
    use crate::slab::Token;

    /// Tells that it has begun, and ends when it is let go.
    struct Held(Sender<()>, Mutex<Receiver<()>>);

    impl Work for Held {
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
        let Event::Head(head) = step.event else { unreachable!("it is a whole head") };
        let exchange = head.exchange();
        let incoming = Incoming {
            head,
            body: Body::None,
            peer: Peer::UNIX,
            who: &Who::Anonymous,
            arrival: 0,
            has_begun: false,
            exchange,
        };
        Box::new(Retained::of(&incoming))
    }

    /// Workers that run tasks which tell when they begin, and end when they are let go.
    struct Bench {
        workers: Workers,
        mailbox: Arc<Mailbox>,
        work: Arc<dyn Work>,
        begins: Receiver<()>,
        let_go: Sender<()>,
    }

    impl Bench {
        fn new(workers: usize, most_waiting: usize) -> Self {
            let (begun, begins) = channel();
            let (let_go, going) = channel();
            Self {
                workers: Workers::new(PoolSizer::new(workers, workers, 1), most_waiting),
                mailbox: Arc::new(Mailbox::new().unwrap()),
                work: Arc::new(Held(begun, Mutex::new(going))),
                begins,
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

        /// Waits until all rest who are there.
        fn await_rest(&self) {
            while self.workers.load() > 0.0 {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_worker_refuses_what_has_waited_too_long_and_runs_what_comes_behind_it() {
        let bench = Bench::new(1, 10);
        assert!(bench.spawn(0, REST).is_ok());
        bench.begins.recv().unwrap();
        assert!(bench.spawn(1, Duration::ZERO).is_ok());
        assert!(bench.spawn(2, REST).is_ok());
        for _ in 0..2 {
            bench.let_go.send(()).unwrap();
        }
        bench.begins.recv().unwrap();
        let mut letters = Vec::new();
        bench.mailbox.take(&mut letters);
        let told = letters.iter().map(|letter| match letter {
            Letter::Finished(token, _, finished) => (token.index, &*finished.bytes),
            Letter::Refused(token, _) => (token.index, &b"refused"[..]),
            _ => unreachable!("nothing else is posted"),
        });
        assert_eq!(told.take(2).collect::<Vec<_>>(), [(0, &b"ran"[..]), (1, b"refused")]);
        let metrics = bench.workers.metrics();
        assert_eq!((metrics[0].name, metrics[0].begun, metrics[0].refused), ("held", 2, 1));
        bench.workers.stop();
    }

    /// Stores what was collected, and has nothing to say of it.
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
    fn only_a_reply_is_an_answer() {
        let bench = Bench::new(1, 1);
        bench.let_go.send(()).unwrap();
        let has_answered = |work| {
            let ran = bench.task(0, work, REST).run_by(&Clock::kernel(), Duration::ZERO);
            ran.has_answered
        };
        assert!(has_answered(&bench.work));
        let stored: Arc<dyn Work> = Arc::new(Stored);
        assert!(!has_answered(&stored));
    }

    #[test]
    fn a_worker_that_goes_because_there_are_too_many_leaves_no_task_alone() {
        let bench = Bench::new(1, 10);
        assert!(bench.spawn(0, REST).is_ok());
        bench.begins.recv().unwrap();
        bench.workers.replace();
        assert!(bench.spawn(1, REST).is_ok());
        bench.begins.recv().unwrap();
        for _ in 0..2 {
            bench.let_go.send(()).unwrap();
        }
        bench.await_rest();
        // Two rest, of whom one is to go now; whichever is called.
        bench.workers.welcome_back();
        assert!(bench.spawn(2, REST).is_ok());
        assert_eq!(bench.begins.recv_timeout(REST / 2), Ok(()), "nobody has begun it");
        bench.let_go.send(()).unwrap();
        bench.workers.stop();
    }

    #[test]
    fn workers_without_a_bound_are_as_many_as_there_is_work_for() {
        let bench = Bench::new(usize::MAX, usize::MAX);
        bench.workers.replace();
        for index in 0..3 {
            assert!(bench.spawn(index, REST).is_ok());
        }
        (0..3).for_each(|_| bench.begins.recv().unwrap());
        assert!(!bench.workers.is_overloaded());
        (0..3).for_each(|_| bench.let_go.send(()).unwrap());
        bench.workers.stop();
    }

    /// Nobody who is refused comes again while the door is shut, so nothing would ever open it.
    #[test]
    fn workers_that_hang_are_no_overload_once_others_have_taken_their_place() {
        let bench = Bench::new(1, 0);
        assert!(bench.spawn(0, REST).is_ok());
        bench.begins.recv().unwrap();
        assert!(bench.spawn(1, REST).is_err());
        assert!(bench.workers.is_overloaded());
        bench.workers.replace();
        assert!(!bench.workers.is_overloaded());
        bench.let_go.send(()).unwrap();
        bench.workers.stop();
    }
}
