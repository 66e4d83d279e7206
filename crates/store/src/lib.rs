//! Decides what is kept: rows in memory, durable by a journal.
#![deny(unsafe_code)]

pub mod journal;
