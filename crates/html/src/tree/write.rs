//! Decides how a tree is written: one traversal that asks a writer at each node, without a stack of calls.

use alloc::vec::Vec;
use core::slice;

use super::{Element, Expand, Node, RawMarkup, Tree, polyglot};
use crate::Writer;

/// So deep may nodes of own kinds be in what others expand to; deeper ones are left out, so that one which expands
/// to itself comes to an end.
const DEEPEST: usize = 32;

/// A way to write a tree. Each kind of node has a method, which writes it as markup unless it is overridden: for one
/// kind of node, or for all of them.
///
/// ```
/// use bine_html::tree::{Below, Element, Polyglot, Tree, TreeWriter};
/// use bine_html::Writer;
///
/// /// Leaves pictures out, but for what they say.
/// struct WithoutPictures;
///
/// impl TreeWriter for WithoutPictures {
///     fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Below {
///         if element.name() != "img" {
///             return Polyglot.open(element, to);
///         }
///         to.text(element.attribute("alt").unwrap_or_default());
///         Below::Skip
///     }
/// }
///
/// let mut picture = Element::new("img")?;
/// picture.set_attribute("alt", "a hop & a vine")?;
/// assert_eq!(Tree::from(picture).to_string_by(WithoutPictures), "a hop &amp; a vine");
/// # Ok::<(), bine_html::tree::Refused>(())
/// ```
pub trait TreeWriter {
    /// Writes what comes before the tree: nothing.
    fn begin(&mut self, _to: &mut Writer<'_>) {}

    /// Writes an element's start tag, or all of it; says whether what is below it comes next.
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Below {
        polyglot::open(element, to)
    }

    /// Writes the end tag of an element whose children were visited.
    fn close(&mut self, element: &Element, to: &mut Writer<'_>) {
        polyglot::close(element, to);
    }

    /// Writes text: escaped.
    fn text(&mut self, text: &str, to: &mut Writer<'_>) {
        to.text(text);
    }

    /// Writes markup: as it is. Only what was in a tree is that:
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
        polyglot::comment(text, to);
    }

    /// Writes `<!DOCTYPE html>`.
    fn doctype(&mut self, to: &mut Writer<'_>) {
        to.constant("<!DOCTYPE html>");
    }

    /// Writes a node of the program's own kind, or returns what is visited in its place: what it expands to.
    fn own(&mut self, node: &dyn Expand, _to: &mut Writer<'_>) -> Option<Tree> {
        Some(node.expand())
    }

    /// Writes what comes behind the tree: nothing.
    fn end(&mut self, _to: &mut Writer<'_>) {}
}

/// What becomes of what is below an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Below {
    /// It is visited, and [`close`](TreeWriter::close) comes behind it.
    Visit,
    /// It is left out, and so is `close`.
    Skip,
}

/// Writes the nodes as `by` says.
pub(super) fn write(nodes: &[Node], by: &mut (impl TreeWriter + ?Sized), to: &mut Writer<'_>) {
    by.begin(to);
    traverse(nodes, by, to, 0);
    by.end(to);
}

/// `depth` counts the expansions around the nodes.
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
                if by.open(element, to) == Below::Visit {
                    open.push((element, siblings));
                    siblings = element.children().iter();
                }
            }
            Node::Text(text) => by.text(text, to),
            Node::Raw(markup) => by.raw(markup, to),
            Node::Comment(text) => by.comment(text, to),
            Node::Doctype => by.doctype(to),
            Node::Own(own) => {
                if depth < DEEPEST
                    && let Some(tree) = by.own(&**own, to)
                {
                    traverse(tree.roots(), by, to, depth + 1);
                }
            }
        }
    }
}
