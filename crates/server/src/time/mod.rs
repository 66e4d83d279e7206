//! Time: the clock that a thread reads once per turn, the timer wheel, timeouts, and warnings about
//! slow handlers.

mod clock;
mod slowness;
pub(crate) mod timeout;
mod wheel;

pub use clock::{Clock, Tick};
pub use timeout::timeout;

pub(crate) use clock::monotonic_milliseconds;
pub(crate) use slowness::Slowness;
pub(crate) use wheel::{Hook, Hooks, Wheel};
