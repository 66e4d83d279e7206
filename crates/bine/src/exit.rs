//! The exit status of a program, and its last output.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

/// The result of a program. Return it from `main`.
#[derive(Debug)]
#[must_use = "return it from main, so that the shell gets the exit status"]
pub struct Exit(ExitKind);

#[derive(Debug)]
enum ExitKind {
    /// Success, with the text to print to standard output, if any.
    Fine(String),
    /// The command line or the configuration is invalid.
    Usage(String),
    /// The program could not start or continue.
    Failed(String),
    /// The text to print to standard output is a list of mistakes.
    Mistakes(String),
    /// The exit status of a child process, which has printed its own error.
    Status(u8),
}

impl Exit {
    /// Success.
    pub const fn success() -> Self {
        Self(ExitKind::Fine(String::new()))
    }

    /// Passes on the exit status of a child process, which has printed its own error.
    pub(crate) const fn with_status(status: u8) -> Self {
        Self(ExitKind::Status(status))
    }

    /// Success; prints `text`.
    pub(crate) const fn output(text: String) -> Self {
        Self(ExitKind::Fine(text))
    }

    /// Failure; prints `text`, a list of mistakes, to standard output.
    pub const fn mistakes(text: String) -> Self {
        Self(ExitKind::Mistakes(text))
    }

    /// Whether it is a success.
    pub const fn is_success(&self) -> bool {
        matches!(self.0, ExitKind::Fine(_) | ExitKind::Status(0))
    }

    /// The command line is invalid; `message` names the correction.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self(ExitKind::Usage(message.to_string()))
    }

    /// The program failed; `message` is the reason.
    pub fn failure(message: impl fmt::Display) -> Self {
        Self(ExitKind::Failed(message.to_string()))
    }
}

/// The name under which the program was started, for its messages.
pub(crate) fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name).map(OsStr::to_string_lossy);
    name.map_or_else(|| "bine".to_owned(), Cow::into_owned)
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        bine_log::finish();
        match self.0 {
            ExitKind::Fine(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            ExitKind::Mistakes(text) => {
                print!("{text}");
                ExitCode::FAILURE
            }
            ExitKind::Usage(message) => {
                eprintln!("{message}");
                // The exit status that shells and getopt programs use for wrong usage.
                ExitCode::from(2)
            }
            ExitKind::Status(status) => ExitCode::from(status),
            ExitKind::Failed(message) => {
                eprintln!("{}: {message}", program_name());
                ExitCode::FAILURE
            }
        }
    }
}
