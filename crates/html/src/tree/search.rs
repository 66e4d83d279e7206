//! Decides how elements are found in a tree by a selector.

use alloc::vec::Vec;
use core::fmt;
use core::slice;

use super::selector::{AsSelector, Selector, SelectorError, Trail};
use super::{Element, Node, Tree};

/// The elements that a selector means, in the order in which they are written; made by
/// [`Tree::find_all`].
pub struct Found<'t> {
    selector: Selector,
    levels: Vec<Level<'t>>,
}

struct Level<'t> {
    nodes: slice::Iter<'t, Node>,
    /// How many of the nodes have been looked at.
    seen: usize,
    trails: Vec<Trail>,
    /// The mark of the element whose children they are, for whoever [marks](Found::mark).
    mark: Option<usize>,
}

/// An element that is meant, or around one that is. Marks are in the order in which elements are written.
pub(super) struct Mark {
    /// The mark of the element that it is in.
    pub(super) outer: Option<usize>,
    /// Its place among its siblings.
    pub(super) place: usize,
    pub(super) is_meant: bool,
}

impl<'t> Found<'t> {
    pub(super) fn new(nodes: &'t [Node], selector: Selector) -> Self {
        let level = Level { nodes: nodes.iter(), seen: 0, trails: selector.trails(), mark: None };
        Self { selector, levels: Vec::from([level]) }
    }

    /// Marks the element that came last, and those around it that have no mark yet.
    pub(super) fn mark(&mut self, marks: &mut Vec<Mark>) {
        // The first level is that of the roots, each other one that of an element's children.
        let unmarked = self.levels.iter().skip(1).rev().take_while(|level| level.mark.is_none());
        let first = self.levels.len() - unmarked.count();
        for depth in first..self.levels.len() {
            let outer = &self.levels[depth - 1];
            let mark = Mark { outer: outer.mark, place: outer.seen - 1, is_meant: false };
            marks.push(mark);
            self.levels[depth].mark = Some(marks.len() - 1);
        }
        if let Some(mark) = marks.last_mut() {
            mark.is_meant = true;
        }
    }
}

impl<'t> Iterator for Found<'t> {
    type Item = &'t Element;

    fn next(&mut self) -> Option<&'t Element> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(node) = level.nodes.next() else {
                self.levels.pop();
                continue;
            };
            level.seen += 1;
            let Node::Element(element) = node else { continue };
            let (trails, is_meant) = self.selector.step_into(&level.trails, element);
            let nodes = element.children().iter();
            self.levels.push(Level { nodes, seen: 0, trails, mark: None });
            if is_meant {
                return Some(element);
            }
        }
    }
}

impl fmt::Debug for Found<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Found").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// By selector: `"main > h1.title"`, or a [`Selector`] that was parsed before. Own nodes are not looked into.
impl Tree {
    /// The first element that is meant.
    ///
    /// # Errors
    ///
    /// What is wrong with the selector, and where; so do the others.
    pub fn find(
        &self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<Option<&Element>, SelectorError> {
        Ok(self.find_all(selector)?.next())
    }

    /// All elements that are meant, in the order in which they are written.
    pub fn find_all(
        &self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<Found<'_>, SelectorError> {
        selector.with(|selector| Found::new(self.roots(), selector.clone()))
    }
}
