//! Decides what becomes of a handler that awaits: a task of its own, whose reply comes back to the
//! loop through a list that only this thread touches.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::clock::Clock;
use crate::connection::Errand;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::{Finished, LaterReply, Retained};
use crate::log;
use crate::slab::Token;
use crate::slowness::Slowness;
use crate::stages::{self, Next};

/// Replies that tasks have brought back, and the loop that sleeps until one is there.
#[derive(Default)]
pub(super) struct Returns {
    finished: RefCell<Vec<Return>>,
    waker: RefCell<Option<Waker>>,
}

struct Return {
    token: Token,
    finished: Finished,
    request: Option<Box<Retained>>,
}

impl Returns {
    /// True when a reply is waiting; else `waker` is woken by the next.
    pub(super) fn is_waiting(&self, waker: &Waker) -> bool {
        let waiting = !self.finished.borrow().is_empty();
        if !waiting {
            self.waker.borrow_mut().get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
        waiting
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finished.borrow().is_empty()
    }

    fn bring(&self, returned: Return) {
        self.finished.borrow_mut().push(returned);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl EventLoop {
    /// The handler awaits: it becomes a task, and its connection waits for it.
    pub(super) fn start_later(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        let Some(Errand::Later(reply, request)) = context.errand.take() else {
            return self.remove(token);
        };
        if stages::park(connection, context) == Next::Closed {
            return self.remove(token);
        }
        let returns = Rc::clone(&self.returns);
        let clock = Rc::clone(&context.clock);
        let slowness = Rc::clone(&context.slowness);
        let name = context.responder.last();
        let task = tokio::task::spawn_local(async move {
            let finished = watched(reply, &clock, &slowness, name).await;
            returns.bring(Return { token, finished, request });
        });
        let busy = connection.busy(context);
        busy.task = Some(task.abort_handle());
        busy.handler = name;
        self.settle(token);
    }

    pub(super) fn take_returns(&mut self) {
        if self.returns.is_empty() {
            return;
        }
        let returned = std::mem::take(&mut *self.returns.finished.borrow_mut());
        for Return { token, mut finished, request } in returned {
            self.deliver(token, &mut finished, request.as_deref());
            if let Some(request) = request {
                self.context.retained.put(request);
            }
            self.keep_buffer(finished.bytes);
        }
    }
}

/// `reply`, with its panics turned into 500s and its slow polls named.
async fn watched(
    mut reply: LaterReply,
    clock: &Clock,
    slowness: &Slowness,
    name: &'static str,
) -> Finished {
    poll_fn(|task| {
        let began = clock.glance();
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::as_mut(&mut reply).poll(task)));
        slowness.look(clock, began, name);
        polled.unwrap_or_else(|_| {
            log::error(format_args!("{name} panicked; its peer got a 500"));
            Poll::Ready(stages::failed(clock))
        })
    })
    .await
}
