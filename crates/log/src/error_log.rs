//! Decides what the error log says, who hears it, and that no message looks like two.
//!
//! A line is `2026-11-21T03:04:05Z level message`. Where a message has lines of its own, those
//! after the first begin with a space, and nothing in it speaks to a terminal.

mod escape;
mod format;
mod limit;
mod stamp;
mod target;
mod writer;

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use crate::clock::unix_seconds;

pub use format::Format;
pub use writer::{LogSettings, WhenFull, Writer, reopen_all};

pub(crate) use escape::{Escaping, push_number};
pub(crate) use format::{Ends, Part, QUOTE, What};
pub(crate) use limit::LogLimit;
pub(crate) use stamp::Stamp;
pub(crate) use writer::Gap;

use target::{Cut, Outlet};

/// How much a message matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// Something failed, and somebody got less than was asked for.
    Error,
    /// Something should be looked at before it fails.
    Warning,
    /// Something happened that does not happen each day.
    #[default]
    Notice,
    /// What only those want to know who look for a fault.
    Debug,
}

impl Level {
    /// All of them, the gravest first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Notice, Self::Debug];

    /// As it stands in a line and in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Debug => "debug",
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|level| level.as_str() == text);
        named.ok_or_else(|| format!("`{text}` is no level; say error, warning, notice or debug"))
    }
}

/// Where a log goes, as a configuration says it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// Nowhere: `off`.
    #[default]
    Off,
    /// Into the file, or the pipe, with this path. `/dev/stdout` and `/dev/stderr` are paths too.
    File(PathBuf),
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        if text == "off" { Self::Off } else { Self::File(text.into()) }
    }
}

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
    #[cfg(test)]
    if capture::took(message) {
        return;
    }
    let line = line_of(unix_seconds(), level, message);
    match current() {
        Some(writer) => writer.append(line.as_bytes(), tell_gap),
        None => STANDARD_ERROR.append(line.as_bytes(), tell_gap),
    }
}

fn say_on_standard_error(level: Level, message: fmt::Arguments<'_>) {
    STANDARD_ERROR.append(line_of(unix_seconds(), level, message).as_bytes(), tell_gap);
}

fn tell_gap(lines: &mut Vec<u8>, dropped: u64) {
    let message = format_args!("{dropped} messages were dropped here: they came too quickly");
    lines.extend_from_slice(line_of(unix_seconds(), Level::Warning, message).as_bytes());
}

/// One message as it stands in the log.
fn line_of(unix: u64, level: Level, message: fmt::Arguments<'_>) -> String {
    let stamp = Stamp::at(unix);
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

/// Keeps what a thread says away from the log, for tests that look at it.
#[cfg(test)]
pub(crate) mod capture {
    use std::cell::RefCell;
    use std::fmt;

    thread_local! {
        static TAKEN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    }

    /// Messages of this thread are taken until this is dropped.
    pub(crate) struct Capture(());

    pub(crate) fn begin() -> Capture {
        TAKEN.set(Some(Vec::new()));
        Capture(())
    }

    impl Capture {
        /// What was said until now.
        pub(crate) fn end(self) -> Vec<String> {
            let Self(()) = self;
            TAKEN.take().unwrap_or_default()
        }
    }

    impl Drop for Capture {
        fn drop(&mut self) {
            TAKEN.set(None);
        }
    }

    pub(super) fn took(message: fmt::Arguments<'_>) -> bool {
        TAKEN.with_borrow_mut(|taken| {
            taken.as_mut().map(|taken| taken.push(message.to_string())).is_some()
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    /// A folder of one test's own.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("bine-logs-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        /// A pipe with a name.
        pub(crate) fn pipe(&self) -> PathBuf {
            let path = self.path("pipe");
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        }
    }

    impl Folder {
        /// A disk of 256 KiB with little room left, for the test that is called `name`, which runs
        /// again in a process with mounts of its own. `None`: here it has run there, or cannot.
        pub(crate) fn small_disk(name: &str) -> Option<Self> {
            if let Some(path) = std::env::var_os("BINE_SMALL_DISK") {
                let disk = Self(path.into());
                std::fs::write(disk.path("ballast"), vec![0; 224 * 1024]).unwrap();
                return Some(disk);
            }
            let folder = Self::new();
            let mount = "mount -t tmpfs -o size=256k none \"$BINE_SMALL_DISK\" || exit 77; \
                         exec \"$0\" --exact \"$1\" --nocapture";
            let status = Command::new("unshare")
                .args(["-rm", "sh", "-c", mount])
                .arg(std::env::current_exe().unwrap())
                .arg(name)
                .env("BINE_SMALL_DISK", &folder.0)
                .status();
            // Not every system lets a test mount something; where it can, it must hold there too.
            assert_ne!(status.ok().and_then(|status| status.code()), Some(101), "it failed there");
            None
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Returns when `path` holds what `is_enough` wants to see.
    #[track_caller]
    pub(crate) fn await_text(path: &Path, is_enough: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if is_enough(&text) {
                return text;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "only this came: {text:?}");
            std::thread::yield_now();
        }
    }

    fn check(message: &str, expected: &str) {
        let line = line_of(1_795_230_245, Level::Warning, format_args!("{message}"));
        assert_eq!(line, format!("2026-11-21T03:04:05Z warning {expected}\n"));
    }

    #[test]
    fn a_message_says_when_and_how_grave() {
        check("all is well", "all is well");
        check("caf\u{e9} \u{2615}", "caf\u{e9} \u{2615}");
        check("", "");
    }

    #[test]
    fn a_message_cannot_forge_another_or_speak_to_a_terminal() {
        check("a\n2026-11-21T03:04:05Z error b", "a\n  2026-11-21T03:04:05Z error b");
        check("a\r\u{1b}[2J\u{9b}\u{2028}", "a\\r\\u{1b}[2J\\u{9b}\\u{2028}");
        check("a\n   0: frame\n\n", "a\n   0: frame\n  \n");
    }

    proptest! {
        #[test]
        fn only_the_first_line_of_any_message_begins_at_the_margin(message in any::<String>()) {
            let line = line_of(0, Level::Error, format_args!("{message}"));
            prop_assert!(line.starts_with("1970-01-01T00:00:00Z error "));
            let text = line.strip_suffix('\n').unwrap();
            prop_assert!(text.split('\n').skip(1).all(|further| further.is_empty() || further.starts_with(' ')));
            prop_assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
        }
    }

    #[test]
    fn levels_are_read_as_they_are_written() {
        for level in Level::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!("loud".parse::<Level>().unwrap_err().contains("notice"));
    }
}
