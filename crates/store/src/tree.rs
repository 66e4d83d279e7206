//! Decides how the rows of a table and its indexes are kept in order, so that the next moment shares with this one all
//! that has not changed.
//!
//! A B+ tree whose nodes are shared by all moments that have them: a change copies those on the way to its entry, unless
//! nobody else has them. Entries stand packed in the leaves, so that a look needs few lines of memory and a row little
//! more than its own bytes: docs/decisions/0011-a-tree-of-its-own.md has the figures.

mod entries;

use std::hint::black_box;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

use entries::{Entries, MOST};

/// Entries by the order of their keys. A key has `KEY` bytes, or fewer if there is no value behind it.
#[derive(Clone, Debug)]
pub(crate) struct Tree<const KEY: usize> {
    root: Node<KEY>,
    length: usize,
}

#[derive(Clone, Debug)]
enum Node<const KEY: usize> {
    Leaf(Arc<Entries<KEY>>),
    Inner(Arc<Inner<KEY>>),
}

/// Invariant: there is a child more than there are separators, and all of a child's keys are below the separator behind
/// it, and none is below the one before it.
#[derive(Debug)]
struct Inner<const KEY: usize> {
    separators: Entries<KEY>,
    /// In place, or each look would have one more way to go.
    children: SmallVec<[Node<KEY>; MOST]>,
}

/// A node that was parted from the one before it, and what lies between them.
type Parted<const KEY: usize> = (Vec<u8>, Node<KEY>);

/// Entries between two places, from both ends.
#[derive(Clone)]
pub(crate) struct Range<'t, const KEY: usize> {
    front: Place<'t, KEY>,
    back: Place<'t, KEY>,
}

/// Between two entries.
#[derive(Clone)]
struct Place<'t, const KEY: usize> {
    /// The nodes above, the root first, and which of their children this is in.
    above: SmallVec<[(&'t Inner<KEY>, usize); 6]>,
    leaf: &'t Entries<KEY>,
    /// How many of the leaf's entries lie before it.
    before: usize,
}

impl<const KEY: usize> Tree<KEY> {
    /// Puts an entry, in the place of the one that has this key if there is one.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) {
        let (is_new, parted) = self.root.insert(key, value);
        self.length += usize::from(is_new);
        if let Some((separator, right)) = parted {
            let mut separators = Entries::new();
            separators.insert(0, &separator, &[]);
            let children = SmallVec::from_iter([self.root.clone(), right]);
            self.root = Node::Inner(Arc::new(Inner { separators, children }));
        }
    }

    /// Removes the entry of this key, if there is one.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        if self.get(key).is_none() {
            return;
        }
        self.root.remove(key);
        self.length -= 1;
        while let Node::Inner(inner) = &self.root
            && let [only] = &inner.children[..]
        {
            self.root = only.clone();
        }
    }

    /// Takes over what a younger form of this tree has where that key is. Done for all keys by which they differ, both
    /// have the same entries; and what had been copied for this one alone serves again.
    pub(crate) fn follow(&mut self, younger: &Self, key: &[u8]) {
        self.length = younger.length;
        self.root.follow(&younger.root, key);
    }

    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// The value of the entry of this key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.get(key),
                Node::Inner(inner) => node = &inner.children[inner.child(key)],
            }
        }
    }

    /// Keys and values in their order: those from `from` on, and before `until`, which is not below it.
    pub(crate) fn range(&self, from: Option<&[u8]>, until: Option<&[u8]>) -> Range<'_, KEY> {
        let last = |inner: &Inner<KEY>| inner.children.len() - 1;
        let front = match from {
            Some(key) => self.place(|inner| inner.child(key), |leaf| leaf.find(key)),
            None => self.place(|_| 0, |_| Ok(0)),
        };
        let back = match until {
            Some(key) => self.place(|inner| inner.child(key), |leaf| leaf.find(key)),
            None => self.place(last, |leaf| Ok(leaf.len())),
        };
        Range { front, back }
    }

    fn place(
        &self,
        choose: impl Fn(&Inner<KEY>) -> usize,
        find: impl Fn(&Entries<KEY>) -> Result<usize, usize>,
    ) -> Place<'_, KEY> {
        let (mut node, mut above) = (&self.root, SmallVec::new());
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let before = find(leaf).unwrap_or_else(|would_be| would_be);
                    return Place { above, leaf, before };
                }
                Node::Inner(inner) => {
                    let child = choose(inner);
                    above.push((&**inner, child));
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
    /// Whether the entry is one more, and what had to be parted from this node.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> (bool, Option<Parted<KEY>>) {
        match self {
            Self::Leaf(leaf) => {
                let found = leaf.find(key);
                if Arc::get_mut(leaf).is_none() {
                    // With room from the beginning, or its bytes would be copied once more.
                    *leaf = Arc::new(leaf.with_room(key.len() + value.len()));
                }
                let own = Arc::make_mut(leaf);
                let place = match found {
                    Ok(place) => {
                        own.replace(place, value);
                        place
                    }
                    Err(place) => {
                        own.insert(place, key, value);
                        place
                    }
                };
                (found.is_err(), own.parting(place).map(|at| part(own, at)))
            }
            Self::Inner(inner) => {
                let own = Arc::make_mut(inner);
                let child = own.child(key);
                let (is_new, parted) = own.children[child].insert(key, value);
                (is_new, parted.and_then(|parted| own.insert(child, parted)))
            }
        }
    }

    /// Removes an entry that is there.
    fn remove(&mut self, key: &[u8]) {
        match self {
            Self::Leaf(leaf) => {
                if let Ok(place) = leaf.find(key) {
                    Arc::make_mut(leaf).remove(place);
                }
            }
            Self::Inner(inner) => {
                let own = Arc::make_mut(inner);
                let child = own.child(key);
                own.children[child].remove(key);
                own.join(child);
            }
        }
    }

    fn follow(&mut self, younger: &Self, key: &[u8]) {
        match (&mut *self, younger) {
            (Self::Inner(own), Self::Inner(younger)) => {
                // Between the same separators lie the same keys, so that no other child can differ by this one.
                let like = |own: &&mut Inner<KEY>| own.separators.is_same(&younger.separators);
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

    /// How many entries or children it has.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.children.len(),
        }
    }

    /// How many have it.
    fn shares(&self) -> usize {
        match self {
            Self::Leaf(leaf) => Arc::strong_count(leaf),
            Self::Inner(inner) => Arc::strong_count(inner),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.len() == 0,
            Self::Inner(inner) => inner.children.iter().all(Self::is_empty),
        }
    }
}

/// Parts a leaf before the entry at `at`.
fn part<const KEY: usize>(leaf: &mut Entries<KEY>, at: usize) -> Parted<KEY> {
    let right = leaf.split_off(at);
    let (last, first) = (leaf.key(leaf.len() - 1), right.key(0));
    // As short as can be. The last is below the first, so this one has a byte more than both have in common.
    let separator = first[..=entries::common(last, first)].to_vec();
    (separator, Node::Leaf(Arc::new(right)))
}

impl<const KEY: usize> Clone for Inner<KEY> {
    fn clone(&self) -> Self {
        // The counts of the children lie in lines of memory of their own. Looked at first, they come all at once, and
        // not one after the other as they are counted up.
        let counts = self.children.iter().map(Node::shares);
        black_box(counts.sum::<usize>());
        Self { separators: self.separators.clone(), children: self.children.clone() }
    }
}

impl<const KEY: usize> Inner<KEY> {
    /// Which child a key is in, if it is there.
    #[inline]
    fn child(&self, key: &[u8]) -> usize {
        self.separators.find(key).map_or_else(|place| place, |place| place + 1)
    }

    /// Takes in what was parted from a child, and parts itself if that is one too many.
    fn insert(&mut self, child: usize, (separator, right): Parted<KEY>) -> Option<Parted<KEY>> {
        self.separators.insert(child, &separator, &[]);
        self.children.insert(child + 1, right);
        let count = self.separators.len();
        if self.separators.parting(child).is_none() || count < 3 {
            return None;
        }
        // What comes in order leaves full ones behind, and two children go on.
        let at = if child + 1 == count { count - 2 } else { count / 2 };
        let separators = self.separators.split_off(at + 1);
        let between = self.separators.key(at).to_vec();
        self.separators.remove(at);
        let children = self.children.drain(at + 1..).collect();
        Some((between, Node::Inner(Arc::new(Self { separators, children }))))
    }

    /// Joins a child that has become small with one beside it.
    fn join(&mut self, child: usize) {
        if self.children[child].len() >= MOST / 4 || self.children.len() == 1 {
            return;
        }
        let place = if child + 1 < self.children.len() { child } else { child - 1 };
        if self.children[child].is_empty() {
            self.children.remove(child);
            self.separators.remove(place);
            return;
        }
        let [left, right] = &mut self.children[place..place + 2] else { return };
        match (left, right) {
            (Node::Leaf(left), Node::Leaf(right)) if left.fit(right) => {
                Arc::make_mut(left).append(right);
            }
            (Node::Inner(left), Node::Inner(right)) if left.separators.fit(&right.separators) => {
                let left = Arc::make_mut(left);
                left.separators.insert(left.separators.len(), self.separators.key(place), &[]);
                left.separators.append(&right.separators);
                left.children.extend(right.children.iter().cloned());
            }
            _ => return,
        }
        self.children.remove(place + 1);
        self.separators.remove(place);
    }
}

impl<const KEY: usize> Place<'_, KEY> {
    /// Goes on to before the first entry of the next leaf. `None`: there is none.
    fn next_leaf(&mut self) -> Option<()> {
        self.turn(|inner, child| (child + 1 < inner.children.len()).then_some(child + 1))?;
        self.descend(|_| 0);
        self.before = 0;
        Some(())
    }

    /// Goes back to behind the last entry of the leaf before. `None`: there is none.
    fn leaf_before(&mut self) -> Option<()> {
        self.turn(|_, child| child.checked_sub(1))?;
        self.descend(|inner| inner.children.len() - 1);
        self.before = self.leaf.len();
        Some(())
    }

    /// Goes up to the nearest node that has another child in that direction, and chooses it.
    fn turn(&mut self, other: impl Fn(&Inner<KEY>, usize) -> Option<usize>) -> Option<()> {
        while let Some((inner, child)) = self.above.pop() {
            if let Some(child) = other(inner, child) {
                self.above.push((inner, child));
                return Some(());
            }
        }
        None
    }

    /// Goes down from the chosen child of the lowest node.
    fn descend(&mut self, choose: impl Fn(&Inner<KEY>) -> usize) {
        while let Some(&(inner, child)) = self.above.last() {
            match &inner.children[child] {
                Node::Leaf(leaf) => {
                    self.leaf = leaf;
                    return;
                }
                Node::Inner(below) => self.above.push((below, choose(below))),
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
            back.leaf_before()?;
        }
    }
}

#[cfg(test)]
mod tests;
