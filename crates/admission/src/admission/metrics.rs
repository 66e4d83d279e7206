//! The metrics of session admission.

use std::time::Duration;

use super::PresentedTicket;
use super::policy::State;
use super::sessions::CLASSES;

/// A snapshot of the state and the counters of admission.
#[derive(Clone, PartialEq, Debug)]
pub struct AdmissionMetrics {
    /// Whether admission is enabled.
    pub is_on: bool,
    /// The state of the control loop.
    pub state: State,
    /// The limit of concurrent sessions, or `None` before there are enough measurements.
    pub limit: Option<usize>,
    /// The factor of the limit: below 1 after queues, above 1 with spare capacity.
    pub factor: f64,
    /// The capacity in requests per second.
    pub capacity: Option<f64>,
    /// The mean request rate of an active session, per second.
    pub rate: Option<f64>,
    /// The highest utilization of workers, event loops, other thread pools and cores, 0 to 1.
    pub utilization: f64,
    /// Active sessions.
    pub active: usize,
    /// Sessions whose next request the server would serve.
    pub known: usize,
    /// The smoothed think time: the time between two requests of a session.
    pub think: Duration,
    /// Tasks that workers run.
    pub running: usize,
    /// Requests completed while sessions were counted, up to the last measurement.
    pub done: u64,
    /// Sessions admitted since the start.
    pub admitted: u64,
    /// Requests of admitted sessions.
    pub served: u64,
    /// Rejected requests, by their ticket.
    pub refused: RejectionCounts,
    /// Ended sessions, by their [number of requests](CLASSES).
    pub ended: [u64; CLASSES.len()],
}

/// Counts of rejected requests, by the ticket that they carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RejectionCounts {
    /// No ticket.
    pub strangers: u64,
    /// A ticket that was forged, or issued for a different address or account.
    pub foreign: u64,
    /// A genuine ticket of a session that has expired or is not known.
    pub old: u64,
}

impl RejectionCounts {
    pub(super) const fn count(&mut self, shown: PresentedTicket) {
        match shown {
            PresentedTicket::None => self.strangers += 1,
            PresentedTicket::Invalid => self.foreign += 1,
            PresentedTicket::Expired(_) | PresentedTicket::Valid(_) => self.old += 1,
        }
    }
}
