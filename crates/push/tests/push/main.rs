//! Decides, from outside, whether channels keep what they promise.

mod model;
mod waiting;
