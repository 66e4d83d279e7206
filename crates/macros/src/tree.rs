//! The syntax tree of markup, with tokens in its holes.

use crate::token::Token;

pub(crate) use bine_markup::has_bindings;

pub(crate) type Node = bine_markup::Node<Vec<Token>>;
pub(crate) type Branch = bine_markup::Branch<Vec<Token>>;
pub(crate) type Element = bine_markup::Element<Vec<Token>>;
pub(crate) type Attribute = bine_markup::Attribute<Vec<Token>>;
pub(crate) type Value = bine_markup::Value<Vec<Token>>;
