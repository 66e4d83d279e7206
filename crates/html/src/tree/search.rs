//! Search for elements by selector.

use alloc::vec::Vec;
use core::fmt;
use core::slice;

use super::selector::{AsSelector, Position, Selector, SelectorError, Trail};
use super::{Element, Node, Tree};

/// An iterator over the elements that match a selector, in document order, returned by
/// [`Tree::find_all`].
pub struct Matches<'t> {
    selector: Selector,
    /// Whether siblings are counted before they are visited.
    has_positions: bool,
    levels: Vec<Level<'t>>,
    visited: usize,
}

struct Level<'t> {
    nodes: slice::Iter<'t, Node>,
    /// The number of nodes visited so far.
    seen: usize,
    /// The position of the next element.
    position: Position,
    trails: Vec<Trail>,
    /// The mark of the parent element, if [`Matches::mark`] has set one.
    mark: Option<usize>,
}

/// A matching element or an ancestor of one. Marks are in document order.
pub(super) struct Mark {
    /// The mark of the parent element.
    pub(super) outer: Option<usize>,
    /// The index among the siblings.
    pub(super) place: usize,
    pub(super) is_match: bool,
}

impl<'t> Matches<'t> {
    pub(super) fn new(nodes: &'t [Node], selector: Selector) -> Self {
        let (trails, has_positions) = (selector.trails(), selector.has_positions());
        let level = Level::new(nodes, trails, has_positions);
        Self { selector, has_positions, levels: Vec::from([level]), visited: 0 }
    }

    /// The number of elements visited so far, in document order; the last one is the match that was
    /// returned last.
    pub const fn visited(&self) -> usize {
        self.visited
    }

    /// Marks the last element returned, and its ancestors that have no mark yet.
    pub(super) fn mark(&mut self, marks: &mut Vec<Mark>) {
        // The first level contains the roots; each other level contains an element's children.
        let unmarked = self.levels.iter().skip(1).rev().take_while(|level| level.mark.is_none());
        let first = self.levels.len() - unmarked.count();
        for depth in first..self.levels.len() {
            let outer = &self.levels[depth - 1];
            let mark = Mark { outer: outer.mark, place: outer.seen - 1, is_match: false };
            marks.push(mark);
            self.levels[depth].mark = Some(marks.len() - 1);
        }
        if let Some(mark) = marks.last_mut() {
            mark.is_match = true;
        }
    }
}

impl<'t> Level<'t> {
    fn new(nodes: &'t [Node], trails: Vec<Trail>, has_positions: bool) -> Self {
        let position = Position::first_of(if has_positions { nodes } else { &[] });
        Self { nodes: nodes.iter(), seen: 0, position, trails, mark: None }
    }
}

impl<'t> Iterator for Matches<'t> {
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
            self.visited += 1;
            let position = level.position;
            level.position = position.next();
            let (trails, is_match) = self.selector.step_into(&level.trails, element, position);
            self.levels.push(Level::new(element.children(), trails, self.has_positions));
            if is_match {
                return Some(element);
            }
        }
    }
}

impl fmt::Debug for Matches<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Matches").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// Search by selector: `"main > h1.title"`, or a parsed [`Selector`]. Custom nodes are not
/// expanded.
impl Tree {
    /// The first matching element.
    ///
    /// # Errors
    ///
    /// The selector's syntax error and its position. The other methods return the same error.
    pub fn find(
        &self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<Option<&Element>, SelectorError> {
        Ok(self.find_all(selector)?.next())
    }

    /// All matching elements in document order.
    pub fn find_all(
        &self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<Matches<'_>, SelectorError> {
        selector.with(|selector| Matches::new(self.roots(), selector.clone()))
    }
}
