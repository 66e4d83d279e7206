//! The names of the schedulers, for configurations.

use std::io;

/// Each scheduler's name and description.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("hybrid", "event loops, and workers for handlers that block (the default)"),
    ("event", "event loops only; a handler that blocks its thread blocks its loop"),
    ("cohort", "event loops that run each stage for all ready connections, then the next stage"),
    ("nothread", "one thread: one connection from accept to close, then the next"),
    ("one-to-one", "a thread for each connection, as many as the kernel allows"),
    ("pool", "threads that each accept a connection and keep it until it closes"),
    ("accept-many", "one thread that accepts, and a pool whose threads each serve one connection"),
    ("queue", "a queue of stages, and a pool of threads that runs them in order"),
];

/// Checks that a scheduler has this name.
///
/// # Errors
///
/// Returns the known names.
pub fn check(name: &str) -> io::Result<()> {
    if SCHEDULERS.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = SCHEDULERS.iter().map(|(known, _)| *known).collect();
    let message = format!("unknown scheduler `{name}`; the schedulers are {}", names.join(", "));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
