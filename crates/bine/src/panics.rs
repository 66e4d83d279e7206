//! The log entry for a handler's panic: the location, the message as quoted text, and a backtrace
//! unless panics are frequent.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bine_log as log;

/// The most backtraces per second. The panicking thread, possibly an event loop, resolves their
/// symbols: 180 ms for the first one in a process, 1 to 6 ms for each later one, 19 kB each (debug
/// build).
const BACKTRACES: u32 = 4;

/// Installs the panic hook that logs panics. The caller of the handler catches them.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    static LIMITER: Mutex<BacktraceLimiter> = Mutex::new(BacktraceLimiter::new());
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let message = panic.payload_as_str().unwrap_or("(a value other than text)");
    let quoted_message = quoted(message);
    LAST.set(Some(format!("a panic{place}: {message}")));
    let permit = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
    match permit {
        Ok(()) => {
            let backtrace = Backtrace::force_capture();
            log::error(format_args!("a panic{place}{quoted_message}\n{backtrace}"));
        }
        Err(omitted) => {
            log::error(format_args!(
                "a panic{place}{quoted_message}\n  backtraces left out: {omitted}"
            ));
        }
    }
}

thread_local! {
    /// The message of the thread's last panic.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

/// Takes the message of the panic that this thread has just caught, for a page in development.
pub(crate) fn take_last_message() -> Option<String> {
    LAST.take()
}

/// Quotes a panic's message, which may contain text from a client. Each line starts with a mark and
/// has no control characters, so that no line resembles a log entry or controls a terminal.
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

/// The remaining backtraces of the current second.
struct BacktraceLimiter {
    since: Option<Instant>,
    permit: u32,
    omitted: u64,
}

impl BacktraceLimiter {
    const fn new() -> Self {
        Self { since: None, permit: 0, omitted: 0 }
    }

    /// Takes one. The error is the number of backtraces omitted in this second.
    fn take(&mut self, now: Instant) -> Result<(), u64> {
        let is_over = |since| now.saturating_duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(is_over) {
            *self = Self { since: Some(now), ..Self::new() };
        }
        if self.permit < BACKTRACES {
            self.permit += 1;
            return Ok(());
        }
        self.omitted += 1;
        Err(self.omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_each_line_and_escapes_control_characters() {
        assert_eq!(quoted("plain \u{e4}"), "\n  | plain \u{e4}");
        assert_eq!(quoted("a\nbine: error: b"), "\n  | a\n  | bine: error: b");
        assert_eq!(quoted("\r\u{1b}[2J\u{9b}"), "\n  | \\r\\u{1b}[2J\\u{9b}");
        assert_eq!(quoted(""), "\n  | ");
    }

    #[test]
    fn limits_backtraces_per_second_and_counts_the_rest() {
        let mut limiter = BacktraceLimiter::new();
        let start = Instant::now();
        for second in 0..3 {
            let now = start + Duration::from_secs(second);
            for _ in 0..BACKTRACES {
                assert_eq!(limiter.take(now), Ok(()));
            }
            for omitted in 1..=10 {
                assert_eq!(limiter.take(now + Duration::from_millis(999)), Err(omitted));
            }
        }
    }
}
