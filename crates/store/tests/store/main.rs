//! Decides whether tables keep what they promise: through threads, through kills, and on disks that fail.

mod kills;
mod model;
#[path = "../journal/random.rs"]
mod random;
mod reads;
mod room;
#[path = "../journal/scratch.rs"]
mod scratch;
mod serial;
mod simulated;
mod syscalls;
mod tables;
