//! Decides which small files stay in memory: so many, so many bytes, and first those that are asked for.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use crate::small::SmallFile;

/// Small files by path, within bounds.
///
/// Whatever is found is marked; a hand goes round, takes marks away and evicts what has none, so that a file
/// asked for once does not drive out one that is asked for always, and nothing is reordered on a hit.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Where each path stands in `slots`; both always hold the same paths.
    places: HashMap<Arc<str>, usize>,
    slots: Vec<Slot>,
    /// The sum of all [`Slot::weight`]s, never more than the bounds allow.
    weight: usize,
    hand: usize,
    bounds: Bounds,
}

/// The most that a [`Cache`] holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) files: usize,
    /// Of content and paths together.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Slot {
    path: Arc<str>,
    file: SmallFile,
    /// It was found since the hand passed.
    is_marked: bool,
}

impl Cache {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { places: HashMap::new(), slots: Vec::new(), weight: 0, hand: 0, bounds }
    }

    pub(crate) fn find(&mut self, path: &str) -> Option<&mut SmallFile> {
        let slot = &mut self.slots[*self.places.get(path)?];
        slot.is_marked = true;
        Some(&mut slot.file)
    }

    /// Keeps a file in place of any other of this path; one that exceeds the bounds alone is not kept.
    pub(crate) fn keep(&mut self, path: &str, file: SmallFile) {
        self.forget(path);
        let slot = Slot { path: path.into(), file, is_marked: false };
        if slot.weight() > self.bounds.bytes {
            return;
        }
        while self.slots.len() >= self.bounds.files
            || self.weight + slot.weight() > self.bounds.bytes
        {
            self.evict();
        }
        self.weight += slot.weight();
        self.places.insert(Arc::clone(&slot.path), self.slots.len());
        self.slots.push(slot);
    }

    pub(crate) fn forget(&mut self, path: &str) {
        if let Some(&place) = self.places.get(path) {
            self.remove(place);
        }
    }

    /// Removes the first file without a mark; one round at most. There must be a file.
    fn evict(&mut self) {
        loop {
            let place = self.hand % self.slots.len();
            self.hand = place + 1;
            if !mem::take(&mut self.slots[place].is_marked) {
                // The last slot moves here, behind the hand: it came last and is judged last.
                return self.remove(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let slot = self.slots.swap_remove(place);
        self.weight -= slot.weight();
        self.places.remove(&slot.path);
        if let Some(moved) = self.slots.get(place)
            && let Some(known) = self.places.get_mut(&moved.path)
        {
            *known = place;
        }
    }
}

impl Slot {
    fn weight(&self) -> usize {
        self.path.len() + self.file.len()
    }
}
