//! What the event loop learns about the memory streams of its thread.

use std::cell::{Cell, RefCell};
use std::mem::take;
use std::task::Waker;

use rustix::event::epoll::EventFlags;

use crate::address::ClientAddress;
use crate::memory_stream::pipe::MemoryTransport;
use crate::slab::Token;

/// New streams, and events of existing ones, until the loop reads them. Only one thread uses it.
#[derive(Default)]
pub(crate) struct StreamQueue {
    arrivals: RefCell<Vec<Arrival>>,
    events: RefCell<Vec<(Token, EventFlags)>>,
    waker: RefCell<Option<Waker>>,
    is_over: Cell<bool>,
}

/// A stream that the loop does not serve yet.
pub(crate) struct Arrival {
    pub(crate) transport: MemoryTransport,
    pub(crate) peer: ClientAddress,
}

impl StreamQueue {
    /// Gives the loop a new stream. After the end of the loop, it drops the stream.
    pub(crate) fn arrive(&self, arrival: Arrival) {
        if !self.is_over.get() {
            self.arrivals.borrow_mut().push(arrival);
            self.wake();
        }
    }

    /// Reports events of the stream with this token. A loop that has removed the stream ignores
    /// them.
    pub(super) fn report(&self, token: Token, flags: EventFlags) {
        let mut events = self.events.borrow_mut();
        match events.last_mut() {
            Some((last, reported)) if *last == token => *reported |= flags,
            _ => events.push((token, flags)),
        }
        drop(events);
        self.wake();
    }

    pub(crate) fn take_arrivals(&self) -> Vec<Arrival> {
        take(&mut *self.arrivals.borrow_mut())
    }

    /// Exchanges the list of events for `empty`, so that no turn allocates one.
    pub(crate) fn swap_events(&self, empty: &mut Vec<(Token, EventFlags)>) {
        std::mem::swap(&mut *self.events.borrow_mut(), empty);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.borrow().is_empty() && self.events.borrow().is_empty()
    }

    /// Whether the loop has something to read. If not, the next arrival or event wakes `waker`.
    pub(crate) fn poll_ready(&self, waker: &Waker) -> bool {
        let is_ready = !self.is_empty();
        if !is_ready {
            self.waker.borrow_mut().get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
        is_ready
    }

    /// Drops the streams that the loop has not served, and all that arrive later.
    pub(crate) fn end(&self) {
        self.is_over.set(true);
        drop(self.take_arrivals());
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
