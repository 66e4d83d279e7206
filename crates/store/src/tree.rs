//! A persistent ordered map for the rows of a table and for its indexes. Successive versions share
//! what did not change.
//!
//! A B+ tree whose nodes are shared between versions: an update copies the nodes on the path to its
//! entry, unless it owns them. Entries are packed in the leaves, so that a lookup touches few cache
//! lines and a row takes little more than its own bytes: docs/decisions/0011-a-tree-of-its-own.md
//! has the figures.

mod entries;

use std::hint::black_box;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

use entries::{Entries, MAX_ENTRIES};

/// A sorted map. A key has `KEY` bytes, or fewer if its value is empty.
#[derive(Clone, Debug)]
pub(crate) struct Tree<const KEY: usize> {
    root: Node<KEY>,
    length: usize,
}

#[derive(Clone, Debug)]
enum Node<const KEY: usize> {
    Leaf(Arc<Entries<KEY>>),
    InnerNode(Arc<InnerNode<KEY>>),
}

/// An inner node. Invariant: it has one child more than separators; all keys of a child are below
/// the separator after it and not below the separator before it.
#[derive(Debug)]
struct InnerNode<const KEY: usize> {
    separators: Entries<KEY>,
    /// Stored inline, which saves each lookup one pointer.
    children: SmallVec<[Node<KEY>; MAX_ENTRIES]>,
}

/// The right part of a split node, and the separator before it.
type Split<const KEY: usize> = (Vec<u8>, Node<KEY>);

/// A range of entries, iterated from both ends.
#[derive(Clone)]
pub(crate) struct Range<'t, const KEY: usize> {
    front: Position<'t, KEY>,
    back: Position<'t, KEY>,
}

/// A position between two entries.
#[derive(Clone)]
struct Position<'t, const KEY: usize> {
    /// The path from the root, with the index of the child at each node.
    path: SmallVec<[(&'t InnerNode<KEY>, usize); 6]>,
    leaf: &'t Entries<KEY>,
    /// The number of the leaf's entries before the position.
    before: usize,
}

impl<const KEY: usize> Tree<KEY> {
    /// Inserts an entry, or replaces the value of its key.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) {
        let (is_new, split) = self.root.insert(key, value);
        self.length += usize::from(is_new);
        if let Some((separator, right)) = split {
            let mut separators = Entries::new();
            separators.insert(0, &separator, &[]);
            let children = SmallVec::from_iter([self.root.clone(), right]);
            self.root = Node::InnerNode(Arc::new(InnerNode { separators, children }));
        }
    }

    /// Removes the entry with this key, if it exists.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        if self.get(key).is_none() {
            return;
        }
        self.root.remove(key);
        self.length -= 1;
        while let Node::InnerNode(inner) = &self.root
            && let [only] = &inner.children[..]
        {
            self.root = only.clone();
        }
    }

    /// Adopts a newer version's nodes on the path to `key`. After this for each key that differs,
    /// both versions have the same entries, and the nodes that only this version owned are reused.
    pub(crate) fn follow(&mut self, younger: &Self, key: &[u8]) {
        self.length = younger.length;
        self.root.follow(&younger.root, key);
    }

    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// The value of this key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.get(key),
                Node::InnerNode(inner) => node = &inner.children[inner.child(key)],
            }
        }
    }

    /// Keys and values in order, from `from` (inclusive) to `until` (exclusive). `until` must not
    /// be below `from`.
    pub(crate) fn range(&self, from: Option<&[u8]>, until: Option<&[u8]>) -> Range<'_, KEY> {
        let last = |inner: &InnerNode<KEY>| inner.children.len() - 1;
        let front = match from {
            Some(key) => self.seek(|inner| inner.child(key), |leaf| leaf.find(key)),
            None => self.seek(|_| 0, |_| Ok(0)),
        };
        let back = match until {
            Some(key) => self.seek(|inner| inner.child(key), |leaf| leaf.find(key)),
            None => self.seek(last, |leaf| Ok(leaf.len())),
        };
        Range { front, back }
    }

    fn seek(
        &self,
        choose: impl Fn(&InnerNode<KEY>) -> usize,
        find: impl Fn(&Entries<KEY>) -> Result<usize, usize>,
    ) -> Position<'_, KEY> {
        let (mut node, mut path) = (&self.root, SmallVec::new());
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let before = find(leaf).unwrap_or_else(|would_be| would_be);
                    return Position { path, leaf, before };
                }
                Node::InnerNode(inner) => {
                    let child = choose(inner);
                    path.push((&**inner, child));
                    node = &inner.children[child];
                }
            }
        }
    }
}

impl<const KEY: usize> Default for Tree<KEY> {
    fn default() -> Self {
        Self { root: Node::Leaf(Arc::new(Entries::new())), length: 0 }
    }
}

impl<const KEY: usize> Node<KEY> {
    /// Returns whether the entry is new, and the right part if the node was split.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> (bool, Option<Split<KEY>>) {
        match self {
            Self::Leaf(leaf) => {
                let found = leaf.find(key);
                if Arc::get_mut(leaf).is_none() {
                    // Allocate with room for the entry: a reallocation would copy the bytes again.
                    *leaf = Arc::new(leaf.with_room(key.len() + value.len()));
                }
                let own = Arc::make_mut(leaf);
                let position = match found {
                    Ok(position) => {
                        own.replace(position, value);
                        position
                    }
                    Err(position) => {
                        own.insert(position, key, value);
                        position
                    }
                };
                (found.is_err(), own.split_point(position).map(|at| split_leaf(own, at)))
            }
            Self::InnerNode(inner) => {
                let own = Arc::make_mut(inner);
                let child = own.child(key);
                let (is_new, split) = own.children[child].insert(key, value);
                (is_new, split.and_then(|split| own.insert(child, split)))
            }
        }
    }

    /// Removes an entry that exists.
    fn remove(&mut self, key: &[u8]) {
        match self {
            Self::Leaf(leaf) => {
                if let Ok(position) = leaf.find(key) {
                    Arc::make_mut(leaf).remove(position);
                }
            }
            Self::InnerNode(inner) => {
                let own = Arc::make_mut(inner);
                let child = own.child(key);
                own.children[child].remove(key);
                own.join(child);
            }
        }
    }

    fn follow(&mut self, younger: &Self, key: &[u8]) {
        match (&mut *self, younger) {
            (Self::InnerNode(own), Self::InnerNode(younger)) => {
                // With equal separators each child has the same key range, so no other child
                // differs by this key.
                let like = |own: &&mut InnerNode<KEY>| own.separators.is_same(&younger.separators);
                if let Some(own) = Arc::get_mut(own).filter(like) {
                    let child = younger.child(key);
                    own.children[child].follow(&younger.children[child], key);
                } else if !Arc::ptr_eq(own, younger) {
                    *own = Arc::clone(younger);
                }
            }
            (Self::Leaf(own), Self::Leaf(younger)) if Arc::ptr_eq(own, younger) => {}
            _ => *self = younger.clone(),
        }
    }

    /// The number of entries or children.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::InnerNode(inner) => inner.children.len(),
        }
    }

    /// The number of owners.
    fn owners(&self) -> usize {
        match self {
            Self::Leaf(leaf) => Arc::strong_count(leaf),
            Self::InnerNode(inner) => Arc::strong_count(inner),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.len() == 0,
            Self::InnerNode(inner) => inner.children.iter().all(Self::is_empty),
        }
    }
}

/// Splits a leaf before the entry at `at`.
fn split_leaf<const KEY: usize>(leaf: &mut Entries<KEY>, at: usize) -> Split<KEY> {
    let right = leaf.split_off(at);
    let (last, first) = (leaf.key(leaf.len() - 1), right.key(0));
    // The shortest separator: the last key is below the first, so it is one byte longer than their
    // common prefix.
    let separator = first[..=entries::common(last, first)].to_vec();
    (separator, Node::Leaf(Arc::new(right)))
}

impl<const KEY: usize> Clone for InnerNode<KEY> {
    fn clone(&self) -> Self {
        // The reference counts of the children are on separate cache lines. Reading them first lets
        // the loads overlap, while the increments alone would wait for each line in turn.
        let counts = self.children.iter().map(Node::owners);
        black_box(counts.sum::<usize>());
        Self { separators: self.separators.clone(), children: self.children.clone() }
    }
}

impl<const KEY: usize> InnerNode<KEY> {
    /// The index of the child that contains a key.
    #[inline]
    fn child(&self, key: &[u8]) -> usize {
        self.separators.find(key).map_or_else(|position| position, |position| position + 1)
    }

    /// Inserts the right part of a split child, and splits this node if it is full.
    fn insert(&mut self, child: usize, (separator, right): Split<KEY>) -> Option<Split<KEY>> {
        self.separators.insert(child, &separator, &[]);
        self.children.insert(child + 1, right);
        let count = self.separators.len();
        if self.separators.split_point(child).is_none() || count < 3 {
            return None;
        }
        // Keys in ascending order fill each node before the next; two children move on.
        let at = if child + 1 == count { count - 2 } else { count / 2 };
        let separators = self.separators.split_off(at + 1);
        let between = self.separators.key(at).to_vec();
        self.separators.remove(at);
        let children = self.children.drain(at + 1..).collect();
        Some((between, Node::InnerNode(Arc::new(Self { separators, children }))))
    }

    /// Merges a child that has become small with a neighbor.
    fn join(&mut self, child: usize) {
        if self.children[child].len() >= MAX_ENTRIES / 4 || self.children.len() == 1 {
            return;
        }
        let position = if child + 1 < self.children.len() { child } else { child - 1 };
        if self.children[child].is_empty() {
            self.children.remove(child);
            self.separators.remove(position);
            return;
        }
        let [left, right] = &mut self.children[position..position + 2] else { return };
        match (left, right) {
            (Node::Leaf(left), Node::Leaf(right)) if left.fits_with(right) => {
                Arc::make_mut(left).append(right);
            }
            (Node::InnerNode(left), Node::InnerNode(right))
                if left.separators.fits_with(&right.separators) =>
            {
                let left = Arc::make_mut(left);
                left.separators.insert(left.separators.len(), self.separators.key(position), &[]);
                left.separators.append(&right.separators);
                left.children.extend(right.children.iter().cloned());
            }
            _ => return,
        }
        self.children.remove(position + 1);
        self.separators.remove(position);
    }
}

impl<const KEY: usize> Position<'_, KEY> {
    /// Moves before the first entry of the next leaf. `None` if this is the last one.
    fn next_leaf(&mut self) -> Option<()> {
        self.next_child(|inner, child| (child + 1 < inner.children.len()).then_some(child + 1))?;
        self.descend(|_| 0);
        self.before = 0;
        Some(())
    }

    /// Moves after the last entry of the previous leaf. `None` if this is the first one.
    fn previous_leaf(&mut self) -> Option<()> {
        self.next_child(|_, child| child.checked_sub(1))?;
        self.descend(|inner| inner.children.len() - 1);
        self.before = self.leaf.len();
        Some(())
    }

    /// Moves up to the nearest node with a further child in that direction, and selects this child.
    fn next_child(
        &mut self,
        other: impl Fn(&InnerNode<KEY>, usize) -> Option<usize>,
    ) -> Option<()> {
        while let Some((inner, child)) = self.path.pop() {
            if let Some(child) = other(inner, child) {
                self.path.push((inner, child));
                return Some(());
            }
        }
        None
    }

    /// Moves down from the selected child to a leaf.
    fn descend(&mut self, choose: impl Fn(&InnerNode<KEY>) -> usize) {
        while let Some(&(inner, child)) = self.path.last() {
            match &inner.children[child] {
                Node::Leaf(leaf) => {
                    self.leaf = leaf;
                    return;
                }
                Node::InnerNode(below) => self.path.push((below, choose(below))),
            }
        }
    }
}

impl<'t, const KEY: usize> Iterator for Range<'t, KEY> {
    type Item = (&'t [u8], &'t [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let Self { front, back } = self;
        loop {
            if ptr::eq(front.leaf, back.leaf) && front.before >= back.before {
                return None;
            }
            if front.before < front.leaf.len() {
                front.before += 1;
                return Some(front.leaf.entry(front.before - 1));
            }
            front.next_leaf()?;
        }
    }
}

impl<const KEY: usize> DoubleEndedIterator for Range<'_, KEY> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let Self { front, back } = self;
        loop {
            if ptr::eq(front.leaf, back.leaf) && front.before >= back.before {
                return None;
            }
            if back.before > 0 {
                back.before -= 1;
                return Some(back.leaf.entry(back.before));
            }
            back.previous_leaf()?;
        }
    }
}

#[cfg(test)]
mod tests;
