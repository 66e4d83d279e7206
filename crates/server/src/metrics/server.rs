//! Decides what a server tells of itself in figures: sums of what its threads have counted, at the moment somebody asks.

use std::fs;
use std::time::Duration;

use bine_admission::queue::ServiceMetrics;

use crate::metrics::tally::{Ending, MARKED};
use crate::metrics::waits::WaitMetrics;

/// What a server has done since it was opened. Each count only grows, and is at most a moment old.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    /// Connections that were taken in.
    pub accepted: u64,
    /// Connections at this moment, upgraded ones included.
    pub open: usize,
    /// How many there may be.
    pub most: usize,
    /// Connections that were turned away, each reason with its count.
    pub refused: [(&'static str, u64); 3],
    /// Connections that have ended, each reason with its count.
    pub closed: [(&'static str, u64); Ending::ALL.len()],
    /// Requests whose heads were understood.
    pub requests: u64,
    /// Final replies by class: 1xx (an upgrade) to 5xx.
    pub replies: [u64; 5],
    /// Of these, the ones that tell how the load is borne: status and count.
    pub marked: [(u16, u64); MARKED.len()],
    /// Bytes of HTTP received and sent, without what TLS adds. What follows an upgrade is not among them.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
    /// Handlers that panicked, over the whole process.
    pub panics: u64,
    /// Blocking calls that nobody waits for any more, over the whole process, at this moment.
    pub overdue: usize,
    /// Each loop, by its number.
    pub loops: Vec<LoopMetrics>,
    /// How often a loop was found stuck.
    pub stalls: u64,
    /// Loops that are stuck at this moment.
    pub stuck: usize,
    /// Who runs what; `None` before the server runs.
    pub scheduler: Option<SchedulerMetrics>,
}

/// What one loop has done.
#[derive(Clone, Debug)]
pub struct LoopMetrics {
    /// Its number.
    pub number: usize,
    /// How often it has looked what there is to do.
    pub turns: u64,
    /// Connections it has at this moment.
    pub connections: usize,
    /// How long its thread was at work, as the kernel counts; `None` where that does not.
    pub work: Option<Duration>,
}

/// What a scheduler tells of itself.
#[derive(Clone, Debug)]
pub struct SchedulerMetrics {
    /// The name by which it was chosen; `own` for a program's own.
    pub name: String,
    /// How busy its threads are, 0 to 1.
    pub load: f32,
    /// How it is, in one line for people.
    pub status: String,
    /// How long tasks have waited for a thread, if they do.
    pub waits: Option<WaitMetrics>,
    /// What is known of each service whose runs it spawns.
    pub services: Vec<ServiceMetrics>,
}

/// The first figure of this file is the thread's time on a CPU, in nanoseconds (Linux, sched-stats). Asked for here and
/// now, it costs the loop nothing; a clock read twice in each turn would be a hundredth of a request.
pub(crate) fn time_at_work(thread: u32) -> Option<Duration> {
    let told = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    told.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
