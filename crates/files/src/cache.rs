//! A cache that is bounded in entries and bytes, with CLOCK eviction.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// A cache by path.
///
/// A lookup marks its entry as referenced. The clock hand visits the slots in turn, clears marks
/// and evicts the first entry without one. A file that is requested once does not displace one that
/// is requested often, and a hit moves no entry.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    /// The slot of each path. It holds the same paths as `slots`.
    index_by_path: HashMap<Arc<str>, usize>,
    slots: Vec<Slot<T>>,
    /// The sum of the slots' weights.
    weight: usize,
    hand: usize,
    capacity: Capacity,
}

/// The limits of a [`Cache`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) entries: usize,
    /// The bytes of values and paths together.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Slot<T> {
    path: Arc<str>,
    value: T,
    weight: usize,
    /// Whether the entry was found since the hand last visited it.
    is_referenced: bool,
}

impl<T> Cache<T> {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self { index_by_path: HashMap::new(), slots: Vec::new(), weight: 0, hand: 0, capacity }
    }

    pub(crate) fn get(&mut self, path: &str) -> Option<&mut T> {
        let slot = &mut self.slots[*self.index_by_path.get(path)?];
        slot.is_referenced = true;
        Some(&mut slot.value)
    }

    /// Inserts a value of this many bytes and replaces an earlier one of the same path. A value
    /// larger than the capacity is not inserted.
    pub(crate) fn insert(&mut self, path: &str, value: T, bytes: usize) {
        self.remove(path);
        let weight = path.len() + bytes;
        if weight > self.capacity.bytes {
            return;
        }
        while self.slots.len() >= self.capacity.entries
            || self.weight + weight > self.capacity.bytes
        {
            self.evict();
        }
        let path = Arc::from(path);
        self.weight += weight;
        self.index_by_path.insert(Arc::clone(&path), self.slots.len());
        self.slots.push(Slot { path, value, weight, is_referenced: false });
    }

    pub(crate) fn remove(&mut self, path: &str) {
        if let Some(&index) = self.index_by_path.get(path) {
            self.remove_slot(index);
        }
    }

    /// Evicts the first entry that was not referenced, after at most one round. The cache must not
    /// be empty.
    fn evict(&mut self) {
        loop {
            let index = self.hand % self.slots.len();
            self.hand = index + 1;
            if !mem::take(&mut self.slots[index].is_referenced) {
                // The last slot moves here, after the hand has passed: the newest entry is visited
                // last.
                return self.remove_slot(index);
            }
        }
    }

    fn remove_slot(&mut self, index: usize) {
        let slot = self.slots.swap_remove(index);
        self.weight -= slot.weight;
        self.index_by_path.remove(&slot.path);
        if let Some(moved) = self.slots.get(index)
            && let Some(moved_index) = self.index_by_path.get_mut(&moved.path)
        {
            *moved_index = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Capacity};

    /// Creates a cache of `(path, bytes)` entries. Each value is its own path.
    fn filled(capacity: Capacity, entries: &[(&'static str, usize)]) -> Cache<&'static str> {
        let mut cache = Cache::new(capacity);
        for &(path, bytes) in entries {
            cache.insert(path, path, bytes);
            check(&cache);
        }
        cache
    }

    fn check<T>(cache: &Cache<T>) {
        assert!(cache.slots.len() <= cache.capacity.entries);
        assert!(cache.weight <= cache.capacity.bytes);
        assert_eq!(cache.weight, cache.slots.iter().map(|slot| slot.weight).sum());
        assert_eq!(cache.index_by_path.len(), cache.slots.len());
        for (index, slot) in cache.slots.iter().enumerate() {
            assert_eq!(cache.index_by_path.get(&slot.path), Some(&index));
        }
    }

    fn paths<T>(cache: &Cache<T>) -> Vec<&str> {
        let mut paths: Vec<&str> = cache.slots.iter().map(|slot| &*slot.path).collect();
        paths.sort_unstable();
        paths
    }

    const THREE: Capacity = Capacity { entries: 3, bytes: 1000 };

    #[test]
    fn finds_inserted_values() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 2)]);
        assert_eq!(cache.get("/a").copied(), Some("/a"));
        assert_eq!(cache.get("/c"), None);
    }

    #[test]
    fn replaces_value_of_same_path() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1)]);
        cache.insert("/a", "new", 5);
        check(&cache);
        assert_eq!(cache.get("/a").copied(), Some("new"));
        assert_eq!((cache.slots.len(), cache.weight), (2, 10));
    }

    #[test]
    fn limits_number_of_entries() {
        let cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1), ("/d", 1), ("/e", 1)]);
        assert_eq!(cache.slots.len(), 3);
    }

    #[test]
    fn limits_bytes() {
        let cache = filled(THREE, &[("/a", 400), ("/b", 400), ("/c", 900)]);
        assert_eq!(paths(&cache), ["/c"]);
        let cache = filled(THREE, &[("/a", 498), ("/b", 498)]);
        assert_eq!(paths(&cache), ["/a", "/b"], "what fills the capacity exactly fits");
        let cache = filled(THREE, &[("/a", 998)]);
        assert_eq!(paths(&cache), ["/a"]);
        let cache = filled(THREE, &[("/a", 999)]);
        assert!(paths(&cache).is_empty());
    }

    #[test]
    fn evicts_nothing_for_value_over_capacity() {
        let cache = filled(THREE, &[("/a", 400), ("/b", 999)]);
        assert_eq!(paths(&cache), ["/a"]);
        let cache = filled(Capacity { entries: 3, bytes: 0 }, &[("/a", 0)]);
        assert!(paths(&cache).is_empty());
    }

    #[test]
    fn evicts_unreferenced_entries_first() {
        for kept in ["/a", "/b", "/c"] {
            let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
            for path in ["/d", "/e", "/f", "/g", "/h"] {
                assert!(cache.get(kept).is_some(), "{kept} before {path}");
                cache.insert(path, path, 1);
                check(&cache);
            }
            assert!(cache.get(kept).is_some(), "{kept}");
        }
    }

    #[test]
    fn evicts_one_entry_when_all_are_referenced() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
        for path in ["/a", "/b", "/c"] {
            cache.get(path);
        }
        cache.insert("/d", "/d", 1);
        check(&cache);
        assert_eq!(cache.slots.len(), 3);
        assert!(cache.get("/d").is_some());
    }

    #[test]
    fn keeps_other_entries_when_one_is_removed() {
        let mut cache = filled(THREE, &[("/a", 1), ("/b", 1), ("/c", 1)]);
        cache.remove("/a");
        cache.remove("/never");
        check(&cache);
        assert_eq!(paths(&cache), ["/b", "/c"]);
        assert_eq!(cache.get("/c").copied(), Some("/c"));
    }

    #[test]
    fn keeps_index_consistent_under_random_operations() {
        let mut cache = Cache::new(Capacity { entries: 8, bytes: 300 });
        // A linear congruential generator, so that each run takes the same steps.
        let mut state = 1_u32;
        for _ in 0..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let path = format!("/{}", state >> 8 & 15);
            match state >> 28 {
                0..2 => cache.remove(&path),
                2..8 => drop(cache.get(&path).copied()),
                _ => cache.insert(&path, path.len(), (state >> 16 & 127) as usize),
            }
            check(&cache);
        }
    }
}
