//! The syntax tree of a style sheet.

use super::lex::Piece;

/// A statement.
#[derive(Debug)]
pub enum Item<'p> {
    /// A rule with a selector.
    Rule(Rule<'p>),
    /// An at-rule.
    At(AtRule<'p>),
    /// A property and its value.
    Declaration(Declaration<'p>),
}

/// A selector, or a step of an animation, and its block.
#[derive(Debug)]
pub struct Rule<'p> {
    /// The selector or the step.
    pub prelude: &'p [Piece<'p>],
    /// The content of the braces.
    pub block: Vec<Item<'p>>,
    /// The byte offset of the block.
    pub at: usize,
}

/// A rule that begins with `@`.
#[derive(Debug)]
pub struct AtRule<'p> {
    /// The name with its `@`.
    pub name: Piece<'p>,
    /// The tokens between the name and the block.
    pub prelude: &'p [Piece<'p>],
    /// `None` for a rule that ends with a semicolon.
    pub block: Option<Vec<Item<'p>>>,
}

/// A property or a descriptor with its value.
#[derive(Debug)]
pub struct Declaration<'p> {
    /// The name of the property.
    pub name: Piece<'p>,
    /// The tokens after the colon.
    pub value: &'p [Piece<'p>],
}
