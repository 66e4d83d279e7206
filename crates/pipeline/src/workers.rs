//! Decides who runs what may block: a bounded number of threads behind a bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::Clock;
use crate::handler::{FilePart, Finished, Outgoing, Retained, Work};
use crate::mailbox::{Letter, Mailbox};
use crate::relay::Courier;
use crate::slab::Token;
use crate::stages::{excuse, run_work};
use crate::warmth;

/// A worker with nothing to do goes after this long.
const REST: Duration = Duration::from_secs(30);

/// What is done away from its loop because it may block.
pub struct Task {
    pub(crate) job: Job,
    pub(crate) ticket: Ticket,
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

    /// The request that is to be answered, if that is what it is.
    pub(crate) fn into_request(self) -> Option<Box<Retained>> {
        match self.job {
            Job::Answer { request, .. } => Some(request),
            Job::WarmUp(_) => None,
        }
    }
}

/// Names the connection that waits for a [`Task`], and where to answer it.
#[derive(Clone)]
pub struct Ticket {
    pub(crate) token: Token,
    pub(crate) reply_to: Arc<Mailbox>,
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token && Arc::ptr_eq(&self.reply_to, &other.reply_to)
    }
}

impl Eq for Ticket {}

/// The threads and their queue. Threads start when there is work for them.
#[derive(Clone)]
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    most_threads: usize,
    most_waiting: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Task>,
    threads: usize,
    /// Threads at a task.
    busy: usize,
    /// Of these, at one that nobody waits for; as many others may run in their place.
    overdue: usize,
    stopped: bool,
}

impl Workers {
    pub(crate) fn new(most_threads: usize, most_waiting: usize) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            most_threads: most_threads.max(1),
            most_waiting,
        }))
    }

    /// Queues `task`, or gives it back when the queue is full.
    pub(crate) fn spawn(&self, task: Task) -> Result<(), Task> {
        let mut queue = self.0.lock();
        // A task that a thread will take at once does not wait.
        let free = self.0.allowed(&queue).saturating_sub(queue.busy);
        if queue.waiting.len() >= self.0.most_waiting + free {
            return Err(task);
        }
        queue.waiting.push_back(task);
        self.hire(&mut queue);
        if queue.threads == 0 {
            // No thread can be had at all.
            return queue.waiting.pop_back().map_or(Ok(()), Err);
        }
        drop(queue);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Takes back a task that nobody has begun.
    pub(crate) fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        let mut queue = self.0.lock();
        let place = queue.waiting.iter().position(|task| task.ticket == *ticket)?;
        queue.waiting.remove(place)
    }

    /// A thread is away with a task that nobody waits for: another may take its place.
    pub(crate) fn replace(&self) {
        let mut queue = self.0.lock();
        queue.overdue += 1;
        self.hire(&mut queue);
    }

    /// Such a thread is back; there may now be one too many, which ends.
    pub(crate) fn welcome_back(&self) {
        let mut queue = self.0.lock();
        queue.overdue = queue.overdue.saturating_sub(1);
    }

    /// The share of threads at work, 0 to 1.
    pub(crate) fn load(&self) -> f32 {
        (self.0.lock().busy as f32 / self.0.most_threads as f32).min(1.0)
    }

    /// Lets resting workers go; those at work end with their call.
    pub(crate) fn stop(&self) {
        self.0.lock().stopped = true;
        self.0.arrived.notify_all();
    }

    /// Starts a thread if those that rest are fewer than the tasks that wait: each is good for one.
    fn hire(&self, queue: &mut Queue) {
        let resting = queue.threads - queue.busy;
        if resting >= queue.waiting.len() || queue.threads >= self.0.allowed(queue) {
            return;
        }
        let shared = Arc::clone(&self.0);
        let name = "bine worker".to_owned();
        // Without another thread those that run will come to it, or its wait ends in a 503.
        if thread::Builder::new().name(name).spawn(move || shared.run()).is_ok() {
            queue.threads += 1;
        }
    }
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
        let mut task = self.first();
        while let Some(Task { job, ticket }) = task {
            clock.turn();
            let letter = match job {
                Job::Answer { work, request, bytes } => {
                    let finished = answer(&*work, &request, bytes, &clock, &ticket);
                    // The last owner of a program may be here, and its values may panic as they go.
                    let _ = catch_unwind(AssertUnwindSafe(move || drop(work)));
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
            task = self.next();
        }
    }

    /// Threads that may run. Handlers that never return are bounded too: past three times the
    /// threads that were wished for, nobody takes their place.
    fn allowed(&self, queue: &Queue) -> usize {
        self.most_threads + queue.overdue.min(3 * self.most_threads)
    }

    fn first(&self) -> Option<Task> {
        let queue = self.lock();
        self.take(queue)
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        queue.busy -= 1;
        self.take(queue)
    }

    /// Waits for a task; `None` ends the thread, which is no longer counted.
    fn take(&self, mut queue: MutexGuard<'_, Queue>) -> Option<Task> {
        loop {
            let too_many = queue.threads > self.allowed(&queue);
            if !too_many && let Some(task) = queue.waiting.pop_front() {
                queue.busy += 1;
                return Some(task);
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
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Handlers run outside the lock, and nothing under it can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
