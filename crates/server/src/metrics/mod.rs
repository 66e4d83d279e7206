//! Metrics: per-thread counters, and the sums that programs read.

mod server;
pub(crate) mod tally;
mod waits;

pub use server::{LoopMetrics, SchedulerMetrics, ServerMetrics};
pub use waits::{BOUNDS, WaitMetrics};

pub(crate) use server::time_at_work;
pub(crate) use tally::{
    Ending, LoopProgress, MARKED, Tallies, Tally, TallyLease, count_panic, panics,
};
pub(crate) use waits::Waits;
