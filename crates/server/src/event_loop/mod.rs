//! Decides what one loop does in one turn: who is ready, in which order, and for how long.
//!
//! The connections live in a slab behind an epoll instance of our own, which is nested in a Tokio
//! current-thread runtime (docs/decisions/0005): any Tokio library works in a handler, yet an idle
//! connection costs its slab entry and nothing else.

mod accept;
mod alarm;
mod cohort;
mod defense;
mod driver;
mod fan;
mod later;
mod rest;
#[cfg(test)]
mod simulation;
mod wait;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bine_admission::Turn;
use bine_log as log;
use rustix::event::epoll::{self, EventFlags};

use crate::connection::{Connection, Errand, NO_HOLD, Phase, ThreadContext};
use crate::handler::{Finished, ReceiveBuffer, Retained, Why};
use crate::lifecycle::State;
use crate::mailbox::{Letter, Mailbox, Ticket};
use crate::metrics::Ending;
use crate::next::{Kind, Next};
use crate::scheduling::{Place, Scheduler};
use crate::server::{Server, View};
use crate::settings::Timeouts;
use crate::slab::{Slab, Token};
use crate::stages;
use crate::time::{Clock, Hook, Hooks, Tick, Wheel};
use crate::transport::Transport;
use crate::workers::{Job, Task};

use accept::Door;
use alarm::Alarm;
use cohort::Cohort;
use defense::is_unwelcome;
use driver::{Driver, Kernel, Wait};
use later::Returns;
use rest::LONG_REST;

/// Events taken at once.
const BATCH: usize = 512;
/// Marks, in the 64 bits that epoll keeps, what is no connection. No slab grows this large.
const BELL: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - (1 << 16);
/// Bytes of long replies sent in one turn; sending them takes about a quarter of a millisecond.
const ALLOWANCE: u64 = 512 * 1024;
/// Deadlines handled in one turn, so that many peers that time out together delay no other.
const MOST_DUE: usize = 1024;
/// What a connection's socket is watched for, once: edges need no re-arming (rule 1).
const WATCHED: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

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
    alarm: Alarm<D::Timer>,
    /// Connections with more to do that their sockets will not announce (rule 1).
    ready: Vec<Token>,
    taking_turns: Vec<Token>,
    door: Door,
    cohort: Cohort,
    returns: Rc<Returns>,
    /// Where those who have left receive; made for the first.
    space: Option<ReceiveBuffer>,
    /// When draining ends.
    last_call: Option<Tick>,
    /// Connections whose peers have left while a worker was at their handler, and when that is overdue.
    abandoned: Vec<(Token, Tick)>,
    /// Connections at whose handler a worker still is though its time is over.
    overdue: Vec<Token>,
    /// Its waiters have news that not all of them have been sent yet.
    has_news: bool,
    /// More deadlines have come than one turn handles.
    has_due: bool,
    /// Fan-outs in a row that were cut short.
    cuts: u8,
    /// Since when not all that was ready has had its turn.
    behind_since: Option<Tick>,
    /// When the last turn ended, by the clock's milliseconds, and for how long who came during it has waited for the
    /// next.
    ended: u64,
    waited: Duration,
    /// Kept between turns for their memory.
    letters: Vec<Letter>,
    buffers: Vec<Vec<u8>>,
}

/// A connection in the slab.
struct Entry<L> {
    connection: Connection<L>,
    hook: Hook,
    /// Its socket is watched for room to write as well.
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
        let mut own = Self::open(server, scheduler, index, (Kernel::new()?, clock))?;
        own.server.running_loops.fetch_add(1, Ordering::AcqRel);
        // Outside the cooperative budget: this future never yields while no task lives, so the
        // budget would never be renewed and every handler's first poll would find it spent.
        let ended = runtime.block_on(tokio::task::unconstrained(own.turns()));
        own.server.running_loops.fetch_sub(1, Ordering::AcqRel);
        let cut = own.load();
        drop(own);
        // A call that blocks may never return; dropping the runtime would wait for it.
        runtime.shutdown_background();
        if cut > 0 && ended.is_ok() {
            let what = if cut == 1 { "connection was" } else { "connections were" };
            let message = format!("{cut} {what} cut by the end of loop {index}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        ended
    }
}

impl<D: Driver> EventLoop<D> {
    /// Loop number `index` of `server`, which accepts from here on; its [turns](Self::turns) serve.
    fn open(
        server: Arc<Server>,
        scheduler: Arc<dyn Scheduler>,
        index: usize,
        (driver, clock): (D, Rc<Clock>),
    ) -> io::Result<Self> {
        let view = server.view();
        let mut context = view.context_with_clock(clock);
        context.warms_files = true;
        context.owner.thread = Some(Arc::<Mailbox>::clone(&server.loops[index].mailbox));
        context.tally.is_of_loop(index);
        context.waiters =
            server.waiters(&context.clock, Arc::clone(server.loops[index].mailbox.wakeup()));
        let mailbox = Arc::clone(&server.loops[index].mailbox);
        driver.watch_mailbox(&mailbox)?;
        let ended = context.clock.milliseconds();
        let mut own = Self {
            alarm: Alarm::new(driver.timer()?),
            wheel: Wheel::new(context.clock.now()),
            cohort: Cohort::new(scheduler.stage(Next::Request) == Place::Gathered),
            scheduler,
            index,
            mailbox,
            driver,
            context,
            slab: Slab::new(),
            ready: Vec::new(),
            taking_turns: Vec::new(),
            door: Door::new(),
            returns: Rc::default(),
            space: None,
            last_call: None,
            abandoned: Vec::new(),
            overdue: Vec::new(),
            has_news: false,
            has_due: false,
            cuts: 0,
            behind_since: None,
            ended,
            waited: Duration::ZERO,
            letters: Vec::new(),
            buffers: Vec::new(),
            view,
            server,
        };
        own.open_door()?;
        Ok(own)
    }

    /// Everything that is due, once. `batch` are the events of this turn.
    fn turn(&mut self, batch: &[epoll::Event]) {
        let began = self.context.clock.turn();
        let rest = Duration::from_millis(self.context.clock.milliseconds() - self.ended);
        if rest >= LONG_REST {
            self.catch_up(began, rest);
        }
        self.context.tally.turns.add(1);
        self.context.send_allowance = ALLOWANCE;
        if self.has_due {
            self.on_alarm();
        }
        for event in batch {
            match event.data.u64() {
                BELL => self.read_letters(),
                ALARM => self.on_alarm(),
                marked if marked >= LISTENER => self.accept((marked - LISTENER) as usize),
                bits => self.on_event(Token::from_bits(bits), event.flags),
            }
        }
        self.run_cohort();
        // Those who want yet another turn gather in the other list, for the next one.
        std::mem::swap(&mut self.ready, &mut self.taking_turns);
        let mut taken = 0;
        while taken < self.taking_turns.len() && self.context.send_allowance > 0 {
            self.resume(self.taking_turns[taken]);
            taken += 1;
        }
        self.run_cohort();
        // Those who did not come to it are the first in the next turn.
        self.ready.splice(0..0, self.taking_turns.drain(..).skip(taken));
        self.take_returns();
        self.fan_out();
        self.context.config.access.flush();
        self.tell_of_wait(began, batch.len() == BATCH);
    }

    /// Whatever became ready since the turn began has waited for no longer than that, unless more was ready before than
    /// a turn takes. Nobody has, if the loop rested between two turns.
    fn tell_of_wait(&mut self, began: Tick, is_crowded: bool) {
        let admission = self.server.admission();
        let clock = &self.context.clock;
        // The clock was read behind each response, which is where a turn's time goes. Where it counts whether the loop
        // rests, it is read once more.
        let now = if admission.is_awake() { clock.glance() } else { clock.now() };
        let since = *self.behind_since.get_or_insert(began);
        let (took, has_rested) = (now.since(since), self.ended().is_before(began));
        let waited = if has_rested { Duration::ZERO } else { self.waited };
        admission.turned(Turn { took, waited, worked: now.since(began) });
        (self.ended, self.waited) = (clock.milliseconds(), took);
        if !is_crowded && self.ready.is_empty() {
            self.behind_since = None;
        }
    }

    /// When the last turn ended.
    const fn ended(&self) -> Tick {
        Tick::at(self.ended as u32)
    }

    fn on_event(&mut self, token: Token, flags: EventFlags) {
        let Some(entry) = self.slab.get(token) else { return };
        let connection = &mut entry.connection;
        let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if gone || flags.contains(EventFlags::RDHUP) {
            connection.hung_up = true;
        }
        // It has its turn in a moment, and one only however often its socket speaks up.
        if connection.wants_turn {
            return;
        }
        match connection.phase {
            Phase::Queued | Phase::Handler | Phase::Streaming if gone => self.remove(token),
            // So does one who only waits for a reply that is of use to who stays.
            Phase::Handler
                if connection.hung_up
                    && connection.busy.as_ref().is_some_and(|busy| busy.is_while_open) =>
            {
                self.remove(token);
            }
            // Nobody may come for its reply any more: one who closes a page says no more than this.
            Phase::Held if connection.hung_up => self.remove(token),
            Phase::Held => connection.has_input = true,
            // Its handler must write first.
            Phase::Streaming => {}
            // Later requests wait until the earlier one is answered; its replies need not.
            Phase::Queued | Phase::Handler => self.push(token),
            Phase::Writing if connection.busy.as_ref().is_some_and(|busy| busy.warms_up) => {
                if gone {
                    self.remove(token);
                }
            }
            Phase::Writing => self.drive(token, Next::Reply),
            _ => self.drive(token, Next::Request),
        }
    }

    /// Deadlines may have come; the alarm is set for those that have not.
    fn on_alarm(&mut self) {
        self.alarm.rang();
        self.has_due = true;
        for _ in 0..MOST_DUE {
            // Read each time: what a deadline leads to may have read the clock anew.
            let now = self.context.clock.now();
            let Some(index) = self.wheel.take_due(&mut self.slab, now) else {
                self.has_due = false;
                break;
            };
            self.on_timer(index);
        }
        let now = self.context.clock.now();
        while let Some(place) = self.abandoned.iter().position(|(_, due)| due.has_come(now)) {
            let (token, _) = self.abandoned.swap_remove(place);
            self.give_up(token);
        }
        self.keep_door();
        let gives_up = self.abandoned.iter().map(|(_, due)| *due).reduce(Tick::earlier);
        let moments = [self.wheel.next(), self.door.reopens(), self.last_call, gives_up];
        for moment in moments.into_iter().flatten() {
            self.alarm.ring_by(moment, now);
        }
    }

    /// Has the connection at `index` looked at when `deadline` comes.
    fn watch_deadline(&mut self, index: u32, deadline: Tick) {
        let now = self.context.clock.now();
        let due = self.wheel.arm(&mut self.slab, index, deadline, now);
        self.alarm.ring_by(due, now);
    }

    /// A connection that did not wait for its socket has its next turn.
    fn resume(&mut self, token: Token) {
        let Some(entry) = self.slab.get(token) else { return };
        if !std::mem::take(&mut entry.connection.wants_turn) {
            return;
        }
        match entry.connection.phase {
            Phase::Queued | Phase::Handler => self.push(token),
            _ if entry.connection.has_unsent() => self.drive(token, Next::Reply),
            Phase::Held => self.drive(token, Next::Held),
            _ => self.drive(token, Next::Request),
        }
    }

    /// Sends on with earlier replies of a connection that waits for a later one.
    fn push(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if connection.has_unsent() {
            self.context.config.turn_to(connection.snapshot_id);
            stages::send_unsent(connection, &mut self.context);
            if connection.wants_turn {
                self.ready.push(token);
            }
        }
    }

    fn on_timer(&mut self, index: u32) {
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
            // A worker has it, so it is the handler's own time that runs, and has run since then.
            connection.phase = Phase::Handler;
            connection.deadline =
                end_of_run(connection.deadline, &self.context.config.settings.timeouts);
            self.context.save_input(connection);
            return self.settle(token);
        }
        let is_with_worker = connection.is_with_worker();
        let next = stages::expire(connection, &mut self.context);
        if is_with_worker {
            self.give_up(token);
        }
        self.advance(token, next);
    }

    /// A worker is at what nobody waits for, and its time is over: another may take its place.
    fn give_up(&mut self, token: Token) {
        self.overdue.push(token);
        self.scheduler.on_overdue();
        let count = self.overdue.len();
        log::warn(format_args!("{count} workers of loop {} are overdue", self.index));
    }

    fn drive(&mut self, token: Token, next: Next) {
        if self.cohort.gathers && next == Next::Request {
            return self.gather(token);
        }
        let Some(entry) = self.slab.get(token) else { return };
        self.context.make_current(&mut entry.connection);
        self.advance(token, next);
    }

    /// Runs stages until the connection has to wait for something. A fault where nobody expects
    /// one costs this connection alone: the events behind it in the batch come only once.
    fn advance(&mut self, token: Token, next: Next) {
        if catch_unwind(AssertUnwindSafe(|| self.run_stages(token, next))).is_err() {
            log::error(format_args!("a connection was closed by a fault of the server"));
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
                Next::Response(Kind::Static) => stages::response(connection, context),
                Next::Response(Kind::Dynamic) | Next::Park
                    if is_unwelcome(&self.server, &self.view, connection, context) =>
                {
                    stages::reject_deferred(connection, context)
                }
                Next::Response(Kind::Dynamic) => match self.scheduler.stage(next) {
                    Place::Here | Place::Gathered => {
                        if !connection.is_storing() {
                            self.server.admission().answered();
                        }
                        stages::dynamic(connection, context)
                    }
                    Place::Elsewhere => return self.hand_over(token),
                },
                Next::Reply => stages::reply(connection, context),
                Next::Idle => return self.settle(token),
                Next::Held => stages::held(connection, context, Why::Room),
                Next::Park => return self.start_task(token),
                Next::Depart => return self.depart(token),
                Next::Closed => return self.remove(token),
            };
        }
    }

    /// The connection waits: where it will be found again.
    fn settle(&mut self, token: Token) {
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

    /// The response is made elsewhere; its worker answers by letter.
    fn hand_over(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        let Some(Errand::Work(work, request)) = context.deferred_work.take() else {
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
            Ok(()) => self.settle(token),
            Err(task) => match task.into_request() {
                Some(request) => self.refuse(token, request),
                None => self.remove(token),
            },
        }
    }

    /// Has another thread do what a connection waits for.
    fn spawn(&self, job: Job, token: Token, patience: Duration) -> Result<(), Task> {
        let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
        let admission = Arc::clone(self.server.admission());
        self.scheduler.spawn(Task { job, ticket, patience, since: Instant::now(), admission })
    }

    /// Nobody has time for the request of this connection, if that still waits for its reply.
    fn refuse(&mut self, token: Token, request: Box<Retained>) {
        if self.is_back(token) {
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
        self.keep_up();
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.take(&mut letters);
        // Behind the silence, or a ring in between would be lost.
        self.has_news |= self.mailbox.wakeup().take_ring();
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
                // Each says all that is wanted: of several behind a slow turn the last one holds.
                Letter::MakeRoom(wanted) => room = Some(wanted),
                Letter::Evict(token) => self.drop_evicted(token),
                Letter::Look => self.look(),
            }
        }
        if let Some(room) = room {
            self.make_room(room);
        }
        self.letters = letters;
    }

    /// A reply that was made elsewhere goes to its connection, if that still waits for it.
    fn deliver(&mut self, token: Token, finished: &mut Finished, request: Option<Box<Retained>>) {
        if self.is_back(token) {
            log::warn(format_args!("an overdue worker has returned; its reply is dropped"));
            return;
        }
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if !matches!(connection.phase, Phase::Queued | Phase::Handler) {
            return;
        }
        if let Some(busy) = &mut connection.busy {
            busy.task = None;
        }
        self.context.make_current(connection);
        let next = stages::finished(connection, &mut self.context, finished, request);
        self.advance(token, next);
    }

    /// The worker that had this connection's request has time again. Whether it was overdue.
    fn is_back(&mut self, token: Token) -> bool {
        self.abandoned.retain(|(left, _)| *left != token);
        let place = self.overdue.iter().position(|late| *late == token);
        if let Some(place) = place {
            self.overdue.swap_remove(place);
            self.scheduler.on_returned();
        }
        place.is_some()
    }

    fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < 64 && buffer.capacity() <= 64 * 1024 {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// The connection goes to somebody else, who may watch its socket (rule 5).
    fn depart(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        self.driver.forget(&connection.transport);
        // What was received behind the head is for whoever takes it over.
        self.context.save_input(connection);
        let busy = connection.busy.take_if(|busy| busy.upgrade.is_some());
        connection.end(Ending::Upgrade);
        let Some(connection) = self.take_out(token) else { return };
        match busy {
            Some(busy) => self.start_life(connection, busy),
            None => {
                self.server.census.leave(connection.peer);
                D::depart(connection.transport, connection.peer);
            }
        }
    }

    fn remove(&mut self, token: Token) {
        if let Some(mut connection) = self.take_out(token) {
            // Closing the only descriptor takes the socket out of epoll as well.
            connection.transport.farewell();
            self.server.census.leave(connection.peer);
        }
    }

    /// Forgets a connection, which the census still counts.
    fn take_out(&mut self, token: Token) -> Option<Connection<D::Transport>> {
        let entry = self.slab.get(token)?;
        let (phase, deadline) = (entry.connection.phase, entry.connection.deadline);
        if phase == Phase::Queued {
            // Nobody waits for it any more, so no worker should begin it.
            let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
            let withdrawn = self.scheduler.withdraw(&ticket);
            match withdrawn.and_then(Task::into_request) {
                Some(request) => self.context.retained.put(request),
                None => {
                    self.context.config.turn_to(entry.connection.snapshot_id);
                    let due = end_of_run(deadline, &self.context.config.settings.timeouts);
                    self.abandon(token, due);
                }
            }
        } else if entry.connection.is_with_worker() {
            self.abandon(token, deadline);
        }
        self.wheel.disarm(&mut self.slab, token.index);
        let mut entry = self.slab.remove(token)?;
        let ended = entry.connection.ended(self.context.stopping);
        self.context.tally.closed(ended);
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

    /// A worker is at the request of a peer that has left: what it takes longer than its time is nobody else's.
    fn abandon(&mut self, token: Token, due: Tick) {
        self.abandoned.push((token, due));
        self.alarm.ring_by(due, self.context.clock.now());
    }

    /// The server's state may have changed.
    fn look(&mut self) {
        if self.server.state() == State::Serving || self.last_call.is_some() {
            return;
        }
        let now = self.context.clock.now();
        let timeouts = self.view.generation.settings.timeouts.clone();
        let last_call = now.after(timeouts.drain);
        self.last_call = Some(last_call);
        self.alarm.ring_by(last_call, now);
        self.context.stopping = true;
        self.close_for_good();
        // A request may be on its way on a connection that looks idle: it has a moment to arrive.
        let grace = now.after(stages::GRACE);
        for token in self.slab.tokens() {
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            let end = match connection.phase {
                Phase::Handshake | Phase::First | Phase::Idle => grace,
                Phase::Held => now.after(fan::parting(token, timeouts.drain)),
                _ => continue,
            };
            if !connection.wants_turn {
                connection.deadline = connection.deadline.earlier(end);
                self.settle(token);
            }
        }
    }

    /// Connections here, and those that live on as tasks.
    fn load(&self) -> usize {
        self.slab.len() + self.returns.departed()
    }

    fn is_over(&self) -> bool {
        match self.server.state() {
            State::Serving => false,
            State::Draining => self.last_call.is_some_and(|last_call| {
                self.load() == 0 || last_call.has_come(self.context.clock.now())
            }),
            State::Over => true,
        }
    }

    /// One look into our own epoll, or a wait there.
    fn poll<'b>(
        &self,
        batch: &'b mut Vec<epoll::Event>,
        wait: Wait,
    ) -> io::Result<&'b [epoll::Event]> {
        batch.clear();
        self.driver.wait(batch, wait)?;
        Ok(batch)
    }

    /// Runs `turn` so that a fault of ours is logged and the loop goes on.
    fn guarded_turn(&mut self, batch: &[epoll::Event]) {
        if catch_unwind(AssertUnwindSafe(|| self.turn(batch))).is_err() {
            log::error(format_args!(
                "a turn of loop {} was cut short by a fault of the server",
                self.index
            ));
            self.context.output.clear();
            self.context.input = 0..0;
            self.context.deferred_work = None;
        }
    }
}

/// When the run of a handler is overdue that a worker has begun before its wait for one would have been over.
fn end_of_run(end_of_wait: Tick, timeouts: &Timeouts) -> Tick {
    end_of_wait.after(timeouts.handler.saturating_sub(timeouts.queue))
}
