//! Decides, from outside, whether channels keep what they promise.

mod cases;
mod counting;
mod format;
mod memory;
mod model;
mod quotas;
mod waiting;
