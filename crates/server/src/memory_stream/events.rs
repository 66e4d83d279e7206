//! The events of the memory streams of one thread, until its loop reads them.

use std::cell::RefCell;
use std::task::Waker;

use rustix::event::epoll::EventFlags;

use crate::slab::Token;

/// What has happened at the servers' ends. Only one thread uses it.
#[derive(Default)]
pub(super) struct StreamEvents {
    events: RefCell<Vec<(Token, EventFlags)>>,
    waker: RefCell<Option<Waker>>,
}

impl StreamEvents {
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

    /// Exchanges the list of events for `empty`, so that no turn allocates one.
    pub(super) fn swap(&self, empty: &mut Vec<(Token, EventFlags)>) {
        std::mem::swap(&mut *self.events.borrow_mut(), empty);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.borrow().is_empty()
    }

    /// The next call of [`wake`](Self::wake) wakes `waker`.
    pub(super) fn set_waker(&self, waker: &Waker) {
        self.waker.borrow_mut().get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Wakes the loop.
    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
