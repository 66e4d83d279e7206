//! The errors of commands.

use std::fmt;

use bine_push::Refused;

/// The reason why a command was not executed.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// The hub rejected it.
    Refused(Refused),
    /// The store could not write it.
    Storage(bine_store::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(to),
            Self::Storage(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for Error {}
