//! Decides when a handler that kept its loop from everybody else is named in the log.

use std::cell::Cell;
use std::time::Duration;

use bine_log as log;

use crate::time::clock::{Clock, Tick};

/// A handler that keeps its loop longer than this is named.
const TOO_LONG: Duration = Duration::from_millis(10);
/// Once in this time: a slow handler is usually slow each time, and a busy machine can make any
/// handler look slow by running something else in the middle of it.
const PAUSE: Duration = Duration::from_secs(10);

/// One loop's memory of slow handlers.
#[derive(Default)]
pub(crate) struct Slowness {
    said: Cell<Option<Tick>>,
    unsaid: Cell<u32>,
}

impl Slowness {
    /// `name` began at `began` and has just given the loop back.
    pub(crate) fn look(&self, clock: &Clock, began: Tick, name: &str) {
        let now = clock.glance();
        let held = now.since(began);
        if held > TOO_LONG {
            self.say(now, held, name);
        }
    }

    #[cold]
    fn say(&self, now: Tick, held: Duration, name: &str) {
        if self.said.get().is_some_and(|said| now.elapsed_since(said) < PAUSE) {
            self.unsaid.set(self.unsaid.get() + 1);
            return;
        }
        self.said.set(Some(now));
        let before = match self.unsaid.take() {
            0 => String::new(),
            count => format!(" ({count} such since the last warning)"),
        };
        log::warn(format_args!(
            "{name} held its loop for {} ms{before}: this machine is busy, or it is a page that should be a plain fn, \
             which runs on a worker",
            held.as_millis()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_named_once_in_a_while() {
        let (clock, slowness) = (Clock::told(0), Slowness::default());
        let run = |milliseconds| {
            let began = clock.now();
            clock.advance(Duration::from_millis(milliseconds));
            slowness.look(&clock, began, "a handler of the tests");
            (slowness.said.get().is_some(), slowness.unsaid.get())
        };
        assert_eq!(run(10), (false, 0));
        assert_eq!(run(11), (true, 0));
        assert_eq!(run(11), (true, 1));
        assert_eq!(run(9_000), (true, 2));
        assert_eq!(run(2_000), (true, 0), "the pause is over: it is said, with those before");
    }

    /// Symptom: 25 to 49 days after a slow handler was named, the next ones were not. Cause: the end of the pause was a
    /// moment, which looked as if it lay ahead again. Fix: the time since the last warning is compared.
    #[test]
    fn names_a_slow_handler_again_after_weeks() {
        let _messages = bine_log::test_support::capture();
        let (clock, slowness) = (Clock::told(0), Slowness::default());
        for days in [0, 25, 30, 49] {
            clock.advance(Duration::from_secs(days * 24 * 60 * 60));
            let began = clock.now();
            clock.advance(Duration::from_millis(11));
            slowness.look(&clock, began, "a handler of the tests");
            assert_eq!(slowness.unsaid.get(), 0, "{days} days later");
        }
    }
}
