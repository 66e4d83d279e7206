//! [`Node`]: the nodes of a tree.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use super::{Element, RawMarkup, Tree};
use crate::Raw;

/// A node of a tree.
#[derive(Clone)]
pub enum Node {
    /// An element with its descendants.
    Element(Element),
    /// Text, escaped when it is written. In `<script>` and `<style>`, where a browser decodes no
    /// references, it is omitted.
    Text(Cow<'static, str>),
    /// Markup, or code in `<script>` and `<style>`, written unchanged. A program creates it from
    /// [`raw`](crate::raw) text, whose `data-on` handlers are disabled:
    ///
    /// ```
    /// use bine_html::raw;
    /// use bine_html::tree::{Node, Tree};
    ///
    /// let note = Node::from(raw("<p data-on='click: call /delete'>"));
    /// assert_eq!(Tree::from(note).to_string(), "<p data&#45;on='click: call /delete'>");
    /// ```
    ///
    /// No other constructor exists:
    ///
    /// ```compile_fail
    /// use bine_html::Raw;
    /// use bine_html::tree::Node;
    ///
    /// Node::Raw(Raw("<p data-on='click: call /delete'>".into()));
    /// ```
    Raw(RawMarkup),
    /// A comment. Its text cannot end the comment early.
    Comment(Cow<'static, str>),
    /// `<!DOCTYPE html>`.
    Doctype,
    /// A custom node, which expands to other nodes.
    Custom(Arc<dyn Expand>),
}

/// A custom kind of node. The writer of a tree replaces it by its expansion.
///
/// Before that it is a single node, and selectors do not match inside it. A
/// [`TreeWriter`](super::TreeWriter) can recognize it with
/// `(node as &dyn Any).downcast_ref::<Kind>()`.
pub trait Expand: Any + Send + Sync {
    /// The replacement. It may contain custom nodes again, up to thirty-two levels deep.
    fn expand(&self) -> Tree;
}

impl Node {
    /// A text node.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A comment node.
    pub fn comment(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Comment(text.into())
    }

    /// A custom node.
    pub fn custom(kind: impl Expand) -> Self {
        Self::Custom(Arc::new(kind))
    }

    /// The element, if the node is one.
    pub const fn as_element(&self) -> Option<&Element> {
        match self {
            Self::Element(element) => Some(element),
            _ => None,
        }
    }

    /// The element, mutable, if the node is one.
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

/// Two nodes are equal if their markup is equal. Custom nodes are equal if they are the same
/// object.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        super::walk::are_alike(core::slice::from_ref(self), core::slice::from_ref(other))
    }
}

/// Shows the markup.
impl fmt::Debug for Node {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tree::from(Vec::from([self.clone()])).fmt(to)
    }
}
