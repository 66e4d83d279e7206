//! Decides how a mistake is told: one sentence, on the exact token.

use crate::token::Token;

/// A mistake in what the macro was given.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The token it is about, as [`Token::origin`].
    pub(crate) origin: usize,
    pub(crate) message: String,
}

impl Fault {
    /// The origin of a fault that no single token has: the macro's call.
    pub(crate) const WHOLE: usize = usize::MAX;

    pub(crate) fn new(token: &Token, message: impl Into<String>) -> Self {
        Self::at(token.origin, message)
    }

    /// The same by the token's [origin](Token::origin) alone.
    pub(crate) fn at(origin: usize, message: impl Into<String>) -> Self {
        Self { origin, message: message.into() }
    }
}
