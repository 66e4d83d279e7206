//! Waiting for a condition, with a bound.

use std::thread;
use std::time::{Duration, Instant};

/// The time in which every condition must become true. Only a failure takes this long.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Waits until a condition is true.
///
/// # Panics
///
/// The condition is not true within [`DEADLINE`]; `what` is in the message.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}
