//! Decides how a handler's panic is written down: where, what it said as quoted text, and, unless
//! panics come in a flood, by which way it came there.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bine_log as log;

/// Backtraces in a second. The thread that panics, which may be a loop, looks up the names in them:
/// 180 ms for the first of a process, 1 to 6 ms for the next, 19 kB each (debug build).
const BACKTRACES: u32 = 4;

/// From here on a panic is told in the log. It is caught where the handler was called.
pub(crate) fn log_them() {
    std::panic::set_hook(Box::new(tell));
}

fn tell(panic: &PanicHookInfo<'_>) {
    static RATION: Mutex<Ration> = Mutex::new(Ration::new());
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let words = panic.payload_as_str().unwrap_or("(a value that is no text)");
    let said = quoted(words);
    LAST.set(Some(format!("a panic{place}: {words}")));
    let taken = RATION.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
    match taken {
        Ok(()) => {
            let backtrace = Backtrace::force_capture();
            log::error(format_args!("a panic{place}{said}\n{backtrace}"));
        }
        Err(left_out) => {
            log::error(format_args!("a panic{place}{said}\n  backtraces left out: {left_out}"));
        }
    }
}

thread_local! {
    /// What the thread's last panic said.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

/// What the panic that this thread has just caught said, for a page in development.
pub(crate) fn last_words() -> Option<String> {
    LAST.take()
}

/// What a panic says may be a peer's words. Each line of it stands behind a mark, without control
/// characters, so that none can look like a line of ours or speak to a terminal.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for line in text.split('\n') {
        quoted.push_str("\n  | ");
        for letter in line.chars() {
            if letter.is_control() {
                quoted.extend(letter.escape_default());
            } else {
                quoted.push(letter);
            }
        }
    }
    quoted
}

/// What is left of this second's backtraces.
struct Ration {
    since: Option<Instant>,
    taken: u32,
    left_out: u64,
}

impl Ration {
    const fn new() -> Self {
        Self { since: None, taken: 0, left_out: 0 }
    }

    /// Takes one; the error is how many this second has had to do without.
    fn take(&mut self, now: Instant) -> Result<(), u64> {
        let is_over = |since| now.saturating_duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(is_over) {
            *self = Self { since: Some(now), ..Self::new() };
        }
        if self.taken < BACKTRACES {
            self.taken += 1;
            return Ok(());
        }
        self.left_out += 1;
        Err(self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_message_stands_behind_a_mark_and_says_no_control_character() {
        assert_eq!(quoted("plain \u{e4}"), "\n  | plain \u{e4}");
        assert_eq!(quoted("a\nbine: error: b"), "\n  | a\n  | bine: error: b");
        assert_eq!(quoted("\r\u{1b}[2J\u{9b}"), "\n  | \\r\\u{1b}[2J\\u{9b}");
        assert_eq!(quoted(""), "\n  | ");
    }

    #[test]
    fn a_flood_of_panics_has_a_few_backtraces_a_second_and_counts_the_rest() {
        let mut ration = Ration::new();
        let start = Instant::now();
        for second in 0..3 {
            let now = start + Duration::from_secs(second);
            for _ in 0..BACKTRACES {
                assert_eq!(ration.take(now), Ok(()));
            }
            for left_out in 1..=10 {
                assert_eq!(ration.take(now + Duration::from_millis(999)), Err(left_out));
            }
        }
    }
}
