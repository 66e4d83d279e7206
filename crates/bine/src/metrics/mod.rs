//! The monitoring endpoints of a program: `/metrics`, `/health` and `/ready`.

mod choices;
mod figures;
mod server;
mod subsystem;
#[cfg(test)]
mod tests;

use figures::Metrics;
use server::MetricsServer;
