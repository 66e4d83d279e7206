//! Rate-limited warnings about handlers that block their loop.

use std::cell::Cell;
use std::time::Duration;

use bine_log as log;

use crate::time::clock::{Clock, Tick};

/// The threshold: a handler that blocks its loop for longer appears in the log.
const TOO_LONG: Duration = Duration::from_millis(10);
/// The minimum time between two warnings. A slow handler is usually slow each time, and on a busy
/// machine any handler looks slow when another process runs in the middle of it.
const PAUSE: Duration = Duration::from_secs(10);

/// The warning state of one loop.
#[derive(Default)]
pub(crate) struct Slowness {
    last_warning: Cell<Option<Tick>>,
    suppressed: Cell<u32>,
}

impl Slowness {
    /// Checks how long a handler ran, which began at `began` and has just returned. `name` is called
    /// only for a warning.
    #[inline]
    pub(crate) fn check<'n>(&self, clock: &Clock, began: Tick, name: impl FnOnce() -> &'n str) {
        let now = clock.glance();
        let held = now.since(began);
        if held > TOO_LONG {
            self.warn(now, held, name());
        }
    }

    #[cold]
    fn warn(&self, now: Tick, held: Duration, name: &str) {
        if self.last_warning.get().is_some_and(|last| now.elapsed_since(last) < PAUSE) {
            self.suppressed.set(self.suppressed.get() + 1);
            return;
        }
        self.last_warning.set(Some(now));
        let before = match self.suppressed.take() {
            0 => String::new(),
            count => format!(" (and {count} more since the last warning)"),
        };
        log::warn(format_args!(
            "{name} blocked its event loop for {} ms{before}: \
             the machine is overloaded, or the handler should be a plain fn, which runs on a worker",
            held.as_millis()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_rate_of_warnings() {
        let (clock, slowness) = (Clock::told(0), Slowness::default());
        let run = |milliseconds| {
            let began = clock.now();
            clock.advance(Duration::from_millis(milliseconds));
            slowness.check(&clock, began, || "a handler of the tests");
            (slowness.last_warning.get().is_some(), slowness.suppressed.get())
        };
        assert_eq!(run(10), (false, 0));
        assert_eq!(run(11), (true, 0));
        assert_eq!(run(11), (true, 1));
        assert_eq!(run(9_000), (true, 2));
        assert_eq!(
            run(2_000),
            (true, 0),
            "after the pause, the warning counts the suppressed ones"
        );
    }

    /// Symptom: from 25 to 49 days after a warning about a slow handler, the loop logged no further
    /// warnings. Cause: the code stored the end of the pause as a tick, which looked as if it were
    /// in the future again. Fix: compare the time since the last warning.
    #[test]
    fn names_a_slow_handler_again_after_weeks() {
        let _messages = bine_log::test_support::capture();
        let (clock, slowness) = (Clock::told(0), Slowness::default());
        for days in [0, 25, 30, 49] {
            clock.advance(Duration::from_secs(days * 24 * 60 * 60));
            let began = clock.now();
            clock.advance(Duration::from_millis(11));
            slowness.check(&clock, began, || "a handler of the tests");
            assert_eq!(slowness.suppressed.get(), 0, "{days} days later");
        }
    }
}
