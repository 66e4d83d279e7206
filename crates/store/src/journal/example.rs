//! Segments for tests, written group by group.

use super::format::{FileHeader, FileKind, HEADER_LENGTH, word};
use super::group::GroupBuilder;
use super::segment::Segment;
use super::{Error, Sequence};
use crate::disk::{Folder as _, SimulatedFolder};

/// The number of the store.
pub(super) const STORE: u64 = 0x0123_4567_89AB_CDEF;

/// The bytes of a segment.
#[derive(Clone)]
pub(super) struct Example {
    first: Sequence,
    pub(super) bytes: Vec<u8>,
    /// The offset of each group.
    pub(super) groups: Vec<usize>,
    previous: u32,
}

impl Example {
    /// A segment without groups that begins with this record.
    pub(super) fn new(first: Sequence) -> Self {
        let head = FileHeader { kind: FileKind::Segment, store: STORE, number: first };
        let bytes = head.to_bytes().to_vec();
        let previous = word(&bytes, HEADER_LENGTH - 4);
        Self { first, bytes, groups: Vec::new(), previous }
    }

    /// Adds a group of these records, which was written when everything up to `durable` was synced.
    #[must_use]
    pub(super) fn group(mut self, first: Sequence, durable: Sequence, records: &[&[u8]]) -> Self {
        let mut group = GroupBuilder::new(STORE, first);
        for record in records {
            group.append(record).expect("the group has room");
        }
        let (bytes, mark) = group.seal(durable, self.previous);
        self.groups.push(self.bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.previous = mark;
        self
    }

    /// Adds bytes after the last group.
    #[must_use]
    pub(super) fn rest(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Changes one bit of the byte at this offset.
    #[must_use]
    pub(super) fn flip(mut self, at: usize) -> Self {
        self.bytes[at] ^= 1;
        self
    }

    /// Overwrites a range with zeros.
    #[must_use]
    pub(super) fn zero(mut self, range: std::ops::Range<usize>) -> Self {
        self.bytes[range].fill(0);
        self
    }

    /// A folder with this segment.
    pub(super) fn folder(&self) -> SimulatedFolder {
        let folder = SimulatedFolder::new(1, 1 << 24);
        folder.put(&self.name(), &self.bytes);
        folder
    }

    pub(super) fn name(&self) -> String {
        FileKind::Segment.name(self.first)
    }

    pub(super) fn open(&self) -> Segment {
        self.try_open().expect("its head is intact")
    }

    pub(super) fn try_open(&self) -> Result<Segment, Error> {
        let file = self.folder().open(&self.name()).expect("it was written");
        Segment::open(file, self.first)
    }
}
