//! The render schedule: which page renders next, which joins are refused, and which are cancelled.
//!
//! A change re-renders a page for all its followers; a join renders a page for one client that
//! starts to follow it. Changes start before joins, but every fourth start of a thread may be a
//! join, so that joins never starve. Each of the two classes shares run time fairly
//! ([`FairQueue`]). The schedule has no threads and reads no clock.

use std::collections::HashMap;
use std::time::Duration;

use super::fair_queue::{FairQueue, LEVELS, QueuePath, Started};

/// How many renders may run and wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RenderLimits {
    /// Threads that render. The first renders changes only, if there are several.
    pub(crate) threads: usize,
    /// Joins that wait. A site may have half, an address block a quarter, this machine three
    /// quarters.
    pub(crate) joins: usize,
}

/// The renders that wait and run: changes of kind `C`, joins of kind `J`.
pub(super) struct Schedule<C, J> {
    changes: FairQueue<C>,
    joins: FairQueue<J>,
    limits: RenderLimits,
    /// Renders that run, by thread: a thread starts further renders while one awaits something.
    in_flight: Vec<usize>,
    running: HashMap<u64, RunningRender>,
    waiting_joins: HashMap<u64, QueuePath>,
    /// Changes that started in a row while joins waited.
    changes_in_row: usize,
    refused: u64,
}

/// A render that starts.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum RenderJob<C, J> {
    Change(C),
    Join(J),
}

struct RunningRender {
    is_join: bool,
    path: QueuePath,
    estimate: u64,
    thread: usize,
}

/// Renders that one thread runs concurrently: most of the time a render awaits something.
const MAX_IN_FLIGHT: usize = 64;
/// Changes that may start in a row while joins wait.
const MAX_CHANGES_IN_ROW: usize = 3;

impl Default for RenderLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { threads: cores.max(2), joins: 4096 }
    }
}

impl<C, J> Default for Schedule<C, J> {
    fn default() -> Self {
        Self::new(RenderLimits::default())
    }
}

impl<C, J> Schedule<C, J> {
    pub(super) fn new(limits: RenderLimits) -> Self {
        let limits = RenderLimits { threads: limits.threads.max(1), ..limits };
        let slots = limits.threads * MAX_IN_FLIGHT;
        let join_slots = limits.threads.saturating_sub(1).max(1) * MAX_IN_FLIGHT;
        Self {
            // Otherwise pages that only wait could take all slots.
            changes: FairQueue::new([slots / 2, slots / 2, slots / 4]),
            joins: FairQueue::new([join_slots * 3 / 4, join_slots / 2, join_slots / 4]),
            limits,
            in_flight: vec![0; limits.threads],
            running: HashMap::new(),
            waiting_joins: HashMap::new(),
            changes_in_row: 0,
            refused: 0,
        }
    }

    /// How many threads render.
    pub(super) const fn threads(&self) -> usize {
        self.limits.threads
    }

    /// Returns how many of the threads render joins.
    pub(super) const fn join_threads(&self) -> usize {
        if self.limits.threads > 1 { self.limits.threads - 1 } else { 1 }
    }

    /// Returns the number of renders that run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Whether a join of the same address block waits or runs.
    pub(super) fn has_join_of(&self, path: &QueuePath) -> bool {
        self.joins.has_any_in(&path[..LEVELS - 1])
    }

    /// Queues a change. The caller bounds how many there are.
    pub(super) fn submit_change(&mut self, path: QueuePath, number: u64, change: C) {
        self.changes.push(path, number, change);
    }

    /// Queues a join. When the queue is full, it removes and returns the newest join of the longest
    /// queue. It returns the new join itself if that one belongs to the longest queue, or if its
    /// block or site has no free place.
    pub(super) fn submit_join(
        &mut self,
        path: QueuePath,
        number: u64,
        is_local: bool,
        join: J,
    ) -> Option<J> {
        let RenderLimits { joins: most, .. } = self.limits;
        let [of_site, of_block] =
            if is_local { [most - most / 4; 2] } else { [most.div_ceil(2), most.div_ceil(4)] };
        let own = self.joins.queued_in(&path[..LEVELS - 1]);
        if own >= of_block || self.joins.queued_in(&path[..1]) >= of_site {
            self.refused += 1;
            return Some(join);
        }
        let mut refused = None;
        if self.joins.queued() >= most {
            self.refused += 1;
            match self.joins.newest_of_longest() {
                Some((longest, newest))
                    if self.joins.queued_in(&longest[..LEVELS - 1]) > own + 1 =>
                {
                    self.waiting_joins.remove(&newest);
                    refused = self.joins.remove(&longest, newest);
                }
                _ => return Some(join),
            }
        }
        self.waiting_joins.insert(number, path);
        self.joins.push(path, number, join);
        refused
    }

    /// Removes a join whose client has disconnected, unless it runs already.
    pub(super) fn cancel(&mut self, number: u64) -> Option<J> {
        let path = self.waiting_joins.remove(&number)?;
        self.joins.remove(&path, number)
    }

    /// Takes the render that a thread starts next.
    pub(super) fn start(&mut self, thread: usize) -> Option<(u64, RenderJob<C, J>)> {
        if !self.has_slot(thread) {
            return None;
        }
        let is_joins_turn = self.takes_joins(thread) && self.changes_in_row >= MAX_CHANGES_IN_ROW;
        let first_join = if is_joins_turn { self.start_join(thread) } else { None };
        if first_join.is_some() {
            return first_join;
        }
        if let Some(Started { path, number, estimate, job }) = self.changes.start() {
            let has_joins = self.joins.queued() > 0 && self.takes_joins(thread);
            self.changes_in_row = if has_joins { self.changes_in_row + 1 } else { 0 };
            self.note(number, RunningRender { is_join: false, path, estimate, thread });
            return Some((number, RenderJob::Change(job)));
        }
        if self.takes_joins(thread) { self.start_join(thread) } else { None }
    }

    /// Ends a render that took `cost` of run time. Returns whether it had started.
    pub(super) fn finish(&mut self, number: u64, cost: Duration) -> bool {
        let Some(RunningRender { is_join, path, estimate, thread }) = self.running.remove(&number)
        else {
            return false;
        };
        self.in_flight[thread] -= 1;
        if is_join {
            self.joins.finish(&path, estimate, cost);
        } else {
            self.changes.finish(&path, estimate, cost);
        }
        true
    }

    /// Whether a thread would start a render, as far as is known without starting it.
    pub(super) fn has_work_for(&self, thread: usize) -> bool {
        self.has_slot(thread)
            && (self.changes.can_start() || (self.takes_joins(thread) && self.joins.can_start()))
    }

    /// Whether a thread runs no render.
    pub(super) fn is_idle(&self, thread: usize) -> bool {
        self.in_flight[thread] == 0
    }

    /// How many joins wait.
    pub(super) const fn waiting(&self) -> usize {
        self.joins.queued()
    }

    /// How many joins were refused since the start.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    fn start_join(&mut self, thread: usize) -> Option<(u64, RenderJob<C, J>)> {
        let Started { path, number, estimate, job } = self.joins.start()?;
        self.waiting_joins.remove(&number);
        self.changes_in_row = 0;
        self.note(number, RunningRender { is_join: true, path, estimate, thread });
        Some((number, RenderJob::Join(job)))
    }

    fn note(&mut self, number: u64, running: RunningRender) {
        self.in_flight[running.thread] += 1;
        self.running.insert(number, running);
    }

    fn has_slot(&self, thread: usize) -> bool {
        self.in_flight.get(thread).is_some_and(|count| *count < MAX_IN_FLIGHT)
    }

    /// Whether a thread renders joins. A page that computes for long must not delay changes on
    /// every thread.
    pub(super) const fn takes_joins(&self, thread: usize) -> bool {
        thread > 0 || self.limits.threads == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: RenderLimits = RenderLimits { threads: 2, joins: 16 };
    const A: QueuePath = [1, 1, 1];
    const B: QueuePath = [2, 2, 2];

    fn schedule() -> Schedule<u64, u64> {
        Schedule::new(LIMITS)
    }

    #[test]
    fn starts_change_before_older_joins() {
        let mut schedule = schedule();
        for number in 0..4 {
            assert_eq!(schedule.submit_join(A, number, false, number), None);
        }
        schedule.submit_change(B, 4, 4);
        assert_eq!(schedule.start(1), Some((4, RenderJob::Change(4))));
        assert_eq!(schedule.start(1), Some((0, RenderJob::Join(0))));
    }

    #[test]
    fn reserves_one_thread_for_changes() {
        let mut schedule = schedule();
        schedule.submit_join(A, 0, false, 0);
        assert!(!schedule.has_work_for(0) && schedule.start(0).is_none());
        schedule.submit_change(B, 1, 1);
        assert!(schedule.has_work_for(0));
        assert_eq!(schedule.start(0), Some((1, RenderJob::Change(1))));
        // A single thread renders both.
        let mut single = Schedule::<u64, u64>::new(RenderLimits { threads: 1, ..LIMITS });
        single.submit_join(A, 0, false, 0);
        assert_eq!(single.start(0), Some((0, RenderJob::Join(0))));
    }

    #[test]
    fn starts_join_despite_many_waiting_changes() {
        let mut schedule = schedule();
        schedule.submit_join(A, 1000, false, 1000);
        (0..10).for_each(|number| schedule.submit_change([number, 0, 0], number, number));
        let starts: Vec<_> = (0..5).filter_map(|_| schedule.start(1)).collect();
        assert!(starts.contains(&(1000, RenderJob::Join(1000))), "{starts:?}");
    }

    #[test]
    fn refuses_joins_beyond_quota_of_block_and_site() {
        let mut schedule = schedule();
        let mut submit =
            |path, number, is_local| schedule.submit_join(path, number, is_local, number);
        assert!((0..4).all(|number| submit(A, number, false).is_none()));
        assert_eq!(submit(A, 4, false), Some(4));
        // The site's share has room for its second block.
        assert!((5..9).all(|number| submit([1, 2, 1], number, false).is_none()));
        assert_eq!(submit([1, 3, 1], 9, false), Some(9));
        assert_eq!((schedule.waiting(), schedule.refused()), (8, 2));
    }

    #[test]
    fn gives_local_proxy_larger_quota_and_evicts_its_newest_join() {
        let mut schedule = schedule();
        let mut submit =
            |path, number, is_local| schedule.submit_join(path, number, is_local, number);
        assert!((0..12).all(|number| submit(A, number, true).is_none()));
        assert_eq!(submit(A, 12, true), Some(12));
        assert!((20..24).all(|number| submit(B, number, false).is_none()));
        // The queue is full: it refuses the newest join of the longest queue.
        assert_eq!(submit([3, 3, 3], 30, false), Some(11));
        assert_eq!(submit([3, 3, 3], 31, false), Some(10));
        assert_eq!(schedule.waiting(), 16);
    }

    #[test]
    fn never_starts_cancelled_join() {
        let mut schedule = schedule();
        assert!((0..3).all(|number| schedule.submit_join(A, number, false, number).is_none()));
        assert_eq!(schedule.cancel(0), Some(0));
        assert_eq!(schedule.start(1), Some((1, RenderJob::Join(1))));
        assert_eq!(schedule.cancel(1), None, "it runs");
        assert_eq!(schedule.cancel(2), Some(2));
        assert_eq!(schedule.start(1), None);
        assert_eq!(schedule.waiting(), 0);
    }

    #[test]
    fn reports_waiting_or_running_joins_of_block() {
        let mut schedule = schedule();
        let other_page = [A[0], A[1], 7];
        let other_block = [A[0], 7, A[2]];
        let mut check = |has_any: bool, step: fn(&mut Schedule<u64, u64>)| {
            step(&mut schedule);
            let has = [A, other_page, other_block].map(|path| schedule.has_join_of(&path));
            assert_eq!(has, [has_any, has_any, false]);
        };
        check(false, |schedule| schedule.submit_change(A, 0, 0));
        check(true, |schedule| assert_eq!(schedule.submit_join(A, 1, false, 1), None));
        check(true, |schedule| {
            assert_eq!(schedule.start(1), Some((0, RenderJob::Change(0))));
            assert_eq!(schedule.start(1), Some((1, RenderJob::Join(1))));
        });
        check(false, |schedule| assert!(schedule.finish(1, Duration::ZERO)));
        check(false, |schedule| assert!(!schedule.finish(1, Duration::ZERO)));
    }

    #[test]
    fn reserves_slots_for_other_views() {
        let mut schedule = Schedule::<u64, u64>::new(RenderLimits { threads: 2, joins: 4096 });
        assert!((0..1000).all(|number| schedule.submit_join(A, number, false, number).is_none()));
        let started = (0..1000).filter(|_| schedule.start(1).is_some()).count();
        assert_eq!(started, MAX_IN_FLIGHT / 4, "of one view");
        schedule.submit_join(B, 1000, false, 1000);
        assert_eq!(schedule.start(1), Some((1000, RenderJob::Join(1000))));
    }

    proptest! {
        /// For any sequence of operations, each render starts at most once, the bounds hold, and
        /// the schedule is empty at the end.
        #[test]
        fn starts_each_render_once_within_bounds(
            steps in vec((0..6_u8, 0..4_u64, any::<bool>()), 0..300),
        ) {
            let mut schedule = schedule();
            let (mut waiting, mut running) = (Vec::new(), Vec::new());
            for (number, (step, key, is_local)) in steps.into_iter().enumerate() {
                let (number, path) = (number as u64, [key / 2, key, key]);
                match step {
                    0 | 1 => {
                        let refused = schedule.submit_join(path, number, is_local, number);
                        waiting.push(number);
                        waiting.retain(|own| Some(*own) != refused);
                    }
                    2 => {
                        schedule.submit_change(path, number, number);
                        waiting.push(number);
                    }
                    3 => {
                        if let Some((number, _)) = schedule.start((key % 2) as usize) {
                            let place = waiting.iter().position(|own| *own == number);
                            prop_assert!(place.is_some(), "{} starts twice", number);
                            running.push(waiting.swap_remove(place.unwrap_or_default()));
                        } else {
                            prop_assert!(!schedule.has_work_for((key % 2) as usize));
                        }
                    }
                    4 if !running.is_empty() => {
                        let cost = Duration::from_micros(key * 1000);
                        prop_assert!(schedule.finish(running.swap_remove(0), cost));
                    }
                    _ => {
                        if let Some(own) = waiting.get(key as usize).copied()
                            && schedule.cancel(own).is_some()
                        {
                            waiting.retain(|other| *other != own);
                        }
                    }
                }
                prop_assert!(schedule.waiting() <= LIMITS.joins);
            }
            loop {
                for number in running.drain(..) {
                    schedule.finish(number, Duration::ZERO);
                }
                let started = [0, 1].map(|thread| schedule.start(thread));
                running.extend(started.into_iter().flatten().map(|(number, _)| number));
                if running.is_empty() {
                    break;
                }
                for own in &running {
                    prop_assert!(waiting.contains(own));
                    waiting.retain(|other| other != own);
                }
            }
            prop_assert!(waiting.is_empty() && schedule.waiting() == 0 && schedule.is_idle(0));
        }
    }
}
