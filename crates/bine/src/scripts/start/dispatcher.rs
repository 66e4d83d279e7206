//! Runs the requests of a program in the order that a script chooses.
//!
//! Requests wait in one bounded queue; the number that may run is the number of places. A separate
//! thread asks the script which request starts. The script never holds the lock of the queue: while it has no
//! instance, has failed, or takes too long, requests start in order of their arrival.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use bine_log as log;
use bine_script::Value;
use bine_server::Ticket;
use bine_server::scheduler::Task;

use super::events::{RequestFacts, SchedulerEvent};
use super::page_cell::PageCell;
use super::policy::{PolicyTurn, ScriptPolicy};
use super::program::ProgramSource;
use crate::log_limiter::LogLimiter;
use crate::scripts::generation::START;

/// A script that has not decided within this time no longer decides until it has an answer. Its limit
/// of run time ends it earlier, unless the machine does not run its thread.
const LATE: Duration = Duration::from_millis(500);
/// An ended instance is replaced after this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// An idle worker ends after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most substitutes for workers whose requests are overdue, as a multiple of the places.
const MAX_SUBSTITUTES: usize = 3;

/// The queue, the places, and the threads.
pub(in crate::scripts) struct Dispatcher {
    /// A weak reference: the script owns the dispatcher.
    script: Weak<dyn ProgramSource>,
    /// How many requests may wait.
    queue: usize,
    state: Mutex<DispatchState>,
    /// Wakes the thread of the script.
    on_event: Condvar,
    /// Wakes a worker.
    on_ready: Condvar,
    /// Wakes the watch over the script.
    on_turn: Condvar,
    failures: LogLimiter,
}

struct DispatchState {
    places: usize,
    /// Running requests whose clients have had their answers.
    overdue: usize,
    next: u64,
    /// In order of arrival.
    waiting: BTreeMap<u64, WaitingRequest>,
    running: HashMap<u64, RequestFacts>,
    /// Started tasks for which no worker is free yet.
    ready: VecDeque<(u64, Task)>,
    /// Short tasks that no policy decides about.
    short: VecDeque<Task>,
    events: Vec<SchedulerEvent>,
    script: ScriptState,
    workers: usize,
    busy: usize,
    /// Counts the turns of the script.
    turns: u64,
    is_watch_parked: bool,
    has_new_version: bool,
    is_stopped: bool,
}

struct WaitingRequest {
    facts: RequestFacts,
    job: WaitingJob,
}

/// The work that starts when a request has a place.
pub(super) enum WaitingJob {
    /// A handler that may block, for a worker.
    Task(Task),
    /// A page or a service that runs on the loop of its connection.
    Page(Arc<PageCell>),
}

/// The thread of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScriptState {
    /// It has no instance: requests start in order of arrival.
    Absent,
    /// It waits for events.
    Idle,
    /// It decides, since this moment.
    Deciding(Instant),
    /// It decides for too long: requests start in order of arrival.
    Late,
}

/// The next action of the watch over the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WatchStep {
    /// The script decides for too long.
    Late,
    /// Looks again after this time.
    Wait(Duration),
    /// The script rests: waits until it decides again.
    Park,
}

/// The work to do once the lock is free.
#[derive(Default)]
struct Aftermath {
    wakers: Vec<Waker>,
    refused: Vec<Task>,
}

impl Dispatcher {
    pub(super) fn new(script: Weak<dyn ProgramSource>, places: usize, queue: usize) -> Arc<Self> {
        let state = DispatchState {
            places: places.max(1),
            overdue: 0,
            next: 1,
            waiting: BTreeMap::new(),
            running: HashMap::new(),
            ready: VecDeque::new(),
            short: VecDeque::new(),
            events: Vec::new(),
            script: ScriptState::Absent,
            workers: 0,
            busy: 0,
            turns: 0,
            is_watch_parked: false,
            has_new_version: false,
            is_stopped: false,
        };
        Arc::new(Self {
            script,
            queue,
            state: Mutex::new(state),
            on_event: Condvar::new(),
            on_ready: Condvar::new(),
            on_turn: Condvar::new(),
            failures: LogLimiter::new(),
        })
    }

    /// Starts the thread of the script, and the watch over it.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub(super) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let (of_script, of_watch) = (Arc::clone(self), Arc::clone(self));
        thread::Builder::new().name("bine policy".to_owned()).spawn(move || of_script.decide())?;
        thread::Builder::new()
            .name("bine policy watch".to_owned())
            .spawn(move || of_watch.watch())?;
        Ok(())
    }

    /// Ends all threads; a worker ends after its task.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.on_event.notify_all();
        self.on_ready.notify_all();
        self.on_turn.notify_all();
    }

    /// The script has a new version.
    pub(super) fn on_new_version(&self) {
        self.lock().has_new_version = true;
        self.on_event.notify_all();
    }

    /// Queues a request. `None`: the queue is full, or the server stops.
    pub(super) fn enqueue(
        self: &Arc<Self>,
        facts: RequestFacts,
        job: WaitingJob,
    ) -> Result<u64, WaitingJob> {
        let mut state = self.lock();
        // A free place needs no queue.
        let room = self.queue.saturating_add(state.free());
        if state.is_stopped || state.waiting.len() >= room {
            return Err(job);
        }
        let id = state.next;
        state.next += 1;
        state.waiting.insert(id, WaitingRequest { facts, job });
        state.note(SchedulerEvent::Arrived(id));
        self.settle(state, Aftermath::default());
        Ok(id)
    }

    /// Runs a short task as soon as a worker is free.
    pub(super) fn run_short(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        let mut state = self.lock();
        if state.is_stopped || state.short.len() >= self.queue {
            return Err(task);
        }
        state.short.push_back(task);
        self.settle(state, Aftermath::default());
        Ok(())
    }

    /// A request has ended, or its client waits no longer.
    pub(super) fn end(self: &Arc<Self>, id: u64) {
        let mut state = self.lock();
        if state.end(id) {
            self.settle(state, Aftermath::default());
        }
    }

    /// Takes back a task that no worker has begun.
    pub(super) fn withdraw(self: &Arc<Self>, ticket: &Ticket) -> Option<Task> {
        let mut state = self.lock();
        let is_it = |task: &Task| task.ticket() == ticket;
        if let Some(place) = state.short.iter().position(is_it) {
            return state.short.remove(place);
        }
        let found = state.waiting.iter().find(|(_, request)| match &request.job {
            WaitingJob::Task(task) => is_it(task),
            WaitingJob::Page(_) => false,
        });
        let task = if let Some((id, _)) = found {
            let id = *id;
            let WaitingJob::Task(task) = state.waiting.remove(&id)?.job else { return None };
            state.note(SchedulerEvent::Ended(id));
            task
        } else {
            let place = state.ready.iter().position(|(_, task)| is_it(task))?;
            let (id, task) = state.ready.remove(place)?;
            state.end(id);
            task
        };
        self.settle(state, Aftermath::default());
        Some(task)
    }

    /// The client of a running task has had its answer.
    pub(super) fn on_overdue(self: &Arc<Self>) {
        let mut state = self.lock();
        state.overdue += 1;
        self.settle(state, Aftermath::default());
    }

    /// An overdue task has returned.
    pub(super) fn on_returned(&self) {
        let mut state = self.lock();
        state.overdue = state.overdue.saturating_sub(1);
    }

    /// The share of places that are taken.
    pub(super) fn load(&self) -> f32 {
        let state = self.lock();
        (state.running.len() as f32 / state.places as f32).min(1.0)
    }

    pub(super) fn status(&self) -> String {
        let state = self.lock();
        let (running, waiting) = (state.running.len(), state.waiting.len());
        let order = match state.script {
            ScriptState::Idle | ScriptState::Deciding(_) => "in the order of start.ts",
            ScriptState::Absent | ScriptState::Late => "in order of arrival",
        };
        format!("{running} of {} places are taken, {waiting} requests wait {order}", state.places)
    }

    /// Continues after a change: starts requests or asks the script, and does the rest without the
    /// lock.
    fn settle(self: &Arc<Self>, mut state: MutexGuard<'_, DispatchState>, mut after: Aftermath) {
        match state.script {
            ScriptState::Absent | ScriptState::Late => {
                while state.free() > 0 && state.start_oldest(&mut after) {}
            }
            ScriptState::Idle if !state.events.is_empty() && !state.waiting.is_empty() => {
                self.on_event.notify_one();
            }
            ScriptState::Idle | ScriptState::Deciding(_) => {}
        }
        self.start_workers(&mut state);
        drop(state);
        after.wakers.into_iter().for_each(Waker::wake);
        after.refused.into_iter().for_each(Task::refuse);
    }

    /// Wakes or starts a worker for each task that waits for one.
    fn start_workers(self: &Arc<Self>, state: &mut DispatchState) {
        let needed = state.ready.len() + state.short.len();
        // One more than there are places, for short tasks.
        while state.workers - state.busy < needed && state.workers <= state.allowed() {
            let own = Arc::clone(self);
            let worker = thread::Builder::new().name("bine worker".to_owned());
            // Without a thread, a running one takes the task, or its wait ends in a 503.
            if worker.spawn(move || own.work()).is_err() {
                break;
            }
            state.workers += 1;
        }
        for _ in 0..needed {
            self.on_ready.notify_one();
        }
    }

    /// Runs tasks until the server stops, or no task has arrived for a while.
    fn work(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            let short = state.short.pop_front().map(|task| (None, task));
            let next = short.or_else(|| state.ready.pop_front().map(|(id, task)| (Some(id), task)));
            if let Some((id, task)) = next {
                state.busy += 1;
                drop(state);
                task.run();
                state = self.lock();
                state.busy -= 1;
                if id.is_some_and(|id| state.end(id)) {
                    self.settle(state, Aftermath::default());
                    state = self.lock();
                }
                continue;
            }
            let is_surplus = state.workers > state.allowed() + 1;
            let mut ends = state.is_stopped || is_surplus;
            if !ends {
                let waited = self.on_ready.wait_timeout(state, IDLE_TIMEOUT);
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                ends = timeout.timed_out() && state.ready.is_empty() && state.short.is_empty();
            }
            if ends {
                state.workers -= 1;
                return;
            }
        }
    }

    /// The thread of the script: loads it, and asks it after each event.
    fn decide(self: Arc<Self>) {
        loop {
            let Some(script) = self.script.upgrade() else { return };
            let places = {
                let mut state = self.lock();
                if state.is_stopped {
                    return;
                }
                state.has_new_version = false;
                // Requests wait for the policy while it loads, but not for long.
                state.script = ScriptState::Deciding(Instant::now());
                state.turns += 1;
                if state.is_watch_parked {
                    self.on_turn.notify_one();
                }
                state.places
            };
            let loaded = ScriptPolicy::new(&script.current(), places);
            drop(script);
            let mut retry = RETRY_INTERVAL;
            match loaded {
                Ok(Some(policy)) => self.ask(&policy),
                Ok(None) => {
                    log::warn(format_args!(
                        "{START} has no scheduler any more: requests run in order of arrival"
                    ));
                    retry = Duration::MAX;
                }
                Err(reason) => self.report(&reason),
            }
            let mut state = self.lock();
            if state.has_new_version && !state.is_stopped {
                continue;
            }
            state.script = ScriptState::Absent;
            state.events.clear();
            self.settle(state, Aftermath::default());
            let state = self.lock();
            let goes_on = |state: &mut DispatchState| !state.is_stopped && !state.has_new_version;
            // The result is the same after a timeout.
            drop(self.on_event.wait_timeout_while(state, retry, goes_on));
        }
    }

    /// Asks an instance until it ends, or the script has a new version.
    fn ask(self: &Arc<Self>, policy: &ScriptPolicy) {
        let mut state = self.lock();
        state.resync();
        loop {
            state.script = ScriptState::Idle;
            while state.events.is_empty() && !state.is_stopped && !state.has_new_version {
                state = self.on_event.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_stopped || state.has_new_version {
                return;
            }
            let (events, free) = (state.take_events(), state.free());
            state.script = ScriptState::Deciding(Instant::now());
            state.turns += 1;
            if state.is_watch_parked {
                self.on_turn.notify_one();
            }
            drop(state);
            let turn = policy.turn(events, free);
            let turn = match turn {
                Ok(turn) => turn,
                Err(reason) => return self.report(&reason),
            };
            if let Some(failure) = &turn.failure {
                self.report(failure);
            }
            state = self.lock();
            let mut after = Aftermath::default();
            state.apply(&turn, &mut after);
            self.settle(state, after);
            state = self.lock();
        }
    }

    /// Lets requests start in order of arrival while the script takes too long.
    fn watch(self: Arc<Self>) {
        let mut state = self.lock();
        let mut seen = 0;
        while !state.is_stopped {
            let step = state.watch_step(seen, Instant::now());
            if step == WatchStep::Late {
                state.script = ScriptState::Late;
                self.settle(state, Aftermath::default());
                self.report(&format!(
                    "the scheduler of {START} takes more than {} ms to decide",
                    LATE.as_millis()
                ));
                state = self.lock();
                continue;
            }
            seen = state.turns;
            state.is_watch_parked = step == WatchStep::Park;
            state = if let WatchStep::Wait(wait) = step {
                let waited = self.on_turn.wait_timeout(state, wait);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.on_turn.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
            state.is_watch_parked = false;
        }
    }

    fn report(&self, reason: &str) {
        if let Some(suppressed) = self.failures.pass(reason, Instant::now()) {
            let more = if suppressed == 0 {
                String::new()
            } else {
                format!("\n(and {suppressed} times more)")
            };
            log::error(format_args!(
                "the scheduler of {START} has failed, and requests run in order of arrival:\n{reason}{more}"
            ));
        }
    }

    fn lock(&self) -> MutexGuard<'_, DispatchState> {
        // Handlers and scripts run outside of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DispatchState {
    /// `seen`: the turns of the script when the watch has last looked.
    fn watch_step(&self, seen: u64, now: Instant) -> WatchStep {
        match self.script {
            ScriptState::Deciding(since) => {
                let left = LATE.saturating_sub(now.saturating_duration_since(since));
                if left.is_zero() { WatchStep::Late } else { WatchStep::Wait(left) }
            }
            // A script with much to do is not worth a wake-up for each turn.
            _ if self.turns != seen => WatchStep::Wait(LATE),
            _ => WatchStep::Park,
        }
    }

    /// How many requests may run: substitutes for overdue requests are bounded.
    fn allowed(&self) -> usize {
        self.places + self.overdue.min(self.places.saturating_mul(MAX_SUBSTITUTES))
    }

    /// The free places.
    fn free(&self) -> usize {
        self.allowed().saturating_sub(self.running.len())
    }

    fn note(&mut self, event: SchedulerEvent) {
        // Otherwise it learns all requests anew when it decides again.
        if matches!(self.script, ScriptState::Idle | ScriptState::Deciding(_)) {
            self.events.push(event);
        }
    }

    /// Forgets a request. Returns false if it is unknown.
    fn end(&mut self, id: u64) -> bool {
        let is_known = self.waiting.remove(&id).is_some() || self.running.remove(&id).is_some();
        if is_known {
            self.note(SchedulerEvent::Ended(id));
        }
        is_known
    }

    /// Gives a waiting request a place. Returns false if it does not wait.
    fn start(&mut self, id: u64, after: &mut Aftermath) -> bool {
        let Some(WaitingRequest { facts, job }) = self.waiting.remove(&id) else { return false };
        self.running.insert(id, facts);
        match job {
            WaitingJob::Task(task) => self.ready.push_back((id, task)),
            WaitingJob::Page(cell) => after.wakers.extend(cell.grant()),
        }
        true
    }

    fn start_oldest(&mut self, after: &mut Aftermath) -> bool {
        let Some(id) = self.waiting.keys().next().copied() else { return false };
        self.note(SchedulerEvent::Started(id));
        self.start(id, after)
    }

    /// Follows the decisions of the script.
    fn apply(&mut self, turn: &PolicyTurn, after: &mut Aftermath) {
        for id in &turn.refused {
            match self.waiting.remove(id).map(|request| request.job) {
                Some(WaitingJob::Task(task)) => after.refused.push(task),
                Some(WaitingJob::Page(cell)) => after.wakers.extend(cell.refuse()),
                None => {}
            }
        }
        if self.script == ScriptState::Late {
            // Requests have started meanwhile, which the script does not know.
            self.script = ScriptState::Idle;
            self.resync();
            return;
        }
        for id in &turn.started {
            // The events of the next turn have each request whose client has disconnected.
            self.start(*id, after);
        }
        // A policy may keep places free, but not all.
        if self.running.is_empty() {
            self.start_oldest(after);
        }
    }

    /// Makes the script learn all requests anew.
    fn resync(&mut self) {
        self.events.clear();
        self.events.push(SchedulerEvent::Reset);
        for id in self.running.keys() {
            self.events.extend([SchedulerEvent::Known(*id), SchedulerEvent::Started(*id)]);
        }
        self.events.extend(self.waiting.keys().map(|id| SchedulerEvent::Known(*id)));
    }

    /// The events of the next turn, for the words.
    fn take_events(&mut self) -> Vec<Value> {
        let events = std::mem::take(&mut self.events);
        let now = Instant::now();
        let facts = |id: u64| {
            let waiting = self.waiting.get(&id).map(|request| &request.facts);
            waiting.or_else(|| self.running.get(&id))
        };
        events.into_iter().filter_map(|event| event.value(facts, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::start::program::StartProgram;

    /// The script of a program that has ended.
    struct NoScript;

    impl ProgramSource for NoScript {
        fn current(&self) -> Arc<StartProgram> {
            unreachable!("the program has ended")
        }
    }

    /// A dispatcher whose threads do not run.
    fn dispatcher(places: usize, queue: usize) -> Arc<Dispatcher> {
        Dispatcher::new(Weak::<NoScript>::new(), places, queue)
    }

    /// Queues a page. `None`: the queue is full.
    fn enqueue(dispatcher: &Arc<Dispatcher>) -> Option<(u64, Arc<PageCell>)> {
        let cell = Arc::<PageCell>::default();
        let job = WaitingJob::Page(Arc::clone(&cell));
        let id = dispatcher.enqueue(RequestFacts::at("/a"), job).ok()?;
        Some((id, cell))
    }

    #[test]
    fn bounds_the_queue_and_starts_the_oldest_without_a_script() {
        let dispatcher = dispatcher(1, 2);
        let mut all: Vec<_> = (0..3).map(|_| enqueue(&dispatcher).unwrap()).collect();
        assert!(enqueue(&dispatcher).is_none());
        let running = |all: &[(u64, Arc<PageCell>)]| {
            all.iter().map(|(_, cell)| cell.decision()).collect::<Vec<_>>()
        };
        assert_eq!(running(&all), [Some(true), None, None]);
        assert_eq!(
            dispatcher.status(),
            "1 of 1 places are taken, 2 requests wait in order of arrival"
        );
        // The client of the second request disconnects.
        dispatcher.end(all[1].0);
        dispatcher.end(all.remove(1).0);
        assert_eq!(running(&all), [Some(true), None]);
        dispatcher.end(all[0].0);
        assert_eq!(running(&all), [Some(true), Some(true)]);
        dispatcher.end(all[1].0);
        assert!(dispatcher.load() < 0.01);
        // An overdue request has a substitute, but not without bound.
        let first = enqueue(&dispatcher).unwrap();
        let later: Vec<_> = (0..2).map(|_| enqueue(&dispatcher).unwrap()).collect();
        assert_eq!(running(&later), [None, None]);
        dispatcher.on_overdue();
        assert_eq!(running(&later), [Some(true), None]);
        dispatcher.on_returned();
        dispatcher.end(first.0);
        assert_eq!(running(&later), [Some(true), None]);
        (0..10).for_each(|_| dispatcher.on_overdue());
        let more = (0..20).map_while(|_| enqueue(&dispatcher)).count();
        // Four places, two in use, and a queue of two.
        assert_eq!(more, 4);
    }

    #[test]
    fn starts_requests_in_order_of_arrival_while_the_script_is_late() {
        let dispatcher = dispatcher(1, 10);
        let since = Instant::now().checked_sub(LATE).unwrap();
        dispatcher.lock().script = ScriptState::Deciding(since);
        let (id, first) = enqueue(&dispatcher).unwrap();
        let (_, second) = enqueue(&dispatcher).unwrap();
        assert_eq!([first.decision(), second.decision()], [None, None]);
        let watching = Arc::clone(&dispatcher);
        let watch = thread::spawn(move || watching.watch());
        while first.decision().is_none() {
            thread::yield_now();
        }
        dispatcher.end(id);
        assert_eq!([first.decision(), second.decision()], [Some(true), Some(true)]);
        // The late answer names requests that have started or ended since.
        let mut state = dispatcher.lock();
        let turn = PolicyTurn { started: vec![id], refused: vec![], failure: None };
        state.apply(&turn, &mut Aftermath::default());
        assert_eq!(
            state.events,
            [SchedulerEvent::Reset, SchedulerEvent::Known(2), SchedulerEvent::Started(2)]
        );
        assert_eq!(state.script, ScriptState::Idle);
        drop(state);
        dispatcher.stop();
        watch.join().unwrap();
        assert!(enqueue(&dispatcher).is_none());
    }

    /// Four weeks of a script that decides in bursts, rests, hangs, and is suspended with its machine.
    #[test]
    fn notices_a_late_script_in_time_and_rests_with_it() {
        let dispatcher = dispatcher(1, 10);
        let mut state = dispatcher.lock();
        let (mut now, mut seen, mut looks) = (Instant::now(), 0, 0_u32);
        let end = now + Duration::from_hours(28 * 24);
        let mut burst = 0;
        while now < end {
            burst += 1;
            // A burst of quick decisions: the watch never reports them, and looks at most twice a
            // second.
            let began = now;
            let before = looks;
            let mut due = now;
            for _ in 0..burst % 40 {
                state.script = ScriptState::Deciding(now);
                state.turns += 1;
                if due <= now {
                    looks += 1;
                    let step = state.watch_step(seen, now);
                    seen = state.turns;
                    assert_eq!(step, WatchStep::Wait(LATE));
                    due = now + LATE;
                }
                now += Duration::from_millis(40);
                state.script = ScriptState::Idle;
            }
            let seconds = (now - began).as_secs() as u32;
            assert!(looks - before <= 2 * seconds + 2, "{looks} {before} {seconds}");
            // It rests: one more look, and then the watch waits for the next decision.
            if state.turns != seen {
                assert_eq!(state.watch_step(seen, now), WatchStep::Wait(LATE));
                seen = state.turns;
            }
            now += Duration::from_mins(burst % 600);
            assert_eq!(state.watch_step(seen, now), WatchStep::Park);
            // It hangs, or the machine is suspended meanwhile.
            state.script = ScriptState::Deciding(now);
            state.turns += 1;
            let half = LATE / 2;
            assert_eq!(state.watch_step(seen, now + half), WatchStep::Wait(half));
            now += LATE + Duration::from_hours(burst % 3 * 24);
            assert_eq!(state.watch_step(seen, now), WatchStep::Late);
            state.script = ScriptState::Late;
            seen = state.turns;
            assert_eq!(state.watch_step(seen, now), WatchStep::Park);
        }
    }

    #[test]
    fn follows_the_script_and_never_keeps_all_places_free() {
        let dispatcher = dispatcher(2, 10);
        dispatcher.lock().script = ScriptState::Deciding(Instant::now());
        let cells: Vec<_> = (0..4).map(|_| enqueue(&dispatcher).unwrap().1).collect();
        let decide = |started: &[u64], refused: &[u64]| {
            let turn =
                PolicyTurn { started: started.to_vec(), refused: refused.to_vec(), failure: None };
            dispatcher.lock().apply(&turn, &mut Aftermath::default());
            cells.iter().map(|cell| cell.decision()).collect::<Vec<_>>()
        };
        assert_eq!(decide(&[3], &[1, 99]), [Some(false), None, Some(true), None]);
        assert_eq!(decide(&[], &[]), [Some(false), None, Some(true), None]);
        dispatcher.end(3);
        assert_eq!(decide(&[], &[]), [Some(false), Some(true), Some(true), None]);
    }
}
