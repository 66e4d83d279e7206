//! Errors in a macro's input: a message and the token that it refers to.

use crate::token::Token;

/// An error in the input of a macro.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The token it refers to, as [`Token::origin`].
    pub(crate) origin: usize,
    pub(crate) message: String,
}

impl Fault {
    /// The origin of a fault without a token: the macro call itself.
    pub(crate) const WHOLE: usize = usize::MAX;

    pub(crate) fn new(token: &Token, message: impl Into<String>) -> Self {
        Self::at(token.origin, message)
    }

    /// A fault at a token's [origin](Token::origin).
    pub(crate) fn at(origin: usize, message: impl Into<String>) -> Self {
        Self { origin, message: message.into() }
    }
}
