//! Compressed responses: a stage that encodes the content of responses by gzip, Brotli or Zstandard.
//!
//! The stage sees each response as bytes: a head, and content that the handler has written, that a
//! stream writes later, or that is a file. It decides by the head ([`decision`]) and by the notes of the
//! core. Content that takes more than about a millisecond is encoded on another thread
//! ([`responder`]), and files once, by a thread of their own ([`file_queue`]).

mod cache;
mod choices;
mod counters;
mod decision;
mod file_queue;
mod mode;
mod path_rules;
mod responder;
mod stage;
mod stream_encoder;
mod subsystem;
mod written;
