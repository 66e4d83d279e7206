//! The queue of tasks that wait for a worker: selects the next task and rejects late tasks.
//!
//! Tasks run in order of arrival over all services. The number of workers that a service may use
//! depends on the load of other services. Without any, it may use every worker. Otherwise it
//! respects its [limit](crate::limiter), leaves workers for faster services, and never takes the
//! last worker. The module reads no clock and knows no thread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::limiter::Limiter;

/// A service with a request within this time counts as active.
const ACTIVE: Duration = Duration::from_secs(1);
/// A service with a request within this time counts as known: its next task may arrive at any time.
const KNOWN: Duration = Duration::from_secs(10);
/// The number of services with a separate entry. All later services share one additional entry.
const MOST_SERVICES: usize = 128;
/// The name of the shared entry in the metrics.
const SHARED_ENTRY: &str = "(others)";
/// A service does not wait for the runs of a service that is slower by this factor.
const FASTER: u32 = 4;

/// The tasks that wait for a worker, by service.
pub struct TaskQueue<T> {
    services: Vec<Service<T>>,
    /// The number of waiting tasks of all services.
    count: usize,
    /// The number of tasks that may wait.
    capacity: usize,
    /// The number of runs of all services whose workers were replaced.
    replaced: usize,
    /// When a task was rejected, unless a task has started in time since then.
    rejected_at: Option<Instant>,
}

struct Service<T> {
    name: &'static str,
    waiting: VecDeque<WaitingTask<T>>,
    /// The start times of the present runs, in order.
    running: VecDeque<Instant>,
    /// The start times of runs whose workers were replaced. They do not count against the limit.
    replaced: VecDeque<Instant>,
    limiter: Limiter,
    last_request: Instant,
    usage: Usage,
    begun: u64,
    refused: u64,
}

struct WaitingTask<T> {
    task: T,
    since: Instant,
    patience: Duration,
}

/// A task that a worker runs now.
#[derive(Debug)]
pub struct ReadyTask<T> {
    /// The task.
    pub task: T,
    /// The handle for [`ended`](TaskQueue::ended).
    pub run: Run,
    /// How long the task has waited.
    pub waited: Duration,
}

/// A run in progress.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    service: usize,
    began: Instant,
}

/// The next task of the queue.
#[derive(Debug)]
pub enum QueueOutcome<T> {
    /// A task to run.
    Run(ReadyTask<T>),
    /// A task to reject: it has waited for longer than its patience.
    Late(T),
}

/// The metrics of one service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceMetrics {
    /// The handler's name.
    pub name: &'static str,
    /// The number of concurrent runs allowed.
    pub limit: usize,
    /// Runs in progress.
    pub running: usize,
    /// Tasks that wait for a worker.
    pub waiting: usize,
    /// Runs started so far.
    pub begun: u64,
    /// Tasks rejected so far: on arrival, or because they had waited too long.
    pub refused: u64,
    /// The present run time, smoothed.
    pub time: Duration,
}

impl<T> TaskQueue<T> {
    /// Creates a queue for at most `capacity` waiting tasks.
    pub const fn new(capacity: usize) -> Self {
        Self { services: Vec::new(), count: 0, capacity, replaced: 0, rejected_at: None }
    }

    /// Adds a task of the service called `name`, which waits for one of `all` workers. `free`
    /// workers are idle.
    ///
    /// # Errors
    ///
    /// Returns the task if the queue is full, or if its expected wait exceeds `patience`.
    pub fn push(
        &mut self,
        task: T,
        TaskRequest { name, patience, now }: TaskRequest,
        WorkerCounts { all, free }: WorkerCounts,
    ) -> Result<(), T> {
        let all = self.effective_workers(all);
        let index = self.index_of(name, all, now);
        self.services[index].last_request = now;
        let is_alone = !self.other_services(index).any(|other| other.is_known(now));
        let service = &self.services[index];
        // A task that an idle worker takes immediately does not wait.
        let waits = self.count >= free;
        // A single service may fill the queue. Otherwise a service may have at most as many waiting
        // tasks as the queue has free entries.
        let room = self.capacity.saturating_add(free).saturating_sub(self.count);
        let has_room = room > 0 && (is_alone || !waits || service.waiting.len() < room);
        if has_room && (!waits || self.expected_wait(index, all, now) <= patience) {
            self.services[index].waiting.push_back(WaitingTask { task, since: now, patience });
            self.count += 1;
            return Ok(());
        }
        self.services[index].refused += 1;
        self.rejected_at = Some(now);
        Err(task)
    }

    /// Returns the next task for one of `all` workers: the task that has waited longest among the
    /// services below their limits.
    pub fn next(&mut self, all: usize, now: Instant) -> Option<QueueOutcome<T>> {
        if self.count == 0 {
            // A worker is idle.
            self.rejected_at = None;
            return None;
        }
        let all = self.effective_workers(all);
        let mut skipped = None;
        loop {
            // Each service is skipped at most once.
            let (since, index) = self.oldest_after(skipped)?;
            let service = &self.services[index];
            let waited = now.saturating_duration_since(since);
            let front = service.waiting.front()?;
            let is_late = waited > front.patience;
            if is_late || service.running.len() < self.limit_of(index, all, now) {
                let is_soon = waited < front.patience / 2;
                let service = &mut self.services[index];
                let WaitingTask { task, .. } = service.waiting.pop_front()?;
                self.count -= 1;
                if is_late {
                    service.refused += 1;
                    self.rejected_at = Some(now);
                    return Some(QueueOutcome::Late(task));
                }
                if is_soon {
                    self.rejected_at = None;
                }
                service.running.push_back(now);
                service.begun += 1;
                let run = Run { service: index, began: now };
                return Some(QueueOutcome::Run(ReadyTask { task, run, waited }));
            }
            skipped = Some((since, index));
        }
    }

    /// Records the end of a run and returns its run time.
    pub fn ended(&mut self, run: Run, all: usize, now: Instant) -> Duration {
        let all = self.effective_workers(all);
        let service = &mut self.services[run.service];
        let took = now.saturating_duration_since(run.began);
        let running = service.running.len();
        if let Some(index) = service.running.iter().position(|began| *began == run.began) {
            service.running.remove(index);
        } else if let Some(index) = service.replaced.iter().position(|began| *began == run.began) {
            service.replaced.remove(index);
            self.replaced -= 1;
        }
        service.limiter.ran(took, running, all);
        service.usage.add(took, now);
        took
    }

    /// Records that a new worker replaces the worker of a run that has timed out.
    ///
    /// All runs have the same timeout, so this is the oldest run in progress.
    pub fn replaced(&mut self) {
        let oldest_start = |service: &&mut Service<T>| service.running.front().copied();
        let services = self.services.iter_mut().filter(|service| !service.running.is_empty());
        let Some(service) = services.min_by_key(oldest_start) else { return };
        service.replaced.extend(service.running.pop_front());
        self.replaced += 1;
    }

    /// Removes and returns the first task that matches `is_match`.
    pub fn withdraw(&mut self, now: Instant, is_match: impl Fn(&T) -> bool) -> Option<T> {
        for service in &mut self.services {
            let index = service.waiting.iter().position(|waiting| is_match(&waiting.task));
            if let Some(WaitingTask { task, since, patience }) =
                index.and_then(|index| service.waiting.remove(index))
            {
                self.count -= 1;
                if now.saturating_duration_since(since) >= patience / 2 {
                    service.refused += 1;
                    self.rejected_at = Some(now);
                }
                return Some(task);
            }
        }
        None
    }

    /// The number of waiting tasks.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether no task waits.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the workers are overloaded: a task was rejected within the last 10 s, and no task
    /// has started in time since then.
    ///
    /// The state expires, because it can keep new tasks away, and without them no task could end
    /// it.
    pub fn is_over(&self, now: Instant) -> bool {
        self.rejected_at.is_some_and(|refused| now.saturating_duration_since(refused) < KNOWN)
    }

    /// The metrics of each service, in the order of their first requests.
    pub fn metrics(&self, all: usize, now: Instant) -> Vec<ServiceMetrics> {
        let all = self.effective_workers(all);
        let entries = self.services.iter().enumerate();
        let metrics = entries.map(|(index, service)| ServiceMetrics {
            name: service.name,
            limit: self.limit_of(index, all, now),
            running: service.running.len() + service.replaced.len(),
            waiting: service.waiting.len(),
            begun: service.begun,
            refused: service.refused,
            time: service.limiter.time(),
        });
        metrics.collect()
    }

    /// The number of workers without those that were replaced.
    fn effective_workers(&self, all: usize) -> usize {
        all.saturating_sub(self.replaced).max(1)
    }

    /// Returns the index of the service called `name`, and creates an entry if necessary.
    fn index_of(&mut self, name: &'static str, all: usize, now: Instant) -> usize {
        if let Some(index) = self.services.iter().position(|service| service.name == name) {
            return index;
        }
        if self.services.len() <= MOST_SERVICES {
            let is_last = self.services.len() == MOST_SERVICES;
            self.services.push(Service {
                name: if is_last { SHARED_ENTRY } else { name },
                waiting: VecDeque::new(),
                running: VecDeque::new(),
                replaced: VecDeque::new(),
                limiter: Limiter::new(all),
                last_request: now,
                usage: Usage { since: now, busy: Duration::ZERO, workers: 0.0 },
                begun: 0,
                refused: 0,
            });
        }
        self.services.len() - 1
    }

    /// Returns the arrival time and the service of the oldest first task after `skipped`.
    fn oldest_after(&self, skipped: Option<(Instant, usize)>) -> Option<(Instant, usize)> {
        let fronts = self.services.iter().enumerate().filter_map(|(index, service)| {
            service.waiting.front().map(|first| (first.since, index))
        });
        fronts.filter(|front| skipped.is_none_or(|skipped| *front > skipped)).min()
    }

    /// Returns all services except the one at `index`.
    fn other_services(&self, index: usize) -> impl Iterator<Item = &Service<T>> {
        let all = self.services.iter().enumerate();
        all.filter(move |(each, _)| *each != index).map(|(_, service)| service)
    }

    /// Returns how many of `all` workers a service may use now.
    fn limit_of(&self, index: usize, all: usize, now: Instant) -> usize {
        let service = &self.services[index];
        if !self.other_services(index).any(|other| other.is_known(now)) {
            return all;
        }
        // One worker is reserved for other services.
        let most = all.saturating_sub(1).max(1);
        let age = service.age(now);
        let own = service.limiter.time().max(age);
        let (mut active, mut reserved) = (1, 0);
        for other in self.other_services(index).filter(|other| other.is_active(now)) {
            active += 1;
            if other.limiter.time() * FASTER < own {
                reserved += other.usage.reserve();
            }
        }
        if active == 1 {
            return most;
        }
        let share = all.saturating_sub(reserved).max(all / active).max(2);
        most.min(service.limiter.limit(age, all)).min(share)
    }

    /// Estimates the wait of a new task of the service at `index` from the present run times.
    ///
    /// Waiting tasks of much slower services do not count: those services keep the workers that
    /// they use, and get no more.
    fn expected_wait(&self, index: usize, all: usize, now: Instant) -> Duration {
        let own = &self.services[index];
        let (mut ahead, mut workers) = (Duration::ZERO, all);
        for service in &self.services {
            let time = service.limiter.time();
            if time > own.limiter.time() * FASTER {
                workers = workers.saturating_sub(service.running.len());
            } else {
                ahead = ahead.saturating_add(time.saturating_mul(to_u32(service.waiting.len())));
            }
        }
        let most = self.limit_of(index, all, now);
        let alone = own.limiter.time().saturating_mul(to_u32(own.waiting.len())) / to_u32(most);
        alone.max(ahead / to_u32(workers.max(1)))
    }
}

/// Converts a count of tasks or threads, which is always far below the maximum of `u32`.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The service of a new task, and how long the task may wait.
#[derive(Clone, Copy)]
pub struct TaskRequest {
    /// The name of the service.
    pub name: &'static str,
    /// How long the task may wait.
    pub patience: Duration,
    /// The present time.
    pub now: Instant,
}

/// The number of workers, and the number of idle workers.
#[derive(Clone, Copy)]
pub struct WorkerCounts {
    /// All workers, busy or idle.
    pub all: usize,
    /// Idle workers.
    pub free: usize,
}

impl<T> Service<T> {
    fn is_active(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || now.saturating_duration_since(self.last_request) < ACTIVE
    }

    fn is_known(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || now.saturating_duration_since(self.last_request) < KNOWN
    }

    /// The median age of the present runs.
    fn age(&self, now: Instant) -> Duration {
        let middle = self.running.get(self.running.len() / 2);
        middle.map_or(Duration::ZERO, |began| now.saturating_duration_since(*began))
    }
}

/// The mean number of workers that a service uses.
struct Usage {
    since: Instant,
    /// The total time of the runs that have ended since then.
    busy: Duration,
    /// The smoothed number of workers before then.
    workers: f64,
}

impl Usage {
    fn add(&mut self, took: Duration, now: Instant) {
        self.busy += took;
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= ACTIVE {
            let workers = self.busy.as_secs_f64() / elapsed.as_secs_f64();
            self.workers = f64::midpoint(self.workers, workers);
            (self.since, self.busy) = (now, Duration::ZERO);
        }
    }

    /// The number of workers to reserve so that almost no task of the service waits: the mean use
    /// plus twice its square root (the rule of square-root staffing).
    #[expect(clippy::cast_sign_loss, reason = "the value is at least one")]
    fn reserve(&self) -> usize {
        (self.workers + 2.0 * self.workers.sqrt()).ceil().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests;
