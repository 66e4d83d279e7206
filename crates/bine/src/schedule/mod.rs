//! Scheduled work: services that the program runs at intervals, each run on one node.
//!
//! A row for each service says when it is due and which process runs it. A process claims a run by a
//! transaction, so that of several nodes exactly one wins, and renews its claim while it works.

mod choices;
mod job;
mod row;
mod runner;
mod subsystem;
