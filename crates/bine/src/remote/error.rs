//! The errors of calls, and how they map to the response of the request that made the call.

use std::fmt;

use bine_http::Status;
use serde_json::Value;

use super::address::Address;
use crate::error::{ErrorMapping, MappedError};

/// Why a call failed.
///
/// The `?` operator converts it to a [`bine::Error`](crate::Error). A refusal with a message keeps
/// its status and its message for the user. [`Misused`](Self::Misused) becomes 500, every other
/// error 502 or 504, with its text in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The call was not sent: the address, a path or an argument is invalid.
    Misused(String),
    /// The server did not receive the call: it may be repeated, or sent to a different server.
    Unreached(String),
    /// The call was sent, but there was no response: it may have been carried out, or not.
    Unanswered(String),
    /// There was no response within the time limit: the call may have been carried out, or not.
    TimedOut(String),
    /// The server refused the call.
    Refused {
        /// The server's address.
        by: String,
        /// The status of its response.
        status: Status,
        /// Its message for users; empty if it has no message.
        message: String,
    },
    /// The call was carried out, but its answer is too long or has the wrong type.
    Misunderstood(String),
}

/// Characters of a refusal's message that are kept: it is a short text for users.
const MAX_MESSAGE: usize = 1000;

impl Error {
    /// Creates the error for a refusal from the response.
    pub(super) fn refused(by: &Address, status: Status, kind: &str, body: &[u8]) -> Self {
        let is_problem =
            kind.split(';').next().unwrap_or_default().trim() == "application/problem+json";
        let problem = is_problem.then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
        // RFC 9457 section 3.1: the detail describes this occurrence, the title the problem's type.
        // Without a type (section 4.2.1), the title repeats the status.
        let kind = problem.as_ref().and_then(|problem| problem.get("type")?.as_str());
        let words: &[&str] =
            if kind == Some("about:blank") { &["detail"] } else { &["detail", "title"] };
        let message = words.iter().find_map(|name| problem.as_ref()?.get(name)?.as_str());
        let message = message.unwrap_or_default().chars().take(MAX_MESSAGE).collect();
        Self::Refused { by: by.to_string(), status, message }
    }

    /// The status and the message of a response to a request that fails with this error.
    pub(crate) fn told(&self) -> (Status, Option<String>) {
        match self {
            // A message in a refusal is meant for users. A refusal without one concerns only the
            // two servers.
            Self::Refused { status, message, .. } if !message.is_empty() => {
                (*status, Some(message.clone()))
            }
            Self::Misused(_) => (Status::INTERNAL_SERVER_ERROR, None),
            Self::TimedOut(_) => (Status::GATEWAY_TIMEOUT, None),
            _ => (Status::BAD_GATEWAY, None),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misused(what)
            | Self::Unreached(what)
            | Self::Unanswered(what)
            | Self::TimedOut(what)
            | Self::Misunderstood(what) => to.write_str(what),
            Self::Refused { by, status, message } => {
                write!(to, "{by}: refused with {} {}", status.code(), status.reason())?;
                if message.is_empty() { Ok(()) } else { write!(to, ": {message}") }
            }
        }
    }
}

impl std::error::Error for Error {}

inventory::submit! {
    ErrorMapping(|error| {
        let (status, message) = error.downcast_ref::<Error>()?.told();
        Some(MappedError::new(status, message))
    })
}
