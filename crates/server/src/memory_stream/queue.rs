//! What the event loop learns about the memory streams of its thread.

use std::cell::{Cell, RefCell};
use std::mem::take;
use std::rc::Rc;
use std::task::Waker;

use rustix::event::epoll::EventFlags;

use crate::address::ClientAddress;
use crate::memory_stream::events::StreamEvents;
use crate::memory_stream::pipe::{ClientEnd, MemoryTransport, stream};
use crate::slab::Token;

/// New streams, and events of existing ones, until the loop reads them. Only one thread uses it.
#[derive(Default)]
pub(crate) struct StreamQueue {
    arrivals: RefCell<Vec<StreamArrival>>,
    events: Rc<StreamEvents>,
    is_over: Cell<bool>,
}

/// A stream that the loop does not serve yet.
pub(crate) struct StreamArrival {
    pub(crate) transport: MemoryTransport,
    pub(crate) peer: ClientAddress,
}

impl StreamQueue {
    /// Opens a stream of the client `peer` with these first bytes, and gives its server's end to the
    /// loop. After the end of the loop, that end is closed.
    pub(crate) fn open(&self, first: Vec<u8>, peer: ClientAddress) -> ClientEnd {
        let (end, transport) = stream(&self.events, first);
        if !self.is_over.get() {
            self.arrivals.borrow_mut().push(StreamArrival { transport, peer });
            self.events.wake();
        }
        end
    }

    pub(crate) fn take_arrivals(&self) -> Vec<StreamArrival> {
        take(&mut *self.arrivals.borrow_mut())
    }

    /// Exchanges the list of events for `empty`, so that no turn allocates one.
    pub(crate) fn swap_events(&self, empty: &mut Vec<(Token, EventFlags)>) {
        self.events.swap(empty);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.borrow().is_empty() && self.events.is_empty()
    }

    /// Whether the loop has something to read. If not, the next arrival or event wakes `waker`.
    pub(crate) fn poll_ready(&self, waker: &Waker) -> bool {
        let is_ready = !self.is_empty();
        if !is_ready {
            self.events.set_waker(waker);
        }
        is_ready
    }

    /// Drops the streams that the loop has not served, and all that arrive later.
    pub(crate) fn end(&self) {
        self.is_over.set(true);
        drop(self.take_arrivals());
    }
}
