//! Async handlers as tasks: a handler that awaits becomes a task, which returns its reply to the
//! loop through a list that only this thread uses.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem::take;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bine_log as log;
use bine_profile::{self as profile, Stage};

use crate::address::ClientAddress;
use crate::connection::{Busy, Connection, DeferredWork, NO_HOLD, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::{
    FilePart, Finished, ReceiveBuffer, ReplyFuture, Retained, UpgradeContext, failure, guarded,
    run_upgrade,
};
use crate::http2::{self, ConnectionTerms, IdleConnections};
use crate::memory_stream::StreamQueue;
use crate::next::{Next, ResponseKind};
use crate::scheduling::Placement;
use crate::server::Server;
use crate::slab::Token;
use crate::stages;
use crate::workers::Job;

/// The most results for which the list keeps its memory.
const MAX_KEPT_RESULTS: usize = 64;

/// The results of tasks, and the waker of the loop that waits for them.
#[derive(Default)]
pub(super) struct TaskResults {
    finished: RefCell<Vec<TaskResult>>,
    /// Connections whose handlers have written more of a streamed response.
    more: RefCell<Vec<Token>>,
    /// The number of upgraded connections, which are tasks.
    upgraded: Cell<usize>,
    /// Whether an upgraded connection has ended since the loop last looked.
    has_ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// The streams of connections of HTTP/2, which are tasks, too.
    pub(super) streams: Rc<StreamQueue>,
    /// The connections of HTTP/2 without a stream.
    pub(super) idle_http2: Rc<IdleConnections>,
}

struct TaskResult {
    token: Token,
    finished: Finished,
    request: Option<Box<Retained>>,
}

impl TaskResults {
    /// Whether there are results. If not, the next one wakes `waker`.
    pub(super) fn poll_ready(&self, waker: &Waker) -> bool {
        let is_ready = !self.is_empty() || self.streams.poll_ready(waker);
        if !is_ready {
            self.waker.borrow_mut().get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
        is_ready
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finished.borrow().is_empty()
            && self.more.borrow().is_empty()
            && !self.has_ended.get()
            && self.streams.is_empty()
    }

    /// The number of upgraded connections.
    pub(super) fn upgraded(&self) -> usize {
        self.upgraded.get()
    }

    fn add(&self, result: TaskResult) {
        self.finished.borrow_mut().push(result);
        self.wake();
    }

    fn notify_more(&self, token: Token) {
        self.more.borrow_mut().push(token);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Counts an upgraded connection among the connections of the server until it is dropped.
struct UpgradeGuard {
    task_results: Rc<TaskResults>,
    server: Arc<Server>,
    peer: ClientAddress,
}

impl Drop for UpgradeGuard {
    fn drop(&mut self) {
        self.server.census.leave(self.peer);
        self.task_results.upgraded.set(self.task_results.upgraded.get() - 1);
        self.task_results.has_ended.set(true);
        self.task_results.wake();
    }
}

impl<D: Driver> EventLoop<D> {
    /// Starts what the connection waits for: the task of an async handler or of a streamed
    /// response, a worker that reads a file, or a suspended response.
    pub(super) fn start_task(&mut self, token: Token) {
        match self.context.deferred_work.take() {
            Some(DeferredWork::Later(reply, request)) => {
                self.spawn_handler(token, reply, request, false);
            }
            Some(DeferredWork::WhileOpen(reply, request)) => {
                self.spawn_handler(token, reply, request, true);
            }
            Some(DeferredWork::WarmUp(part)) => self.warm_up(token, part),
            Some(DeferredWork::Work(..)) => self.remove(token),
            Some(hold @ DeferredWork::Suspend(..)) => {
                self.context.deferred_work = Some(hold);
                self.suspend_response(token);
            }
            None => self.await_more(token),
        }
    }

    /// Runs an upgraded connection as a task. The runtime watches its socket from now on.
    pub(super) fn start_upgrade(
        &mut self,
        connection: Connection<D::Transport>,
        mut busy: Box<Busy>,
    ) {
        let Connection { transport, peer, .. } = connection;
        let guard = self.upgrade_guard(peer);
        let upgrade = busy.upgrade.take();
        let received = take(&mut busy.input);
        let name = busy.handler;
        self.context.recycle(busy);
        let space = self.receive_buffer.get_or_insert_with(ReceiveBuffer::new).clone();
        let (Some(upgrade), Ok(wire)) = (upgrade, D::wire(transport, received, space)) else {
            return log::error(format_args!(
                "{name}: the socket of an upgraded connection cannot be watched; it is closed"
            ));
        };
        let terms = UpgradeContext {
            state: self.server.subscribe_state(),
            parting: None,
            clock: Rc::clone(&self.context.clock),
            slowness: Rc::clone(&self.context.slowness),
            name,
        };
        tokio::task::spawn_local(async move {
            let _guard = guard;
            run_upgrade(upgrade, wire, terms).await;
        });
    }

    /// Runs a connection of HTTP/2 as a task. `busy` has the bytes that it has received.
    pub(super) fn start_http2(
        &mut self,
        connection: Connection<D::Transport>,
        busy: Option<Box<Busy>>,
    ) {
        let Connection { transport, peer, .. } = connection;
        let guard = self.upgrade_guard(peer);
        let mut received = Vec::new();
        if let Some(mut busy) = busy {
            received = take(&mut busy.input);
            self.context.recycle(busy);
        }
        let space = self.receive_buffer.get_or_insert_with(ReceiveBuffer::new).clone();
        let Ok(wire) = D::wire(transport, received, space) else {
            return log::error(format_args!(
                "the socket of a connection of HTTP/2 cannot be watched; it is closed"
            ));
        };
        let (server, floods) = (Arc::clone(&self.server), Arc::clone(&self.server.http2_floods));
        let terms = ConnectionTerms {
            queue: Rc::clone(&self.task_results.streams),
            idle: Rc::clone(&self.task_results.idle_http2),
            peer,
            settings: Arc::clone(&self.context.config.settings),
            state: self.server.subscribe_state(),
            is_leaving: Box::new(move || server.is_leaving()),
            floods,
        };
        tokio::task::spawn_local(async move {
            let _guard = guard;
            let mut serve = pin!(http2::serve(wire, terms));
            poll_fn(|task| {
                let _stage = profile::enter_route(Stage::Http2, "");
                serve.as_mut().poll(task)
            })
            .await;
        });
    }

    fn upgrade_guard(&self, peer: ClientAddress) -> UpgradeGuard {
        self.task_results.upgraded.set(self.task_results.upgraded.get() + 1);
        let (task_results, server) = (Rc::clone(&self.task_results), Arc::clone(&self.server));
        UpgradeGuard { task_results, server, peer }
    }

    /// Serves the new streams of connections of HTTP/2, and the events of the others.
    pub(super) fn take_streams(&mut self) {
        let streams = Rc::clone(&self.task_results.streams);
        if streams.is_empty() {
            return;
        }
        for arrival in streams.take_arrivals() {
            self.adopt_stream(arrival);
        }
        let mut events = take(&mut self.stream_events);
        streams.swap_events(&mut events);
        for (token, flags) in events.drain(..) {
            self.on_event(token, flags);
        }
        self.run_cohort();
        self.stream_events = events;
    }

    fn spawn_handler(
        &mut self,
        token: Token,
        reply: ReplyFuture,
        request: Option<Box<Retained>>,
        is_while_open: bool,
    ) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        let is_canceled = is_while_open && connection.hung_up;
        if is_canceled || stages::park(connection, context) == Next::Closed {
            return self.remove(token);
        }
        let task_results = Rc::clone(&self.task_results);
        let clock = Rc::clone(&context.clock);
        let slowness = Rc::clone(&context.slowness);
        let name = context.config.responder.last();
        let _stage = profile::enter_route(Stage::Handler, name);
        let security = context.config.settings.security;
        let task = tokio::task::spawn_local(async move {
            let finished = guarded(reply, &clock, &slowness, name).await.unwrap_or_else(|| {
                log::error(format_args!("{name} panicked; its peer got a 500"));
                failure::failed(&clock, security)
            });
            let _stage = profile::enter_route(Stage::Handler, name);
            task_results.add(TaskResult { token, finished, request });
        });
        let busy = connection.busy(context);
        (busy.task, busy.is_while_open) = (Some(task.abort_handle()), is_while_open);
        busy.handler = name;
        let Some(flow) = &busy.body_flow else { return self.await_event(token) };
        let task_results = Rc::clone(&self.task_results);
        flow.notify_room(move || task_results.notify_more(token));
        self.receive_more(token);
    }

    /// Receives more of a body that its handler takes in pieces, and sends unsent bytes of earlier
    /// replies.
    pub(super) fn receive_more(&mut self, token: Token) {
        self.push(token);
        let Some(entry) = self.slab.get(token) else { return };
        // No cohort: those of this turn have run already.
        self.context.make_current(&mut entry.connection);
        self.advance(token, Next::Request);
    }

    /// Waits for more output of the handler, after all earlier output was sent. The first call
    /// starts the task that writes a streamed response.
    fn await_more(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if connection.hold != NO_HOLD {
            // The client may have half-closed the connection together with its request, or during a
            // send. No event reports that again.
            if connection.phase == Phase::Held && connection.hung_up {
                return self.remove(token);
            }
            return self.await_event(token);
        }
        let context = &mut self.context;
        let busy = connection.busy(context);
        let name = busy.handler;
        let Some(stream) = &mut busy.stream else { return self.remove(token) };
        if let Some(writing) = stream.begin(&context.clock, &context.slowness, name) {
            stream.set_task(tokio::task::spawn_local(writing).abort_handle());
        }
        let task_results = Rc::clone(&self.task_results);
        if stream.flow.await_more(move || task_results.notify_more(token)) {
            self.task_results.notify_more(token);
        }
        self.await_event(token);
    }

    /// Has a worker read the next part of a file into the page cache, while the connection waits.
    fn warm_up(&mut self, token: Token, part: FilePart) {
        let waits = match self.scheduler.stage(Next::Response(ResponseKind::Dynamic)) {
            Placement::Spawn => self.spawn(Job::WarmUp(part), token, Duration::MAX).is_ok(),
            Placement::SameThread | Placement::Batched => false,
        };
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if !waits {
            // The scheduler has no workers, or their queue is full: this loop waits for the disk.
            connection.busy(&mut self.context).warms_up = false;
            connection.wants_turn = true;
        }
        self.await_event(token);
    }

    /// Continues a connection when the part of the file that it waits for is in the page cache.
    pub(super) fn on_warm(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let Some(busy) = &mut connection.busy else { return };
        if std::mem::take(&mut busy.warms_up) && connection.phase == Phase::Writing {
            self.drive(token, Next::Reply);
        }
    }

    /// Continues the connections whose tasks have produced output or a reply.
    pub(super) fn take_task_results(&mut self) {
        if self.task_results.is_empty() {
            return;
        }
        self.task_results.has_ended.set(false);
        let more = std::mem::take(&mut *self.task_results.more.borrow_mut());
        for token in more {
            let Some(entry) = self.slab.get(token) else { continue };
            match entry.connection.phase {
                Phase::Streaming => self.drive(token, Next::Reply),
                Phase::Handler if entry.connection.is_receiving() => self.receive_more(token),
                _ => {}
            }
        }
        let mut results = std::mem::take(&mut *self.task_results.finished.borrow_mut());
        for TaskResult { token, mut finished, request } in results.drain(..) {
            self.deliver(token, &mut finished, request);
            self.keep_buffer(finished.bytes);
        }
        // A list grows to four results at its first one, which are 4 KiB.
        let mut next = self.task_results.finished.borrow_mut();
        if next.capacity() == 0 && results.capacity() <= MAX_KEPT_RESULTS {
            *next = results;
        }
    }
}
