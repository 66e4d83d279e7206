//! Decides how a program ends: what it prints, and the number it leaves behind.

use std::fmt;
use std::process::{ExitCode, Termination};

/// How a program ended. Return it from `main`.
#[derive(Debug)]
#[must_use = "return it from main, so that the shell knows how it went"]
pub struct Exit(Outcome);

#[derive(Debug)]
enum Outcome {
    /// All went well; this is what was asked for on standard output, if anything.
    Fine(String),
    /// The command line or the configuration is wrong.
    Usage(String),
    /// Something that was needed could not be had.
    Failed(String),
    /// As another program ended, which has told why.
    As(u8),
}

impl Exit {
    /// All went well.
    pub const fn fine() -> Self {
        Self(Outcome::Fine(String::new()))
    }

    /// As a program that ended with this status and has told why itself.
    pub(crate) const fn like(status: u8) -> Self {
        Self(Outcome::As(status))
    }

    /// All went well; `text` is what was asked for.
    pub(crate) const fn told(text: String) -> Self {
        Self(Outcome::Fine(text))
    }

    /// The command line is wrong; `message` says how to put it right.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self(Outcome::Usage(message.to_string()))
    }

    /// Something that was needed could not be had; `message` says what.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self(Outcome::Failed(message.to_string()))
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        bine_log::finish();
        match self.0 {
            Outcome::Fine(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Outcome::Usage(message) => {
                eprintln!("{message}");
                // The number that shells and getopt programs use for wrong usage.
                ExitCode::from(2)
            }
            Outcome::As(status) => ExitCode::from(status),
            Outcome::Failed(message) => {
                eprintln!("bine: {message}");
                ExitCode::FAILURE
            }
        }
    }
}
