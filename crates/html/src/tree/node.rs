//! Decides what a tree consists of.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use super::{Element, RawMarkup, Tree};
use crate::Raw;

/// One thing in a tree.
#[derive(Clone)]
pub enum Node {
    /// An element, with all that is below it.
    Element(Element),
    /// Text, escaped when it is written. In `<script>` and `<style>`, where no escape is undone, it is left out.
    Text(Cow<'static, str>),
    /// Markup, written as it is; code in `<script>` and `<style>`. A program makes it of [`raw`](crate::raw) text, which
    /// has no `data-on` handlers then:
    ///
    /// ```
    /// use bine_html::raw;
    /// use bine_html::tree::{Node, Tree};
    ///
    /// let note = Node::from(raw("<p data-on='click: call /delete'>"));
    /// assert_eq!(Tree::from(note).to_string(), "<p data&#45;on='click: call /delete'>");
    /// ```
    ///
    /// There is no other way:
    ///
    /// ```compile_fail
    /// use bine_html::Raw;
    /// use bine_html::tree::Node;
    ///
    /// Node::Raw(Raw("<p data-on='click: call /delete'>".into()));
    /// ```
    Raw(RawMarkup),
    /// A comment, which cannot be left by whatever it says.
    Comment(Cow<'static, str>),
    /// `<!DOCTYPE html>`.
    Doctype,
    /// A node of the program's own kind, which becomes others when it is met.
    Own(Arc<dyn Expand>),
}

/// A kind of node of the program's own: when a tree is written, what it expands to is written in its place.
///
/// Until then it is one node, which no selector looks into. A [`TreeWriter`](super::TreeWriter) may treat it as it
/// likes: `(node as &dyn Any).downcast_ref::<Kind>()` tells it from others.
pub trait Expand: Any + Send + Sync {
    /// What stands in its place. Nodes of own kinds may be in it again, thirty-two deep.
    fn expand(&self) -> Tree;
}

impl Node {
    /// Text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A comment.
    pub fn comment(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Comment(text.into())
    }

    /// A node of the program's own kind.
    pub fn own(kind: impl Expand) -> Self {
        Self::Own(Arc::new(kind))
    }

    /// The element, if it is one.
    pub const fn as_element(&self) -> Option<&Element> {
        match self {
            Self::Element(element) => Some(element),
            _ => None,
        }
    }

    /// The element, to be changed.
    pub const fn as_element_mut(&mut self) -> Option<&mut Element> {
        match self {
            Self::Element(element) => Some(element),
            _ => None,
        }
    }
}

impl From<Element> for Node {
    fn from(element: Element) -> Self {
        Self::Element(element)
    }
}

impl From<&'static str> for Node {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<T: Into<Cow<'static, str>>> From<Raw<T>> for Node {
    fn from(markup: Raw<T>) -> Self {
        Self::Raw(markup.into())
    }
}

/// Equal are nodes that are written alike, own ones if they are the same.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        super::walk::are_alike(core::slice::from_ref(self), core::slice::from_ref(other))
    }
}

/// As it is written.
impl fmt::Debug for Node {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tree::from(Vec::from([self.clone()])).fmt(to)
    }
}
