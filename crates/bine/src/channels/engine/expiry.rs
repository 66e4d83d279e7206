//! The thread that expires messages, channels and presence.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bine_push::Hub;

use super::{CheckedCommand, Engine, MAX_EXPIRED};
use crate::channels::clock::now;

/// The maximum time between two checks for expired messages and channels.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The time in milliseconds that each node has to expire channels before the next one does. Longer than
/// a record takes.
const TURN: u64 = 2000;
/// Nodes that expire channels in turn; all further ones have the last turn.
const MAX_TURNS: u64 = 5;

impl Engine {
    /// Expires messages, channels and presence until the channels end.
    pub(super) fn run_expiry(self: &Arc<Self>) {
        while !self.is_over() {
            if self.have_rights_changed.swap(false, Ordering::AcqRel)
                && self.parties.end_lost_rights()
            {
                self.async_waiters.wake_all();
                self.ring_bells();
            }
            let is_due = |hub: &mut Hub| hub.next_due().is_some_and(|time| time <= now());
            let Some(is_due) = self.hub(is_due) else { return };
            let patience = if is_due { self.patience() } else { 0 };
            let due =
                self.hub(|hub| (hub.expire_after(now(), patience, MAX_EXPIRED), hub.next_due()));
            let Some((prepared, next)) = due else { return };
            if let Some(prepared) = prepared {
                // The store already logs a failing disk; the next check tries again.
                let _ = self.journal(CheckedCommand::expired(prepared)).wait();
            }
            let next = next
                .into_iter()
                .chain(self.presence_tracker.expire(|command| drop(self.execute(command))))
                .min();
            let wait = next
                .map_or(CHECK_INTERVAL, |next| Duration::from_millis(next.saturating_sub(now())));
            let state = self.state();
            let have_rights_changed = self.have_rights_changed.load(Ordering::Acquire);
            if !self.is_over() && !have_rights_changed && !self.presence_tracker.take_check() {
                let wait = wait.clamp(Duration::from_millis(10), CHECK_INTERVAL);
                drop(self.alarm.wait_timeout(state, wait));
            }
        }
    }

    /// How many milliseconds this node leaves expired channels to the nodes whose names precede its own:
    /// the first of them writes the record for all. If it has ended, the next one does.
    fn patience(&self) -> u64 {
        let Some(nodes) = self.nodes.get() else { return 0 };
        // A node that is cut off writes nothing.
        let (Some(own), Some(names)) = (nodes.own_name(), nodes.names()) else { return 0 };
        let before = names.iter().filter(|name| ***name < *own).count() as u64;
        before.min(MAX_TURNS) * TURN
    }

    /// Makes the expiry thread check at once. The caller must not hold the state's lock.
    pub(in crate::channels) fn request_expiry(&self) {
        drop(self.state());
        self.alarm.notify_all();
    }
}
