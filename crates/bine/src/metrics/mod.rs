//! Decides what a program tells of itself to those who watch it: `/metrics`, `/health` and `/ready`.

mod desk;
mod figures;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use desk::Desk;
pub(crate) use figures::Metrics;
