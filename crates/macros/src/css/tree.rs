//! The syntax tree of a style sheet.

use super::lex::Piece;

/// A statement.
#[derive(Debug)]
pub(crate) enum Item<'p> {
    Rule(Rule<'p>),
    At(AtRule<'p>),
    Declaration(Declaration<'p>),
}

/// A selector, or a step of an animation, and its block.
#[derive(Debug)]
pub(crate) struct Rule<'p> {
    pub(crate) prelude: &'p [Piece<'p>],
    pub(crate) block: Vec<Item<'p>>,
    /// The byte offset of the block.
    pub(crate) at: usize,
}

/// A rule that begins with `@`.
#[derive(Debug)]
pub(crate) struct AtRule<'p> {
    pub(crate) name: Piece<'p>,
    pub(crate) prelude: &'p [Piece<'p>],
    /// `None` for a rule that ends with a semicolon.
    pub(crate) block: Option<Vec<Item<'p>>>,
}

/// A property or a descriptor with its value.
#[derive(Debug)]
pub(crate) struct Declaration<'p> {
    pub(crate) name: Piece<'p>,
    pub(crate) value: &'p [Piece<'p>],
}
