//! The event loop of one thread: which connections run in a turn, in which order, and for how long.
//!
//! The connections are in a slab, and their sockets in an epoll instance of our own, which is
//! nested in a Tokio current-thread runtime (docs/decisions/0005). So a handler can use any Tokio
//! library, and an idle connection costs only its slab entry.

mod accept;
mod catch_up;
mod cohort;
mod driver;
mod fan_out;
mod overload;
#[cfg(test)]
mod simulation;
mod tasks;
#[cfg(test)]
mod tests;
mod timer;
mod unfinished;
mod wait;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bine_admission::LoopTurn;
use bine_log as log;
use rustix::event::epoll::{self, EventFlags};

use crate::connection::{Connection, DeferredWork, NO_HOLD, Phase, ThreadContext};
use crate::handler::page_cache::CachedParts;
use crate::handler::{Finished, ReceiveBuffer, Retained, ServeReason};
use crate::lifecycle::State;
use crate::mailbox::{Letter, Mailbox, Ticket};
use crate::metrics::Ending;
use crate::next::{Next, ResponseKind};
use crate::scheduling::{Placement, Scheduler};
use crate::server::{Server, View};
use crate::settings::Timeouts;
use crate::slab::{Slab, Token};
use crate::stages;
use crate::time::{Clock, Hook, Hooks, Tick, Wheel};
use crate::transport::Transport;
use crate::workers::{Job, Task};

use accept::LoopAcceptor;
use catch_up::LONG_GAP;
use cohort::ConnectionCohort;
use driver::{Driver, Kernel, Wait};
use overload::should_reject;
use tasks::TaskResults;
use timer::LoopTimer;

/// Events that one wait returns at most.
const BATCH: usize = 512;
/// The event data of the mailbox. Epoll stores 64 bits for each descriptor; these three values mark
/// descriptors that are not connections, and a slab is too small to contain such a token.
const MAILBOX: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const FIRST_LISTENER: u64 = u64::MAX - (1 << 16);
/// The bytes of long replies that one turn sends at most. This takes about 0.25 ms.
const SEND_ALLOWANCE: u64 = 512 * 1024;
/// The deadlines that one turn handles at most, so that many clients that time out at the same time
/// do not delay other connections.
const MAX_DUE_PER_TURN: usize = 1024;
/// The events of a connection's socket. The loop registers them once: edge-triggered events need no
/// re-arming (rule 1).
const WATCHED: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// The events of a socket whose client can neither send nor receive.
const GONE: EventFlags = EventFlags::HUP.union(EventFlags::ERR);

/// One loop, on one thread.
pub(crate) struct EventLoop<D: Driver = Kernel> {
    server: Arc<Server>,
    view: View,
    scheduler: Arc<dyn Scheduler>,
    index: usize,
    mailbox: Arc<Mailbox>,
    driver: D,
    context: ThreadContext,
    slab: Slab<Entry<D::Transport>>,
    wheel: Wheel,
    timer: LoopTimer<D::Timer>,
    /// Connections with work that epoll will not report again (rule 1). They run in the next turn.
    ready: Vec<Token>,
    /// The ready connections that run in this turn.
    resuming: Vec<Token>,
    acceptor: LoopAcceptor,
    cohort: ConnectionCohort,
    task_results: Rc<TaskResults>,
    /// The receive buffer of upgraded connections, created with the first one.
    receive_buffer: Option<ReceiveBuffer>,
    /// When the drain ends and the loop closes all remaining connections.
    drain_deadline: Option<Tick>,
    /// Connections that have closed while a worker ran their handler, with the deadline of the
    /// handler.
    abandoned: Vec<(Token, Tick)>,
    /// Connections whose handlers still occupy a worker after their deadline.
    overdue: Vec<Token>,
    /// Whether suspended responses have events that the loop has not sent to all of them.
    has_deliveries: bool,
    /// Whether more deadlines have passed than one turn handles.
    has_due: bool,
    /// Consecutive fan-outs that a panic interrupted.
    failed_fan_outs: u8,
    /// Since when the loop has had more ready connections than it could run.
    backlog_since: Option<Tick>,
    /// When the last turn ended, in milliseconds of the clock.
    last_turn_ended: u64,
    /// How long an event of the last turn waited at most for the next turn.
    waited: Duration,
    /// Reused between turns, so that no turn allocates.
    letters: Vec<Letter>,
    stream_events: Vec<(Token, EventFlags)>,
    buffers: Vec<Vec<u8>>,
}

/// A connection in the slab.
struct Entry<L> {
    connection: Connection<L>,
    hook: Hook,
    /// Whether epoll also reports when the socket is writable.
    watches_room: bool,
}

impl<L> Hooks for Slab<Entry<L>> {
    fn hook(&mut self, index: u32) -> Option<&mut Hook> {
        self.at(index).map(|entry| &mut entry.hook)
    }
}

impl EventLoop {
    /// Runs loop number `index` of `server` on this thread until the server stops.
    pub(crate) fn run(
        server: Arc<Server>,
        scheduler: Arc<dyn Scheduler>,
        index: usize,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(server.generation().settings.workers.max(1))
            .build_local(tokio::runtime::LocalOptions::default())?;
        let clock = Rc::new(Clock::kernel());
        let mut event_loop = Self::open(server, scheduler, index, (Kernel::new()?, clock))?;
        event_loop.server.running_loops.fetch_add(1, Ordering::AcqRel);
        // Unconstrained: without a live task this future never yields, so Tokio would never renew
        // its cooperative budget, and the first poll of every handler would find the budget used
        // up.
        let ended = runtime.block_on(tokio::task::unconstrained(event_loop.turns()));
        event_loop.server.running_loops.fetch_sub(1, Ordering::AcqRel);
        let cut = event_loop.load();
        if cut > 0 && ended.is_ok() && event_loop.is_drain_over() {
            event_loop.report_unfinished();
        }
        event_loop.task_results.streams.end();
        drop(event_loop);
        // Dropping the runtime would wait for blocking calls, which may never return.
        runtime.shutdown_background();
        if cut > 0 && ended.is_ok() {
            let connections = if cut == 1 { "connection was" } else { "connections were" };
            let message = format!("{cut} {connections} cut by the end of loop {index}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        ended
    }
}

impl<D: Driver> EventLoop<D> {
    /// Creates loop number `index` of `server` and watches the listeners. [`turns`](Self::turns)
    /// then accepts and serves.
    fn open(
        server: Arc<Server>,
        scheduler: Arc<dyn Scheduler>,
        index: usize,
        (driver, clock): (D, Rc<Clock>),
    ) -> io::Result<Self> {
        let view = server.view();
        let mut context = view.context_with_clock(clock);
        context.cached_parts = Some(CachedParts::default());
        context.runs_http2 = true;
        context.tls_buffers.queue().enable();
        context.owner.thread = Some(Arc::<Mailbox>::clone(&server.loops[index].mailbox));
        context.tally.assign_loop(index);
        context.waiters =
            server.waiters(&context.clock, Arc::clone(server.loops[index].mailbox.wakeup()));
        let mailbox = Arc::clone(&server.loops[index].mailbox);
        driver.watch_mailbox(&mailbox)?;
        let last_turn_ended = context.clock.milliseconds();
        let mut event_loop = Self {
            timer: LoopTimer::new(driver.timer()?),
            wheel: Wheel::new(context.clock.now()),
            cohort: ConnectionCohort::new(scheduler.stage(Next::Request) == Placement::Batched),
            scheduler,
            index,
            mailbox,
            driver,
            context,
            slab: Slab::new(),
            ready: Vec::new(),
            resuming: Vec::new(),
            acceptor: LoopAcceptor::new(),
            task_results: Rc::default(),
            receive_buffer: None,
            drain_deadline: None,
            abandoned: Vec::new(),
            overdue: Vec::new(),
            has_deliveries: false,
            has_due: false,
            failed_fan_outs: 0,
            backlog_since: None,
            last_turn_ended,
            waited: Duration::ZERO,
            letters: Vec::new(),
            stream_events: Vec::new(),
            buffers: Vec::new(),
            view,
            server,
        };
        event_loop.start_accepting()?;
        Ok(event_loop)
    }

    /// Runs one turn: the events in `batch`, then the ready connections, then the TLS handshakes that
    /// wait, then task results, then one slice of a fan-out.
    fn turn(&mut self, batch: &[epoll::Event]) {
        let began = self.context.clock.turn();
        let gap = Duration::from_millis(self.context.clock.milliseconds() - self.last_turn_ended);
        if gap >= LONG_GAP {
            self.catch_up(began, gap);
        }
        self.context.tally.turns.add(1);
        self.context.send_allowance = SEND_ALLOWANCE;
        self.context.tls_buffers.queue().begin_turn();
        if self.has_due {
            self.handle_deadlines();
        }
        for event in batch {
            match event.data.u64() {
                MAILBOX => self.read_letters(),
                TIMER => self.handle_deadlines(),
                marked if marked >= FIRST_LISTENER => {
                    self.accept((marked - FIRST_LISTENER) as usize);
                }
                bits => self.on_event(Token::from_bits(bits), event.flags),
            }
        }
        self.run_cohort();
        // A connection that needs one more turn is added to the now empty `ready` list.
        std::mem::swap(&mut self.ready, &mut self.resuming);
        let mut resumed = 0;
        while resumed < self.resuming.len() && self.context.send_allowance > 0 {
            self.resume(self.resuming[resumed]);
            resumed += 1;
        }
        self.begin_handshakes();
        self.run_cohort();
        // The connections that did not run are the first in the next turn.
        self.ready.splice(0..0, self.resuming.drain(..).skip(resumed));
        self.take_task_results();
        self.take_streams();
        self.fan_out();
        self.resume_with_room();
        self.context.config.access.flush();
        self.report_wait(began, batch.len() == BATCH);
    }

    /// Begins the TLS handshakes that have waited longest, as many as a turn allows.
    fn begin_handshakes(&mut self) {
        while let Some(token) = self.context.tls_buffers.queue().next() {
            self.drive(token, Next::Request);
        }
    }

    /// Reports to admission how long the turn took and how long events waited for it.
    ///
    /// An event that arrives during a turn waits for the rest of the turn at most; while the loop
    /// has a backlog, since the backlog began. No event has waited if the loop slept before the
    /// turn.
    fn report_wait(&mut self, began: Tick, is_batch_full: bool) {
        let admission = self.server.admission();
        let clock = &self.context.clock;
        // The stages read the clock after each response, where most of a turn's time is spent. An
        // active admission needs the exact end of the turn, so the loop reads the clock once more.
        let now = if admission.is_awake() { clock.glance() } else { clock.now() };
        let since = *self.backlog_since.get_or_insert(began);
        let took = now.since(since);
        let has_slept = self.last_turn_end().is_before(began);
        let waited = if has_slept { Duration::ZERO } else { self.waited };
        admission.turned(LoopTurn { took, waited, worked: now.since(began) });
        self.last_turn_ended = clock.milliseconds();
        self.waited = took;
        if !is_batch_full && self.ready.is_empty() {
            self.backlog_since = None;
        }
    }

    /// When the last turn ended, as a tick.
    const fn last_turn_end(&self) -> Tick {
        Tick::at(self.last_turn_ended as u32)
    }

    fn on_event(&mut self, token: Token, flags: EventFlags) {
        let Some(entry) = self.slab.get(token) else { return };
        let connection = &mut entry.connection;
        let gone = flags.intersects(GONE);
        if gone || flags.contains(EventFlags::RDHUP) {
            connection.hung_up = true;
        }
        // The connection is in the ready list, once, and runs later in this turn.
        if connection.wants_turn {
            return;
        }
        match connection.phase {
            Phase::Queued | Phase::Handler | Phase::Streaming if gone => self.remove(token),
            // A half-closed connection is closed if its handler runs only while the connection is
            // open.
            Phase::Handler
                if connection.hung_up
                    && connection.busy.as_ref().is_some_and(|busy| busy.is_while_open) =>
            {
                self.remove(token);
            }
            // A browser that closes a page only half-closes the connection, so the loop cannot know
            // whether the client still reads. It ends the suspended response.
            Phase::Held if connection.hung_up => self.remove(token),
            Phase::Held => connection.has_input = true,
            // The connection waits for its handler to write.
            Phase::Streaming => {}
            // Later pipelined requests wait for the current one. Earlier replies can be sent.
            Phase::Queued | Phase::Handler => self.push(token),
            Phase::Writing if connection.busy.as_ref().is_some_and(|busy| busy.warms_up) => {
                if gone {
                    self.remove(token);
                }
            }
            Phase::Writing => self.drive(token, Next::Reply),
            Phase::Body if connection.is_receiving() => self.receive_more(token),
            _ => self.drive(token, Next::Request),
        }
    }

    /// Handles the deadlines that have passed, and sets the timer for the next one.
    fn handle_deadlines(&mut self) {
        self.timer.expired();
        self.has_due = true;
        for _ in 0..MAX_DUE_PER_TURN {
            // Read again for each deadline: handling the previous one may have updated the clock.
            let now = self.context.clock.now();
            let Some(index) = self.wheel.take_due(&mut self.slab, now) else {
                self.has_due = false;
                break;
            };
            self.check_deadline(index);
        }
        let now = self.context.clock.now();
        while let Some(index) = self.abandoned.iter().position(|(_, due)| due.has_come(now)) {
            let (token, _) = self.abandoned.swap_remove(index);
            self.mark_overdue(token);
        }
        self.resume_accepting();
        let first_abandoned = self.abandoned.iter().map(|(_, due)| *due).reduce(Tick::earlier);
        let acceptor = self.acceptor.resumes_at();
        let deadlines = [self.wheel.next(), acceptor, self.drain_deadline, first_abandoned];
        for deadline in deadlines.into_iter().flatten() {
            self.timer.arm(deadline, now);
        }
    }

    /// Registers the deadline of the connection at `index`.
    fn watch_deadline(&mut self, index: u32, deadline: Tick) {
        let now = self.context.clock.now();
        let due = self.wheel.arm(&mut self.slab, index, deadline, now);
        self.timer.arm(due, now);
    }

    /// Runs a connection of the ready list.
    fn resume(&mut self, token: Token) {
        let Some(entry) = self.slab.get(token) else { return };
        if !std::mem::take(&mut entry.connection.wants_turn) {
            return;
        }
        match entry.connection.phase {
            Phase::Queued | Phase::Handler => self.push(token),
            Phase::Body if entry.connection.is_receiving() => self.receive_more(token),
            _ if entry.connection.has_unsent() => self.drive(token, Next::Reply),
            Phase::Held => self.drive(token, Next::Held),
            _ => self.drive(token, Next::Request),
        }
    }

    /// Sends unsent bytes of earlier replies while the connection waits for a later reply.
    fn push(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if connection.has_unsent() {
            self.context.config.switch_to(connection.snapshot_id);
            stages::send_unsent(connection, &mut self.context);
            if connection.wants_turn {
                self.ready.push(token);
            }
        }
    }

    fn check_deadline(&mut self, index: u32) {
        let now = self.context.clock.now();
        let Some(entry) = self.slab.at(index) else { return };
        if !entry.connection.deadline.has_come(now) {
            let deadline = entry.connection.deadline;
            return self.watch_deadline(index, deadline);
        }
        let Some(token) = self.slab.token(index) else { return };
        self.expire(token);
    }

    fn expire(&mut self, token: Token) {
        let Some(entry) = self.slab.get(token) else { return };
        let connection = &mut entry.connection;
        self.context.make_current(connection);
        if connection.phase == Phase::Queued {
            let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
            let withdrawn = self.scheduler.withdraw(&ticket);
            if let Some(request) = withdrawn.and_then(Task::into_request) {
                let next = stages::reject_overloaded(connection, &mut self.context, request);
                return self.advance(token, next);
            }
            // A worker has started the handler. From now on the time limit of the handler applies,
            // counted from the moment when the request was queued.
            connection.phase = Phase::Handler;
            connection.deadline =
                handler_deadline(connection.deadline, &self.context.config.settings.timeouts);
            self.context.save_input(connection);
            return self.await_event(token);
        }
        let is_with_worker = connection.is_with_worker();
        let next = stages::expire(connection, &mut self.context);
        if is_with_worker {
            self.mark_overdue(token);
        }
        self.advance(token, next);
    }

    /// Reports a worker whose handler has exceeded its deadline, so that the scheduler may start a
    /// replacement.
    fn mark_overdue(&mut self, token: Token) {
        self.overdue.push(token);
        self.scheduler.on_overdue();
        let count = self.overdue.len();
        log::warn(format_args!(
            "loop {}: {count} workers run handlers beyond their time limit; \
             find what these handlers wait for",
            self.index
        ));
    }

    fn drive(&mut self, token: Token, next: Next) {
        if self.cohort.gathers && next == Next::Request {
            return self.enqueue(token);
        }
        let Some(entry) = self.slab.get(token) else { return };
        self.context.make_current(&mut entry.connection);
        self.advance(token, next);
    }

    /// Runs stages until the connection must wait. A panic in the server closes only this
    /// connection: the remaining events of the batch must run, because epoll reports them once.
    fn advance(&mut self, token: Token, next: Next) {
        if catch_unwind(AssertUnwindSafe(|| self.run_stages(token, next))).is_err() {
            log::error(format_args!("the server panicked and closed one connection"));
            self.context.deferred_work = None;
            self.remove(token);
        }
    }

    fn run_stages(&mut self, token: Token, mut next: Next) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        context.owner.token = token;
        loop {
            next = match next {
                Next::Request => stages::request(connection, context),
                Next::Response(ResponseKind::Static) => stages::response(connection, context),
                Next::Response(ResponseKind::Dynamic) | Next::Park
                    if should_reject(&self.server, &self.view, connection, context) =>
                {
                    stages::reject_deferred(connection, context)
                }
                Next::Response(ResponseKind::Dynamic) => match self.scheduler.stage(next) {
                    Placement::SameThread | Placement::Batched => {
                        run_dynamic(&self.server, connection, context)
                    }
                    Placement::Spawn => return self.submit_to_worker(token),
                },
                Next::Reply => stages::reply(connection, context),
                Next::Idle => return self.await_event(token),
                Next::Held => stages::held(connection, context, ServeReason::Room),
                Next::Park => return self.start_task(token),
                Next::Depart => return self.depart(token),
                Next::Closed => return self.remove(token),
            };
        }
    }

    /// Registers what the connection waits for: its next turn, room to write, or its deadline.
    fn await_event(&mut self, token: Token) {
        let Some(entry) = self.slab.get(token) else { return };
        let Entry { connection, hook, watches_room } = entry;
        if connection.wants_turn {
            self.ready.push(token);
        } else if (connection.phase == Phase::Writing || connection.has_unsent()) && !*watches_room
        {
            *watches_room = true;
            if self.driver.watch_room(&connection.transport, token).is_err() {
                return self.remove(token);
            }
        }
        let deadline = connection.deadline;
        if !hook.covers(deadline) {
            self.watch_deadline(token.index, deadline);
        }
    }

    /// Hands the request to a worker, which sends the response by [`Letter::Finished`].
    fn submit_to_worker(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        let Some(DeferredWork::Work(work, request)) = context.deferred_work.take() else {
            return self.remove(token);
        };
        if stages::park(connection, context) == Next::Closed {
            return self.remove(token);
        }
        connection.phase = Phase::Queued;
        let timeouts = &context.config.settings.timeouts;
        let wait = timeouts.queue.min(timeouts.handler);
        connection.deadline = context.clock.now().after(wait);
        connection.busy(context).handler = work.name();
        let bytes = self.buffers.pop().unwrap_or_default();
        self.server.admission().handed_over();
        match self.spawn(Job::Answer { work, request, bytes }, token, wait) {
            Ok(()) => self.await_event(token),
            Err(task) => match task.into_request() {
                Some(request) => self.refuse(token, request),
                None => self.remove(token),
            },
        }
    }

    /// Gives a job of this connection to the scheduler.
    fn spawn(&self, job: Job, token: Token, patience: Duration) -> Result<(), Task> {
        let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
        let admission = Arc::clone(self.server.admission());
        self.scheduler.spawn(Task { job, ticket, patience, since: Instant::now(), admission })
    }

    /// Rejects a request that no worker has time for, if the connection still waits for the
    /// response.
    fn refuse(&mut self, token: Token, request: Box<Retained>) {
        if self.note_return(token) {
            return;
        }
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if matches!(connection.phase, Phase::Queued | Phase::Handler) {
            self.context.make_current(connection);
            let next = stages::reject_overloaded(connection, &mut self.context, request);
            self.advance(token, next);
        }
    }

    fn read_letters(&mut self) {
        self.apply_new_config();
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.take(&mut letters);
        // Only after `take` has reset the wakeup, or a signal between the two would be lost.
        self.has_deliveries |= self.mailbox.wakeup().take_ring();
        let mut room = None;
        for letter in letters.drain(..) {
            match letter {
                Letter::Adopt(socket, peer) => self.adopt(socket, peer),
                Letter::Finished(token, request, mut finished) => {
                    self.deliver(token, &mut finished, Some(request));
                    self.keep_buffer(finished.bytes);
                }
                Letter::Refused(token, request) => self.refuse(token, request),
                Letter::Warm(token) => self.on_warm(token),
                // Each letter has the full count, so after a slow turn only the last one applies.
                Letter::MakeRoom(wanted) => room = Some(wanted),
                Letter::Evict(token) => self.drop_evicted(token),
                Letter::Look => self.check_for_stop(),
            }
        }
        if let Some(room) = room {
            self.make_room(room);
        }
        self.letters = letters;
    }

    /// Gives a reply from a worker or a task to its connection, if that still waits for it.
    fn deliver(&mut self, token: Token, finished: &mut Finished, request: Option<Box<Retained>>) {
        if self.note_return(token) {
            log::warn(format_args!(
                "a handler finished after its time limit; its response was dropped"
            ));
            return;
        }
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let is_awaited = matches!(connection.phase, Phase::Queued | Phase::Handler);
        if !is_awaited && !connection.is_receiving() {
            return;
        }
        if let Some(busy) = &mut connection.busy {
            busy.task = None;
        }
        self.context.make_current(connection);
        let next = stages::finished(connection, &mut self.context, finished, request);
        self.advance(token, next);
    }

    /// Records that the worker with this connection's request is free. Returns whether it was
    /// overdue.
    fn note_return(&mut self, token: Token) -> bool {
        self.abandoned.retain(|(abandoned, _)| *abandoned != token);
        let index = self.overdue.iter().position(|overdue| *overdue == token);
        if let Some(index) = index {
            self.overdue.swap_remove(index);
            self.scheduler.on_returned();
        }
        index.is_some()
    }

    fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < 64 && buffer.capacity() <= 64 * 1024 {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Hands the connection over to a task or to the owner of another protocol. Its socket must
    /// first be removed from the inner epoll (rule 5).
    fn depart(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        self.driver.forget(&connection.transport);
        // The new owner also gets the bytes that were received after the head.
        self.context.save_input(connection);
        let busy = connection.busy.take();
        connection.end(Ending::Upgrade);
        let Some(connection) = self.detach(token) else { return };
        match busy {
            Some(busy) if busy.upgrade.is_some() => self.start_upgrade(connection, busy),
            _ if !connection.transport.departs() => self.start_http2(connection, busy),
            _ => {
                self.server.census.leave(connection.peer);
                D::depart(connection.transport, connection.peer);
            }
        }
    }

    fn remove(&mut self, token: Token) {
        if let Some(mut connection) = self.detach(token) {
            // Closing the only descriptor also removes the socket from epoll.
            connection.transport.farewell();
            self.server.census.leave(connection.peer);
        }
    }

    /// Removes a connection from the loop. The census still counts it.
    fn detach(&mut self, token: Token) -> Option<Connection<D::Transport>> {
        let entry = self.slab.get(token)?;
        let (phase, deadline) = (entry.connection.phase, entry.connection.deadline);
        if phase == Phase::Queued {
            // No client waits for this request, so no worker should start it.
            let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
            let withdrawn = self.scheduler.withdraw(&ticket);
            match withdrawn.and_then(Task::into_request) {
                Some(request) => self.context.retained.put(request),
                None => {
                    self.context.config.switch_to(entry.connection.snapshot_id);
                    let due = handler_deadline(deadline, &self.context.config.settings.timeouts);
                    self.abandon(token, due);
                }
            }
        } else if entry.connection.is_with_worker() {
            self.abandon(token, deadline);
        }
        self.wheel.disarm(&mut self.slab, token.index);
        let mut entry = self.slab.remove(token)?;
        let ended = entry.connection.ended(self.context.stopping);
        if !entry.connection.transport.is_stream() {
            self.context.tally.closed(ended);
        }
        stages::log_pending_entry(&mut entry.connection, &mut self.context);
        let hold = entry.connection.hold;
        if hold != NO_HOLD
            && let Some(waiters) = &mut self.context.waiters
        {
            waiters.forget(hold);
        }
        self.context.output.clear();
        self.context.input = 0..0;
        if let Some(mut busy) = entry.connection.busy.take() {
            if let Some(task) = busy.task.take() {
                task.abort();
            }
            self.context.recycle(busy);
        }
        self.context.config.leave(entry.connection.snapshot_id);
        self.server.loops[self.index].connections.store(self.load(), Ordering::Relaxed);
        Some(entry.connection)
    }

    /// Keeps the deadline of a handler whose client has disconnected, so that its worker is
    /// reported when it exceeds the deadline.
    fn abandon(&mut self, token: Token, due: Tick) {
        self.abandoned.push((token, due));
        self.timer.arm(due, self.context.clock.now());
    }

    /// Begins to drain if the server stops.
    fn check_for_stop(&mut self) {
        self.context.is_leaving = self.server.is_leaving();
        if self.server.state() == State::Serving || self.drain_deadline.is_some() {
            return;
        }
        let now = self.context.clock.now();
        let timeouts = self.view.generation.settings.timeouts.clone();
        let drain_deadline = now.after(timeouts.drain);
        self.drain_deadline = Some(drain_deadline);
        self.timer.arm(drain_deadline, now);
        self.context.stopping = true;
        self.close_listeners();
        // A client may just have sent a request on an idle connection: it has a short time to
        // arrive.
        let grace = now.after(stages::GRACE);
        for token in self.slab.tokens() {
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            let end = match connection.phase {
                Phase::Handshake | Phase::First | Phase::Idle => grace,
                Phase::Held => now.after(fan_out::stop_delay(token, timeouts.drain)),
                _ => continue,
            };
            if !connection.wants_turn {
                connection.deadline = connection.deadline.earlier(end);
                self.await_event(token);
            }
        }
    }

    /// The number of connections in the slab, and of upgraded connections, which are tasks.
    fn load(&self) -> usize {
        self.slab.len() + self.task_results.upgraded()
    }

    fn is_over(&self) -> bool {
        match self.server.state() {
            State::Serving => false,
            State::Draining => self.drain_deadline.is_some_and(|drain_deadline| {
                self.load() == 0 || drain_deadline.has_come(self.context.clock.now())
            }),
            State::Over => true,
        }
    }

    /// Reads events from the inner epoll, and may wait for them there.
    fn poll<'b>(
        &self,
        batch: &'b mut Vec<epoll::Event>,
        wait: Wait,
    ) -> io::Result<&'b [epoll::Event]> {
        batch.clear();
        self.driver.wait(batch, wait)?;
        Ok(batch)
    }

    /// Runs a turn. After a panic in the server, logs it and continues with the next turn.
    fn guarded_turn(&mut self, batch: &[epoll::Event]) {
        if catch_unwind(AssertUnwindSafe(|| self.turn(batch))).is_err() {
            log::error(format_args!(
                "the server panicked and cut short a turn of loop {}",
                self.index
            ));
            self.context.output.clear();
            self.context.input = 0..0;
            self.context.deferred_work = None;
        }
    }
}

/// Runs work on the thread of the loop, since the scheduler has no other thread for it.
fn run_dynamic<L: Transport>(
    server: &Server,
    connection: &mut Connection<L>,
    context: &mut ThreadContext,
) -> Next {
    if !connection.is_storing() {
        server.admission().answered();
    }
    stages::dynamic(connection, context)
}

/// The deadline of a handler that a worker has started before `end_of_wait`, the time at which its
/// request would have been rejected.
fn handler_deadline(end_of_wait: Tick, timeouts: &Timeouts) -> Tick {
    end_of_wait.after(timeouts.handler.saturating_sub(timeouts.queue))
}
