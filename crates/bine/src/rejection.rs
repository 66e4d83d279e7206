//! The reasons for which a request does not fit its handler.

/// Why a request does not fit its handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// An argument is missing or wrong: the peer is told which and why.
    Bad {
        /// The argument.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The body is not here yet. Ask again with up to `limit` bytes of it.
    NeedsBody {
        /// The most bytes this handler takes.
        limit: u64,
    },
    /// It is at another address of this program for whoever asks: they are sent there.
    Elsewhere {
        /// Path and query.
        location: String,
    },
    /// It is for users, and nobody has logged in: the peer is told so by a 401.
    NeedsUser,
}

impl Rejection {
    /// Argument `name` is wrong for `reason`.
    pub fn bad(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Bad { name, reason: reason.into() }
    }
}
