//! Wakes the tasks that follow a channel when it gets a message.
//!
//! Each event loop delivers messages to its suspended responses. A task reads messages itself and
//! only needs a wake-up; it may run on any thread. Therefore all tasks wait in one table under its
//! own lock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bine_push::{AfterDelivery, Hub, WaiterKey, WaiterLimits, Waiters};

/// Tasks and threads that wait for messages.
#[derive(Default)]
pub(super) struct AsyncWaiters(Mutex<WaiterTable>);

#[derive(Default)]
pub(super) struct WaiterTable {
    /// Created when the first task waits.
    pub(super) waiters: Option<Waiters>,
    /// The ring position up to which all waiting tasks were notified.
    pub(super) notified: u64,
    pub(super) all: Vec<WaiterSlot>,
    pub(super) vacant: Vec<usize>,
}

/// The state of one registration.
#[derive(Default)]
pub(super) struct WaiterSlot {
    /// The key in `waiters` while it waits.
    pub(super) key: Option<WaiterKey>,
    pub(super) waker: Option<Waker>,
}

/// The state of the ring and the hub when a reader found no messages.
#[derive(Clone, Copy)]
pub(super) struct RingPosition {
    pub(super) ring: u64,
    pub(super) epoch: u32,
}

/// The outcome of a request to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitOutcome {
    /// The task is registered and will be woken.
    Registered,
    /// Something was published since; the task must read again.
    Stale,
    /// The table is full.
    Full,
}

/// Limits for waiting tasks, and for the sum of their channels.
pub(super) const WAITER_LIMITS: WaiterLimits =
    WaiterLimits { waiters: 1 << 20, subscriptions: 1 << 22 };

/// Access to the hub while it runs.
pub(super) trait HubAccess {
    fn hub<T>(&self, look: impl FnOnce(&mut Hub) -> T) -> Option<T>;
}

impl AsyncWaiters {
    /// Wakes the tasks that the events in the hub's ring concern.
    pub(super) fn notify(&self, engine: &impl HubAccess) {
        let mut woken = Vec::new();
        let mut table = self.table();
        let WaiterTable { waiters, notified, all, .. } = &mut *table;
        let Some(crowd) = waiters.as_mut().filter(|crowd| !crowd.is_empty()) else {
            *waiters = None;
            // A reader that read before this position must read again before it waits.
            *notified = engine.hub(|hub| hub.ring().position()).unwrap_or(*notified);
            return;
        };
        loop {
            let _ = engine.hub(|hub| crowd.receive(hub.ring()));
            crowd.advance(usize::MAX, |delivery| {
                let slot = &mut all[delivery.token as usize];
                slot.key = None;
                woken.extend(slot.waker.take());
                AfterDelivery::Remove
            });
            match engine.hub(|hub| (crowd.is_behind(hub.ring()), hub.ring().position())) {
                Some((true, _)) => {}
                Some((false, position)) => break *notified = position,
                None => break,
            }
        }
        drop(table);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all tasks, to check whether their grants still hold.
    pub(super) fn wake_all(&self) {
        let woken: Vec<Waker> =
            self.table().all.iter().filter_map(|slot| slot.waker.clone()).collect();
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all tasks because the channels end.
    pub(super) fn end(&self) {
        let mut table = self.table();
        table.waiters = None;
        let woken: Vec<Waker> = table
            .all
            .iter_mut()
            .filter_map(|slot| {
                slot.key = None;
                slot.waker.take()
            })
            .collect();
        drop(table);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(super) fn table(&self) -> MutexGuard<'_, WaiterTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaiterTable {
    pub(super) fn cancel(&mut self, number: usize) {
        let slot = std::mem::take(&mut self.all[number]);
        if let (Some(waiters), Some(key)) = (&mut self.waiters, slot.key) {
            waiters.cancel(key);
        }
    }
}
