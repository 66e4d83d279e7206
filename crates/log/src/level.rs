//! Severity levels of messages in the error log.

use std::str::FromStr;

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
