//! Decides what markup consists of once it is read: the syntax between the parser and the writers.

use crate::token::Token;

/// One thing among the children of an element, or among the roots.
#[derive(Debug)]
pub(crate) enum Node {
    Doctype,
    /// Text as the reader of the page sees it, and where it begins.
    Text(String, usize),
    /// Text inside `<script>` or `<style>`, which is never escaped.
    RawText(String),
    Element(Element),
    /// `<Live>`: what a browser keeps as it is at the server.
    Live(Element),
    Hole(Vec<Token>),
    /// A hole inside `<script>` or `<style>`.
    RawHole(Vec<Token>),
    For {
        pattern: Vec<Token>,
        iterator: Vec<Token>,
        body: Vec<Node>,
    },
    If {
        branches: Vec<Branch>,
        otherwise: Vec<Node>,
    },
    Match {
        value: Vec<Token>,
        arms: Vec<Branch>,
    },
}

/// A condition of `if`, or a pattern (and its guard) of `match`, with the markup it chooses.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) head: Vec<Token>,
    pub(crate) body: Vec<Node>,
}

/// An element with its attributes and children.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    /// The [origin](Token::origin) of its name.
    pub(crate) origin: usize,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Node>,
}

impl Element {
    /// The attribute of that name, in any case.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}

/// One attribute.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    /// It stands in quotes, which says that it is not to be looked up.
    pub(crate) is_quoted: bool,
    pub(crate) value: Value,
    /// The [origins](Token::origin) of its name and its value.
    pub(crate) origin: usize,
    pub(crate) value_origin: usize,
}

/// What an attribute is given.
#[derive(Debug)]
pub(crate) enum Value {
    /// Nothing: the attribute is there, that is all.
    Bare,
    Text(String),
    Hole(Vec<Token>),
}
