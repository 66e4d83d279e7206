//! Correction of the deadlines after a gap between two turns that is too long for ticks.
//!
//! Ticks wrap, so two ticks can be compared only if they differ by less than 24 days. A process may
//! be frozen for weeks with open connections. Without a correction, a deadline that passed more
//! than 24 days ago would look like one in the future, and its connection would stay open for
//! weeks.

use std::time::Duration;

use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::time::Tick;

/// Half of the largest difference between two comparable ticks. After a shorter gap no deadline
/// that passed during it is old enough to need a correction.
pub(super) const LONG_GAP: Duration = Duration::from_millis(1 << 30);

impl<D: Driver> EventLoop<D> {
    /// Makes every deadline that passed in the `gap` since the last turn due now.
    #[cold]
    pub(super) fn catch_up(&mut self, now: Tick, gap: Duration) {
        let last = self.last_turn_end();
        let corrected = |deadline: Tick| if deadline.since(last) <= gap { now } else { deadline };
        for token in self.slab.tokens() {
            if let Some(Entry { connection, .. }) = self.slab.get(token) {
                connection.deadline = corrected(connection.deadline);
            }
        }
        self.wheel.pass_all(&mut self.slab, now);
        for (_, due) in &mut self.abandoned {
            *due = corrected(*due);
        }
        self.drain_deadline = self.drain_deadline.map(corrected);
        self.acceptor.catch_up(corrected);
        (self.backlog_since, self.waited) = (None, Duration::ZERO);
        self.has_due = true;
    }
}
