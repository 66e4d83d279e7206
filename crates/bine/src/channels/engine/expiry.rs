//! The thread that expires messages, channels and presence.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{CheckedCommand, Engine, MAX_EXPIRED};
use crate::channels::clock::now;

/// The maximum time between two checks for expired messages and channels.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

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
            let due = self.hub(|hub| (hub.expire(now(), MAX_EXPIRED), hub.next_due()));
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

    /// Makes the expiry thread check at once. The caller must not hold the state's lock.
    pub(in crate::channels) fn request_expiry(&self) {
        drop(self.state());
        self.alarm.notify_all();
    }
}
