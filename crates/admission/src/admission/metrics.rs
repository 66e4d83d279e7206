//! Decides what of admission can be seen from outside.

use std::time::Duration;

use super::Shown;
use super::policy::State;
use super::sessions::CLASSES;

/// Everything that admission knows, at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct AdmissionMetrics {
    /// It is not switched off.
    pub is_on: bool,
    /// How much is looked at.
    pub state: State,
    /// Sessions that may be under way; `None`: too little is known to say.
    pub limit: Option<usize>,
    /// What the limit is multiplied by: less than 1 after queues that stood, more where there is room.
    pub factor: f64,
    /// Requests a second that could be done.
    pub capacity: Option<f64>,
    /// Requests a second that a session under way asks for.
    pub rate: Option<f64>,
    /// The largest share in use of workers, loops, other thread pools and cores, 0 to 1.
    pub utilization: f64,
    /// Sessions under way.
    pub active: usize,
    /// Sessions that would be served if they came again.
    pub known: usize,
    /// The time between two requests of a session, smoothed.
    pub think: Duration,
    /// Tasks that workers are at.
    pub running: usize,
    /// Requests that were done while sessions were counted, up to the last look.
    pub done: u64,
    /// Sessions that were admitted, since the start.
    pub admitted: u64,
    /// Requests of sessions that were let pass.
    pub served: u64,
    /// Requests that were not, by what they had shown.
    pub refused: Refused,
    /// Sessions that have ended, by [how many requests](CLASSES) they had.
    pub ended: [u64; CLASSES.len()],
}

/// Requests that were refused, by what they had shown for a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// No ticket.
    pub strangers: u64,
    /// A ticket that was forged, or given out for another address or account.
    pub foreign: u64,
    /// A ticket that was good once.
    pub old: u64,
}

impl Refused {
    pub(super) const fn count(&mut self, shown: Shown) {
        match shown {
            Shown::Nothing => self.strangers += 1,
            Shown::Foreign => self.foreign += 1,
            Shown::Old(_) | Shown::Ticket(_) => self.old += 1,
        }
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.strangers + self.foreign + self.old
    }
}
