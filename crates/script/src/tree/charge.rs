//! The memory of trees, which counts against the limit of the instance.
//!
//! Clones, found elements and trees that contain a tree share its nodes. Each batch of new nodes has
//! a [`Charge`]. All trees that may share these nodes hold the charge, so its bytes count until the
//! last such tree is dropped.

use std::rc::Rc;

use bine_html::Tree;
use bine_html::tree::{Element, Node};

use crate::quickjs::Memory;

/// The charges of one tree. A tree with more gets a single charge for all its nodes.
pub(super) const MAX_CHARGES: usize = 8;

/// Bytes of a node in its parent, of an element, and of an attribute, with the allocator's overhead.
pub(super) const NODE: usize = size_of::<Node>() + 16;
pub(super) const ELEMENT: usize = NODE + 128;
pub(super) const ATTRIBUTE: usize = 64;

/// Bytes that count against the limit of memory until the charge is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    memory: Rc<Memory>,
    bytes: usize,
}

/// The charges of a tree.
pub(super) type Charges = Vec<Rc<Charge>>;

impl Charge {
    /// `None` if the limit does not allow the bytes: then the instance ends.
    pub(super) fn new(memory: &Rc<Memory>, bytes: usize) -> Option<Self> {
        memory.reserve(bytes).then(|| Self { memory: Rc::clone(memory), bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.release(self.bytes);
    }
}

/// Adds the charges of a part, each once.
pub(super) fn add(charges: &mut Charges, more: &[Rc<Charge>]) {
    for charge in more {
        if !charges.iter().any(|known| Rc::ptr_eq(known, charge)) {
            charges.push(Rc::clone(charge));
        }
    }
}

/// The bytes of a tree without any sharing. This size also bounds the number of visited nodes: a
/// traversal visits a shared node at each place.
pub(super) fn size_of_tree(tree: &Tree) -> usize {
    tree.walk().map(size_of_node).fold(0, usize::saturating_add)
}

/// The bytes of a node without its children.
pub(super) fn size_of_node(node: &Node) -> usize {
    match node {
        Node::Element(element) => size_of_element(element),
        Node::Text(text) | Node::Comment(text) => NODE + text.len(),
        Node::Raw(markup) => NODE + markup.as_str().len(),
        Node::Doctype | Node::Custom(_) => NODE,
    }
}

/// The bytes of an element without its children.
pub(super) fn size_of_element(element: &Element) -> usize {
    let attributes = element.attributes().map(|(name, value)| size_of_attribute(name, value));
    ELEMENT + element.name().len() + attributes.sum::<usize>()
}

pub(super) const fn size_of_attribute(name: &str, value: &str) -> usize {
    ATTRIBUTE + name.len() + value.len()
}
