//! Decides why a call of another server brought no answer, and whether it may be tried again.

use std::fmt;

use bine_http::Status;
use serde_json::Value;

use super::address::Address;
use crate::error::{ErrorMapping, MappedError};

/// Why a call brought no answer.
///
/// By `?` it becomes a [`bine::Error`](crate::Error) with the other's status and words for whoever asked, where it
/// refused, and otherwise with 502 or 504, its own words in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The call was not made: the address, a path or an argument is wrong.
    Misused(String),
    /// The other has not seen the call: it may be tried again, or elsewhere.
    Unreached(String),
    /// The call went out and no answer came: it may have been carried out, or not.
    Unanswered(String),
    /// The same, because the time for it was over.
    TimedOut(String),
    /// The other refused.
    Refused {
        /// Its address.
        by: String,
        /// How.
        status: Status,
        /// Why, in its own words for users; empty if it has none.
        message: String,
    },
    /// The call was carried out, but its answer makes no sense here: it is too long, or of another type.
    Misunderstood(String),
}

/// What a service says of a refusal is for people; no page needs more.
const LONGEST_MESSAGE: usize = 1000;

impl Error {
    /// The other's refusal, from what it answered.
    pub(super) fn refused(by: &Address, status: Status, kind: &str, body: &[u8]) -> Self {
        let is_problem =
            kind.split(';').next().unwrap_or_default().trim() == "application/problem+json";
        let problem = is_problem.then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
        // RFC 9457 section 3.1: the detail is about this time, the title about all of its kind, and without a kind (section
        // 4.2.1) no more than the status.
        let kind = problem.as_ref().and_then(|problem| problem.get("type")?.as_str());
        let words: &[&str] =
            if kind == Some("about:blank") { &["detail"] } else { &["detail", "title"] };
        let message = words.iter().find_map(|name| problem.as_ref()?.get(name)?.as_str());
        let message = message.unwrap_or_default().chars().take(LONGEST_MESSAGE).collect();
        Self::Refused { by: by.to_string(), status, message }
    }

    /// The status with which a request is answered that fails by this, and its words for users.
    pub(crate) fn told(&self) -> (Status, Option<String>) {
        match self {
            // Words that are there are meant for users; a refusal without any is between the servers.
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
