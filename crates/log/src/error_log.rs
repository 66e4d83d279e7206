//! The error log: the format of its messages, and the destination that they are written to.
//!
//! A line is `2026-11-21T03:04:05Z level message`. Further lines of a message begin with a space,
//! so a message cannot look like two, and control characters are escaped, so it cannot control a
//! terminal.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use crate::level::Level;
use crate::log_file::{Sink, WriteError};
use crate::stamp::Stamp;
use crate::writer::{LINGER, LogSettings, Writer};

/// Logs that an operation failed.
pub fn error(message: fmt::Arguments<'_>) {
    log(Level::Error, message);
}

/// Logs that the operator should act before an operation fails.
pub fn warn(message: fmt::Arguments<'_>) {
    log(Level::Warning, message);
}

/// Logs a rare event.
pub fn notice(message: fmt::Arguments<'_>) {
    log(Level::Notice, message);
}

/// Logs a detail for the search for a fault.
pub fn debug(message: fmt::Arguments<'_>) {
    log(Level::Debug, message);
}

/// Sets the least severe level that is logged from now on.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Appends all further messages to the file at `path` instead of standard error.
///
/// If writing to the file fails later, a message on standard error reports it.
///
/// # Errors
///
/// The error of the system, with the path, if the file cannot be opened. The destination then does
/// not change.
pub fn to_file(path: impl Into<PathBuf>) -> io::Result<()> {
    let writer = Writer::open_with(LogSettings::at(path), Duration::ZERO, log_to_standard_error)?;
    use_writer(Some(writer));
    Ok(())
}

/// Writes all further messages to standard error, which is also the initial destination.
pub fn to_standard_error() {
    use_writer(None);
}

/// Waits until all messages so far are written, for one second at most.
pub fn finish() {
    match current() {
        Some(writer) => writer.finish(),
        // Without an earlier message the writer does not exist, and must not be created here.
        None => _ = LazyLock::get(&STANDARD_ERROR).map(|writer| writer.finish()),
    }
}

// Defined here instead of in `writer.rs` because a writer reports its faults to this log.
impl Writer {
    /// Opens the log at the path in `settings`, and creates the file if necessary.
    ///
    /// The thread starts with the first line and has the privileges that the process has then, so
    /// the process can drop the privileges that opening the file required before it logs a line.
    ///
    /// # Errors
    ///
    /// The error of the system, with the path. A pipe without a reader is not an error.
    pub fn open(settings: LogSettings) -> io::Result<Arc<Self>> {
        Self::open_with(settings, LINGER, log)
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Notice as u8);
/// The writer of the file for messages; `None` is standard error.
static FILE_WRITER: RwLock<Option<Arc<Writer>>> = RwLock::new(None);
static STANDARD_ERROR: LazyLock<Arc<Writer>> =
    // A fault of standard error cannot be reported anywhere.
    LazyLock::new(|| Writer::for_sink("standard error", Box::new(StandardError), |_, _| {}));

fn use_writer(writer: Option<Arc<Writer>>) {
    let mut file = FILE_WRITER.write().unwrap_or_else(PoisonError::into_inner);
    let previous = std::mem::replace(&mut *file, writer);
    drop(file);
    // Outside the lock: if this is the last handle, dropping it makes the writer write its lines
    // and stop.
    drop(previous);
}

fn current() -> Option<Arc<Writer>> {
    FILE_WRITER.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn log(level: Level, message: fmt::Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    #[cfg(any(test, feature = "test-support"))]
    if crate::test_support::captured(message) {
        return;
    }
    let line = format_line(&Stamp::now(), level, message);
    match current() {
        Some(writer) => writer.append(line.as_bytes(), write_gap),
        None => STANDARD_ERROR.append(line.as_bytes(), write_gap),
    }
}

fn log_to_standard_error(level: Level, message: fmt::Arguments<'_>) {
    STANDARD_ERROR.append(format_line(&Stamp::now(), level, message).as_bytes(), write_gap);
}

fn write_gap(lines: &mut Vec<u8>, dropped: u64) {
    let message = format_args!(
        "dropped {dropped} messages here: they arrived faster than they could be written"
    );
    lines.extend_from_slice(format_line(&Stamp::now(), Level::Warning, message).as_bytes());
}

/// Formats a message as it is written to the log.
fn format_line(stamp: &Stamp, level: Level, message: fmt::Arguments<'_>) -> String {
    let mut line = SanitizedLine { text: String::with_capacity(128), at_line_start: false };
    line.text.push_str(std::str::from_utf8(stamp.iso()).unwrap_or_default());
    // If the formatting of a message fails, the message is truncated there.
    let _ = write!(line, " {} {message}", level.as_str());
    line.text.push('\n');
    line.text
}

/// A line that escapes control characters and indents further lines as text is written to it.
struct SanitizedLine {
    text: String,
    /// Whether the next character begins a further line of the message.
    at_line_start: bool,
}

impl fmt::Write for SanitizedLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if std::mem::take(&mut self.at_line_start) && letter != ' ' {
                self.text.push_str("  ");
            }
            match letter {
                '\n' => {
                    self.text.push('\n');
                    self.at_line_start = true;
                }
                // These are not control characters, but some readers end a line at them or reverse
                // its direction.
                '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    self.text.extend(letter.escape_unicode());
                }
                _ if letter.is_control() => self.text.extend(letter.escape_default()),
                _ => self.text.push(letter),
            }
        }
        Ok(())
    }
}

struct StandardError;

impl Sink for StandardError {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        // The error is ignored: the process that started this one has closed standard error.
        let _ = io::stderr().write_all(lines);
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(message: &str, expected: &str) {
        let line =
            format_line(&Stamp::at(1_795_230_245), Level::Warning, format_args!("{message}"));
        assert_eq!(line, format!("2026-11-21T03:04:05Z warning {expected}\n"));
    }

    #[test]
    fn writes_time_and_level_of_a_message() {
        check("all is well", "all is well");
        check("caf\u{e9} \u{2615}", "caf\u{e9} \u{2615}");
        check("", "");
    }

    #[test]
    fn escapes_line_breaks_and_terminal_controls() {
        check("a\n2026-11-21T03:04:05Z error b", "a\n  2026-11-21T03:04:05Z error b");
        check("a\r\u{1b}[2J\u{9b}\u{2028}", "a\\r\\u{1b}[2J\\u{9b}\\u{2028}");
        check("a\n   0: frame\n\n", "a\n   0: frame\n  \n");
    }

    proptest! {
        #[test]
        fn indents_continuation_lines_of_any_message(message in any::<String>()) {
            let line = format_line(&Stamp::at(0), Level::Error, format_args!("{message}"));
            prop_assert!(line.starts_with("1970-01-01T00:00:00Z error "));
            let text = line.strip_suffix('\n').unwrap();
            prop_assert!(text.split('\n').skip(1).all(|each| each.is_empty() || each.starts_with(' ')));
            prop_assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
        }
    }

    #[test]
    fn writes_the_number_of_dropped_messages() {
        let mut lines = b"before\n".to_vec();
        write_gap(&mut lines, 3);
        let lines = String::from_utf8(lines).unwrap();
        let (_, message) = lines.strip_prefix("before\n").unwrap().split_once(' ').unwrap();
        let expected = "warning dropped 3 messages here: they arrived faster than they could be \
                        written\n";
        assert_eq!(message, expected);
    }

    #[test]
    fn parses_levels_as_written() {
        for level in Level::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!("loud".parse::<Level>().unwrap_err().contains("notice"));
    }
}
