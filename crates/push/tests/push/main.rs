//! Decides, from outside, whether channels keep what they promise.

mod counting;
mod memory;
mod model;
mod waiting;
