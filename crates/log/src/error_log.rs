//! Decides what the error log says, who hears it, and that no message looks like two.
//!
//! A line is `2026-11-21T03:04:05Z level message`. Where a message has lines of its own, those
//! after the first begin with a space, and nothing in it speaks to a terminal.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use crate::level::Level;
use crate::log_file::{Cut, Outlet};
use crate::stamp::Stamp;
use crate::writer::{LINGER, LogSettings, Writer};

/// Says that something failed.
pub fn error(message: fmt::Arguments<'_>) {
    say(Level::Error, message);
}

/// Says that something should be looked at.
pub fn warn(message: fmt::Arguments<'_>) {
    say(Level::Warning, message);
}

/// Says that something happened.
pub fn notice(message: fmt::Arguments<'_>) {
    say(Level::Notice, message);
}

/// Says what helps to find a fault.
pub fn debug(message: fmt::Arguments<'_>) {
    say(Level::Debug, message);
}

/// From here on, messages that matter less than `level` are not said.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// From here on, messages go to the end of the file at `path`, and no longer to standard error.
/// When that file cannot be written, standard error is told.
///
/// # Errors
///
/// The system's, with the path; messages then go where they went.
pub fn to_file(path: impl Into<PathBuf>) -> io::Result<()> {
    let writer = Writer::open_for(LogSettings::at(path), Duration::ZERO, say_on_standard_error)?;
    use_writer(Some(writer));
    Ok(())
}

/// From here on, messages go to standard error, as they do when nobody said otherwise.
pub fn to_standard_error() {
    use_writer(None);
}

/// Waits until what was said is written, a second at most.
pub fn finish() {
    match current() {
        Some(writer) => writer.finish(),
        // Whoever has said nothing yet needs no thread for it.
        None => _ = LazyLock::get(&STANDARD_ERROR).map(|writer| writer.finish()),
    }
}

// Here and not beside `Writer`, because a writer's own faults are messages of this log.
impl Writer {
    /// Will append to the log that `settings` name, which is opened now, and made if need be.
    ///
    /// Its thread starts with the first line and keeps the rights it was born with; so rights that
    /// opening the file took can be given up in between.
    ///
    /// # Errors
    ///
    /// The system's, with the path. A pipe that nobody reads yet is no error.
    pub fn open(settings: LogSettings) -> io::Result<Arc<Self>> {
        Self::open_for(settings, LINGER, say)
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Notice as u8);
/// The file that was chosen for messages.
static CHOSEN: RwLock<Option<Arc<Writer>>> = RwLock::new(None);
static STANDARD_ERROR: LazyLock<Arc<Writer>> =
    // When standard error itself is gone there is nobody left to tell.
    LazyLock::new(|| Writer::to("standard error", Box::new(StandardError), |_, _| {}));

fn use_writer(writer: Option<Arc<Writer>>) {
    let mut chosen = CHOSEN.write().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *chosen, writer);
    drop(chosen);
    // The old one writes what it has and ends when its last user is gone, which may be this.
    drop(before);
}

fn current() -> Option<Arc<Writer>> {
    CHOSEN.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn say(level: Level, message: fmt::Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    #[cfg(any(test, feature = "test-support"))]
    if crate::test_support::captured(message) {
        return;
    }
    let line = line_of(&Stamp::now(), level, message);
    match current() {
        Some(writer) => writer.append(line.as_bytes(), tell_gap),
        None => STANDARD_ERROR.append(line.as_bytes(), tell_gap),
    }
}

fn say_on_standard_error(level: Level, message: fmt::Arguments<'_>) {
    STANDARD_ERROR.append(line_of(&Stamp::now(), level, message).as_bytes(), tell_gap);
}

fn tell_gap(lines: &mut Vec<u8>, dropped: u64) {
    let message = format_args!("{dropped} messages were dropped here: they came too quickly");
    lines.extend_from_slice(line_of(&Stamp::now(), Level::Warning, message).as_bytes());
}

/// One message as it stands in the log.
fn line_of(stamp: &Stamp, level: Level, message: fmt::Arguments<'_>) -> String {
    let mut line = Tamed { line: String::with_capacity(128), begins: false };
    line.line.push_str(std::str::from_utf8(stamp.iso()).unwrap_or_default());
    // A message whose own formatting fails is cut there.
    let _ = write!(line, " {} {message}", level.as_str());
    line.line.push('\n');
    line.line
}

/// Takes text and tames it on its way.
struct Tamed {
    line: String,
    /// A further line of the message begins here.
    begins: bool,
}

impl fmt::Write for Tamed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if std::mem::take(&mut self.begins) && letter != ' ' {
                self.line.push_str("  ");
            }
            match letter {
                '\n' => {
                    self.line.push('\n');
                    self.begins = true;
                }
                // What is no control character ends a line or turns it around for some readers.
                '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    self.line.extend(letter.escape_unicode());
                }
                _ if letter.is_control() => self.line.extend(letter.escape_default()),
                _ => self.line.push(letter),
            }
        }
        Ok(())
    }
}

struct StandardError;

impl Outlet for StandardError {
    fn write(&mut self, lines: &[u8]) -> Result<(), Cut> {
        // Whoever closed it does not want to know.
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
        let line = line_of(&Stamp::at(1_795_230_245), Level::Warning, format_args!("{message}"));
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
            let line = line_of(&Stamp::at(0), Level::Error, format_args!("{message}"));
            prop_assert!(line.starts_with("1970-01-01T00:00:00Z error "));
            let text = line.strip_suffix('\n').unwrap();
            prop_assert!(text.split('\n').skip(1).all(|further| further.is_empty() || further.starts_with(' ')));
            prop_assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
        }
    }

    #[test]
    fn parses_levels_as_written() {
        for level in Level::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!("loud".parse::<Level>().unwrap_err().contains("notice"));
    }
}
