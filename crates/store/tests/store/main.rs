//! Decides whether tables keep what they promise: through threads, through kills, and on disks that fail.

mod model;
#[path = "../journal/random.rs"]
mod random;
mod reads;
mod serial;
mod simulated;
mod tables;
