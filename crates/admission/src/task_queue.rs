//! Decides who of those that wait for a worker is next, who has waited in vain, and who need not begin to wait.
//!
//! The order is that of arrival, over all services together. What a service may have at most depends on what the others
//! need: alone it has every worker; beside others it heeds its [limit](crate::limiter), leaves room for those that are
//! faster, and never has the last worker. Nothing here reads a clock or knows a thread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::limiter::Limiter;

/// A service that was asked for within this time has work.
const ACTIVE: Duration = Duration::from_secs(1);
/// One that was asked for within this time may have work any moment.
const KNOWN: Duration = Duration::from_secs(10);
/// Services with a place of their own. All that come later share one more.
const MOST_SERVICES: usize = 128;
/// How that is called.
const OTHERS: &str = "(others)";
/// Whoever is this many times faster is not made to wait for the end of a slow run.
const FASTER: u32 = 4;

/// The tasks that wait for a worker, by service.
pub struct TaskQueue<T> {
    services: Vec<Service<T>>,
    /// Tasks that wait, of all services.
    count: usize,
    most: usize,
    /// Runs of all services in whose place other workers stand.
    replaced: usize,
    /// When somebody was refused, if nobody has had a worker in good time since.
    over: Option<Instant>,
}

struct Service<T> {
    name: &'static str,
    waiting: VecDeque<Waiter<T>>,
    /// When those that run began, in that order.
    running: VecDeque<Instant>,
    /// The same of those in whose place other workers stand: they take nothing from anybody.
    replaced: VecDeque<Instant>,
    limiter: Limiter,
    asked: Instant,
    usage: Usage,
    begun: u64,
    refused: u64,
}

struct Waiter<T> {
    task: T,
    since: Instant,
    patience: Duration,
}

/// A task whose turn has come.
#[derive(Debug)]
pub struct Turn<T> {
    /// The task itself.
    pub task: T,
    /// What [`ended`](TaskQueue::ended) is to be told.
    pub run: Run,
    /// How long it has waited.
    pub waited: Duration,
}

/// A run that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    service: usize,
    began: Instant,
}

/// What comes next.
#[derive(Debug)]
pub enum Next<T> {
    /// It is to be run.
    Run(Turn<T>),
    /// It has waited longer than it would, and is to be refused.
    Late(T),
}

/// What is known of one service, for whoever watches the server.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceMetrics {
    /// The handler's name.
    pub name: &'static str,
    /// Runs that it may have under way at one time.
    pub limit: usize,
    /// Runs under way.
    pub running: usize,
    /// Tasks that wait for a worker.
    pub waiting: usize,
    /// Runs begun so far.
    pub begun: u64,
    /// Tasks refused so far: on arrival, or because they had waited too long.
    pub refused: u64,
    /// What a run takes at present.
    pub time: Duration,
}

impl<T> TaskQueue<T> {
    /// A room in which `most` tasks may wait.
    pub const fn new(most: usize) -> Self {
        Self { services: Vec::new(), count: 0, most, replaced: 0, over: None }
    }

    /// Has `task` of the service called `name` wait for one of `workers`, `free` of which have nothing to do.
    ///
    /// # Errors
    ///
    /// The task itself, if there is no room, or it would have to wait for more than `patience` as far as one can tell.
    pub fn push(
        &mut self,
        task: T,
        Wish { name, patience, now }: Wish,
        Threads { all, free }: Threads,
    ) -> Result<(), T> {
        let all = self.left_of(all);
        let place = self.place_of(name, all, now);
        self.services[place].asked = now;
        let is_alone = !self.others(place).any(|other| other.is_known(now));
        let service = &self.services[place];
        // A task that a worker will take at once does not wait.
        let waits = self.count >= free;
        // One service alone may fill the room; of several each leaves as much as it has.
        let left = self.most.saturating_add(free).saturating_sub(self.count);
        let has_room = left > 0 && (is_alone || !waits || service.waiting.len() < left);
        if has_room && (!waits || self.expected_wait(place, all, now) <= patience) {
            self.services[place].waiting.push_back(Waiter { task, since: now, patience });
            self.count += 1;
            return Ok(());
        }
        self.services[place].refused += 1;
        self.over = Some(now);
        Err(task)
    }

    /// Who is next for one of `all` workers: the one that has waited longest of those who may run.
    pub fn next(&mut self, all: usize, now: Instant) -> Option<Next<T>> {
        if self.count == 0 {
            // A worker has nothing to do.
            self.over = None;
            return None;
        }
        let all = self.left_of(all);
        let mut passed = None;
        loop {
            // At most as often as there are services: each is passed over once.
            let (since, place) = self.oldest_behind(passed)?;
            let service = &self.services[place];
            let waited = now.saturating_duration_since(since);
            let front = service.waiting.front()?;
            let is_late = waited > front.patience;
            if is_late || service.running.len() < self.most_of(place, all, now) {
                let is_soon = waited < front.patience / 2;
                let service = &mut self.services[place];
                let Waiter { task, .. } = service.waiting.pop_front()?;
                self.count -= 1;
                if is_late {
                    service.refused += 1;
                    self.over = Some(now);
                    return Some(Next::Late(task));
                }
                if is_soon {
                    self.over = None;
                }
                service.running.push_back(now);
                service.begun += 1;
                let run = Run { service: place, began: now };
                return Some(Next::Run(Turn { task, run, waited }));
            }
            passed = Some((since, place));
        }
    }

    /// A run has ended; how long it took.
    pub fn ended(&mut self, run: Run, all: usize, now: Instant) -> Duration {
        let all = self.left_of(all);
        let service = &mut self.services[run.service];
        let took = now.saturating_duration_since(run.began);
        let running = service.running.len();
        if let Some(place) = service.running.iter().position(|began| *began == run.began) {
            service.running.remove(place);
        } else if let Some(place) = service.replaced.iter().position(|began| *began == run.began) {
            service.replaced.remove(place);
            self.replaced -= 1;
        }
        service.limiter.ran(took, running, all);
        service.usage.add(took, now);
        took
    }

    /// Another worker stands in for one whose run nobody waits for any more. All have the same time for that, so it is the
    /// run that began first.
    pub fn replaced(&mut self) {
        let begun = |service: &&mut Service<T>| service.running.front().copied();
        let services = self.services.iter_mut().filter(|service| !service.running.is_empty());
        let Some(service) = services.min_by_key(begun) else { return };
        service.replaced.extend(service.running.pop_front());
        self.replaced += 1;
    }

    /// Takes out the first task for which `is_it` holds.
    pub fn withdraw(&mut self, now: Instant, is_it: impl Fn(&T) -> bool) -> Option<T> {
        for service in &mut self.services {
            let place = service.waiting.iter().position(|waiter| is_it(&waiter.task));
            if let Some(Waiter { task, since, patience }) =
                place.and_then(|place| service.waiting.remove(place))
            {
                self.count -= 1;
                if now.saturating_duration_since(since) >= patience / 2 {
                    service.refused += 1;
                    self.over = Some(now);
                }
                return Some(task);
            }
        }
        None
    }

    /// How many tasks wait.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether no task waits.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Somebody was refused not long ago, and nobody has had a worker in good time since. When all hang and nobody is let
    /// in for that, nobody comes who would tell that it has passed: it does not last.
    pub fn is_over(&self, now: Instant) -> bool {
        self.over.is_some_and(|refused| now.saturating_duration_since(refused) < KNOWN)
    }

    /// Each service that has been asked for, in the order of their first requests.
    pub fn metrics(&self, all: usize, now: Instant) -> Vec<ServiceMetrics> {
        let all = self.left_of(all);
        let places = self.services.iter().enumerate();
        let metrics = places.map(|(place, service)| ServiceMetrics {
            name: service.name,
            limit: self.most_of(place, all, now),
            running: service.running.len() + service.replaced.len(),
            waiting: service.waiting.len(),
            begun: service.begun,
            refused: service.refused,
            time: service.limiter.time(),
        });
        metrics.collect()
    }

    /// Of so many workers, those that are not away with what nobody waits for.
    fn left_of(&self, all: usize) -> usize {
        all.saturating_sub(self.replaced).max(1)
    }

    /// The place of the service called `name`, with one made for a new one.
    fn place_of(&mut self, name: &'static str, all: usize, now: Instant) -> usize {
        if let Some(place) = self.services.iter().position(|service| service.name == name) {
            return place;
        }
        if self.services.len() <= MOST_SERVICES {
            let is_last = self.services.len() == MOST_SERVICES;
            self.services.push(Service {
                name: if is_last { OTHERS } else { name },
                waiting: VecDeque::new(),
                running: VecDeque::new(),
                replaced: VecDeque::new(),
                limiter: Limiter::new(all),
                asked: now,
                usage: Usage { since: now, busy: Duration::ZERO, workers: 0.0 },
                begun: 0,
                refused: 0,
            });
        }
        self.services.len() - 1
    }

    /// Of the services with a task that waits, the one whose first came first, behind `passed`.
    fn oldest_behind(&self, passed: Option<(Instant, usize)>) -> Option<(Instant, usize)> {
        let fronts = self.services.iter().enumerate().filter_map(|(place, service)| {
            service.waiting.front().map(|waiter| (waiter.since, place))
        });
        fronts.filter(|front| passed.is_none_or(|passed| *front > passed)).min()
    }

    /// All services but the one at `place`.
    fn others(&self, place: usize) -> impl Iterator<Item = &Service<T>> {
        let all = self.services.iter().enumerate();
        all.filter(move |(other, _)| *other != place).map(|(_, service)| service)
    }

    /// How many of `all` workers a service may have at this moment.
    fn most_of(&self, place: usize, all: usize, now: Instant) -> usize {
        let service = &self.services[place];
        if !self.others(place).any(|other| other.is_known(now)) {
            return all;
        }
        // One is kept for whoever else comes.
        let most = all.saturating_sub(1).max(1);
        let age = service.age(now);
        let own = service.limiter.time().max(age);
        let (mut active, mut room) = (1, 0);
        for other in self.others(place).filter(|other| other.is_active(now)) {
            active += 1;
            if other.limiter.time() * FASTER < own {
                room += other.usage.room();
            }
        }
        if active == 1 {
            return most;
        }
        let share = all.saturating_sub(room).max(all / active).max(2);
        most.min(service.limiter.limit(age, all)).min(share)
    }

    /// How long a task of the service at `place` that comes now will wait, by what runs take at present. Slower services
    /// do not stand before it: they have the workers that they have, and no more.
    fn expected_wait(&self, place: usize, all: usize, now: Instant) -> Duration {
        let own = &self.services[place];
        let (mut ahead, mut workers) = (Duration::ZERO, all);
        for service in &self.services {
            let time = service.limiter.time();
            if time > own.limiter.time() * FASTER {
                workers = workers.saturating_sub(service.running.len());
            } else {
                ahead = ahead.saturating_add(time.saturating_mul(small(service.waiting.len())));
            }
        }
        let most = self.most_of(place, all, now);
        let alone = own.limiter.time().saturating_mul(small(own.waiting.len())) / small(most);
        alone.max(ahead / small(workers.max(1)))
    }
}

/// Counts of tasks and threads are far below the most that it has room for.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Who asks, and how long they would wait from now on.
#[derive(Clone, Copy)]
pub struct Wish {
    /// The service that the task is a run of.
    pub name: &'static str,
    /// How long the task may wait.
    pub patience: Duration,
    /// The present.
    pub now: Instant,
}

/// The workers that there may be, and how many of them have nothing to do.
#[derive(Clone, Copy)]
pub struct Threads {
    /// Workers, busy or not.
    pub all: usize,
    /// Workers that have nothing to do.
    pub free: usize,
}

impl<T> Service<T> {
    fn is_active(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || now.saturating_duration_since(self.asked) < ACTIVE
    }

    fn is_known(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || now.saturating_duration_since(self.asked) < KNOWN
    }

    /// How long those that run have been at it: half of them for longer.
    fn age(&self, now: Instant) -> Duration {
        let middle = self.running.get(self.running.len() / 2);
        middle.map_or(Duration::ZERO, |began| now.saturating_duration_since(*began))
    }
}

/// How many workers a service keeps busy.
struct Usage {
    since: Instant,
    /// Of runs that have ended since then.
    busy: Duration,
    /// Before then, smoothed.
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

    /// Workers that it should find free or its own, so that next to none of its tasks waits: what it uses, and twice
    /// the root of that (the rule of square-root staffing).
    #[expect(clippy::cast_sign_loss, reason = "it is one at the least")]
    fn room(&self) -> usize {
        (self.workers + 2.0 * self.workers.sqrt()).ceil().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests;
