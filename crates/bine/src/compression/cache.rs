//! The cache of compressed content: files, and other content with a strong entity tag.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::Coding;

/// The memory of an entry besides its content and tag, in bytes, about.
const ENTRY: usize = 160;
/// An entry has at most this share of the cache.
const LARGEST_SHARE: usize = 4;

/// Identifies content before compression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ContentKey {
    /// The strong entity tag. That of a file has its inode, length and modification time.
    pub(super) tag: Box<[u8]>,
    /// The length in bytes.
    pub(super) length: u64,
    /// A hash of what distinguishes contents with equal tags: the path of a file, or the content itself.
    pub(super) hash: u64,
}

/// Compressed contents, up to a number of bytes. The least recently used are removed first.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    map: HashMap<(ContentKey, Coding), CachedContent>,
    bytes: usize,
    /// Counts the accesses.
    now: u64,
}

#[derive(Debug)]
struct CachedContent {
    content: Arc<[u8]>,
    used: u64,
}

impl Cache {
    /// Creates a cache of `limit` bytes; 0: it keeps nothing.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, entries: Mutex::default() }
    }

    /// Whether it keeps anything.
    pub(super) const fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// The content for a key.
    pub(super) fn find(&self, key: &ContentKey, coding: Coding) -> Option<Arc<[u8]>> {
        let mut entries = self.lock();
        entries.now += 1;
        let now = entries.now;
        let entry = entries.map.get_mut(&(key.clone(), coding))?;
        entry.used = now;
        Some(Arc::clone(&entry.content))
    }

    /// Adds content, and removes what was not used for the longest time if there is too much.
    pub(super) fn add(&self, key: ContentKey, coding: Coding, content: Arc<[u8]>) {
        let size = size_of(&key, &content);
        if size > self.limit / LARGEST_SHARE {
            return;
        }
        let mut entries = self.lock();
        entries.now += 1;
        let used = entries.now;
        if let Some(old) = entries.map.remove(&(key.clone(), coding)) {
            entries.bytes -= size_of(&key, &old.content);
        }
        // A scan: entries are removed rarely, and there are some thousands at most.
        while entries.bytes + size > self.limit {
            let oldest = entries.map.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = entries.map.remove(&oldest) {
                entries.bytes -= size_of(&oldest.0, &entry.content);
            }
        }
        entries.bytes += size;
        entries.map.insert((key, coding), CachedContent { content, used });
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size_of(key: &ContentKey, content: &[u8]) -> usize {
    key.tag.len() + content.len() + ENTRY
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u64) -> ContentKey {
        ContentKey { tag: (*b"\"a\"").into(), length: 9, hash: number }
    }

    fn content(length: usize) -> Arc<[u8]> {
        vec![b'x'; length].into()
    }

    #[test]
    fn removes_the_least_recently_used_content() {
        let cache = Cache::new(4 * (100 + 3 + ENTRY));
        for number in 0..4 {
            cache.add(key(number), Coding::Gzip, content(100));
        }
        assert!(cache.find(&key(0), Coding::Gzip).is_some());
        assert!(cache.find(&key(0), Coding::Brotli).is_none());
        cache.add(key(4), Coding::Gzip, content(100));
        let kept: Vec<_> =
            (0..5).filter(|number| cache.find(&key(*number), Coding::Gzip).is_some()).collect();
        assert_eq!(kept, [0, 2, 3, 4]);
    }

    #[test]
    fn keeps_nothing_that_would_displace_much() {
        let cache = Cache::new(4000);
        cache.add(key(0), Coding::Gzip, content(1000));
        assert!(cache.find(&key(0), Coding::Gzip).is_none());
        let off = Cache::new(0);
        off.add(key(0), Coding::Gzip, content(1));
        assert!(!off.is_on() && off.find(&key(0), Coding::Gzip).is_none());
    }

    proptest! {
        #[test]
        fn never_exceeds_its_limit(adds in prop::collection::vec((0_u64..20, 0_usize..400), 0..60)) {
            let cache = Cache::new(3000);
            for (number, length) in adds {
                cache.add(key(number), Coding::Gzip, content(length));
                let entries = cache.lock();
                let sum: usize =
                    entries.map.iter().map(|((key, _), entry)| size_of(key, &entry.content)).sum();
                prop_assert!(entries.bytes == sum && sum <= 3000);
            }
        }
    }
}
