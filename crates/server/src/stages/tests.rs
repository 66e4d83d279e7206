//! Decides what the stages promise, by playing scripts: a peer, a program and a clock that are all
//! made up go in, a text comes out.
//!
//! Each script is played over a transport that blocks and over one that does not; both must tell the
//! same, except that only the second gives other connections their `turn`.

#![allow(
    clippy::format_push_string,
    reason = "short texts of tests; write! would add an error that cannot occur"
)]

mod answers;
mod bodies;
mod deadlines;
mod detached;
mod endings;
mod fake;
mod play;
mod program;
mod splits;
mod turns;
