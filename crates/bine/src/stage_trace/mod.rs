//! A trace of the stages of requests: a file of spans, which browsers show as a picture.
//!
//! - `choices`: the configuration keys.
//! - `trace_file`: the file, with a bounded number of spans.
//! - `recorder`: the subscriber of `tracing` that writes into it.
//! - `subsystem`: the start and the end of the recording.

mod choices;
mod recorder;
mod subsystem;
mod trace_file;
