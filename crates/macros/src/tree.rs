//! Decides what markup consists of once it is read: the syntax between the parser and the writers.

use crate::token::Token;

/// One thing among the children of an element, or among the roots.
#[derive(Debug)]
pub(crate) enum Node {
    Doctype,
    /// Text as the reader of the page sees it.
    Text(String),
    /// Text inside `<script>` or `<style>`, which is never escaped.
    RawText(String),
    Element(Element),
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
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Node>,
}

/// One attribute.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// What an attribute is given.
#[derive(Debug)]
pub(crate) enum Value {
    /// Nothing: the attribute is there, that is all.
    Bare,
    Text(String),
    Hole(Vec<Token>),
}

/// The elements that cannot have children (HTML, section 13.1.2, "Void elements").
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Whether an element of that name, in any case, cannot have children.
pub(crate) fn is_void(name: &str) -> bool {
    VOID.iter().any(|void| void.eq_ignore_ascii_case(name))
}

/// Whether a browser reads the content of such an element, in any case, without undoing escapes.
pub(crate) fn is_raw_text(name: &str) -> bool {
    ["script", "style"].iter().any(|raw| raw.eq_ignore_ascii_case(name))
}
