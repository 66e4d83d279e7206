//! The syntax tree of markup. `C` is the code of a hole, which only its language understands.

/// A child of an element, or a root.
#[derive(Debug)]
pub enum Node<C> {
    /// `<!DOCTYPE html>`.
    Doctype,
    /// Text, unescaped, and the origin of its first token.
    Text(String, usize),
    /// Text inside `<script>` or `<style>`, which is never escaped.
    RawText(String),
    /// An element with its content.
    Element(Element<C>),
    /// `<Live>`: a region that the browser keeps up to date.
    Live(Element<C>),
    /// A hole, and the origin of its code.
    Hole(C, usize),
    /// A hole inside `<script>` or `<style>`.
    RawHole(C),
    /// `let` statements, whose variables the following siblings and their content can use.
    Let(C),
    /// Markup that is repeated.
    For {
        /// The variables of one iteration.
        pattern: C,
        /// The items.
        iterator: C,
        /// The markup of one iteration.
        body: Vec<Node<C>>,
    },
    /// Markup of the first condition that holds.
    If {
        /// The conditions in order.
        branches: Vec<Branch<C>>,
        /// The markup if none holds.
        otherwise: Vec<Node<C>>,
    },
    /// Markup of the first pattern that matches.
    Match {
        /// The value.
        value: C,
        /// The patterns in order.
        arms: Vec<Branch<C>>,
    },
}

/// Whether one of the siblings declares variables, so that their scope must end with them.
pub fn has_bindings<C>(siblings: &[Node<C>]) -> bool {
    siblings.iter().any(|node| matches!(node, Node::Let(_)))
}

/// A condition of `if`, or a pattern of `match` with its guard, and the markup of that branch.
#[derive(Debug)]
pub struct Branch<C> {
    /// The condition or the pattern.
    pub head: C,
    /// The markup.
    pub body: Vec<Node<C>>,
}

/// An element with its attributes and children.
#[derive(Debug)]
pub struct Element<C> {
    /// The name as written.
    pub name: String,
    /// The origin of the name.
    pub origin: usize,
    /// Whether it may have further attributes, known only at run time.
    pub has_more_attributes: bool,
    /// The attributes in order, each name once.
    pub attributes: Vec<Attribute<C>>,
    /// The content; empty in a void element.
    pub children: Vec<Node<C>>,
}

impl<C> Element<C> {
    /// The attribute of that name, compared without regard to case.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<C>> {
        self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}

/// An attribute of an element.
#[derive(Debug)]
pub struct Attribute<C> {
    /// The name as written, without quotes.
    pub name: String,
    /// Whether the name is quoted and so not looked up in the standard.
    pub is_quoted: bool,
    /// The value.
    pub value: Value<C>,
    /// The origin of the name.
    pub origin: usize,
    /// The origin of the value.
    pub value_origin: usize,
}

/// The value of an attribute.
#[derive(Debug)]
pub enum Value<C> {
    /// No value.
    Bare,
    /// A constant, unescaped.
    Text(String),
    /// An expression.
    Hole(C),
}
