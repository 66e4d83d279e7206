//! Tree nodes: sorted entries packed in one buffer and searched by the first bytes in which their
//! keys differ.

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

/// The sorted entries of a node. The first `KEY` bytes of an entry are its key; a shorter entry is
/// a key without a value.
// This field order puts everything that a search needs into the first cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Entries<const KEY: usize> {
    count: usize,
    /// The length of the common prefix of all keys.
    prefix_length: usize,
    /// The first eight bytes of this prefix as a number, padded with zeros.
    first: u64,
    bytes: Vec<u8>,
    /// The four bytes of each key after the prefix, as a number, which decide most searches. Unused
    /// elements are [`NO_HEAD`].
    heads: [u32; MAX_ENTRIES],
    /// The end of each entry in `bytes`.
    ends: [u32; MAX_ENTRIES],
}

/// The most entries of a node: an update copies them, and a search scans all heads.
pub(super) const MAX_ENTRIES: usize = 32;
/// The most bytes of a node with at least two entries, for the same reason.
const MAX_BYTES: usize = 4096;
/// The highest head, for unused elements.
const NO_HEAD: u32 = u32::MAX;

impl<const KEY: usize> Entries<KEY> {
    pub(super) const fn new() -> Self {
        let (heads, ends) = ([NO_HEAD; MAX_ENTRIES], [0; MAX_ENTRIES]);
        Self { count: 0, prefix_length: 0, first: 0, heads, ends, bytes: Vec::new() }
    }

    /// A copy with capacity for `more` further bytes.
    pub(super) fn with_room(&self, more: usize) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() + more);
        bytes.extend_from_slice(&self.bytes);
        Self { bytes, ..*self }
    }

    /// Inserts an entry before the one at `position`. The node must not be full.
    pub(super) fn insert(&mut self, position: usize, key: &[u8], value: &[u8]) {
        debug_assert!(if value.is_empty() { key.len() <= KEY } else { key.len() == KEY });
        let (count, start) = (self.count, self.start(position));
        let middle = start + key.len();
        let end = middle + value.len();
        self.resize_range(start..start, end - start);
        self.bytes[start..middle].copy_from_slice(key);
        self.bytes[middle..end].copy_from_slice(value);
        self.heads.copy_within(position..count, position + 1);
        self.ends.copy_within(position..count, position + 1);
        self.heads[position] = head(key.get(self.prefix_length..).unwrap_or_default());
        self.ends[position] = end as u32;
        self.count += 1;
        for other in &mut self.ends[position + 1..=count] {
            *other += (end - start) as u32;
        }
        self.update_prefix();
    }

    /// Replaces the value of the entry at `position`.
    pub(super) fn replace(&mut self, position: usize, value: &[u8]) {
        let (start, end) = (self.start(position) + self.key(position).len(), self.end(position));
        self.resize_range(start..end, value.len());
        self.bytes[start..start + value.len()].copy_from_slice(value);
        let (before, after) = ((end - start) as u32, value.len() as u32);
        for other in &mut self.ends[position..self.count] {
            *other = *other - before + after;
        }
    }

    pub(super) fn remove(&mut self, position: usize) {
        let count = self.count;
        let (start, end) = (self.start(position), self.end(position));
        self.resize_range(start..end, 0);
        self.heads.copy_within(position + 1..count, position);
        self.ends.copy_within(position + 1..count, position);
        self.count -= 1;
        self.heads[self.count] = NO_HEAD;
        for other in &mut self.ends[position..self.count] {
            *other -= (end - start) as u32;
        }
        self.update_prefix();
    }

    /// Splits the node and returns the entries from `position` on.
    pub(super) fn split_off(&mut self, position: usize) -> Self {
        let start = self.start(position);
        let mut right = Self::new();
        right.count = self.count - position;
        right.bytes = self.bytes.split_off(start);
        self.bytes.shrink_to_fit();
        (right.prefix_length, right.first) = (self.prefix_length, self.first);
        right.heads[..right.count].copy_from_slice(&self.heads[position..self.count]);
        for (own, other) in right.ends.iter_mut().zip(&self.ends[position..self.count]) {
            *own = other - start as u32;
        }
        self.heads[position..].fill(NO_HEAD);
        self.count = position;
        self.update_prefix();
        right.update_prefix();
        right
    }

    /// Appends the entries of `others`, which must sort after all entries of this node. There must
    /// be room.
    pub(super) fn append(&mut self, others: &Self) {
        for position in 0..others.count {
            let (key, value) = others.entry(position);
            self.insert(self.count, key, value);
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Whether both nodes hold the same entries.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.ends[..self.count] == other.ends[..other.count] && self.bytes == other.bytes
    }

    /// The key and the value of the entry at `position`.
    pub(super) fn entry(&self, position: usize) -> (&[u8], &[u8]) {
        let entry = &self.bytes[self.start(position)..self.end(position)];
        entry.split_at(entry.len().min(KEY))
    }

    pub(super) fn key(&self, position: usize) -> &[u8] {
        self.entry(position).0
    }

    /// The position of the entry with this key or, as an error, its insertion point.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        // Eight bytes, which are in the first cache line, nearly always decide.
        let is_alike = self.prefix_length <= 8 && {
            let differing = first(key) ^ self.first;
            differing.leading_zeros() as usize >= self.prefix_length * 8
        };
        match key.get(self.prefix_length..) {
            Some(rest) if is_alike || key.starts_with(&self.bytes[..self.prefix_length]) => {
                self.search(head(rest), key)
            }
            _ => Err(if key < &self.bytes[..self.prefix_length] { 0 } else { self.count }),
        }
    }

    /// The value of this key. A key with a different prefix is rejected by the comparison at the
    /// end, which saves the check of the prefix.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        // Among a million rows this node is in no cache. These reads let the loads of the entry's
        // end and of its page overlap with the load of the heads.
        black_box((
            self.ends[MAX_ENTRIES / 2],
            self.ends[MAX_ENTRIES - 1],
            self.bytes.get(self.bytes.len() / 2),
        ));
        let position = self.search(head(key.get(self.prefix_length..)?), key).ok()?;
        Some(self.entry(position).1)
    }

    /// The position at which to split the node after an insertion at `position`, or `None` if it is
    /// small enough. Ascending insertions fill each node before the next.
    pub(super) fn split_point(&self, position: usize) -> Option<usize> {
        let is_long = self.bytes.len() > MAX_BYTES && self.count > 1;
        if self.count < MAX_ENTRIES && !is_long {
            return None;
        }
        if position + 1 == self.count {
            return Some(position);
        }
        if !is_long {
            return Some(self.count / 2);
        }
        let half = (self.bytes.len() / 2) as u32;
        let before = self.ends[..self.count].partition_point(|end| *end < half);
        Some((before + 1).min(self.count - 1))
    }

    /// Whether the entries of two nodes fit into one with room for more.
    pub(super) const fn fits_with(&self, others: &Self) -> bool {
        self.count + others.count < MAX_ENTRIES * 3 / 4
            && self.bytes.len() + others.bytes.len() <= MAX_BYTES * 3 / 4
    }

    #[inline]
    fn search(&self, head: u32, key: &[u8]) -> Result<usize, usize> {
        // Counts all smaller heads: a binary search would wait for each cache line in turn.
        let mut below = [0; 4];
        for own in self.heads.as_chunks::<4>().0 {
            for (below, own) in below.iter_mut().zip(own) {
                *below += u32::from(*own < head);
            }
        }
        let mut low = below.iter().sum::<u32>() as usize;
        let alike = self.heads[low..self.count].iter().take_while(|own| **own == head);
        let mut high = low + alike.count();
        while low < high {
            let middle = low.midpoint(high);
            match compare(self.key(middle), key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn start(&self, position: usize) -> usize {
        if position == 0 { 0 } else { self.end(position - 1) }
    }

    fn end(&self, position: usize) -> usize {
        self.ends[position] as usize
    }

    /// Updates the common prefix: since keys are sorted, it is that of the first and the last.
    fn update_prefix(&mut self) {
        let prefix_length = match self.count {
            0 => 0,
            count => common(self.key(0), self.key(count - 1)),
        };
        if prefix_length == self.prefix_length {
            return;
        }
        self.prefix_length = prefix_length;
        self.first = first(&self.bytes[..prefix_length]);
        for position in 0..self.count {
            self.heads[position] = head(&self.key(position)[prefix_length..]);
        }
    }

    /// Resizes a range of the buffer. The caller overwrites its contents.
    fn resize_range(&mut self, range: Range<usize>, length: usize) {
        let bytes = &mut self.bytes;
        let old = bytes.len();
        let new = old - range.len() + length;
        if new > bytes.capacity() {
            let more = new - old;
            // Ascending insertions continue until the node splits and frees the rest. Elsewhere a
            // doubled buffer would stay half empty in most nodes.
            let is_in_order = range.start == old && self.count > 1;
            let likely = if is_in_order { MAX_BYTES.saturating_sub(old) } else { old / 8 };
            bytes.reserve_exact(likely.min(more * (MAX_ENTRIES - self.count)).max(more));
        }
        if new > old {
            bytes.resize(new, 0);
        }
        bytes.copy_within(range.end..old, range.start + length);
        bytes.truncate(new);
    }
}

/// Compares slices; row ids without a call.
#[inline]
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    match (<[u8; 16]>::try_from(left), <[u8; 16]>::try_from(right)) {
        (Ok(left), Ok(right)) => u128::from_be_bytes(left).cmp(&u128::from_be_bytes(right)),
        _ => left.cmp(right),
    }
}

/// The length of the common prefix.
pub(super) fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// The first eight bytes as a number with the same order.
#[inline]
fn first(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut filled = [0; 8];
    filled[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(filled)
}

/// The first four bytes as a number with the same order.
#[inline]
fn head(bytes: &[u8]) -> u32 {
    if let Some(first) = bytes.first_chunk() {
        return u32::from_be_bytes(*first);
    }
    let mut filled = [0; 4];
    filled[..bytes.len()].copy_from_slice(bytes);
    u32::from_be_bytes(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries whose values have these lengths.
    fn entries(lengths: &[usize]) -> Entries<4> {
        let mut entries = Entries::new();
        for (position, length) in lengths.iter().enumerate() {
            entries.insert(position, &(position as u32 * 2).to_be_bytes(), &vec![7; *length]);
        }
        entries
    }

    #[test]
    fn splits_full_nodes_and_long_ones() {
        let split = |lengths: &[usize], position| entries(lengths).split_point(position);
        assert_eq!(split(&[1; MAX_ENTRIES - 1], 3), None);
        assert_eq!(split(&[1; MAX_ENTRIES], 3), Some(MAX_ENTRIES / 2));
        assert_eq!(split(&[1; MAX_ENTRIES], MAX_ENTRIES - 2), Some(MAX_ENTRIES / 2));
        // After an insertion at the end, only the new entry moves.
        assert_eq!(split(&[1; MAX_ENTRIES], MAX_ENTRIES - 1), Some(MAX_ENTRIES - 1));
        // Two entries of 4096 bytes with their keys, and one byte more.
        assert_eq!(split(&[2044, 2044], 0), None);
        assert_eq!(split(&[2045, 2044], 0), Some(1));
        assert_eq!(split(&[2045, 2044], 1), Some(1));
        assert_eq!(split(&[9000], 0), None);
        // By bytes, so that both parts have about half.
        assert_eq!(split(&[2996, 996, 996], 0), Some(1));
        assert_eq!(split(&[996, 996, 2996], 0), Some(2));
        assert_eq!(split(&[996, 1496, 996, 1496], 0), Some(2));
        assert_eq!(split(&[996, 1495, 997, 1496], 0), Some(3));
    }

    #[test]
    fn joins_nodes_that_leave_room_for_more() {
        let fits = |left: &[usize], right: &[usize]| entries(left).fits_with(&entries(right));
        assert!(fits(&[1; 12], &[1; 11]) && !fits(&[1; 12], &[1; 12]));
        assert!(fits(&[0; 0], &[1; 23]) && !fits(&[1; 24], &[0; 0]));
        // 3072 bytes with the keys.
        assert!(fits(&[1532], &[1532]) && !fits(&[1533], &[1532]));
    }

    #[test]
    fn compares_all_entries() {
        assert!(entries(&[]).is_same(&entries(&[])));
        assert!(entries(&[1, 2]).is_same(&entries(&[1, 2])));
        assert!(!entries(&[1, 2]).is_same(&entries(&[2, 1])), "other lengths");
        assert!(!entries(&[1, 2]).is_same(&entries(&[1])) && !entries(&[]).is_same(&entries(&[0])));
        let mut other = entries(&[1, 2]);
        other.replace(1, &[7, 8]);
        assert!(!entries(&[1, 2]).is_same(&other), "other bytes");
        other.replace(1, &[7, 7]);
        assert!(entries(&[1, 2]).is_same(&other));
    }

    #[test]
    fn reserves_memory_for_likely_insertions_only() {
        let capacity = |entries: &Entries<4>| entries.bytes.capacity();
        // A copy has room for one more entry.
        let copy = entries(&[10; 3]).with_room(14);
        assert_eq!(capacity(&copy), 4 * 14);
        let mut inserted = copy.clone().with_room(14);
        inserted.insert(1, &[0, 0, 0, 1], &[7; 10]);
        assert_eq!((capacity(&inserted), inserted.bytes.len()), (56, 56));
        // The first entries have no more memory than they need.
        assert_eq!(capacity(&entries(&[10])), 14);
        assert_eq!(capacity(&entries(&[10, 10])), 28);
        // Entries in order continue until the node is full, by count or by bytes.
        assert_eq!(capacity(&entries(&[10, 10, 10])), 28 + 14 * (MAX_ENTRIES - 2));
        assert_eq!(capacity(&entries(&[996, 996, 996])), MAX_BYTES);
        // In the middle there is an eighth more, and at least enough.
        let mut middle = entries(&[96, 96]).with_room(0);
        middle.insert(1, &[0, 0, 0, 1], &[7; 6]);
        assert_eq!(capacity(&middle), 200 + 200 / 8);
        let mut middle = entries(&[96, 96]).with_room(0);
        middle.insert(1, &[0, 0, 0, 1], &[7; 96]);
        assert_eq!(capacity(&middle), 300);
        // A node frees what a split takes from it.
        let mut left = entries(&[10; 20]);
        let right = left.split_off(15);
        assert_eq!((capacity(&left), right.len()), (15 * 14, 5));
    }

    #[test]
    fn finds_keys_with_a_common_prefix_of_any_length() {
        for length in [0, 1, 7, 8, 9, 12, 40] {
            let prefix = vec![5; length];
            let key = |end: &[u8]| [&prefix[..], end].concat();
            let mut entries = Entries::<{ usize::MAX }>::new();
            for (position, end) in
                [&[1, 1][..], &[3], &[3, 0], &[3, 0, 0, 0, 9], &[8]].iter().enumerate()
            {
                entries.insert(position, &key(end), &[]);
            }
            for (end, expected) in [
                (&[][..], Err(0)),
                (&[0], Err(0)),
                (&[1, 1], Ok(0)),
                (&[2], Err(1)),
                (&[3], Ok(1)),
                (&[3, 0], Ok(2)),
                (&[3, 0, 0], Err(3)),
                (&[3, 0, 0, 0, 9], Ok(3)),
                (&[3, 0, 0, 0, 10], Err(4)),
                (&[8], Ok(4)),
                (&[8, 0], Err(5)),
            ] {
                assert_eq!(entries.find(&key(end)), expected, "{length} {end:?}");
                assert_eq!(entries.get(&key(end)).is_some(), expected.is_ok(), "{length} {end:?}");
            }
            // Keys without the prefix, which differ in its first or its last byte.
            for at in [0, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                for (byte, expected) in [(4, Err(0)), (6, Err(5))] {
                    let mut other = key(&[3]);
                    other[at] = byte;
                    assert_eq!(entries.find(&other), expected, "{length} {at} {byte}");
                    assert_eq!(entries.get(&other), None);
                }
                assert_eq!(entries.find(&prefix[..at]), Err(0));
            }
        }
    }
}
