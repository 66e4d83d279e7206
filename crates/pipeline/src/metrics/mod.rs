//! Metrics: what threads count, and the figures that are read from it.

mod figures;
pub(crate) mod tally;
mod waits;

pub use figures::{Figures, LoopFigures, SchedulerFigures};
pub use waits::{BOUNDS, WaitFigures};

pub(crate) use figures::time_at_work;
pub(crate) use tally::{Ending, Lent, LoopProgress, MARKED, Tallies, Tally, count_panic, panics};
pub(crate) use waits::Waits;
