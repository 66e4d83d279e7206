//! One thread per connection: the thread serves its connection from accept to close with blocking
//! calls. Each scheduler with a thread per connection uses this module.

use std::convert::identity;
use std::future::poll_fn;
use std::io;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bine_log as log;
use bine_profile::{self as profile, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::arrival::{
    AcceptOutcome, Acceptor, Arrival, ArrivalQueue, NextArrival, Progress, RoomPermit,
};
use crate::connection::{
    Busy, Connection, DeferredWork, DetachedConnection, NO_HOLD, Phase, ThreadContext,
};
use crate::discard::discard;
use crate::handler::{
    BodyFlow, CloseReason, Finished, ReceiveBuffer, ReplyFuture, ServeReason, UpgradeContext,
    UpgradedConnection, failure, run_upgrade,
};
use crate::lifecycle::State;
use crate::metrics::{Ending, count_panic};
use crate::next::{Next, ResponseKind};
use crate::refusal::NO_THREAD;
use crate::scheduling::{Placement, Scheduler};
use crate::server::{Server, View};
use crate::stages::{self, GRACE};
use crate::system::Wakeup;
use crate::time::Tick;
use crate::transport::{Blocking, Nonblocking, Transport as _};

/// Serves connections on one thread, one at a time.
pub struct Conversations<'s> {
    server: &'s Arc<Server>,
    view: View,
    scheduler: &'s dyn Scheduler,
    context: ThreadContext,
    acceptor: Acceptor,
    /// The queue that the accepting thread fills. With `None` this thread accepts connections
    /// itself.
    queue: Option<&'s ArrivalQueue>,
    /// At its last check, this thread found a connection that waits for a thread. It assumes so
    /// until this time.
    crowded_until: Option<Tick>,
    /// A connection that was accepted instead of an idle one; it is served next.
    newcomer: Option<Arrival>,
    /// The permit to close the current connection in order to make room for a new one.
    room_permit: Option<RoomPermit>,
    /// Wakes this thread for events of a suspended response. The first suspended response creates
    /// it.
    wakeup: Option<Arc<Wakeup>>,
    /// The receive buffer for upgraded connections. The first upgrade creates it.
    receive_buffer: Option<ReceiveBuffer>,
    /// Whether the scheduler has lent this thread to a suspended response.
    has_lent_thread: bool,
    /// Kept for its allocation.
    polled: Vec<PollFd<'static>>,
}

/// The event that ended a wait for a handler.
enum AwaitedReply {
    Finished(Finished),
    /// The handler waits for more of the body.
    WantsBody,
    /// The handler exceeded its deadline.
    Late,
}

/// The event that ended a wait for a request.
enum WaitEvent {
    Input,
    /// A new connection waits for a thread.
    NewConnection,
}

/// At full load, a kept connection has its thread for this time to send its next request (Serrano,
/// "Hop, a Fast Server for the Diffuse Web", 2009, section 2.4), to the precision of the coarse
/// clock. After that a new connection may take the thread.
const KEPT_TIME: Duration = Duration::from_millis(1);
/// The same limit from accept to the first byte, which takes a whole round trip.
const FIRST_BYTE_TIME: Duration = Duration::from_secs(1);
/// The interval at which a thread that waits for a request checks whether the load has become full.
/// Each check is a system call. A new connection waits at most 250 ms longer for it. A notification
/// by a descriptor would instead wake all idle threads at once, each time that the last free one is
/// taken.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

impl<'s> Conversations<'s> {
    /// Serves connections to `server`. At full [load](Scheduler::load) of `scheduler`, an idle
    /// connection gives way to a new one, which [`accept`](Self::accept) returns next.
    pub fn new(server: &'s Arc<Server>, scheduler: &'s dyn Scheduler) -> Self {
        Self::at(None, server, scheduler)
    }

    /// Serves the connections that wait in `queue`.
    pub(crate) fn from_queue(
        queue: &'s ArrivalQueue,
        server: &'s Arc<Server>,
        scheduler: &'s dyn Scheduler,
    ) -> Self {
        Self::at(Some(queue), server, scheduler)
    }

    fn at(
        queue: Option<&'s ArrivalQueue>,
        server: &'s Arc<Server>,
        scheduler: &'s dyn Scheduler,
    ) -> Self {
        let view = server.view();
        let context = view.context();
        Self {
            server,
            scheduler,
            context,
            view,
            acceptor: Acceptor::new(server),
            queue,
            crowded_until: None,
            newcomer: None,
            room_permit: None,
            wakeup: None,
            receive_buffer: None,
            has_lent_thread: false,
            polled: Vec::new(),
        }
    }

    /// Waits for the next connection. Returns `None` when the server stops.
    ///
    /// # Errors
    ///
    /// The error of the system if the thread cannot wait.
    pub fn accept(&mut self) -> io::Result<Option<Arrival>> {
        if self.newcomer.is_some() {
            return Ok(self.newcomer.take());
        }
        loop {
            self.keep_up();
            let accepted = match self.queue.map(ArrivalQueue::wait_idle) {
                None => self.acceptor.accept_within(None)?,
                Some(NextArrival::Serve(arrival)) => Some(arrival),
                Some(NextArrival::CheckSettings) => None,
                Some(NextArrival::End) => return Ok(None),
            };
            if accepted.is_some() || self.server.state() != State::Serving {
                return Ok(accepted);
            }
        }
    }

    /// The connection that replaced the one served last, if that gave way.
    pub fn take_newcomer(&mut self) -> Option<Arrival> {
        self.newcomer.take()
    }

    /// Serves the connection on this thread until it closes.
    pub fn hold(&mut self, arrival: Arrival) {
        self.run(arrival, false);
    }

    /// Serves the connection until it closes, or until the scheduler wants its next stage
    /// [elsewhere](Placement::Spawn) and it can move. Then returns it.
    pub(crate) fn serve_stages(&mut self, arrival: Arrival) -> Option<Arrival> {
        self.run(arrival, true)
    }

    fn run(&mut self, arrival: Arrival, may_detach: bool) -> Option<Arrival> {
        let Arrival { progress, peer, mut counted } = arrival;
        self.context.clock.turn();
        // Checked after the accept: a connection that arrives after a change gets the new settings.
        self.keep_up();
        let (mut connection, next) = match progress {
            Progress::New(socket) => {
                let transport = |session| Blocking::new(socket, session);
                let mut connection = Connection::new(transport, peer, &mut self.context);
                self.context.make_current(&mut connection);
                (connection, Next::Request)
            }
            Progress::Between(detached) => detached.attach(&mut self.context)?,
        };
        let snapshot_id = connection.snapshot_id;
        // A panic of the server closes only this connection.
        let ended =
            catch_unwind(AssertUnwindSafe(|| self.run_stages(&mut connection, next, may_detach)));
        // A proxy may have named the client.
        let peer = connection.peer;
        counted.note_client(peer);
        if let Ok(Some(next)) = ended {
            match DetachedConnection::detach(connection, &mut self.context, next) {
                Ok(detached) => {
                    self.context.config.access.flush();
                    let progress = Progress::Between(Box::new(detached));
                    return Some(Arrival { progress, peer, counted });
                }
                // Unreachable: `run_stages` has checked it, and each connection has a snapshot.
                Err(same) => connection = same,
            }
        }
        self.context.save_input(&mut connection);
        let upgraded = connection.busy.take_if(|busy| busy.upgrade.is_some());
        let is_upgrade = upgraded.is_some() || connection.transport.departs();
        let stopping = self.context.stopping;
        let ending = if is_upgrade { Ending::Upgrade } else { connection.ended(stopping) };
        self.context.tally.closed(ending);
        stages::log_pending_entry(&mut connection, &mut self.context);
        self.end_hold(&mut connection);
        if let (Some(busy), true) = (upgraded, ended.is_ok()) {
            self.run_upgraded(connection.transport, busy);
        } else if connection.transport.departs() {
            connection.transport.depart(peer);
        } else {
            connection.transport.farewell();
            connection.busy.take().into_iter().for_each(|busy| self.context.recycle(busy));
            drop(connection);
        }
        // Drops deferred work that was not started.
        discard(self.context.deferred_work.take());
        if ended.is_err() {
            log::error(format_args!("the server panicked and closed one connection"));
            self.context = self.view.context();
            self.wakeup = None;
        } else {
            self.context.config.leave(snapshot_id);
        }
        self.context.output.clear();
        self.context.config.access.flush();
        drop(counted);
        self.accept_successor();
        None
    }

    /// Runs stages from `next` on. Returns `Some` if the scheduler wants the next stage elsewhere.
    fn run_stages(
        &mut self,
        connection: &mut Connection<Blocking>,
        mut next: Next,
        may_detach: bool,
    ) -> Option<Next> {
        // The first poll of an async handler happens here, and may create timers and sockets.
        let background = self.server.background().map(tokio::runtime::Handle::enter);
        if let Err(error) = &background {
            log::error(format_args!("no runtime for async handlers: {error}"));
        }
        let mut has_run = false;
        loop {
            if self.has_lent_thread && connection.hold == NO_HOLD {
                self.end_hold(connection);
            }
            self.context.stopping = self.server.state() != State::Serving;
            self.context.is_leaving = self.server.is_leaving();
            if self.server.state() == State::Over {
                return None;
            }
            // Runs at least one stage, or the connection would move between threads without
            // progress.
            if std::mem::replace(&mut has_run, may_detach)
                && self.scheduler.stage(next) == Placement::Spawn
                && DetachedConnection::can_detach(connection, next)
            {
                return Some(next);
            }
            next = match next {
                Next::Request => self.await_request(connection),
                Next::Response(ResponseKind::Static) => {
                    stages::response(connection, &mut self.context)
                }
                Next::Response(ResponseKind::Dynamic) => {
                    // The work may take long.
                    self.context.config.access.flush();
                    stages::dynamic(connection, &mut self.context)
                }
                Next::Reply => stages::reply(connection, &mut self.context),
                Next::Held => stages::held(connection, &mut self.context, ServeReason::Room),
                Next::Park => self.await_handler(connection),
                Next::Idle => {
                    self.context.make_current(connection);
                    if connection.has_unsent() { Next::Reply } else { Next::Request }
                }
                Next::Depart | Next::Closed => return None,
            };
        }
    }

    /// Closes a connection that has waited too long for a thread. If it has sent a request, it gets
    /// a reply, without a wait.
    pub(crate) fn turn_away(&mut self, arrival: Arrival) {
        let Arrival { progress, peer, mut counted } = arrival;
        let detached = match progress {
            Progress::Between(detached) => detached,
            new @ Progress::New(_) => {
                return Arrival { progress: new, peer, counted }.refuse(NO_THREAD.response());
            }
        };
        self.context.clock.turn();
        self.keep_up();
        counted.count_refusal();
        let Some((connection, next)) = detached.attach(&mut self.context) else { return };
        let snapshot_id = connection.snapshot_id;
        let mut connection = connection.map(Nonblocking::from, identity);
        self.context.is_socket_empty = false;
        // It may have sent a request meanwhile, and may have unsent replies.
        let next = match next {
            Next::Request => stages::request(&mut connection, &mut self.context),
            next => next,
        };
        counted.note_client(connection.peer);
        let next = match next {
            Next::Response(_) | Next::Idle => {
                stages::reject_unserved(&mut connection, &mut self.context)
            }
            next => next,
        };
        if next == Next::Reply {
            // Bytes that cannot be sent at once are dropped.
            stages::reply(&mut connection, &mut self.context);
        }
        if connection.phase == Phase::Lingering {
            // Reads the client's input, or the close would be a reset that may overtake the reply.
            stages::request(&mut connection, &mut self.context);
        }
        connection.transport.farewell();
        self.context.tally.closed(Ending::Load);
        stages::log_pending_entry(&mut connection, &mut self.context);
        self.context.output.clear();
        self.context.input = 0..0;
        self.context.deferred_work = None;
        self.context.config.leave(snapshot_id);
        self.context.config.access.flush();
    }

    /// Runs an upgraded connection on this thread, if the scheduler lends the thread for it.
    fn run_upgraded(&mut self, transport: Blocking, mut busy: Box<Busy>) {
        let upgrade = busy.upgrade.take();
        let received = take(&mut busy.input);
        let name = busy.handler;
        self.context.config.access.flush();
        self.has_lent_thread = self.scheduler.begin_hold();
        let upgrade_context = UpgradeContext {
            state: self.server.subscribe_state(),
            parting: (!self.has_lent_thread).then_some(CloseReason::NoThread),
            clock: Rc::clone(&self.context.clock),
            slowness: Rc::clone(&self.context.slowness),
            name,
        };
        let receive_buffer = self.receive_buffer.get_or_insert_with(ReceiveBuffer::new).clone();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let background = self.server.background()?;
            let _inside = background.enter();
            let wire = UpgradedConnection::new(transport.into(), received, receive_buffer)?;
            if let Some(upgrade) = upgrade {
                background.block_on(run_upgrade(upgrade, wire, upgrade_context));
            }
            Ok::<_, io::Error>(())
        }));
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                log::error(format_args!("the async handler {name} cannot run: {error}"));
            }
            Err(_) => {
                count_panic();
                log::error(format_args!("{name} panicked; its connection was cut"));
            }
        }
        if take(&mut self.has_lent_thread) {
            self.scheduler.end_hold();
        }
        self.context.recycle(busy);
        self.context.clock.turn();
    }

    fn await_request(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let is_idle = self.context.input.is_empty()
            && matches!(connection.phase, Phase::Handshake | Phase::First | Phase::Idle)
            && connection.parser.phase() == bine_http::Phase::Head;
        if is_idle && !self.await_peer(connection) {
            return Next::Closed;
        }
        stages::request(connection, &mut self.context)
    }

    /// Waits for input. Returns false if there was none before the deadline, which a stop brings
    /// forward, or if the thread now serves a new connection.
    fn await_peer(&mut self, connection: &mut Connection<Blocking>) -> bool {
        self.context.config.access.flush();
        let mut now = self.context.clock.turn();
        let min_time = if matches!(connection.phase, Phase::Handshake | Phase::First) {
            FIRST_BYTE_TIME
        } else {
            connection.deadline = now.after(self.context.config.settings.timeouts.idle);
            KEPT_TIME
        };
        let gives_way_at = now.after(min_time);
        let mut stopping = false;
        while !connection.deadline.has_come(now) {
            if !stopping && self.server.state() != State::Serving {
                stopping = true;
                // With a shorter time if other connections wait for this thread.
                let grace = if self.is_pressed() { KEPT_TIME } else { GRACE };
                connection.deadline = connection.deadline.earlier(now.after(grace));
            }
            if connection.transport.is_evicted() {
                connection.end(Ending::Load);
                return false;
            }
            let mut left = connection.deadline.since(now);
            let is_full = !stopping && self.is_full();
            self.keep_up();
            self.context.config.switch_to(connection.snapshot_id);
            // The thread waits for the end of that time only if a new connection waits for a
            // thread. A timer of a millisecond, shorter than the kernel's next tick, is set in
            // hardware and cancelled when the request arrives: with it a request cost 1.5 times as
            // much (docs/measurements/schedulers.md, "A timer of a millisecond").
            let watches_new = is_full && (gives_way_at.has_come(now) || !self.is_crowded(now));
            if is_full && !watches_new {
                left = left.min(gives_way_at.since(now));
            } else if !stopping {
                left = left.min(CHECK_INTERVAL);
            }
            match self.await_event(&connection.transport, stopping, watches_new, left) {
                Some(WaitEvent::Input) => return true,
                // If a different thread is free now, that thread serves the new connection.
                Some(WaitEvent::NewConnection)
                    if gives_way_at.has_come(now) && self.is_full() && self.give_way() =>
                {
                    connection.end(Ending::Load);
                    return false;
                }
                Some(WaitEvent::NewConnection) | None => {}
            }
            now = self.context.clock.turn();
        }
        connection.end(match connection.phase {
            _ if stopping => Ending::Drain,
            Phase::Idle => Ending::Idle,
            _ => Ending::Timeout,
        });
        false
    }

    /// Waits for the client, for a stop unless it has begun, and for new connections if
    /// `watches_new`.
    fn await_event(
        &mut self,
        transport: &Blocking,
        stopping: bool,
        watches_new: bool,
        left: Duration,
    ) -> Option<WaitEvent> {
        let bell = self.server.stop_bell();
        // Each wait for a request uses this code, so it does not allocate.
        let mut polled = reuse_allocation(take(&mut self.polled));
        polled.push(PollFd::new(transport, PollFlags::IN));
        if watches_new {
            polled.extend(self.queue.map(|queue| PollFd::new(queue, PollFlags::IN)));
            // At the limit of connections, no further ones reach the queue.
            if self.queue.is_none() || !self.server.census.has_room() {
                polled.extend(self.acceptor.listener_polls());
            }
        }
        let listeners_end = polled.len();
        // The bell stays readable after a stop.
        if !stopping {
            polled.push(PollFd::new(&bell, PollFlags::IN));
        }
        let left = Timespec::try_from(left).ok();
        // The result is not needed: after an interruption too, the descriptors have the events.
        let _ = poll(&mut polled, left.as_ref());
        let is_ready = |each: &PollFd<'_>| !each.revents().is_empty();
        let (has_input, has_new) =
            (is_ready(&polled[0]), polled[1..listeners_end].iter().any(is_ready));
        self.polled = reuse_allocation(polled);
        if watches_new {
            self.crowded_until = has_new.then(|| self.context.clock.now().after(CHECK_INTERVAL));
        }
        if has_input {
            return Some(WaitEvent::Input);
        }
        has_new.then_some(WaitEvent::NewConnection)
    }

    /// Switches to the newest settings, if they have changed.
    pub(crate) fn keep_up(&mut self) {
        self.acceptor.apply_new_settings();
        self.view.keep_up(self.server, &mut self.context);
    }

    /// Whether a connection waits in the queue that no idle thread will take.
    fn is_pressed(&self) -> bool {
        self.queue.is_some_and(ArrivalQueue::is_pressed)
    }

    /// Whether a connection waits for a thread, as far as this thread knows.
    fn is_crowded(&self, now: Tick) -> bool {
        self.crowded_until.is_some_and(|until| !until.has_come(now))
    }

    fn is_full(&self) -> bool {
        self.scheduler.load() >= 1.0
    }

    /// Accepts a connection that takes this thread next. Also returns true if the new connection
    /// needs the [place](Self::accept_successor) of the current one among all connections; it is
    /// then accepted after that has closed.
    fn give_way(&mut self) -> bool {
        if let Some(queue) = self.queue {
            self.newcomer = queue.take();
            // Below the limit of connections, the accepting thread fills the queue.
            if self.newcomer.is_some() || self.server.census.has_room() {
                return self.newcomer.is_some();
            }
        }
        let Some(turn) = RoomPermit::begin(self.server) else { return false };
        match self.acceptor.try_accept() {
            AcceptOutcome::Accepted(arrival) => self.newcomer = Some(arrival),
            // A different thread may have accepted the pending connection since the wait ended.
            AcceptOutcome::Full | AcceptOutcome::NoRoom if self.acceptor.has_pending() => {
                self.room_permit = Some(turn);
            }
            AcceptOutcome::Full | AcceptOutcome::NoRoom | AcceptOutcome::NonePending => {
                return false;
            }
        }
        true
    }

    /// Accepts the connection for which the previous one gave way.
    fn accept_successor(&mut self) {
        if self.room_permit.is_some()
            && let AcceptOutcome::Accepted(arrival) = self.acceptor.try_accept()
        {
            self.newcomer = Some(arrival);
        }
        self.room_permit = None;
    }

    fn await_handler(&mut self, connection: &mut Connection<Blocking>) -> Next {
        self.context.config.access.flush();
        let (reply, request) = match self.context.deferred_work.take() {
            Some(DeferredWork::Later(reply, request) | DeferredWork::WhileOpen(reply, request)) => {
                (reply, request)
            }
            Some(hold @ DeferredWork::Suspend(..)) => {
                self.context.deferred_work = Some(hold);
                return self.begin_hold(connection);
            }
            _ if connection.hold != NO_HOLD => return self.await_suspended(connection),
            _ => return self.await_writer(connection),
        };
        if stages::park(connection, &mut self.context) == Next::Closed {
            return Next::Closed;
        }
        connection.busy(&mut self.context).handler = self.context.config.responder.last();
        let mut reply = reply;
        loop {
            let flow = connection.busy.as_ref().and_then(|busy| busy.body_flow.clone());
            let awaited = self.await_reply(&mut reply, flow.as_deref());
            self.context.clock.turn();
            self.context.make_current(connection);
            match awaited {
                AwaitedReply::Finished(mut finished) => {
                    return stages::finished(connection, &mut self.context, &mut finished, request);
                }
                AwaitedReply::Late => return stages::expire(connection, &mut self.context),
                AwaitedReply::WantsBody => match stages::request(connection, &mut self.context) {
                    Next::Idle => {}
                    next => return next,
                },
            }
        }
    }

    /// Suspends the response, if the scheduler lends this thread for it.
    fn begin_hold(&mut self, connection: &mut Connection<Blocking>) -> Next {
        if self.wakeup.is_none() {
            match Wakeup::new() {
                Ok(wakeup) => {
                    let wakeup = Arc::new(wakeup);
                    let clock = &self.context.clock;
                    self.context.waiters = self.server.waiters(clock, Arc::clone(&wakeup));
                    self.wakeup = Some(wakeup);
                }
                Err(error) => {
                    log::error(format_args!("no descriptor to wake a suspended response: {error}"));
                    return Next::Closed;
                }
            }
        }
        let next = stages::hold(connection, &mut self.context, 0);
        self.has_lent_thread = connection.hold != NO_HOLD && self.scheduler.begin_hold();
        if connection.hold != NO_HOLD && !self.has_lent_thread {
            // The head of a feed is being sent already, and the connection was not put down.
            if next == Next::Park {
                self.context.make_current(connection);
            }
            return stages::held(connection, &mut self.context, ServeReason::NoThread);
        }
        next
    }

    /// Waits for an event of the suspended response.
    fn await_suspended(&mut self, connection: &mut Connection<Blocking>) -> Next {
        loop {
            let now = self.context.clock.turn();
            let is_stopping = self.server.state() != State::Serving;
            self.context.stopping = is_stopping;
            self.context.make_current(connection);
            if is_stopping || connection.deadline.has_come(now) {
                return stages::expire(connection, &mut self.context);
            }
            let Some(wakeup) = &self.wakeup else { return Next::Closed };
            let stop = self.server.stop_bell();
            let mut polled = [
                PollFd::new(&stop, PollFlags::IN),
                PollFd::new(&**wakeup, PollFlags::IN),
                // Only a close by the client counts: the next request may arrive before this
                // response.
                PollFd::new(&connection.transport, PollFlags::RDHUP),
            ];
            let left = Timespec::try_from(connection.deadline.since(now)).ok();
            // The result is not needed: after an interruption too, the descriptors have the events.
            let _ = poll(&mut polled, left.as_ref());
            if !polled[2].revents().is_empty() {
                return Next::Closed;
            }
            wakeup.clear();
            if wakeup.take_ring() {
                self.context.clock.turn();
                return stages::held(connection, &mut self.context, ServeReason::Room);
            }
            self.context.save_input(connection);
        }
    }

    /// Ends the suspension of the connection's response.
    fn end_hold(&mut self, connection: &mut Connection<Blocking>) {
        if connection.hold != NO_HOLD
            && let Some(waiters) = &mut self.context.waiters
        {
            waiters.forget(std::mem::replace(&mut connection.hold, NO_HOLD));
        }
        if std::mem::take(&mut self.has_lent_thread) {
            self.scheduler.end_hold();
        }
    }

    /// Runs the writer of a reply until there is content to send.
    fn await_writer(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let left = connection.deadline.since(self.context.clock.now());
        let busy = connection.busy(&mut self.context);
        let name = busy.handler;
        let Some(stream) = &mut busy.stream else { return Next::Closed };
        if let Some(writing) = stream.begin(&self.context.clock, &self.context.slowness, name) {
            stream.poll_in_place(writing);
        }
        let background = match self.server.background() {
            Ok(background) => background,
            Err(error) => {
                log::error(format_args!("the async handler {name} cannot run: {error}"));
                return Next::Closed;
            }
        };
        let more = poll_fn(|task| stream.poll(task));
        let awaited = background.block_on(async { tokio::time::timeout(left, more).await });
        self.context.clock.turn();
        self.context.make_current(connection);
        match awaited {
            Ok(()) => Next::Reply,
            Err(_late) => stages::expire(connection, &mut self.context),
        }
    }

    fn failed(&self) -> Finished {
        failure::failed(&self.context.clock, self.context.config.settings.security)
    }

    /// Polls the handler until it replies, exceeds its deadline, or waits for more of the body in
    /// `flow`.
    fn await_reply(&self, reply: &mut ReplyFuture, flow: Option<&BodyFlow>) -> AwaitedReply {
        let limit = self.context.config.settings.timeouts.handler;
        let name = self.context.config.responder.last();
        let _stage = profile::enter_route(Stage::Handler, name);
        let awaited = catch_unwind(AssertUnwindSafe(|| {
            let background = self.server.background()?;
            // The timer must be created inside, in the context of the runtime.
            Ok::<_, io::Error>(background.block_on(async {
                let polled = poll_fn(|task| match reply.as_mut().poll(task) {
                    Poll::Ready(finished) => Poll::Ready(AwaitedReply::Finished(finished)),
                    Poll::Pending if flow.is_some_and(BodyFlow::is_wanted) => {
                        Poll::Ready(AwaitedReply::WantsBody)
                    }
                    Poll::Pending => Poll::Pending,
                });
                tokio::time::timeout(limit, polled).await
            }))
        }));
        match awaited {
            Ok(Ok(Ok(awaited))) => awaited,
            Ok(Ok(Err(_late))) => AwaitedReply::Late,
            Ok(Err(error)) => {
                log::error(format_args!("the async handler {name} cannot run: {error}"));
                AwaitedReply::Finished(self.failed())
            }
            Err(_) => {
                count_panic();
                log::error(format_args!("{name} panicked; its peer got a 500"));
                AwaitedReply::Finished(self.failed())
            }
        }
    }
}

/// An empty list with the allocation of `list`.
fn reuse_allocation<'f>(mut list: Vec<PollFd<'_>>) -> Vec<PollFd<'f>> {
    list.clear();
    // The standard library reuses the allocation.
    list.into_iter().map(|_| unreachable!("it is empty")).collect()
}

#[cfg(test)]
mod tests;
