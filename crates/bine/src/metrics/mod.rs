//! The monitoring endpoints of a program: `/metrics`, `/health` and `/ready`.

mod figures;
mod server;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use figures::Metrics;
pub(crate) use server::MetricsServer;
