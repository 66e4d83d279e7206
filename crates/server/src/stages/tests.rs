//! Tests of the stages by scripts: input is a scripted client, a test program and a test clock;
//! output is a text.
//!
//! Each script runs over a blocking and a nonblocking transport. Both must produce the same text,
//! except that only the second has `turn`s, which let other connections run.

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
mod prefaces;
mod program;
mod recorded;
mod single;
mod splits;
mod turns;
