//! The metrics of a server: sums of its threads' counters at the time of the query.

use std::fs;
use std::time::Duration;

use bine_admission::queue::ServiceMetrics;

use crate::metrics::tally::{Ending, MARKED};
use crate::metrics::waits::WaitMetrics;

/// The metrics of a server since it was opened. Counters only grow, and may be a moment old.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    /// Accepted connections.
    pub accepted: u64,
    /// Open connections, upgraded ones included, and the open streams of HTTP/2.
    pub open: usize,
    /// The limit of open connections.
    pub most: usize,
    /// Rejected connections by reason.
    pub refused: [(&'static str, u64); 4],
    /// Closed connections by reason.
    pub closed: [(&'static str, u64); Ending::ALL.len()],
    /// Connections of HTTP/2 closed because of a flood of frames or resets.
    pub http2_floods: u64,
    /// Requests whose heads the server parsed.
    pub requests: u64,
    /// Final responses by class: 1xx (an upgrade) to 5xx.
    pub replies: [u64; 5],
    /// The statuses among `replies` that indicate overload, with their counts.
    pub marked: [(u16, u64); MARKED.len()],
    /// Bytes of HTTP received, without TLS overhead and without upgraded connections.
    pub received: u64,
    /// Bytes of HTTP sent, counted as `received`.
    pub sent: u64,
    /// Panics of handlers in the whole process.
    pub panics: u64,
    /// Blocking calls that have timed out and still run, in the whole process.
    pub overdue: usize,
    /// The event loops by number.
    pub loops: Vec<LoopMetrics>,
    /// The number of times that the watchdog found a loop stuck.
    pub stalls: u64,
    /// Loops that are stuck now.
    pub stuck: usize,
    /// The scheduler's metrics; `None` before the server runs.
    pub scheduler: Option<SchedulerMetrics>,
}

/// The metrics of one event loop.
#[derive(Clone, Debug)]
pub struct LoopMetrics {
    /// Its number.
    pub number: usize,
    /// Turns of the loop.
    pub turns: u64,
    /// Open connections of the loop.
    pub connections: usize,
    /// CPU time of the loop's thread; `None` when the kernel does not report it.
    pub work: Option<Duration>,
}

/// The metrics of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerMetrics {
    /// The name in the settings; `own` for a scheduler that the program supplies.
    pub name: String,
    /// Utilization of the threads, 0 to 1.
    pub load: f32,
    /// The scheduler's state, in one line for people.
    pub status: String,
    /// Times that tasks waited for a thread, when the scheduler has a queue.
    pub waits: Option<WaitMetrics>,
    /// The metrics of each service whose tasks it runs.
    pub services: Vec<ServiceMetrics>,
}

/// Reads a thread's CPU time, in nanoseconds the first field of `schedstat` (Linux, sched-stats).
/// The reader pays for the system call. Two clock readings in each turn would cost the loop a
/// hundredth of a request.
pub(crate) fn time_at_work(thread: u32) -> Option<Duration> {
    let schedstat = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
