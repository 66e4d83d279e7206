//! The monitoring endpoints of a program, `/metrics`, `/health` and `/ready`, and the numbers for its
//! own pages.

mod choices;
mod figures;
mod handle;
mod server;
mod subsystem;
#[cfg(test)]
mod tests;

use figures::Metrics;
use server::MetricsServer;

pub use handle::{ServerHandle, ServerStats};
