//! The encoding of groups: the records of one write are valid together or not at all.

use super::format::{ALIGNMENT, LAST, checksum, long, word};
use super::{Error, Sequence};

/// The longest group in bytes, with its header; an upper bound for records too.
pub const MAX_GROUP_LENGTH: usize = 64 << 20;

/// The length of a group's header in bytes.
pub(super) const GROUP_HEADER_LENGTH: usize = 40;
/// The length of a record's header in bytes.
pub(super) const RECORD_HEADER_LENGTH: usize = 16;
/// The length of the shortest encoded record in bytes.
pub(super) const MIN_RECORD_LENGTH: usize = RECORD_HEADER_LENGTH + ALIGNMENT;
/// A record ends with 1 to 8 filler bytes. So a complete group never ends with a zero, and one
/// whose end was not written always does.
const FILLER: u8 = 0xFF;
/// A buffer that a large group has grown above this size is shrunk.
const MAX_IDLE_BUFFER: usize = 1 << 20;

/// A group that collects records.
pub(super) struct GroupBuilder {
    store: u64,
    bytes: Vec<u8>,
    /// The sequence of the next record.
    next: Sequence,
    /// The sequence of the group's first record.
    first: Sequence,
}

impl GroupBuilder {
    pub(super) fn new(store: u64, first: Sequence) -> Self {
        Self { store, bytes: vec![0; GROUP_HEADER_LENGTH], next: first, first }
    }

    pub(super) fn append(&mut self, record: &[u8]) -> Result<Sequence, Error> {
        let room = MAX_GROUP_LENGTH - self.bytes.len();
        let room = room.saturating_sub(RECORD_HEADER_LENGTH + ALIGNMENT);
        if record.len() > room {
            return Err(Error::TooLong { length: record.len(), room });
        }
        let sequence = self.next;
        let (length, number) = ((record.len() as u32).to_le_bytes(), sequence.to_le_bytes());
        let check = checksum(self.store, &[&length, &number, record]);
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&check.to_le_bytes());
        self.bytes.extend_from_slice(&number);
        self.bytes.extend_from_slice(record);
        self.bytes.resize(self.bytes.len() + filler(record.len()), FILLER);
        self.next += 1;
        Ok(sequence)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == GROUP_HEADER_LENGTH
    }

    /// The sequence of the first record.
    pub(super) fn first(&self) -> Sequence {
        self.first
    }

    /// The sequence of the next record.
    pub(super) fn next(&self) -> Sequence {
        self.next
    }

    /// The encoded length in bytes.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Completes the header. Returns the bytes to write, and the checksum that the next group
    /// refers to.
    pub(super) fn seal(&mut self, durable: Sequence, previous: u32) -> (&[u8], u32) {
        let (head, body) = self.bytes.split_at_mut(GROUP_HEADER_LENGTH);
        head[..8].copy_from_slice(&self.store.to_le_bytes());
        head[8..16].copy_from_slice(&self.first.to_le_bytes());
        head[16..24].copy_from_slice(&durable.to_le_bytes());
        head[24..28].copy_from_slice(&(body.len() as u32).to_le_bytes());
        head[28..32].copy_from_slice(&previous.to_le_bytes());
        head[32..36].copy_from_slice(&checksum(self.store, &[body]).to_le_bytes());
        let mark = checksum(self.store, &[&head[..36]]);
        head[36..].copy_from_slice(&mark.to_le_bytes());
        (&self.bytes, mark)
    }

    /// Begins the next group after a successful write.
    pub(super) fn begin_next(&mut self) {
        self.first = self.next;
        self.clear();
    }

    /// Discards the group and frees its sequences.
    pub(super) fn discard(&mut self) {
        self.next = self.first;
        self.clear();
    }

    /// Continues an empty group with a higher sequence, after a gap.
    pub(super) fn skip_to(&mut self, first: Sequence) {
        (self.first, self.next) = (first, first);
    }

    fn clear(&mut self) {
        self.bytes.truncate(GROUP_HEADER_LENGTH);
        self.bytes.shrink_to(MAX_IDLE_BUFFER);
    }
}

/// A group's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupHeader {
    /// The sequence of its first record, or of the next one if it is empty.
    pub(super) first: Sequence,
    /// All records up to this one were durable when the group was written.
    pub(super) durable: Sequence,
    /// The records' length in bytes.
    pub(super) length: usize,
    /// The checksum of the previous group or of the segment's header.
    pub(super) previous: u32,
    /// The records' checksum.
    pub(super) body: u32,
    /// The checksum of the header, to which the next group refers.
    pub(super) mark: u32,
}

impl GroupHeader {
    /// Parses a header. `None` if the bytes are not an intact header of this store.
    pub(super) fn read(bytes: &[u8], store: u64) -> Option<Self> {
        let bytes = bytes.get(..GROUP_HEADER_LENGTH)?;
        let mark = word(bytes, 36);
        if long(bytes, 0) != store || checksum(store, &[&bytes[..36]]) != mark {
            return None;
        }
        let length = word(bytes, 24) as usize;
        let (first, durable) = (long(bytes, 8), long(bytes, 16));
        let is_possible = length <= MAX_GROUP_LENGTH - GROUP_HEADER_LENGTH
            && length.is_multiple_of(ALIGNMENT)
            && first <= LAST
            && durable < first;
        is_possible.then_some(Self {
            first,
            durable,
            length,
            previous: word(bytes, 28),
            body: word(bytes, 32),
            mark,
        })
    }
}

/// An iterator over encoded records, up to the first corrupt one.
pub(super) struct Records<'b> {
    bytes: &'b [u8],
    at: usize,
    store: u64,
    next: Sequence,
}

impl<'b> Records<'b> {
    pub(super) fn new(bytes: &'b [u8], store: u64, first: Sequence) -> Self {
        Self { bytes, at: 0, store, next: first }
    }

    /// The number of bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The sequence of the next record.
    pub(super) fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Skips a corrupt record by its length, which may be wrong too. Returns `false` if the length
    /// is out of range.
    pub(super) fn skip_corrupt(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        if rest.len() < RECORD_HEADER_LENGTH
            || rest[..RECORD_HEADER_LENGTH] == [0; RECORD_HEADER_LENGTH]
        {
            return false;
        }
        let length = word(rest, 0) as usize;
        let whole = RECORD_HEADER_LENGTH + length + filler(length);
        if whole > rest.len() {
            return false;
        }
        self.at += whole;
        self.next += 1;
        true
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = (Sequence, &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        if rest.len() < RECORD_HEADER_LENGTH {
            return None;
        }
        let length = word(rest, 0) as usize;
        let record = rest.get(RECORD_HEADER_LENGTH..)?.get(..length)?;
        let check = checksum(self.store, &[&rest[..4], &rest[8..16], record]);
        if check != word(rest, 4) || long(rest, 8) != self.next {
            return None;
        }
        self.at += (RECORD_HEADER_LENGTH + length + filler(length)).min(rest.len());
        self.next += 1;
        Some((self.next - 1, record))
    }
}

fn filler(length: usize) -> usize {
    ALIGNMENT - length % ALIGNMENT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STORE: u64 = 0x0123_4567_89AB_CDEF;

    proptest! {
        #[test]
        fn round_trips_records(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
        ) {
            let mut draft = GroupBuilder::new(STORE, 5);
            for (index, record) in records.iter().enumerate() {
                prop_assert_eq!(draft.append(record).ok(), Some(5 + index as u64));
            }
            let (bytes, mark) = draft.seal(4, 99);
            prop_assert!(bytes.len().is_multiple_of(ALIGNMENT));
            prop_assert_eq!(bytes.last(), Some(&FILLER));
            let (head, body) = bytes.split_at(GROUP_HEADER_LENGTH);
            let head = GroupHeader::read(head, STORE).expect("it was just written");
            prop_assert_eq!((head.first, head.durable, head.previous, head.mark), (5, 4, 99, mark));
            prop_assert_eq!((head.length, head.body), (body.len(), checksum(STORE, &[body])));
            let found: Vec<_> = Records::new(body, STORE, 5).map(|(_, bytes)| bytes).collect();
            prop_assert_eq!(found, records);
        }

        #[test]
        fn reads_any_bytes_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            GroupHeader::read(&bytes, STORE);
            let mut records = Records::new(&bytes, STORE, 1);
            while records.next().is_some() || records.skip_corrupt() {}
            prop_assert!(records.at() <= bytes.len());
        }
    }

    #[test]
    fn discarded_group_frees_its_sequences() {
        let mut draft = GroupBuilder::new(STORE, 1);
        assert_eq!(draft.append(b"a").ok(), Some(1));
        draft.discard();
        assert_eq!(draft.append(b"b").ok(), Some(1));
        draft.begin_next();
        assert_eq!(draft.append(b"c").ok(), Some(2));
    }

    #[test]
    fn accepts_the_longest_record_and_no_longer_one() {
        let most = MAX_GROUP_LENGTH - GROUP_HEADER_LENGTH - RECORD_HEADER_LENGTH - ALIGNMENT;
        let mut draft = GroupBuilder::new(STORE, 1);
        let mut record = vec![0; most + 1];
        let error = draft.append(&record).unwrap_err();
        assert!(
            matches!(error, Error::TooLong { length, room } if (length, room) == (most + 1, most))
        );
        record.pop();
        assert_eq!(draft.append(&record).ok(), Some(1));
        assert_eq!(draft.length(), MAX_GROUP_LENGTH);
        assert!(matches!(draft.append(b"a"), Err(Error::TooLong { length: 1, room: 0 })));
        draft.begin_next();
        assert!(draft.bytes.capacity() <= MAX_IDLE_BUFFER, "the memory is free again");
    }

    #[test]
    fn rejects_intact_headers_with_impossible_values() {
        let is_possible = |first: Sequence, durable: Sequence, length: usize| {
            let mut bytes = [0; GROUP_HEADER_LENGTH];
            bytes[..8].copy_from_slice(&STORE.to_le_bytes());
            bytes[8..16].copy_from_slice(&first.to_le_bytes());
            bytes[16..24].copy_from_slice(&durable.to_le_bytes());
            bytes[24..28].copy_from_slice(&(length as u32).to_le_bytes());
            let mark = checksum(STORE, &[&bytes[..36]]);
            bytes[36..].copy_from_slice(&mark.to_le_bytes());
            GroupHeader::read(&bytes, STORE).is_some()
        };
        let most = MAX_GROUP_LENGTH - GROUP_HEADER_LENGTH;
        assert!(is_possible(1, 0, 0) && is_possible(LAST, LAST - 1, most));
        assert!(!is_possible(1, 0, most + ALIGNMENT), "longer than a group");
        assert!(!is_possible(1, 0, ALIGNMENT + 4), "not aligned");
        assert!(!is_possible(LAST + 1, 0, 0), "no successor");
        assert!(!is_possible(5, 5, 0), "durable before it was written");
    }

    #[test]
    fn skips_a_corrupt_record_by_its_length() {
        let mut draft = GroupBuilder::new(STORE, 1);
        for record in [&b"one"[..], b"second", b"3"] {
            draft.append(record).expect("there is room");
        }
        let body = draft.seal(0, 0).0[GROUP_HEADER_LENGTH..].to_vec();
        // Each record has a header, and ends with 1 to 8 further bytes.
        let (second, third) = (24, 48);
        let read = |body: &[u8]| {
            let mut records = Records::new(body, STORE, 1);
            let mut found = Vec::new();
            loop {
                found.extend(records.by_ref().map(|(sequence, _)| sequence));
                if !records.skip_corrupt() {
                    return (found, records.at(), records.next_sequence());
                }
            }
        };
        assert_eq!(read(&body), (vec![1, 2, 3], 72, 4));
        for (position, found) in
            [(17, vec![2, 3]), (second + 17, vec![1, 3]), (third + 16, vec![1, 2])]
        {
            let mut corrupt = body.clone();
            corrupt[position] ^= 1;
            assert_eq!(read(&corrupt), (found, 72, 4), "{position}");
        }
        // A length that is out of range, and space that was never written, end the search.
        let mut corrupt = body.clone();
        corrupt[second] = 16 + 16;
        assert_eq!(read(&corrupt), (vec![1], 24, 2));
        corrupt[second..].fill(0);
        assert_eq!(read(&corrupt), (vec![1], 24, 2));
        assert_eq!(read(&body[..third + 15]), (vec![1, 2], 48, 3));
        // The end of an intact record may be missing.
        assert_eq!(read(&body[..third + 17]), (vec![1, 2, 3], third + 17, 4));
        draft.begin_next();
        draft.append(b"").expect("there is room");
        let body = draft.seal(0, 0).0[GROUP_HEADER_LENGTH..].to_vec();
        assert_eq!(Records::new(&body[..16], STORE, 4).collect::<Vec<_>>(), [(4, &b""[..])]);
    }

    #[test]
    fn rejects_a_long_record_before_copying() {
        let mut draft = GroupBuilder::new(STORE, 1);
        let record = vec![0; MAX_GROUP_LENGTH];
        assert!(matches!(draft.append(&record), Err(Error::TooLong { .. })));
        assert!(draft.is_empty());
    }
}
