//! Traversal of a tree in document order, without recursion.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

use super::Node;

/// An iterator over all nodes in document order, returned by [`Tree::walk`](super::Tree::walk).
#[derive(Clone)]
pub struct Walk<'t> {
    levels: Vec<slice::Iter<'t, Node>>,
}

impl<'t> Walk<'t> {
    pub(super) fn new(nodes: &'t [Node]) -> Self {
        Self { levels: Vec::from([nodes.iter()]) }
    }

    /// The number of ancestors of the next node, unless all its siblings have been visited.
    pub fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }
}

impl<'t> Iterator for Walk<'t> {
    type Item = &'t Node;

    fn next(&mut self) -> Option<&'t Node> {
        loop {
            let Some(node) = self.levels.last_mut()?.next() else {
                self.levels.pop();
                continue;
            };
            if let Node::Element(element) = node {
                self.levels.push(element.children().iter());
            }
            return Some(node);
        }
    }
}

impl core::fmt::Debug for Walk<'_> {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("Walk").field("depth", &self.depth()).finish_non_exhaustive()
    }
}

/// The concatenated text of the nodes.
pub(super) fn text(nodes: &[Node]) -> String {
    let texts = Walk::new(nodes).filter_map(|node| match node {
        Node::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

/// Whether both sequences have equal markup.
pub(super) fn are_alike(one: &[Node], other: &[Node]) -> bool {
    let mut left = Vec::from([(one, other)]);
    while let Some((one, other)) = left.pop() {
        if one.len() != other.len() {
            return false;
        }
        for pair in one.iter().zip(other) {
            let is_alike = match pair {
                (Node::Element(one), Node::Element(other)) => {
                    if !one.is(other) {
                        left.push((one.children(), other.children()));
                    }
                    one.looks_like(other)
                }
                (Node::Text(one), Node::Text(other))
                | (Node::Comment(one), Node::Comment(other)) => one == other,
                (Node::Raw(one), Node::Raw(other)) => one == other,
                (Node::Doctype, Node::Doctype) => true,
                (Node::Custom(one), Node::Custom(other)) => Arc::ptr_eq(one, other),
                _ => false,
            };
            if !is_alike {
                return false;
            }
        }
    }
    true
}
