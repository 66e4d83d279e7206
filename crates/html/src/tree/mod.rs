//! Decides what a page is that a program builds, looks into, changes, keeps and writes in more than one way.
//!
//! A [`Tree`] is what `tree!` makes: [nodes](Node) in a row. It is a page like any other, so it is written once or
//! often, alone or in a hole.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bine_vocabulary::is_raw_text;

use crate::{Anywhere, Flow, Html, Page, Parts, Phrasing, Render, Writer};

mod build;
mod check;
mod contents;
mod edit;
mod element;
mod feed;
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
pub use contents::Contents;
pub use edit::Place;
pub use element::Element;
pub use feed::{Feed, FeedWriter};
pub use name::Refused;
pub use node::{Expand, Node};
pub use plain::PlainText;
pub use polyglot::Polyglot;
pub use raw_markup::RawMarkup;
pub use search::Found;
pub use selector::{AsSelector, Selector, SelectorError};
pub use walk::Walk;
pub use write::{Below, TreeWriter};
pub use xhtml::Xhtml;

/// A page, or a part of one, as a value: any number of nodes in a row.
///
/// A clone shares all nodes with its original until one of the two is changed.
#[derive(Clone, Default)]
pub struct Tree {
    roots: Arc<Vec<Node>>,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node behind all others.
    pub fn push(&mut self, node: impl Into<Node>) {
        self.roots_mut().push(node.into());
    }

    /// The nodes that stand in no other, to be changed.
    pub fn roots_mut(&mut self) -> &mut Vec<Node> {
        Arc::make_mut(&mut self.roots)
    }

    /// The nodes that stand in no other.
    pub fn roots(&self) -> &[Node] {
        &self.roots
    }

    /// All nodes, each before what is below it.
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self.roots())
    }

    /// All text, as a reader sees it.
    pub fn text(&self) -> String {
        walk::text(self.roots())
    }

    /// What is wrong with the tree by what HTML says may stand where. What own nodes become is not looked at.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        check::check(self.roots(), &mut |finding| findings.push(finding));
        findings
    }

    /// Whether all that is in it is known to be XML where it is written so: markup is not, and neither are nodes of own
    /// kinds. What is in a script is escaped.
    fn is_known_as_xml(&self) -> bool {
        // Of the nodes that come next, so many at least are in a script.
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
            Node::Raw(_) | Node::Own(_) => false,
            _ => {
                code = code.saturating_sub(1);
                true
            }
        })
    }

    /// Writes the tree in another way.
    pub fn write_by(&self, mut by: impl TreeWriter, to: &mut Writer<'_>) {
        if let Some(tell) = to.inspector() {
            check::check(self.roots(), &mut |finding| tell(&finding));
        }
        write::write(self.roots(), &mut by, to);
    }

    /// The same into text of its own.
    pub fn to_string_by(&self, by: impl TreeWriter) -> String {
        value::written(|writer| self.write_by(by, writer))
    }

    /// The tree as a page that is written in another way; it stands in every hole.
    pub fn written_by<W: TreeWriter>(
        self,
        by: W,
    ) -> impl Html<Flow> + Html<Phrasing> + Html<Parts> + use<W> {
        crate::page::<Anywhere, _>(move |writer: &mut Writer<'_>| self.write_by(by, writer))
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
        self.roots().iter().any(has_html) && self.is_known_as_xml()
    }

    fn graft(self, builder: &mut Builder) {
        Render::graft(&self, builder);
    }
}

/// A tree that is kept stands in a hole too, to be written again.
impl Render for Tree {
    fn render(&self, writer: &mut Writer<'_>) {
        if writer.is_in_xml() {
            self.write_by(Xhtml::default(), writer);
        } else {
            self.write_by(Polyglot, writer);
        }
    }

    fn graft(&self, builder: &mut Builder) {
        builder.kept(self);
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

/// As markup.
impl fmt::Display for Tree {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.to_string_by(Polyglot))
    }
}

/// As it is written.
impl fmt::Debug for Tree {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Tree({self})")
    }
}

/// Equal are trees that are written alike, own nodes if they are the same.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        walk::are_alike(self.roots(), other.roots())
    }
}

#[cfg(test)]
mod tests;
