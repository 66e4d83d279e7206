//! Brings the loop's deadlines up to date after a rest so long that ticks cannot be compared across it.
//!
//! A process may be frozen for weeks with connections open. A deadline that passed more than 24 days ago would look as
//! if it lay ahead, and its connection would stay open for weeks more.

use std::time::Duration;

use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::time::Tick;

/// Half of what two ticks may lie apart. A shorter rest needs nothing: no deadline that passed in it is as old as that.
pub(super) const LONG_REST: Duration = Duration::from_millis(1 << 30);

impl<D: Driver> EventLoop<D> {
    /// Makes every deadline that has come in the `rest` since the last turn due now.
    #[cold]
    pub(super) fn catch_up(&mut self, now: Tick, rest: Duration) {
        let last = self.ended();
        let caught = |moment: Tick| if moment.since(last) <= rest { now } else { moment };
        for token in self.slab.tokens() {
            if let Some(Entry { connection, .. }) = self.slab.get(token) {
                connection.deadline = caught(connection.deadline);
            }
        }
        self.wheel.pass_all(&mut self.slab, now);
        for (_, due) in &mut self.abandoned {
            *due = caught(*due);
        }
        self.last_call = self.last_call.map(caught);
        self.door.catch_up(caught);
        (self.behind_since, self.waited) = (None, Duration::ZERO);
        self.has_due = true;
    }
}
