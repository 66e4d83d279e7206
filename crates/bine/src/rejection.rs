//! The reasons why a request cannot reach its handler.

use crate::visitor_message::MessageText;

/// The reason why a request cannot reach its handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// An argument is missing or invalid. The response names it and the reason.
    Invalid {
        /// The argument.
        name: &'static str,
        /// The reason.
        reason: MessageText,
    },
    /// A parameter of the path is invalid, so that the address does not exist (404).
    InvalidPath {
        /// The parameter.
        name: &'static str,
        /// The reason.
        reason: MessageText,
    },
    /// The body has not been received yet. Repeat the call with up to `limit` bytes.
    NeedsBody {
        /// The longest body that this handler accepts, in bytes.
        limit: u64,
    },
    /// The client is redirected to a different address of this program.
    Redirect {
        /// The path and query.
        location: String,
    },
    /// The handler requires a user, and no user has logged in (401).
    NeedsUser,
}

impl Rejection {
    /// Rejects the argument `name` for `reason`.
    pub fn invalid(name: &'static str, reason: impl Into<MessageText>) -> Self {
        Self::Invalid { name, reason: reason.into() }
    }
}
