//! Tests of tables under concurrency, kills, and disk failures.

mod attempts;
mod backup;
mod debug;
mod declare;
mod kills;
mod model;
#[path = "../journal/random.rs"]
mod random;
mod reads;
mod removal;
mod room;
#[path = "../journal/scratch.rs"]
mod scratch;
mod select;
mod selection;
mod serial;
mod simulated;
mod syscalls;
mod tables;
