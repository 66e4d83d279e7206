//! One task or thread that waits for messages.

use std::sync::Arc;
use std::task::Waker;

use bine_push::{View, WaitKind, WaitOptions, WaitPoint, Waiters};

use super::async_waiters::{RingPosition, WAITER_LIMITS, WaitOutcome, WaiterSlot, WaiterTable};
use super::engine::Engine;

/// A registration among the waiting tasks. Dropping it removes the registration.
pub(super) struct AsyncWaiter {
    pub(super) engine: Arc<Engine>,
    number: usize,
}

impl AsyncWaiter {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let mut table = engine.async_waiters.table();
        let number = table.vacant.pop().unwrap_or(table.all.len());
        if number == table.all.len() {
            table.all.push(WaiterSlot::default());
        }
        drop(table);
        Self { engine, number }
    }

    /// Whether it still waits. If so, `waker` replaces the registered waker.
    pub(super) fn is_waiting(&self, waker: &Waker) -> bool {
        let mut table = self.engine.async_waiters.table();
        let slot = &mut table.all[self.number];
        if slot.key.is_some() {
            slot.waker = Some(waker.clone());
        }
        slot.key.is_some()
    }

    /// Waits for messages after `wait_point`, up to which the reader has read at that `moment`.
    pub(super) fn wait(
        &self,
        wait_point: &WaitPoint,
        moment: RingPosition,
        waker: &Waker,
    ) -> WaitOutcome {
        let mut table = self.engine.async_waiters.table();
        let WaiterTable { waiters, notified, all, .. } = &mut *table;
        if self.engine.is_over() {
            return WaitOutcome::Stale;
        }
        if *notified > moment.ring {
            return WaitOutcome::Stale;
        }
        let waiters = waiters.get_or_insert_with(|| {
            *notified = moment.ring;
            Waiters::new(moment.epoch, WAITER_LIMITS, moment.ring)
        });
        // The woken task reads the messages itself, so the cheapest view to encode is enough.
        let wait = WaitOptions { view: View::Raw, kind: WaitKind::Poll };
        let Ok(key) = waiters.park(self.number as u64, wait_point, wait) else {
            return WaitOutcome::Full;
        };
        all[self.number] = WaiterSlot { key: Some(key), waker: Some(waker.clone()) };
        WaitOutcome::Registered
    }

    /// Stops waiting, without a wake-up.
    pub(super) fn cancel(&self) {
        self.engine.async_waiters.table().cancel(self.number);
    }
}

impl Drop for AsyncWaiter {
    fn drop(&mut self) {
        let mut table = self.engine.async_waiters.table();
        table.cancel(self.number);
        table.vacant.push(self.number);
        if table.vacant.len() == table.all.len() {
            // Frees the memory of a peak when the table is empty.
            *table = WaiterTable::default();
        }
    }
}
