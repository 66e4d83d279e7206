//! The syntax tree of markup, which the parser produces and the emitters consume.

use crate::token::Token;

/// A child of an element, or a root.
#[derive(Debug)]
pub(crate) enum Node {
    Doctype,
    /// Text, unescaped, and the origin of its first token.
    Text(String, usize),
    /// Text inside `<script>` or `<style>`, which is never escaped.
    RawText(String),
    Element(Element),
    /// `<Live>`: a region that the browser keeps up to date.
    Live(Element),
    Hole(Vec<Token>),
    /// A hole inside `<script>` or `<style>`.
    RawHole(Vec<Token>),
    /// `let` statements, whose variables the following siblings and their content can use.
    Let(Vec<Token>),
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

/// Whether one of the siblings declares variables, so that their scope must end with them.
pub(crate) fn has_bindings(siblings: &[Node]) -> bool {
    siblings.iter().any(|node| matches!(node, Node::Let(_)))
}

/// A condition of `if`, or a pattern of `match` with its guard, and the markup of that branch.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) head: Vec<Token>,
    pub(crate) body: Vec<Node>,
}

/// An element with its attributes and children.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    /// The [origin](Token::origin) of the name.
    pub(crate) origin: usize,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Node>,
}

impl Element {
    /// The attribute of that name, compared without regard to case.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}

/// An attribute of an element.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    /// Whether the name is quoted and so not looked up in the standard.
    pub(crate) is_quoted: bool,
    pub(crate) value: Value,
    /// The [origins](Token::origin) of the name and the value.
    pub(crate) origin: usize,
    pub(crate) value_origin: usize,
}

/// The value of an attribute.
#[derive(Debug)]
pub(crate) enum Value {
    /// No value.
    Bare,
    Text(String),
    Hole(Vec<Token>),
}
