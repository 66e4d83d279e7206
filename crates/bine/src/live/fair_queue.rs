//! A fair queue: jobs wait in a tree of flows, and the flow that has used the least run time starts
//! next.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queueing", 1996), with the cost
//! of a job estimated when it starts and corrected when it ends. The queue reads no clock: run
//! times are arguments.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The levels of the tree: site, address block, view.
pub(super) const LEVELS: usize = 3;
/// The place of a job in the tree: a flow's key on each level.
pub(super) type QueuePath = [u64; LEVELS];

/// The jobs that wait, of any kind `T`.
pub(super) struct FairQueue<T> {
    root: QueueNode<T>,
    max_running: [usize; LEVELS],
    queued: usize,
    running: usize,
}

/// A job that has started.
pub(super) struct Started<T> {
    pub(super) path: QueuePath,
    pub(super) number: u64,
    /// Charged until its real cost is known, in nanoseconds.
    pub(super) estimate: u64,
    pub(super) job: T,
}

struct QueueNode<T> {
    /// The virtual time of the child that started last.
    clock: u64,
    children: HashMap<u64, Child<T>>,
    /// Children with a job that may start, by virtual time.
    ready: BTreeSet<(u64, u64)>,
    /// Children without jobs that have used more run time than the clock. They are kept: otherwise
    /// a flow would lose its debt each time its queue is empty.
    ahead: BTreeSet<(u64, u64)>,
}

struct Child<T> {
    /// Run time that was used, in nanoseconds. Invariant: an entry of `ready` or `ahead` has the
    /// same.
    used: u64,
    queued: usize,
    running: usize,
    content: Content<T>,
}

enum Content<T> {
    Flows(QueueNode<T>),
    Jobs {
        /// By number: the first in is the first out.
        waiting: BTreeMap<u64, T>,
        /// The cost of the flow's last job, in nanoseconds.
        last_cost: u64,
    },
}

/// The first job of a flow is taken to cost this, in nanoseconds.
const FIRST_ESTIMATE: u64 = 1_000_000;
/// The least that a job is charged, in nanoseconds: starting one has a cost too.
const LEAST_COST: u64 = 50_000;
/// Flows without jobs that are remembered on one level.
const MAX_AHEAD: usize = 4096;

impl<T> FairQueue<T> {
    /// An empty queue. Of one flow on each level, `max_running` jobs run at one time.
    pub(super) fn new(max_running: [usize; LEVELS]) -> Self {
        let max_running = max_running.map(|most| most.max(1));
        Self { root: QueueNode::default(), max_running, queued: 0, running: 0 }
    }

    /// Adds a job. `number` is greater than those of the jobs before it.
    pub(super) fn push(&mut self, path: QueuePath, number: u64, job: T) {
        self.queued += 1;
        self.root.push(&path, &self.max_running, number, job);
    }

    /// Takes the job that starts next.
    pub(super) fn start(&mut self) -> Option<Started<T>> {
        let mut path = QueuePath::default();
        let (number, job, estimate) = self.root.start(&mut path, 0, &self.max_running)?;
        self.queued -= 1;
        self.running += 1;
        Some(Started { path, number, estimate, job })
    }

    /// Charges a job that has ended.
    pub(super) fn finish(&mut self, path: &QueuePath, estimate: u64, cost: Duration) {
        let cost = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX / 4).max(LEAST_COST);
        self.root.finish(path, &self.max_running, estimate, cost);
        self.running -= 1;
        if self.queued == 0 && self.running == 0 {
            self.root = QueueNode::default();
        }
    }

    /// Takes out a job that has not started.
    pub(super) fn remove(&mut self, path: &QueuePath, number: u64) -> Option<T> {
        let job = self.root.remove(path, &self.max_running, number)?;
        self.queued -= 1;
        Some(job)
    }

    /// The newest job of the flow with the longest queue on each level.
    pub(super) fn newest_of_longest(&self) -> Option<(QueuePath, u64)> {
        let mut path = QueuePath::default();
        let number = self.root.newest_of_longest(&mut path, 0)?;
        Some((path, number))
    }

    /// How many jobs wait.
    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    /// How many jobs wait in the flow that the first keys of a path name.
    pub(super) fn queued_in(&self, keys: &[u64]) -> usize {
        self.root.find(keys).map_or(0, |flow| flow.queued)
    }

    /// Whether a job waits or runs in the flow that the first keys of a path name.
    pub(super) fn has_any_in(&self, keys: &[u64]) -> bool {
        self.root.find(keys).is_some_and(|flow| flow.queued + flow.running > 0)
    }

    /// Whether a job may start.
    pub(super) fn can_start(&self) -> bool {
        !self.root.ready.is_empty()
    }
}

impl<T> Default for QueueNode<T> {
    fn default() -> Self {
        Self { clock: 0, children: HashMap::new(), ready: BTreeSet::new(), ahead: BTreeSet::new() }
    }
}

impl<T> QueueNode<T> {
    fn push(&mut self, path: &[u64], caps: &[usize], number: u64, job: T) {
        let clock = self.clock;
        self.children.entry(path[0]).or_insert_with(|| Child::new(clock, path.len() == 1));
        self.change(path[0], caps[0], |child| {
            if child.queued == 0 && child.running == 0 {
                child.used = child.used.max(clock);
            }
            child.queued += 1;
            match &mut child.content {
                Content::Flows(node) => node.push(&path[1..], &caps[1..], number, job),
                Content::Jobs { waiting, .. } => {
                    waiting.insert(number, job);
                }
            }
        });
    }

    fn start(
        &mut self,
        path: &mut QueuePath,
        level: usize,
        caps: &[usize; LEVELS],
    ) -> Option<(u64, T, u64)> {
        let (used, key) = *self.ready.first()?;
        self.clock = self.clock.max(used);
        path[level] = key;
        let started = self.change(key, caps[level], |child| {
            let started = match &mut child.content {
                Content::Flows(node) => node.start(path, level + 1, caps)?,
                Content::Jobs { waiting, last_cost } => {
                    let (number, job) = waiting.pop_first()?;
                    (number, job, *last_cost)
                }
            };
            child.queued -= 1;
            child.running += 1;
            child.used += started.2;
            Some(started)
        });
        self.forget();
        started.flatten()
    }

    fn finish(&mut self, path: &[u64], caps: &[usize], estimate: u64, cost: u64) {
        self.change(path[0], caps[0], |child| {
            child.running -= 1;
            child.used = child.used.saturating_sub(estimate).saturating_add(cost);
            match &mut child.content {
                Content::Flows(node) => node.finish(&path[1..], &caps[1..], estimate, cost),
                Content::Jobs { last_cost, .. } => *last_cost = cost,
            }
        });
        self.forget();
    }

    fn remove(&mut self, path: &[u64], caps: &[usize], number: u64) -> Option<T> {
        let removed = self.change(path[0], caps[0], |child| {
            let job = match &mut child.content {
                Content::Flows(node) => node.remove(&path[1..], &caps[1..], number),
                Content::Jobs { waiting, .. } => waiting.remove(&number),
            }?;
            child.queued -= 1;
            Some(job)
        });
        removed.flatten()
    }

    fn newest_of_longest(&self, path: &mut QueuePath, level: usize) -> Option<u64> {
        let longest = self.children.iter().max_by_key(|(key, child)| (child.queued, **key));
        let (key, child) = longest.filter(|(_, child)| child.queued > 0)?;
        path[level] = *key;
        match &child.content {
            Content::Flows(node) => node.newest_of_longest(path, level + 1),
            Content::Jobs { waiting, .. } => waiting.last_key_value().map(|(number, _)| *number),
        }
    }

    /// The flow that these keys name.
    fn find(&self, keys: &[u64]) -> Option<&Child<T>> {
        let (key, rest) = keys.split_first()?;
        let child = self.children.get(key)?;
        match &child.content {
            _ if rest.is_empty() => Some(child),
            Content::Flows(node) => node.find(rest),
            Content::Jobs { .. } => None,
        }
    }

    /// Changes a child and updates the node's indices for it.
    fn change<R>(
        &mut self,
        key: u64,
        max_running: usize,
        change: impl FnOnce(&mut Child<T>) -> R,
    ) -> Option<R> {
        let child = self.children.get_mut(&key)?;
        let before = (child.used, key);
        let changed = change(child);
        let now = (child.used, key);
        let is_ready = child.can_start() && child.running < max_running;
        let is_idle = child.queued == 0 && child.running == 0;
        let is_forgotten = is_idle && child.used <= self.clock;
        self.ready.remove(&before);
        self.ahead.remove(&before);
        if is_ready {
            self.ready.insert(now);
        } else if is_forgotten {
            self.children.remove(&key);
        } else if is_idle {
            self.ahead.insert(now);
        }
        Some(changed)
    }

    /// Forgets flows without jobs whose debt is paid, and the oldest beyond the limit.
    fn forget(&mut self) {
        while let Some((used, key)) = self.ahead.first().copied()
            && (used <= self.clock || self.ahead.len() > MAX_AHEAD)
        {
            self.ahead.pop_first();
            self.children.remove(&key);
        }
    }
}

impl<T> Child<T> {
    fn new(clock: u64, is_leaf: bool) -> Self {
        let content = if is_leaf {
            Content::Jobs { waiting: BTreeMap::new(), last_cost: FIRST_ESTIMATE }
        } else {
            Content::Flows(QueueNode::default())
        };
        Self { used: clock, queued: 0, running: 0, content }
    }

    fn can_start(&self) -> bool {
        match &self.content {
            Content::Flows(node) => !node.ready.is_empty(),
            Content::Jobs { waiting, .. } => !waiting.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn unlimited() -> FairQueue<()> {
        FairQueue::new([usize::MAX; LEVELS])
    }

    /// Starts and ends `count` jobs in sequence, each with the cost that `cost` returns, and lists
    /// their paths.
    fn run(
        queue: &mut FairQueue<()>,
        count: usize,
        cost: impl Fn(&QueuePath) -> Duration,
    ) -> Vec<QueuePath> {
        let mut paths = Vec::new();
        for _ in 0..count {
            let Some(Started { path, estimate, .. }) = queue.start() else { break };
            queue.finish(&path, estimate, cost(&path));
            paths.push(path);
        }
        paths
    }

    #[test]
    fn starts_short_queue_before_rest_of_long_queue() {
        let mut queue = unlimited();
        (0..1000).for_each(|number| queue.push([1, 1, 1], number, ()));
        queue.push([2, 2, 2], 1000, ());
        let paths = run(&mut queue, 2, |_| 10 * MILLISECOND);
        assert!(paths.contains(&[2, 2, 2]), "{paths:?}");
    }

    #[test]
    fn shares_run_time_rather_than_runs() {
        let mut queue = unlimited();
        for number in 0..1000 {
            queue.push([1, 1, 1], 2 * number, ());
            queue.push([2, 2, 2], 2 * number + 1, ());
        }
        // The first block's jobs cost nine times more.
        let cost = |path: &QueuePath| if path[0] == 1 { 9 * MILLISECOND } else { MILLISECOND };
        let paths = run(&mut queue, 500, cost);
        let of_first = paths.iter().filter(|path| path[0] == 1).count();
        assert!((45..=55).contains(&of_first), "{of_first} of 500");
    }

    #[test]
    fn limits_blocks_of_one_site_to_one_share() {
        let mut queue = unlimited();
        for number in 0..400 {
            queue.push([1, number, number], 2 * number, ());
            queue.push([2, 2, 2], 2 * number + 1, ());
        }
        let paths = run(&mut queue, 200, |_| MILLISECOND);
        let of_first = paths.iter().filter(|path| path[0] == 1).count();
        assert!((99..=101).contains(&of_first), "{of_first} of 200");
    }

    #[test]
    fn remembers_run_time_of_flow_with_empty_queue() {
        let mut queue = unlimited();
        (0..100).for_each(|number| queue.push([2, 2, 2], number, ()));
        // One client polls in a loop; jobs of the second wait all the time.
        let mut of_first = 0;
        for number in 100..200 {
            if queue.queued_in(&[1]) == 0 {
                queue.push([1, 1, 1], number, ());
            }
            of_first += usize::from(
                run(&mut queue, 1, |path| if path[0] == 1 { 9 * MILLISECOND } else { MILLISECOND })
                    [0][0]
                    == 1,
            );
        }
        assert!((9..=14).contains(&of_first), "{of_first} of 100");
    }

    #[test]
    fn limits_running_jobs_per_flow() {
        let mut queue = FairQueue::new([3, 2, 1]);
        for number in 0..20 {
            queue.push([1, number % 2, number % 4], number, ());
        }
        let started: Vec<QueuePath> =
            std::iter::from_fn(|| queue.start()).map(|started| started.path).collect();
        assert_eq!(started.len(), 3, "{started:?}");
        queue.finish(&started[0], FIRST_ESTIMATE, MILLISECOND);
        assert!(queue.start().is_some() && queue.start().is_none());
    }

    #[test]
    fn finds_newest_job_of_longest_queue() {
        let mut queue = unlimited();
        assert_eq!(queue.newest_of_longest(), None);
        for (number, path) in [[1, 1, 1], [2, 2, 2], [2, 2, 2], [2, 2, 3]].into_iter().enumerate() {
            queue.push(path, number as u64, ());
        }
        assert_eq!(queue.newest_of_longest(), Some(([2, 2, 2], 2)));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(QueuePath),
        Start,
        /// Ends a running job, by its position, at this cost in microseconds.
        Finish(usize, u64),
        /// Removes a waiting job, by its position.
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let push = [0..3_u64, 0..3_u64, 0..3_u64].prop_map(Step::Push);
        let finish =
            (0..20_usize, 0..20_000_u64).prop_map(|(place, cost)| Step::Finish(place, cost));
        prop_oneof![3 => push, 3 => Just(Step::Start), 2 => finish,
            1 => (0..20_usize).prop_map(Step::Remove)]
    }

    proptest! {
        /// Each job starts once or is removed; counts are right; a job waits only if it may not
        /// start; flows never exceed their caps; an empty queue keeps no state.
        #[test]
        fn keeps_its_invariants(steps in vec(step(), 0..200)) {
            const CAPS: [usize; LEVELS] = [4, 3, 2];
            let mut queue = FairQueue::new(CAPS);
            let (mut waiting, mut running) = (BTreeMap::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(path) => {
                        queue.push(path, number as u64, number);
                        waiting.insert(number as u64, path);
                    }
                    Step::Start => {
                        let of = |keys: &[u64]| {
                            running.iter().filter(|(path, _): &&(QueuePath, u64)| path.starts_with(keys)).count()
                        };
                        let may_start = |path: &QueuePath| {
                            (0..LEVELS).all(|level| of(&path[..=level]) < CAPS[level])
                        };
                        let expected = waiting.values().any(may_start);
                        prop_assert_eq!(queue.can_start(), expected);
                        let started = queue.start();
                        prop_assert_eq!(started.is_some(), expected);
                        let Some(Started { path, number, estimate, job }) = started else { continue };
                        prop_assert_eq!(job as u64, number);
                        prop_assert_eq!(waiting.remove(&number), Some(path));
                        running.push((path, estimate));
                    }
                    Step::Finish(place, cost) if place < running.len() => {
                        let (path, estimate) = running.swap_remove(place);
                        queue.finish(&path, estimate, Duration::from_micros(cost));
                    }
                    Step::Remove(place) => {
                        let Some((number, path)) = waiting.iter().nth(place).map(|(n, p)| (*n, *p))
                        else { continue };
                        prop_assert_eq!(queue.remove(&path, number), Some(number as usize));
                        prop_assert!(queue.remove(&path, number).is_none());
                        waiting.remove(&number);
                    }
                    Step::Finish(..) => {}
                }
                prop_assert_eq!((queue.queued(), queue.running), (waiting.len(), running.len()));
                for key in 0..3 {
                    let own = waiting.values().filter(|path| path[0] == key).count();
                    prop_assert_eq!(queue.queued_in(&[key]), own);
                }
            }
            for (path, estimate) in running {
                queue.finish(&path, estimate, MILLISECOND);
            }
            while let Some(Started { path, estimate, .. }) = queue.start() {
                queue.finish(&path, estimate, MILLISECOND);
            }
            prop_assert_eq!((queue.queued(), queue.running), (0, 0));
        }
    }
}
