//! The errors of a cluster, by blame.

use std::fmt::{self, Display, Formatter};

/// A failure. Its text names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A call or an option is wrong.
    Misuse(String),
    /// No server answers, or none does in time.
    Unreachable(String),
    /// The server rejects the credentials.
    Unauthorized(String),
    /// No TLS connection can be opened, because one side does not trust the other, or uses no TLS.
    Untrusted(String),
    /// The server or its stream cannot carry this cluster.
    Unsuitable(String),
    /// The server reports a failure.
    Server(String),
    /// A snapshot is damaged or incomplete.
    Damaged(String),
    /// The node has left the cluster.
    Left,
}

impl Display for Error {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(text)
            | Self::Unreachable(text)
            | Self::Unauthorized(text)
            | Self::Untrusted(text)
            | Self::Unsuitable(text)
            | Self::Server(text)
            | Self::Damaged(text) => formatter.write_str(text),
            Self::Left => formatter.write_str("the node has left the cluster"),
        }
    }
}

impl std::error::Error for Error {}

/// The text of the innermost error, without the number that the system adds.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_lowercase()
}
