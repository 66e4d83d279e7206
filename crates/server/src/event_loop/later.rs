//! Decides what becomes of a handler that awaits: a task of its own, whose reply comes back to the
//! loop through a list that only this thread touches.

use std::cell::{Cell, RefCell};
use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bine_log as log;

use crate::address::Peer;
use crate::connection::{Busy, Connection, Errand, NO_HOLD, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::{
    FilePart, Finished, LaterReply, ReceiveBuffer, Retained, UpgradeContext, failure, guarded,
    run_upgrade,
};
use crate::next::{Kind, Next};
use crate::scheduling::Place;
use crate::server::Server;
use crate::slab::Token;
use crate::stages;
use crate::workers::Job;

/// What tasks have brought back, and the loop that sleeps until something is there.
#[derive(Default)]
pub(super) struct Returns {
    finished: RefCell<Vec<Return>>,
    /// Connections whose handlers have written more.
    more: RefCell<Vec<Token>>,
    /// Connections that have left and live on as tasks.
    departed: Cell<usize>,
    /// One of them has ended.
    has_ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

struct Return {
    token: Token,
    finished: Finished,
    request: Option<Box<Retained>>,
}

impl Returns {
    /// True when something is waiting; else `waker` is woken by the next.
    pub(super) fn is_waiting(&self, waker: &Waker) -> bool {
        let waiting = !self.is_empty();
        if !waiting {
            self.waker.borrow_mut().get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
        waiting
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finished.borrow().is_empty() && self.more.borrow().is_empty() && !self.has_ended.get()
    }

    /// How many connections live on as tasks.
    pub(super) fn departed(&self) -> usize {
        self.departed.get()
    }

    fn bring(&self, returned: Return) {
        self.finished.borrow_mut().push(returned);
        self.wake();
    }

    fn tell_of_more(&self, token: Token) {
        self.more.borrow_mut().push(token);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A connection that lives on as a task: it counts among the server's to its end.
struct Departed {
    returns: Rc<Returns>,
    server: Arc<Server>,
    peer: Peer,
}

impl Drop for Departed {
    fn drop(&mut self) {
        self.server.census.leave(self.peer);
        self.returns.departed.set(self.returns.departed.get() - 1);
        self.returns.has_ended.set(true);
        self.returns.wake();
    }
}

impl<D: Driver> EventLoop<D> {
    /// A handler awaits, or writes its reply while it is sent: it becomes a task, and its
    /// connection waits for it.
    pub(super) fn start_task(&mut self, token: Token) {
        match self.context.deferred_work.take() {
            Some(Errand::Later(reply, request)) => self.start_later(token, reply, request, false),
            Some(Errand::WhileOpen(reply, request)) => {
                self.start_later(token, reply, request, true);
            }
            Some(Errand::WarmUp(part)) => self.warm_up(token, part),
            Some(Errand::Work(..)) => self.remove(token),
            Some(hold @ Errand::Hold(..)) => {
                self.context.deferred_work = Some(hold);
                self.park(token);
            }
            None => self.await_more(token),
        }
    }

    /// The connection is taken over: from here on the runtime watches its socket.
    pub(super) fn start_life(&mut self, connection: Connection<D::Transport>, mut busy: Box<Busy>) {
        let Connection { transport, peer, .. } = connection;
        self.returns.departed.set(self.returns.departed.get() + 1);
        let (returns, server) = (Rc::clone(&self.returns), Arc::clone(&self.server));
        let departed = Departed { returns, server, peer };
        let (upgrade, received, name) = (busy.upgrade.take(), take(&mut busy.input), busy.handler);
        self.context.recycle(busy);
        let space = self.space.get_or_insert_with(ReceiveBuffer::new).clone();
        let (Some(upgrade), Ok(wire)) = (upgrade, D::wire(transport, received, space)) else {
            return log::error(format_args!("the socket of an upgrade cannot be watched"));
        };
        let terms = UpgradeContext {
            state: self.server.subscribe_state(),
            parting: None,
            clock: Rc::clone(&self.context.clock),
            slowness: Rc::clone(&self.context.slowness),
            name,
        };
        tokio::task::spawn_local(async move {
            let _departed = departed;
            run_upgrade(upgrade, wire, terms).await;
        });
    }

    fn start_later(
        &mut self,
        token: Token,
        reply: LaterReply,
        request: Option<Box<Retained>>,
        is_while_open: bool,
    ) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        let has_left = is_while_open && connection.hung_up;
        if has_left || stages::park(connection, context) == Next::Closed {
            return self.remove(token);
        }
        let returns = Rc::clone(&self.returns);
        let clock = Rc::clone(&context.clock);
        let slowness = Rc::clone(&context.slowness);
        let name = context.config.responder.last();
        let security = context.config.settings.security;
        let task = tokio::task::spawn_local(async move {
            let finished = guarded(reply, &clock, &slowness, name).await.unwrap_or_else(|| {
                log::error(format_args!("{name} panicked; its peer got a 500"));
                failure::failed(&clock, security)
            });
            returns.bring(Return { token, finished, request });
        });
        let busy = connection.busy(context);
        (busy.task, busy.is_while_open) = (Some(task.abort_handle()), is_while_open);
        busy.handler = name;
        self.settle(token);
    }

    /// All that the handler has written has left. The first time, its writer begins.
    fn await_more(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if connection.hold != NO_HOLD {
            // Its end may have come with the request, or while something was sent: no event tells of it again.
            if connection.phase == Phase::Held && connection.hung_up {
                return self.remove(token);
            }
            return self.settle(token);
        }
        let context = &mut self.context;
        let busy = connection.busy(context);
        let name = busy.handler;
        let Some(stream) = &mut busy.stream else { return self.remove(token) };
        if let Some(writing) = stream.begin(&context.clock, &context.slowness, name) {
            stream.set_task(tokio::task::spawn_local(writing).abort_handle());
        }
        let returns = Rc::clone(&self.returns);
        if stream.flow.await_more(move || returns.tell_of_more(token)) {
            self.returns.tell_of_more(token);
        }
        self.settle(token);
    }

    /// A worker waits for the disk; the connection waits for the worker.
    fn warm_up(&mut self, token: Token, part: FilePart) {
        let waits = match self.scheduler.stage(Next::Response(Kind::Dynamic)) {
            Place::Elsewhere => self.spawn(Job::WarmUp(part), token, Duration::MAX).is_ok(),
            Place::Here | Place::Gathered => false,
        };
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if !waits {
            // There are no workers, or all are busy and many wait: this loop waits for the disk.
            connection.busy(&mut self.context).warms_up = false;
            connection.wants_turn = true;
        }
        self.settle(token);
    }

    /// The part of a file that a connection waits for is in memory.
    pub(super) fn on_warm(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let Some(busy) = &mut connection.busy else { return };
        if std::mem::take(&mut busy.warms_up) && connection.phase == Phase::Writing {
            self.drive(token, Next::Reply);
        }
    }

    pub(super) fn take_returns(&mut self) {
        if self.returns.is_empty() {
            return;
        }
        self.returns.has_ended.set(false);
        let more = std::mem::take(&mut *self.returns.more.borrow_mut());
        for token in more {
            let entry = self.slab.get(token);
            if entry.is_some_and(|entry| entry.connection.phase == Phase::Streaming) {
                self.drive(token, Next::Reply);
            }
        }
        let returned = std::mem::take(&mut *self.returns.finished.borrow_mut());
        for Return { token, mut finished, request } in returned {
            self.deliver(token, &mut finished, request);
            self.keep_buffer(finished.bytes);
        }
    }
}
