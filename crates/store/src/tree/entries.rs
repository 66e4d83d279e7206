//! Decides how a few entries lie in memory: in order, in one run of bytes, each found by the first bytes in which keys
//! differ.

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

/// Some entries of a tree, in the order of their keys. An entry's first `KEY` bytes are its key, or all of it if it has
/// no more.
// What a search needs lies together: this order puts it into the first lines of memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Entries<const KEY: usize> {
    count: usize,
    /// So many bytes, at their beginnings, all keys have in common.
    shared: usize,
    /// The first eight of these, as a number, and zeros behind them.
    first: u64,
    bytes: Vec<u8>,
    /// Of each key the next four bytes, as a number. Most searches look at nothing else until they are there. Behind
    /// the last one they are [`NO_HEAD`].
    heads: [u32; MOST],
    /// Where each entry ends among the bytes.
    ends: [u32; MOST],
}

/// So many have room: a commit copies them, and a search goes through all that they lie in.
pub(super) const MOST: usize = 32;
/// For the same reason they are parted when they have more bytes than this, if there are two.
const MOST_BYTES: usize = 4096;
/// None is above it.
const NO_HEAD: u32 = u32::MAX;

impl<const KEY: usize> Entries<KEY> {
    pub(super) const fn new() -> Self {
        let (heads, ends) = ([NO_HEAD; MOST], [0; MOST]);
        Self { count: 0, shared: 0, first: 0, heads, ends, bytes: Vec::new() }
    }

    /// The same with room for so many more bytes.
    pub(super) fn with_room(&self, more: usize) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() + more);
        bytes.extend_from_slice(&self.bytes);
        Self { bytes, ..*self }
    }

    /// Adds an entry before the one at `place`. There must be room.
    pub(super) fn insert(&mut self, place: usize, key: &[u8], value: &[u8]) {
        debug_assert!(if value.is_empty() { key.len() <= KEY } else { key.len() == KEY });
        let (count, start) = (self.count, self.start(place));
        let middle = start + key.len();
        let end = middle + value.len();
        self.stretch(start..start, end - start);
        self.bytes[start..middle].copy_from_slice(key);
        self.bytes[middle..end].copy_from_slice(value);
        self.heads.copy_within(place..count, place + 1);
        self.ends.copy_within(place..count, place + 1);
        self.heads[place] = head(key.get(self.shared..).unwrap_or_default());
        self.ends[place] = end as u32;
        self.count += 1;
        for other in &mut self.ends[place + 1..=count] {
            *other += (end - start) as u32;
        }
        self.share();
    }

    /// Gives the entry at `place` another value.
    pub(super) fn replace(&mut self, place: usize, value: &[u8]) {
        let (start, end) = (self.start(place) + self.key(place).len(), self.end(place));
        self.stretch(start..end, value.len());
        self.bytes[start..start + value.len()].copy_from_slice(value);
        let (before, after) = ((end - start) as u32, value.len() as u32);
        for other in &mut self.ends[place..self.count] {
            *other = *other - before + after;
        }
    }

    pub(super) fn remove(&mut self, place: usize) {
        let (count, start, end) = (self.count, self.start(place), self.end(place));
        self.stretch(start..end, 0);
        self.heads.copy_within(place + 1..count, place);
        self.ends.copy_within(place + 1..count, place);
        self.count -= 1;
        self.heads[self.count] = NO_HEAD;
        for other in &mut self.ends[place..self.count] {
            *other -= (end - start) as u32;
        }
        self.share();
    }

    /// Parts them: those from `place` on are returned.
    pub(super) fn split_off(&mut self, place: usize) -> Self {
        let start = self.start(place);
        let mut right = Self::new();
        right.count = self.count - place;
        right.bytes = self.bytes.split_off(start);
        self.bytes.shrink_to_fit();
        (right.shared, right.first) = (self.shared, self.first);
        right.heads[..right.count].copy_from_slice(&self.heads[place..self.count]);
        for (own, other) in right.ends.iter_mut().zip(&self.ends[place..self.count]) {
            *own = other - start as u32;
        }
        self.heads[place..].fill(NO_HEAD);
        self.count = place;
        self.share();
        right.share();
        right
    }

    /// Adds others, which come behind them all. There must be room.
    pub(super) fn append(&mut self, others: &Self) {
        for place in 0..others.count {
            let (key, value) = others.entry(place);
            self.insert(self.count, key, value);
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Whether the same entries are in both.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.ends[..self.count] == other.ends[..other.count] && self.bytes == other.bytes
    }

    /// The key and the value of the entry at `place`.
    pub(super) fn entry(&self, place: usize) -> (&[u8], &[u8]) {
        let entry = &self.bytes[self.start(place)..self.end(place)];
        entry.split_at(entry.len().min(KEY))
    }

    pub(super) fn key(&self, place: usize) -> &[u8] {
        self.entry(place).0
    }

    /// Where an entry of this key is or, as an error, would be.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        // Nearly always eight bytes tell, which lie where the search begins.
        let is_alike = self.shared <= 8 && {
            let differing = first(key) ^ self.first;
            differing.leading_zeros() as usize >= self.shared * 8
        };
        match key.get(self.shared..) {
            Some(rest) if is_alike || key.starts_with(&self.bytes[..self.shared]) => {
                self.search(head(rest), key)
            }
            _ => Err(if key < &self.bytes[..self.shared] { 0 } else { self.count }),
        }
    }

    /// The value of the entry of this key. One that has not what all have in common is found at the end to be another,
    /// which spares a look at the first of them.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        // Of a million rows this one lies in no cache. What would be waited for one after the other, where it ends and
        // the page of memory it is in, is asked for while the heads still come.
        black_box((self.ends[MOST / 2], self.ends[MOST - 1], self.bytes.get(self.bytes.len() / 2)));
        let place = self.search(head(key.get(self.shared..)?), key).ok()?;
        Some(self.entry(place).1)
    }

    /// Where they are to be parted, now that one has come to `place`. `None`: they may stay together. Those that come
    /// in their order leave others behind that are as many as can be.
    pub(super) fn parting(&self, place: usize) -> Option<usize> {
        let is_long = self.bytes.len() > MOST_BYTES && self.count > 1;
        if self.count < MOST && !is_long {
            return None;
        }
        if place + 1 == self.count {
            return Some(place);
        }
        if !is_long {
            return Some(self.count / 2);
        }
        let half = (self.bytes.len() / 2) as u32;
        let before = self.ends[..self.count].partition_point(|end| *end < half);
        Some((before + 1).min(self.count - 1))
    }

    /// Whether these and others are few enough to be joined, and not to be parted again soon.
    pub(super) const fn fit(&self, others: &Self) -> bool {
        self.count + others.count < MOST * 3 / 4
            && self.bytes.len() + others.bytes.len() <= MOST_BYTES * 3 / 4
    }

    #[inline]
    fn search(&self, head: u32, key: &[u8]) -> Result<usize, usize> {
        // All are counted: a binary search would wait for one line of memory after the other.
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

    fn start(&self, place: usize) -> usize {
        if place == 0 { 0 } else { self.end(place - 1) }
    }

    fn end(&self, place: usize) -> usize {
        self.ends[place] as usize
    }

    /// Finds out what all keys have in common: since they are in order, it is what the first and the last have.
    fn share(&mut self) {
        let shared = match self.count {
            0 => 0,
            count => common(self.key(0), self.key(count - 1)),
        };
        if shared == self.shared {
            return;
        }
        self.shared = shared;
        self.first = first(&self.bytes[..shared]);
        for place in 0..self.count {
            self.heads[place] = head(&self.key(place)[shared..]);
        }
    }

    /// Makes a range of the bytes so long. What is in it then is to be written.
    fn stretch(&mut self, range: Range<usize>, length: usize) {
        let bytes = &mut self.bytes;
        let old = bytes.len();
        let new = old - range.len() + length;
        if new > bytes.capacity() {
            let more = new - old;
            // What comes in order goes on to come, until they are parted and give back what is left. Elsewhere twice as
            // much as it has would stay empty in most of them.
            let is_in_order = range.start == old && self.count > 1;
            let likely = if is_in_order { MOST_BYTES.saturating_sub(old) } else { old / 8 };
            bytes.reserve_exact(likely.min(more * (MOST - self.count)).max(more));
        }
        if new > old {
            bytes.resize(new, 0);
        }
        bytes.copy_within(range.end..old, range.start + length);
        bytes.truncate(new);
    }
}

/// As slices compare; the ids of rows without a call.
#[inline]
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    match (<[u8; 16]>::try_from(left), <[u8; 16]>::try_from(right)) {
        (Ok(left), Ok(right)) => u128::from_be_bytes(left).cmp(&u128::from_be_bytes(right)),
        _ => left.cmp(right),
    }
}

/// How many bytes both begin with.
pub(super) fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// The first eight bytes as a number that is ordered as they are.
#[inline]
fn first(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut filled = [0; 8];
    filled[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(filled)
}

/// The first four bytes as a number that is ordered as they are.
#[inline]
fn head(bytes: &[u8]) -> u32 {
    if let Some(first) = bytes.first_chunk() {
        return u32::from_be_bytes(*first);
    }
    let mut filled = [0; 4];
    filled[..bytes.len()].copy_from_slice(bytes);
    u32::from_be_bytes(filled)
}
