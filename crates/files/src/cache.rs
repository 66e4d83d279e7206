//! Decides what stays in memory: so many, so many bytes, and first what is asked for again.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// What is known of paths, within bounds.
///
/// Whatever is found is marked; a hand goes round, takes marks away and evicts what has none. So what is
/// asked for once does not drive out what is asked for always, and a hit moves nothing.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    /// Where each path stands in `slots`; both always hold the same paths.
    places: HashMap<Arc<str>, usize>,
    slots: Vec<Slot<T>>,
    /// The sum of the slots' weights.
    weight: usize,
    hand: usize,
    bounds: Bounds,
}

/// The most that a [`Cache`] holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) entries: usize,
    /// Of values and paths together.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Slot<T> {
    path: Arc<str>,
    value: T,
    weight: usize,
    /// It was found since the hand passed.
    is_marked: bool,
}

impl<T> Cache<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { places: HashMap::new(), slots: Vec::new(), weight: 0, hand: 0, bounds }
    }

    pub(crate) fn find(&mut self, path: &str) -> Option<&mut T> {
        let slot = &mut self.slots[*self.places.get(path)?];
        slot.is_marked = true;
        Some(&mut slot.value)
    }

    /// Keeps a value of so many bytes, in place of any other of this path. One too large for the bounds
    /// is not kept.
    pub(crate) fn keep(&mut self, path: &str, value: T, bytes: usize) {
        self.forget(path);
        let weight = path.len() + bytes;
        if weight > self.bounds.bytes {
            return;
        }
        while self.slots.len() >= self.bounds.entries || self.weight + weight > self.bounds.bytes {
            self.evict();
        }
        let path = Arc::from(path);
        self.weight += weight;
        self.places.insert(Arc::clone(&path), self.slots.len());
        self.slots.push(Slot { path, value, weight, is_marked: false });
    }

    pub(crate) fn forget(&mut self, path: &str) {
        if let Some(&place) = self.places.get(path) {
            self.remove(place);
        }
    }

    /// Removes the first slot without a mark, after one round at most. There must be a slot.
    fn evict(&mut self) {
        loop {
            let place = self.hand % self.slots.len();
            self.hand = place + 1;
            if !mem::take(&mut self.slots[place].is_marked) {
                // The last slot moves here, behind the hand: what came last is judged last.
                return self.remove(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let slot = self.slots.swap_remove(place);
        self.weight -= slot.weight;
        self.places.remove(&slot.path);
        if let Some(moved) = self.slots.get(place)
            && let Some(known) = self.places.get_mut(&moved.path)
        {
            *known = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Cache};

    /// A cache of `(path, bytes)`, with each path as its own value.
    fn filled(bounds: Bounds, entries: &[(&'static str, usize)]) -> Cache<&'static str> {
        let mut cache = Cache::new(bounds);
        for &(path, bytes) in entries {
            cache.keep(path, path, bytes);
            check(&cache);
        }
        cache
    }

    fn check<T>(cache: &Cache<T>) {
        assert!(cache.slots.len() <= cache.bounds.entries);
        assert!(cache.weight <= cache.bounds.bytes);
        assert_eq!(cache.weight, cache.slots.iter().map(|slot| slot.weight).sum());
        assert_eq!(cache.places.len(), cache.slots.len());
        for (place, slot) in cache.slots.iter().enumerate() {
            assert_eq!(cache.places.get(&slot.path), Some(&place));
        }
    }

    fn paths<T>(cache: &Cache<T>) -> Vec<&str> {
        let mut paths: Vec<&str> = cache.slots.iter().map(|slot| &*slot.path).collect();
        paths.sort_unstable();
        paths
    }

    const THREE: Bounds = Bounds { entries: 3, bytes: 1000 };

    #[test]
    fn what_is_kept_is_found() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 2)]);
        assert_eq!(cache.find("/a").copied(), Some("/a"));
        assert_eq!(cache.find("/c"), None);
    }

    #[test]
    fn a_path_is_kept_once() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1)]);
        cache.keep("/a", "new", 5);
        check(&cache);
        assert_eq!(cache.find("/a").copied(), Some("new"));
        assert_eq!((cache.slots.len(), cache.weight), (2, 10));
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1), ("/d", 1), ("/e", 1)]);
        assert_eq!(cache.slots.len(), 3);
    }

    #[test]
    fn the_bytes_are_bounded() {
        let cache = filled(THREE, &[("/a", 400), ("/b", 400), ("/c", 900)]);
        assert_eq!(paths(&cache), ["/c"]);
        let cache = filled(THREE, &[("/a", 498), ("/b", 498)]);
        assert_eq!(paths(&cache), ["/a", "/b"], "what fills the bounds exactly fits");
        let cache = filled(THREE, &[("/a", 998)]);
        assert_eq!(paths(&cache), ["/a"]);
        let cache = filled(THREE, &[("/a", 999)]);
        assert!(paths(&cache).is_empty());
    }

    #[test]
    fn what_exceeds_the_bounds_alone_drives_nothing_out() {
        let cache = filled(THREE, &[("/a", 400), ("/b", 999)]);
        assert_eq!(paths(&cache), ["/a"]);
        let cache = filled(Bounds { entries: 3, bytes: 0 }, &[("/a", 0)]);
        assert!(paths(&cache).is_empty());
    }

    #[test]
    fn what_is_asked_for_again_outlives_what_is_not() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
        for path in ["/d", "/e", "/f", "/g", "/h"] {
            assert!(cache.find("/b").is_some(), "before {path}");
            cache.keep(path, path, 1);
            check(&cache);
        }
        assert!(cache.find("/b").is_some());
    }

    #[test]
    fn when_all_are_marked_one_goes_all_the_same() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
        for path in ["/a", "/b", "/c"] {
            cache.find(path);
        }
        cache.keep("/d", "/d", 1);
        check(&cache);
        assert_eq!(cache.slots.len(), 3);
        assert!(cache.find("/d").is_some());
    }

    #[test]
    fn what_is_forgotten_leaves_the_others_in_their_places() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
        cache.forget("/a");
        cache.forget("/never");
        check(&cache);
        assert_eq!(paths(&cache), ["/b", "/c"]);
        assert_eq!(cache.find("/c").copied(), Some("/c"));
    }

    #[test]
    fn paths_and_places_agree_whatever_is_done() {
        let mut cache = Cache::new(Bounds { entries: 8, bytes: 300 });
        // A linear congruential generator: the same steps each time.
        let mut state = 1_u32;
        for _ in 0..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let path = format!("/{}", state >> 8 & 15);
            match state >> 28 {
                0..2 => cache.forget(&path),
                2..8 => drop(cache.find(&path).copied()),
                _ => cache.keep(&path, path.len(), (state >> 16 & 127) as usize),
            }
            check(&cache);
        }
    }
}
