//! The tokens at the start of a macro that may make a module: the `bine` crate, then `mod name;`, or `mod name =`.

use crate::token::{Delimiter, Token};

/// The tokens before the content.
pub(crate) struct ModuleHead<'t> {
    pub(crate) krate: &'t [Token],
    /// The visibility of the module.
    pub(crate) visibility: &'t [Token],
    /// The name of the module; `None`: the macro makes none.
    pub(crate) module: Option<&'t Token>,
}

impl<'t> ModuleHead<'t> {
    /// Reads the head, which ends with `end` if it makes a module. Returns it and the other tokens.
    pub(crate) fn read(tokens: &'t [Token], end: &str) -> (Self, &'t [Token]) {
        let (krate, tokens) = match tokens.split_first() {
            Some((first, rest)) => (first.group(Delimiter::Bracket).unwrap_or_default(), rest),
            None => (tokens, tokens),
        };
        let is_visibility =
            |token: &&Token| token.is("pub") || token.group(Delimiter::Parenthesis).is_some();
        let visible = match tokens.first() {
            Some(first) if first.is("pub") => {
                tokens.iter().take(2).take_while(is_visibility).count()
            }
            _ => 0,
        };
        match &tokens[visible..] {
            [word, name, last, rest @ ..] if word.is("mod") && name.is_word() && last.is(end) => {
                (Self { krate, visibility: &tokens[..visible], module: Some(name) }, rest)
            }
            _ => (Self { krate, visibility: &[], module: None }, tokens),
        }
    }
}
