//! Markup trees: pages that a program builds, searches, changes and serializes in several formats.
//!
//! `tree!` builds a [`Tree`], a sequence of [nodes](Node). A tree is a page like any other: it can
//! be written any number of times, alone or in a hole.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bine_vocabulary::is_raw_text;

use crate::{Flow, Html, Page, Parts, Phrasing, Render, ScriptSupporting, Writer};

mod build;
mod check;
mod contents;
mod edit;
mod element;
mod feed;
mod markup;
mod name;
mod node;
mod plain;
mod polyglot;
mod raw_markup;
mod search;
mod selector;
mod time;
mod value;
mod walk;
mod write;
mod xhtml;

#[doc(hidden)]
pub use build::Builder;
pub use check::Finding;
pub use contents::TableOfContents;
pub use edit::Place;
pub use element::Element;
pub use feed::{Feed, FeedWriter};
pub use markup::Subtree;
pub use name::TreeError;
pub use node::{Expand, Node};
pub use plain::PlainText;
pub use polyglot::Polyglot;
pub use raw_markup::RawMarkup;
pub use search::Matches;
pub use selector::{AsSelector, Selector, SelectorError};
pub use walk::Walk;
pub use write::TreeWriter;
pub use xhtml::Xhtml;

/// A page, or a part of one, as a value: a sequence of nodes.
///
/// A clone shares all nodes with its original until either of them is changed.
#[derive(Clone, Default)]
pub struct Tree {
    roots: Arc<Vec<Node>>,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a root node.
    pub fn push(&mut self, node: impl Into<Node>) {
        self.roots_mut().push(node.into());
    }

    /// The root nodes, mutable.
    pub fn roots_mut(&mut self) -> &mut Vec<Node> {
        Arc::make_mut(&mut self.roots)
    }

    /// The root nodes.
    pub fn roots(&self) -> &[Node] {
        &self.roots
    }

    /// All nodes in document order: parents before children.
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self.roots())
    }

    /// The concatenated text of all nodes.
    pub fn text(&self) -> String {
        walk::text(self.roots())
    }

    /// The places where the tree violates HTML's content model. Custom nodes are not expanded.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        check::check(self.roots(), &mut |finding| findings.push(finding));
        findings
    }

    /// Whether the tree is certain to be well-formed XML when written as XHTML. Raw markup and
    /// custom nodes are not certain. Code in a script is escaped.
    fn is_certainly_xml(&self) -> bool {
        // The number of following nodes that are children of a script.
        let (mut nodes, mut code) = (self.walk(), 0);
        nodes.all(|node| match node {
            Node::Element(element) if is_raw_text(element.name()) => {
                code = element.children().len();
                true
            }
            Node::Raw(_) if code > 0 => {
                code -= 1;
                true
            }
            Node::Raw(_) | Node::Custom(_) => false,
            _ => {
                code = code.saturating_sub(1);
                true
            }
        })
    }

    /// Writes the tree with `by`.
    pub fn write_with(&self, mut by: impl TreeWriter, to: &mut Writer<'_>) {
        if let Some(report) = to.inspector() {
            check::check(self.roots(), &mut |finding| report(&finding));
        }
        write::write(self.roots(), &mut by, to);
    }

    /// Writes the tree with `by` into a new string.
    pub fn to_string_with(&self, by: impl TreeWriter) -> String {
        value::written(|writer| self.write_with(by, writer))
    }

    /// A page that writes the tree with `by`. Every hole accepts it.
    pub fn with_writer<W: TreeWriter>(
        self,
        by: W,
    ) -> impl Html<Flow> + Html<Phrasing> + Html<Parts> + use<W> {
        crate::page::<ScriptSupporting, _>(move |writer: &mut Writer<'_>| {
            self.write_with(by, writer);
        })
    }
}

impl Page for Tree {
    fn write(self, writer: &mut Writer<'_>) {
        self.render(writer);
    }

    fn is_whole(&self) -> bool {
        self.roots().iter().any(Page::is_whole)
    }

    fn is_this_document(&self) -> bool {
        let has_html = |node: &Node| node.as_element().is_some_and(|root| root.name() == "html");
        self.roots().iter().any(has_html) && self.is_certainly_xml()
    }

    fn graft(self, builder: &mut Builder) {
        Render::graft(&self, builder);
    }
}

/// Lets a hole show a kept tree by reference, so that it can be written again.
impl Render for Tree {
    fn render(&self, writer: &mut Writer<'_>) {
        if writer.is_in_xml() {
            self.write_with(Xhtml::default(), writer);
        } else {
            self.write_with(Polyglot, writer);
        }
    }

    fn graft(&self, builder: &mut Builder) {
        builder.push_tree(self);
    }
}

impl Page for Node {
    fn write(self, writer: &mut Writer<'_>) {
        self.render(writer);
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Doctype => true,
            Self::Element(element) => element.is_whole(),
            _ => false,
        }
    }

    fn graft(self, builder: &mut Builder) {
        builder.push(self);
    }
}

impl Render for Node {
    fn render(&self, writer: &mut Writer<'_>) {
        Tree::from(self.clone()).render(writer);
    }

    fn graft(&self, builder: &mut Builder) {
        builder.push(self.clone());
    }
}

impl Page for Element {
    fn write(self, writer: &mut Writer<'_>) {
        self.render(writer);
    }

    fn is_whole(&self) -> bool {
        ["html", "head", "body"].contains(&self.name())
    }

    fn graft(self, builder: &mut Builder) {
        builder.push(self.into());
    }
}

impl Render for Element {
    fn render(&self, writer: &mut Writer<'_>) {
        Node::from(self.clone()).render(writer);
    }

    fn graft(&self, builder: &mut Builder) {
        builder.push(self.clone().into());
    }
}

impl<N: Into<Node>> From<N> for Tree {
    fn from(node: N) -> Self {
        Self::from(Vec::from([node.into()]))
    }
}

impl From<Vec<Node>> for Tree {
    fn from(roots: Vec<Node>) -> Self {
        Self { roots: Arc::new(roots) }
    }
}

impl<N: Into<Node>> FromIterator<N> for Tree {
    fn from_iter<I: IntoIterator<Item = N>>(nodes: I) -> Self {
        Self::from(nodes.into_iter().map(Into::into).collect::<Vec<Node>>())
    }
}

impl<N: Into<Node>> Extend<N> for Tree {
    fn extend<I: IntoIterator<Item = N>>(&mut self, nodes: I) {
        self.roots_mut().extend(nodes.into_iter().map(Into::into));
    }
}

/// Writes the markup.
impl fmt::Display for Tree {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.to_string_with(Polyglot))
    }
}

/// Shows the markup.
impl fmt::Debug for Tree {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Tree({self})")
    }
}

/// Two trees are equal if their markup is equal. Custom nodes are equal if they are the same
/// object.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        walk::are_alike(self.roots(), other.roots())
    }
}

#[cfg(test)]
mod tests;
