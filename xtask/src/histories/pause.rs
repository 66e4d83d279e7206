//! Waits.

use std::thread;
use std::time::{Duration, Instant};

/// Waits for this time. `thread::park_timeout` may return early: the end of a scoped thread wakes the
/// thread of the scope.
pub(super) fn pause(duration: Duration) {
    let end = Instant::now() + duration;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        thread::park_timeout(left);
    }
}
