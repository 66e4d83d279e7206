//! The schedulers that a configuration can name.

use std::io;

/// Each scheduler by name, with what it is for.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("hybrid", "event loops, and workers for handlers that block (the default)"),
    ("event", "event loops alone; a handler that blocks holds up its loop"),
    ("cohort", "event loops that run each stage for all who are ready, then the next stage"),
    ("nothread", "one thread: one connection from accept to close, then the next"),
    ("one-to-one", "a thread for each connection, as many as the kernel allows"),
    ("pool", "threads that each accept a connection and keep it until it closes"),
    ("accept-many", "one thread that accepts, and a pool that holds what it accepts"),
    ("queue", "a queue of stages, and a pool that works it off in order"),
];

/// Whether there is a scheduler of that name.
///
/// # Errors
///
/// The names there are.
pub fn check(name: &str) -> io::Result<()> {
    if SCHEDULERS.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = SCHEDULERS.iter().map(|(known, _)| *known).collect();
    let message = format!("no scheduler is called `{name}`; there are {}", names.join(", "));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
