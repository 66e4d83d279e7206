//! What the task of a connection and the exchanges of its streams share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::address::ClientAddress;
use crate::http2::flood::FloodBudget;
use crate::http2::send_order::SendOrder;
use crate::memory_stream::StreamQueue;
use crate::settings::Settings;

/// The shared state of one connection.
pub(super) struct Link {
    pub(super) queue: Rc<StreamQueue>,
    pub(super) peer: ClientAddress,
    pub(super) settings: Arc<Settings>,
    pub(super) order: SendOrder,
    /// Since when the client has not read what the server sends.
    pub(super) blocked_since: Cell<Option<Instant>>,
    began: Instant,
    flood: RefCell<FloodBudget>,
    resets: RefCell<ResetBudget>,
    is_hostile: Cell<bool>,
    /// The number of streams that are not complete.
    open: Cell<usize>,
    /// Wakes the task of the connection.
    waker: RefCell<Option<Waker>>,
}

/// An open stream, until it is dropped.
pub(super) struct OpenStream(Rc<Link>);

impl Link {
    pub(super) fn new(
        queue: Rc<StreamQueue>,
        peer: ClientAddress,
        settings: Arc<Settings>,
    ) -> Self {
        Self {
            queue,
            peer,
            settings,
            order: SendOrder::default(),
            blocked_since: Cell::new(None),
            began: Instant::now(),
            flood: RefCell::new(FloodBudget::new()),
            resets: RefCell::new(ResetBudget::new()),
            is_hostile: Cell::new(false),
            open: Cell::new(0),
            waker: RefCell::new(None),
        }
    }

    pub(super) fn open(self: &Rc<Self>) -> OpenStream {
        self.open.set(self.open.get() + 1);
        OpenStream(Rc::clone(self))
    }

    /// The number of streams that are not complete.
    pub(super) fn open_streams(&self) -> usize {
        self.open.get()
    }

    /// Whether the client does what only attacks do, so that the connection is to be closed.
    pub(super) fn is_hostile(&self) -> bool {
        self.is_hostile.get()
    }

    /// The client has sent `count` frames that advance no request.
    pub(super) fn note_idle_frames(&self, count: u32) {
        if count > 0 && !self.flood.borrow_mut().spend(count, self.began.elapsed()) {
            self.is_hostile.set(true);
        }
    }

    /// The client has been sent `bytes` of content.
    pub(super) fn note_sent(&self, bytes: usize) {
        self.flood.borrow_mut().note_sent(bytes);
    }

    /// The client has reset a stream before its response was complete.
    pub(super) fn note_reset(&self) {
        if !self.resets.borrow_mut().spend(self.began.elapsed()) {
            self.is_hostile.set(true);
            self.wake();
        }
    }

    /// Wakes `task` when the connection is to be looked at.
    pub(super) fn set_waker(&self, task: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        waker.get_or_insert_with(|| task.waker().clone()).clone_from(task.waker());
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl OpenStream {
    pub(super) fn link(&self) -> &Link {
        &self.0
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        if self.0.open.get() == 0 {
            self.0.wake();
        }
    }
}

/// Resets before the end of a response: each has cost the server a request (CVE-2023-44487).
struct ResetBudget {
    left: u32,
    refilled: Duration,
}

/// A browser that leaves a page resets all its streams, at most [as many](super::connection) as it
/// may open.
const RESET_BURST: u32 = 200;
/// The time in which the budget earns one reset.
const RESET_EVERY: Duration = Duration::from_millis(100);

impl ResetBudget {
    const fn new() -> Self {
        Self { left: RESET_BURST, refilled: Duration::ZERO }
    }

    /// Takes one reset at `now`, the time since the begin of the connection. Returns false if none
    /// is left.
    fn spend(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.refilled);
        let earned = elapsed.as_millis() / RESET_EVERY.as_millis();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        if earned > 0 {
            self.refilled = now;
            self.left = self.left.saturating_add(earned).min(RESET_BURST);
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_resets_over_time() {
        let mut budget = ResetBudget::new();
        let mut now = Duration::ZERO;
        assert!((0..RESET_BURST).all(|_| budget.spend(now)));
        assert!(!budget.spend(now));
        now += RESET_EVERY;
        assert!(budget.spend(now) && !budget.spend(now));
        now += Duration::from_hours(48);
        assert!((0..RESET_BURST).all(|_| budget.spend(now)));
        assert!(!budget.spend(now), "a rest earns one burst");
    }
}
