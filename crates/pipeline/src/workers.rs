//! Decides who runs what may block: a bounded number of threads behind a bounded queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::Clock;
use crate::handler::{Finished, Retained, Work};
use crate::mailbox::{Letter, Mailbox};
use crate::slab::Token;
use crate::stages::run_work;

/// A worker with nothing to do goes after this long.
const REST: Duration = Duration::from_secs(30);

/// One handler to run away from its loop.
pub struct Task {
    pub(crate) work: Arc<dyn Work>,
    pub(crate) request: Box<Retained>,
    /// An empty buffer for the reply.
    pub(crate) bytes: Vec<u8>,
    pub(crate) ticket: Ticket,
}

impl Task {
    /// Who waits for it.
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
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
    running: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Task>,
    threads: usize,
    resting: usize,
    stopped: bool,
}

impl Workers {
    pub(crate) fn new(most_threads: usize, most_waiting: usize) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            most_threads: most_threads.max(1),
            most_waiting,
            running: AtomicUsize::new(0),
        }))
    }

    /// Queues `task`, or gives it back when the queue is full.
    pub(crate) fn spawn(&self, task: Task) -> Result<(), Task> {
        let mut queue = self.0.lock();
        if queue.waiting.len() >= self.0.most_waiting {
            return Err(task);
        }
        queue.waiting.push_back(task);
        // Those resting may be fewer than those waiting: each is good for one task.
        if queue.resting < queue.waiting.len() && queue.threads < self.0.most_threads {
            let shared = Arc::clone(&self.0);
            let started =
                thread::Builder::new().name("bine worker".to_owned()).spawn(move || shared.run());
            match started {
                Ok(_) => queue.threads += 1,
                // No thread can be had: those that run will come to it, or its wait ends in a 503.
                Err(_) if queue.threads > 0 => {}
                Err(_) => return queue.waiting.pop_back().map_or(Ok(()), Err),
            }
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

    /// The share of threads at work, 0 to 1.
    pub(crate) fn load(&self) -> f32 {
        self.0.running.load(Ordering::Relaxed) as f32 / self.0.most_threads as f32
    }

    /// Lets resting workers go; those at work end with their call.
    pub(crate) fn stop(&self) {
        self.0.lock().stopped = true;
        self.0.arrived.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let clock = Clock::kernel();
        while let Some(task) = self.next() {
            self.running.fetch_add(1, Ordering::Relaxed);
            clock.turn();
            let Task { work, request, mut bytes, ticket } = task;
            let done = run_work(&*work, &request, &clock, &mut bytes);
            let finished = Finished { bytes, file: done.file, close: done.close };
            self.running.fetch_sub(1, Ordering::Relaxed);
            ticket.reply_to.post(Letter::Finished(ticket.token, request, finished));
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if let Some(task) = queue.waiting.pop_front() {
                return Some(task);
            }
            if queue.stopped {
                queue.threads -= 1;
                return None;
            }
            queue.resting += 1;
            let (woken, rest) =
                self.arrived.wait_timeout(queue, REST).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.resting -= 1;
            if rest.timed_out() && queue.waiting.is_empty() {
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
