//! Limits on the resources that all connections of a server share: connections, bytes, descriptors
//! and memory.

mod budget;
mod census;
mod guard;
mod pressure;
pub(crate) mod readings;

pub use budget::BudgetMetrics;
pub use guard::GuardMetrics;
pub use pressure::Pressure;
pub use readings::memory_limit;

pub(crate) use budget::{Budget, Budgets, Claim, Refused, Reservation};
pub(crate) use census::{Census, Full};
pub(crate) use guard::Guard;
pub(crate) use pressure::Room;
