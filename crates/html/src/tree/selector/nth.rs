//! Positions among siblings: the pseudo-classes `:nth-child(An+B)` and its relatives.

use super::super::Node;

/// The position of an element among the elements of its parent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Position {
    /// The number of elements before it.
    pub(in super::super) before: usize,
    /// The number of elements after it.
    pub(in super::super) after: usize,
}

/// A condition on a position, `An+B`: it holds for the positions `A * n + B` with `n >= 0`, counted
/// from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nth {
    pub(super) step: i32,
    pub(super) offset: i32,
    /// Whether positions are counted from the last sibling.
    pub(super) is_from_end: bool,
}

impl Position {
    /// The position of an element without siblings.
    pub(super) const ONLY: Self = Self { before: 0, after: 0 };

    /// The position of the first of these nodes' elements.
    pub(in super::super) fn first_of(siblings: &[Node]) -> Self {
        let elements = siblings.iter().filter(|node| node.as_element().is_some()).count();
        Self { before: 0, after: elements.saturating_sub(1) }
    }

    /// The position of the next element.
    pub(in super::super) const fn next(self) -> Self {
        Self { before: self.before + 1, after: self.after.saturating_sub(1) }
    }
}

impl Nth {
    pub(super) fn holds(self, position: Position) -> bool {
        let before = if self.is_from_end { position.after } else { position.before };
        // In 64 bits, because a difference of two numbers of 32 bits can have 33.
        let distance = i64::try_from(before).unwrap_or(i64::MAX - 1) + 1 - i64::from(self.offset);
        match i64::from(self.step) {
            0 => distance == 0,
            step => distance % step == 0 && distance / step >= 0,
        }
    }
}
