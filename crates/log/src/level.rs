//! Severity levels of messages in the error log.

use std::str::FromStr;

/// The severity of a message. A severe level compares less than a mild one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// An operation failed, and a client or the operator did not get the requested result.
    Error,
    /// The operator should act before an operation fails.
    Warning,
    /// A rare event, for example a start or a reload.
    #[default]
    Notice,
    /// Details for the search for a fault.
    Debug,
}

impl Level {
    /// All levels, the most severe first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Notice, Self::Debug];

    /// The name of the level in a line and in the configuration.
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
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known.ok_or_else(|| format!("unknown level `{text}`; use error, warning, notice or debug"))
    }
}
