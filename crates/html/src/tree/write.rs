//! [`TreeWriter`]: serialization of a tree in one traversal without recursion.

use alloc::vec::Vec;
use core::slice;

use super::markup::{self, Subtree};
use super::{Element, Expand, Node, RawMarkup, Tree};
use crate::Writer;

/// The maximum nesting of custom nodes in expansions. Deeper nodes are omitted, so that a node that
/// expands to itself terminates.
const MAX_EXPANSIONS: usize = 32;

/// A serializer for trees. Each kind of node has a method that writes it as markup by default; an
/// implementation overrides some or all of them.
///
/// ```
/// use bine_html::tree::{Subtree, Element, Polyglot, Tree, TreeWriter};
/// use bine_html::Writer;
///
/// /// Replaces images by their alternative text.
/// struct WithoutPictures;
///
/// impl TreeWriter for WithoutPictures {
///     fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
///         if element.name() != "img" {
///             return Polyglot.open(element, to);
///         }
///         to.text(element.attribute("alt").unwrap_or_default());
///         Subtree::Skip
///     }
/// }
///
/// let mut picture = Element::new("img")?;
/// picture.set_attribute("alt", "a hop & a vine")?;
/// assert_eq!(Tree::from(picture).to_string_with(WithoutPictures), "a hop &amp; a vine");
/// # Ok::<(), bine_html::tree::TreeError>(())
/// ```
pub trait TreeWriter {
    /// Writes output before the tree. The default writes nothing.
    fn begin(&mut self, _to: &mut Writer<'_>) {}

    /// Writes an element's start tag, or the whole element. The result decides whether its children
    /// are visited.
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        markup::open(element, to)
    }

    /// Writes the end tag of an element whose children were visited.
    fn close(&mut self, element: &Element, to: &mut Writer<'_>) {
        markup::close(element, to);
    }

    /// Writes text, escaped.
    fn text(&mut self, text: &str, to: &mut Writer<'_>) {
        to.text(text);
    }

    /// Writes raw markup unchanged. Only a tree can contain such markup:
    ///
    /// ```compile_fail
    /// use bine_html::Writer;
    /// use bine_html::tree::{Polyglot, TreeWriter};
    ///
    /// let mut page = Vec::new();
    /// Polyglot.raw("<p data-on='click: call /delete'>", &mut Writer::new(&mut page));
    /// ```
    fn raw(&mut self, markup: &RawMarkup, to: &mut Writer<'_>) {
        to.unescaped(markup.as_str());
    }

    /// Writes a comment.
    fn comment(&mut self, text: &str, to: &mut Writer<'_>) {
        markup::comment(text, to);
    }

    /// Writes `<!DOCTYPE html>`.
    fn doctype(&mut self, to: &mut Writer<'_>) {
        to.constant("<!DOCTYPE html>");
    }

    /// Writes a custom node, or returns the nodes to visit in its place. The default is its
    /// expansion.
    fn custom(&mut self, node: &dyn Expand, _to: &mut Writer<'_>) -> Option<Tree> {
        Some(node.expand())
    }

    /// Writes output after the tree. The default writes nothing.
    fn end(&mut self, _to: &mut Writer<'_>) {}
}

/// Writes the nodes with `by`.
pub(super) fn write(nodes: &[Node], by: &mut (impl TreeWriter + ?Sized), to: &mut Writer<'_>) {
    by.begin(to);
    traverse(nodes, by, to, 0);
    by.end(to);
}

/// Writes the nodes; `depth` is the number of expansions that contain them.
fn traverse(
    nodes: &[Node],
    by: &mut (impl TreeWriter + ?Sized),
    to: &mut Writer<'_>,
    depth: usize,
) {
    let mut open: Vec<(&Element, slice::Iter<'_, Node>)> = Vec::new();
    let mut siblings = nodes.iter();
    loop {
        let Some(node) = siblings.next() else {
            let Some((element, outer)) = open.pop() else { return };
            by.close(element, to);
            siblings = outer;
            continue;
        };
        match node {
            Node::Element(element) => {
                if by.open(element, to) == Subtree::Visit {
                    open.push((element, siblings));
                    siblings = element.children().iter();
                }
            }
            Node::Text(text) => by.text(text, to),
            Node::Raw(markup) => by.raw(markup, to),
            Node::Comment(text) => by.comment(text, to),
            Node::Doctype => by.doctype(to),
            Node::Custom(node) => {
                if depth < MAX_EXPANSIONS
                    && let Some(tree) = by.custom(&**node, to)
                {
                    traverse(tree.roots(), by, to, depth + 1);
                }
            }
        }
    }
}
