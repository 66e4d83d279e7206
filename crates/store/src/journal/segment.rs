//! Reading a segment, and the decision whether a bad group was torn or damaged.
//!
//! A group that does not match its checksums was either **torn** by a power failure before it was
//! durable, or **damaged** after it. Only a group that is certainly torn may be cut off;
//! docs/formats/journal.md and [`Segment::judge`] have the rules.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;

use super::format::{ALIGNMENT, FileHeader, FileKind, HEADER_LENGTH, SECTOR, checksum, long, word};
use super::group::{GROUP_HEADER_LENGTH, GroupHeader, Records};
use super::{Damage, Error, Sequence};
use crate::disk::{File, read_full, write_all};

/// A reader of a segment's groups.
pub(super) struct Segment {
    pub(super) file: Box<dyn File>,
    pub(super) head: FileHeader,
    name: String,
    size: u64,
    /// The offset of the next group.
    at: u64,
    /// The sequence of the next record.
    next: Sequence,
    /// The checksum that the next group must refer to.
    previous: u32,
    /// All records up to this one were durable, according to the groups read so far.
    durable: Sequence,
    /// All records up to this one were synced, according to other files.
    synced: Sequence,
    /// Groups that no durable mark so far covers: the last sequence and the offset of each.
    unproven: VecDeque<(Sequence, u64)>,
    buffer: ReadBuffer,
}

/// The result of reading at a group's offset.
pub(super) enum Step<'b> {
    /// An intact group, possibly without records.
    Group(Records<'b>),
    /// A gap that a repair recorded: the records before this number are lost.
    Lost(Sequence),
    /// The end of the written data.
    End,
    /// A corrupt group.
    BadGroup(BadGroup),
}

/// A corrupt group.
#[derive(Clone, Copy)]
pub(super) struct BadGroup {
    /// The group's offset.
    pub(super) at: u64,
    /// The group's header, if it is intact.
    pub(super) head: Option<GroupHeader>,
    what: &'static str,
}

/// The decision about a bad group.
pub(super) enum Verdict {
    /// The group was never durable: cut it off with everything after it.
    Torn(Torn),
    /// The group was acknowledged as durable.
    Damaged(Damage),
}

/// An incomplete group at the end of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The segment.
    pub file: String,
    /// The offset at which the segment is cut.
    pub offset: u64,
    /// Bytes from the cut to the end of the file.
    pub bytes: u64,
    /// Complete groups after the incomplete one.
    pub groups: u64,
    /// The last record before the cut.
    pub last: Sequence,
    /// The last record that is known to have been synced; 0 if unknown.
    pub synced: Sequence,
}

impl Segment {
    /// Opens the segment whose first record has this sequence.
    pub(super) fn open(file: Box<dyn File>, first: Sequence) -> Result<Self, Error> {
        let name = FileKind::Segment.name(first);
        let mut bytes = [0; HEADER_LENGTH];
        let read = |error| Error::disk(&name, "read", error);
        let length = read_full(&*file, &mut bytes, 0).map_err(read)?;
        let head = FileHeader::read(&bytes[..length], FileKind::Segment, first)?;
        let size = file.size().map_err(read)?;
        Ok(Self::at_head(file, head, size, word(&bytes, HEADER_LENGTH - 4)))
    }

    /// Opens a segment whose header is damaged; the first group is assumed to follow it.
    pub(super) fn without_head(file: Box<dyn File>, head: FileHeader) -> Result<Self, Error> {
        let size = file.size().map_err(|error| Error::disk(&head.name(), "read", error))?;
        let previous = word(&head.to_bytes(), HEADER_LENGTH - 4);
        Ok(Self::at_head(file, head, size, previous))
    }

    fn at_head(file: Box<dyn File>, head: FileHeader, size: u64, previous: u32) -> Self {
        Self {
            file,
            head,
            name: head.name(),
            size,
            at: HEADER_LENGTH as u64,
            next: head.number,
            previous,
            durable: head.number.saturating_sub(1),
            synced: 0,
            unproven: VecDeque::new(),
            buffer: ReadBuffer::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The sequence of the next record.
    pub(super) fn next(&self) -> Sequence {
        self.next
    }

    /// The offset of the next group.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The checksum that the next group must refer to.
    pub(super) fn previous(&self) -> u32 {
        self.previous
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Takes into account that all records up to `synced` were synced, and so cannot be torn.
    /// Records up to `base` are in a snapshot and not needed from the journal.
    pub(super) fn note_synced(&mut self, synced: Sequence, base: Sequence) {
        self.synced = if synced > base { synced } else { 0 };
    }

    /// The damage of the last segment, after it was read to its end, if it lacks synced records
    /// that are in no snapshot.
    pub(super) fn ends_early(&self, base: Sequence) -> Option<Damage> {
        let what = "records that were synced to the disk are missing from its end";
        let first = self.next.max(base + 1);
        let records = Some(first..=self.synced);
        let damage = || Damage { file: self.name.clone(), offset: self.at, records, what };
        (first <= self.synced).then(damage)
    }

    /// The byte range of groups that no durable mark covers.
    pub(super) fn unproven(&self) -> Range<u64> {
        self.unproven.front().map_or(self.at, |(_, at)| *at)..self.at
    }

    /// Reads the next group. After `End` or `BadGroup` the position stays the same.
    pub(super) fn step(&mut self) -> Result<Step<'_>, Error> {
        let (at, store) = (self.at, self.head.store);
        let bytes = self.read(at, GROUP_HEADER_LENGTH)?;
        let Some(head) = GroupHeader::read(bytes, store) else {
            if self.is_zero(at)? {
                return Ok(Step::End);
            }
            return Ok(Step::BadGroup(BadGroup {
                at,
                head: None,
                what: "a group's head is not whole",
            }));
        };
        let bad = |what| Ok(Step::BadGroup(BadGroup { at, head: Some(head), what }));
        if head.previous != self.previous {
            return bad("a group does not follow the one before it");
        }
        if head.first < self.next || (head.first > self.next && head.length > 0) {
            return bad("a group's numbers do not follow the ones before it");
        }
        let end = at + (GROUP_HEADER_LENGTH + head.length) as u64;
        let body = self.read(at + GROUP_HEADER_LENGTH as u64, head.length)?;
        if body.len() < head.length {
            return bad("the file ends within a group");
        }
        if checksum(store, &[body]) != head.body {
            return bad("a group's records do not match their checksum");
        }
        // Validates all records before it returns any: a group is accepted as a whole or not at
        // all.
        let mut records = Records::new(body, store, head.first);
        let last = records.by_ref().last().map_or(head.first - 1, |(sequence, _)| sequence);
        if records.at() < head.length {
            return bad("a group's records do not fill it");
        }
        let before = self.next;
        self.advance(end, last + 1, &head);
        if head.first > before {
            return Ok(Step::Lost(head.first));
        }
        let body = self.buffer.slice(at + GROUP_HEADER_LENGTH as u64, head.length);
        Ok(Step::Group(Records::new(body, store, head.first)))
    }

    fn advance(&mut self, end: u64, next: Sequence, head: &GroupHeader) {
        if next > head.first {
            self.unproven.push_back((next - 1, self.at));
        }
        self.durable = self.durable.max(head.durable);
        while self.unproven.front().is_some_and(|(last, _)| *last <= self.durable) {
            self.unproven.pop_front();
        }
        (self.at, self.next, self.previous) = (end, next, head.mark);
    }

    /// Decides about a bad group. `following` is the first sequence of the next segment.
    ///
    /// The group is torn only if all of these hold:
    ///
    /// - No next segment exists, because one is created only after this one is durable.
    /// - Neither a later group nor the synced mark shows that this group was durable.
    /// - The bytes look like an interrupted write. Over zeroed space such a write leaves zeros:
    ///   whole sectors, or everything after some byte.
    pub(super) fn judge(
        &mut self,
        bad: &BadGroup,
        following: Option<Sequence>,
    ) -> Result<Verdict, Error> {
        let mut next_first = None;
        let mut groups = 0;
        let mut is_durable = following.is_some() || self.next <= self.synced;
        let mut from = bad.at + ALIGNMENT as u64;
        while let Some((at, head)) = self.find_group(from)? {
            is_durable |= head.durable >= self.next;
            next_first = next_first.or(Some(head.first));
            groups += 1;
            from = at + ALIGNMENT as u64;
        }
        if !is_durable && self.is_torn(bad)? {
            return Ok(Verdict::Torn(Torn {
                file: self.name.clone(),
                offset: bad.at,
                bytes: self.size.saturating_sub(bad.at),
                groups,
                last: self.next - 1,
                synced: self.synced.max(self.durable),
            }));
        }
        let end =
            next_first.or(following).map_or(Sequence::MAX, |next| next.max(self.next + 1) - 1);
        let (file, records) = (self.name.clone(), Some(self.next..=end));
        Ok(Verdict::Damaged(Damage { file, offset: bad.at, records, what: bad.what }))
    }

    /// The next offset from `from` on with an intact group header.
    pub(super) fn find_group(&mut self, from: u64) -> Result<Option<(u64, GroupHeader)>, Error> {
        let store = self.head.store;
        let mut at = from;
        while at + GROUP_HEADER_LENGTH as u64 <= self.size {
            // Search the buffered bytes first: with many small groups, reading a whole piece for
            // each would repeat most of the reads.
            let here = self.buffer.available_from(at);
            let bytes = self.read(at, if here < GROUP_HEADER_LENGTH { PIECE } else { here })?;
            let positions =
                (0..bytes.len().saturating_sub(GROUP_HEADER_LENGTH - 1)).step_by(ALIGNMENT);
            for position in positions {
                if long(bytes, position) != store {
                    continue;
                }
                if let Some(head) = GroupHeader::read(&bytes[position..], store) {
                    return Ok(Some((at + position as u64, head)));
                }
            }
            let passed =
                bytes.len().saturating_sub(GROUP_HEADER_LENGTH - 1).next_multiple_of(ALIGNMENT);
            at += passed.max(ALIGNMENT) as u64;
        }
        Ok(None)
    }

    /// Continues at a group that [`find_group`](Self::find_group) has found, whatever precedes it.
    pub(super) fn resume(&mut self, at: u64, head: &GroupHeader) {
        (self.at, self.next, self.previous) = (at, head.first, head.previous);
    }

    /// Continues after a group that was read before: at this offset, with this record, after a group
    /// with this checksum.
    pub(super) fn continue_after_group(&mut self, at: u64, next: Sequence, previous: u32) {
        (self.at, self.next, self.previous) = (at, next, previous);
    }

    /// The header of the group at this offset, if it is intact.
    pub(super) fn group_at(&mut self, at: u64) -> Result<Option<GroupHeader>, Error> {
        let store = self.head.store;
        Ok(GroupHeader::read(self.read(at, GROUP_HEADER_LENGTH)?, store))
    }

    /// The bytes of a bad group's records, as far as the file contains them.
    pub(super) fn body(&mut self, at: u64, length: usize) -> Result<&[u8], Error> {
        self.read(at + GROUP_HEADER_LENGTH as u64, length)
    }

    /// Whether these bytes look like an interrupted write.
    fn is_torn(&mut self, bad: &BadGroup) -> Result<bool, Error> {
        let store = self.head.store;
        let Some(head) = bad.head else {
            let bytes = self.read(bad.at, GROUP_HEADER_LENGTH)?;
            let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let was_cut = written < GROUP_HEADER_LENGTH && bytes.len() == GROUP_HEADER_LENGTH;
            if has_lost_sector(bytes, bad.at, 0) {
                return Ok(true);
            }
            return Ok(was_cut && self.is_zero(bad.at + written as u64)?);
        };
        let at = bad.at + GROUP_HEADER_LENGTH as u64;
        let body = self.read(at, head.length)?;
        if body.len() < head.length || checksum(store, &[body]) == head.body {
            return Ok(false);
        }
        let mut records = Records::new(body, store, head.first);
        while records.next().is_some() {}
        Ok(body.last() == Some(&0) || has_lost_sector(body, at, records.at()))
    }

    /// Whether the rest of the file is all zeros.
    fn is_zero(&mut self, from: u64) -> Result<bool, Error> {
        let mut at = from;
        loop {
            let bytes = self.read(at, PIECE)?;
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            if bytes.is_empty() {
                return Ok(true);
            }
            at += bytes.len() as u64;
        }
    }

    /// Reads bytes, fewer at the end of the file.
    fn read(&mut self, at: u64, length: usize) -> Result<&[u8], Error> {
        let there = self.size.saturating_sub(at).min(length as u64) as usize;
        let rest = self.size.saturating_sub(at);
        let read = self.buffer.fill(&*self.file, at, there, rest);
        read.map_err(|error| Error::disk(&self.name, "read", error))?;
        Ok(self.buffer.slice(at, there))
    }
}

/// Makes the end of the last segment durable as it was read. A failed sync of an earlier process
/// may have left bytes that are readable but not on the disk. They are written again, because a
/// second sync of the same pages may report success wrongly.
pub(super) fn rewrite_tail(segment: &Segment) -> Result<(), Error> {
    let fault = |error| Error::disk(segment.name(), "rewrite the end of", error);
    let unproven = segment.unproven();
    if unproven.is_empty() && segment.at() == segment.size() {
        return Ok(());
    }
    let length = unproven.end - unproven.start;
    let mut bytes = vec![0; length.min(REWRITE_PIECE as u64) as usize];
    let mut at = unproven.start;
    while at < unproven.end {
        let length = (unproven.end - at).min(REWRITE_PIECE as u64) as usize;
        let piece = &mut bytes[..length];
        let read = read_full(&*segment.file, piece, at).map_err(fault)?;
        write_all(&*segment.file, &piece[..read], at).map_err(fault)?;
        at += length as u64;
    }
    segment.file.truncate(segment.at()).map_err(fault)?;
    segment.file.sync_all().map_err(fault)
}

/// The bytes that are rewritten at once.
const REWRITE_PIECE: usize = 1 << 20;

/// The bytes that one read buffers.
const PIECE: usize = 256 * 1024;

/// A buffered part of a file, so that short groups need no system call each.
#[derive(Default)]
struct ReadBuffer {
    bytes: Vec<u8>,
    at: u64,
}

impl ReadBuffer {
    /// Buffers at least `length` bytes at `at`, and more if the remaining `rest` of the file has
    /// them.
    fn fill(&mut self, file: &dyn File, at: u64, length: usize, rest: u64) -> io::Result<()> {
        let end = self.at + self.bytes.len() as u64;
        if (self.at..=end).contains(&at) && at + length as u64 <= end {
            return Ok(());
        }
        self.bytes.resize(length.max(rest.min(PIECE as u64) as usize), 0);
        self.at = at;
        let filled = read_full(file, &mut self.bytes, at);
        self.bytes.truncate(*filled.as_ref().unwrap_or(&0));
        let filled = filled?;
        if filled < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// The number of buffered bytes from this offset on.
    fn available_from(&self, at: u64) -> usize {
        let passed = at.checked_sub(self.at).map(|passed| passed as usize);
        passed.map_or(0, |passed| self.bytes.len().saturating_sub(passed))
    }

    /// A part of the buffered bytes.
    fn slice(&self, at: u64, length: usize) -> &[u8] {
        let from = (at - self.at) as usize;
        &self.bytes[from..from + length]
    }
}

/// Whether a sector's part of `bytes`, which begin at the offset `at`, is all zeros and ends after
/// `from`.
fn has_lost_sector(bytes: &[u8], at: u64, from: usize) -> bool {
    let mut begin = 0;
    while begin < bytes.len() {
        let position = at + begin as u64;
        let end = (begin + (SECTOR - position % SECTOR) as usize).min(bytes.len());
        if end > from && bytes[begin..end].iter().all(|byte| *byte == 0) {
            return true;
        }
        begin = end;
    }
    false
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, bytes, groups, last, synced } = self;
        write!(
            f,
            "{file} ends with an incomplete group and is cut off at byte {offset}, after record {last}"
        )?;
        match groups {
            0 => {}
            1 => f.write_str("; a complete group after it is dropped too")?,
            more => write!(f, "; {more} complete groups after it are dropped too")?,
        }
        match synced {
            0 => f.write_str(". No file says which records were synced")?,
            _ => write!(f, ". Records up to {synced} are known to have been synced and are there")?,
        }
        write!(
            f,
            ". If the disk keeps what it syncs, no later commit was acknowledged as durable; if it does not, up to {bytes} bytes of acknowledged records after record {last} are lost: compare the last changes with the acknowledgments that clients received, and restore a backup if some are missing"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, STORE};
    use super::super::group::GroupBuilder;
    use super::*;
    use crate::disk::{Folder as _, SimulatedFolder};

    #[test]
    fn finds_a_sector_whose_part_is_all_zeros() {
        // Bytes 500 to 511 are the end of a sector, the next 512 a whole one, and so on.
        let zeroed = |zeros: Range<usize>, from| {
            let mut bytes = vec![1; 12 + 512 + 100];
            bytes[zeros].fill(0);
            has_lost_sector(&bytes, 500, from)
        };
        for (zeros, is_lost) in [
            (0..0, false),
            (0..11, false),
            (0..12, true),
            (1..523, false),
            (12..523, false),
            (13..524, false),
            (12..524, true),
            (524..623, false),
            (525..624, false),
            (524..624, true),
        ] {
            assert_eq!(zeroed(zeros.clone(), 0), is_lost, "{zeros:?}");
        }
        // Zeros before `from` are known to be records.
        assert!(zeroed(0..12, 11) && !zeroed(0..12, 12));
        assert!(zeroed(12..524, 523) && !zeroed(12..524, 524));
        assert!(!has_lost_sector(&[], 500, 0));
    }

    /// The steps of a segment whose groups begin with these numbers, each with so many records.
    fn steps(groups: &[(Sequence, u64)]) -> Vec<String> {
        let head = FileHeader { kind: FileKind::Segment, store: STORE, number: 1 };
        let mut bytes = head.to_bytes().to_vec();
        let mut previous = word(&bytes, HEADER_LENGTH - 4);
        for (first, records) in groups {
            let mut group = GroupBuilder::new(STORE, *first);
            (0..*records).for_each(|_| drop(group.append(b"record")));
            let (sealed, mark) = group.seal(0, previous);
            bytes.extend_from_slice(sealed);
            previous = mark;
        }
        let folder = SimulatedFolder::new(1, 1 << 20);
        folder.put("segment", &bytes);
        let mut segment = Segment::open(folder.open("segment").unwrap(), 1).unwrap();
        let mut steps = Vec::new();
        loop {
            steps.push(match segment.step().unwrap() {
                Step::Group(records) => format!("{} records", records.count()),
                Step::Lost(first) => format!("lost before {first}"),
                Step::End => "end".to_owned(),
                Step::BadGroup(bad) => bad.what.to_owned(),
            });
            if !steps.last().is_some_and(|step| step.contains("record") || step.contains("lost")) {
                return steps;
            }
        }
    }

    #[test]
    fn accepts_only_groups_whose_numbers_follow() {
        assert_eq!(steps(&[]), ["end"]);
        assert_eq!(
            steps(&[(1, 2), (3, 0), (3, 1)]),
            ["2 records", "0 records", "1 records", "end"]
        );
        // A group without records shows where the numbers continue after a loss.
        assert_eq!(
            steps(&[(1, 1), (9, 0), (9, 1)]),
            ["1 records", "lost before 9", "1 records", "end"]
        );
        let fault = "a group's numbers do not follow the ones before it";
        for second in [(1, 1), (2, 0), (4, 1)] {
            assert_eq!(steps(&[(1, 2), second]), ["2 records", fault], "{second:?}");
        }
    }

    #[test]
    fn describes_what_a_cut_drops() {
        let cut = |groups, synced| {
            let file = "journal-1".to_owned();
            Torn { file, offset: 512, bytes: 99, groups, last: 8, synced }.to_string()
        };
        let begin =
            "journal-1 ends with an incomplete group and is cut off at byte 512, after record 8";
        for (groups, synced, expected) in [
            (0, 0, ". No file says which records were synced. If"),
            (
                1,
                0,
                "; a complete group after it is dropped too. No file says which records were synced. If",
            ),
            (
                2,
                7,
                "; 2 complete groups after it are dropped too. Records up to 7 are known to have been synced and are there. If",
            ),
        ] {
            let text = cut(groups, synced);
            assert!(text.starts_with(&format!("{begin}{expected}")), "{text}");
            assert!(
                text.contains("up to 99 bytes of acknowledged records after record 8"),
                "{text}"
            );
        }
    }

    /// The decision about the first bad group.
    fn judged(example: &Example, prepare: impl Fn(&mut Segment)) -> String {
        let mut segment = example.open();
        prepare(&mut segment);
        let bad = loop {
            match segment.step().unwrap() {
                Step::BadGroup(bad) => break bad,
                Step::End => panic!("no group is bad"),
                Step::Group(_) | Step::Lost(_) => {}
            }
        };
        match segment.judge(&bad, None).unwrap() {
            Verdict::Torn(Torn { file, offset, bytes, groups, last, synced }) => {
                assert_eq!(file, example.name());
                format!(
                    "torn at {offset}: {bytes} bytes, {groups} groups, after {last}, synced {synced}"
                )
            }
            Verdict::Damaged(damage) => damage.to_string().split_once(" is ").unwrap().1.to_owned(),
        }
    }

    /// A segment with two groups of one record each, of 64 bytes each.
    fn two() -> Example {
        Example::new(1).group(1, 0, &[b"one"]).group(2, 0, &[b"two"])
    }

    #[test]
    fn rejects_groups_with_bytes_after_their_records() {
        // The bytes of a group with an intact checksum, whose record claims that it is shorter.
        let with_rest = |rest: &[u8]| {
            let mut body = two().bytes[136..160].to_vec();
            body.extend_from_slice(rest);
            let mut head = two().bytes[96..136].to_vec();
            head[24..28].copy_from_slice(&(body.len() as u32).to_le_bytes());
            head[32..36].copy_from_slice(&checksum(STORE, &[&body]).to_le_bytes());
            let mark = checksum(STORE, &[&head[..36]]);
            head[36..].copy_from_slice(&mark.to_le_bytes());
            let mut example = two();
            example.bytes.truncate(96);
            example.rest(&head).rest(&body)
        };
        let mut segment = with_rest(&[]).open();
        assert!(matches!(segment.step().unwrap(), Step::Group(_)));
        assert!(matches!(segment.step().unwrap(), Step::Group(_)));
        let text = "damaged at byte 96: a group's records do not fill it (records from 2)";
        assert_eq!(judged(&with_rest(&[0; 8]), |_| ()), text);
        assert_eq!(judged(&with_rest(&[7; 40]), |_| ()), text);
    }

    #[test]
    fn cuts_a_group_whose_end_was_not_written() {
        // The second group begins at byte 96, its records at 136, and it ends at 160.
        let torn = two().zero(150..160).rest(&[0; 100]);
        let text = "torn at 96: 164 bytes, 0 groups, after 1, synced 0";
        assert_eq!(judged(&torn, |_| ()), text);
        // Its header was written in part.
        assert_eq!(judged(&two().zero(100..160).rest(&[0; 100]), |_| ()), text);
        assert_eq!(judged(&two().zero(135..160).rest(&[0; 100]), |_| ()), text);
        // A whole header before zeros is no interrupted write.
        let whole = two().flip(100).zero(136..160).rest(&[0; 100]);
        assert_ne!(whole.bytes[135], 0);
        let text = "damaged at byte 96: a group's head is not whole (records from 2)";
        assert_eq!(judged(&whole, |_| ()), text);
        // A whole header that does not match its checksum, and one with data after its written part.
        let damaged = "damaged at byte 96: a group's head is not whole (records from 2)";
        assert_eq!(judged(&two().flip(100), |_| ()), damaged);
        assert_eq!(judged(&two().zero(100..136), |_| ()), damaged);
        assert_eq!(
            judged(&two().zero(100..160).rest(&vec![0; 2 * PIECE]).rest(&[1]), |_| ()),
            damaged
        );
        // The file ends within the header, or within the records.
        let mut short = two();
        short.bytes.truncate(135);
        assert_eq!(judged(&short, |_| ()), damaged);
        let mut short = two();
        short.bytes.truncate(159);
        let text = "damaged at byte 96: the file ends within a group (records from 2)";
        assert_eq!(judged(&short, |_| ()), text);
        for length in [140, 136] {
            // Also if its last byte is a zero, as of an interrupted write.
            short.bytes.truncate(length);
            assert_eq!(judged(&short, |_| ()), text);
        }
        // A record that was changed later.
        let text =
            "damaged at byte 96: a group's records do not match their checksum (records from 2)";
        assert_eq!(judged(&two().flip(153), |_| ()), text);
    }

    #[test]
    fn cuts_a_group_that_lacks_a_whole_sector() {
        // The second group's header crosses the border of a sector at byte 512.
        let long = vec![b'a'; 496 - HEADER_LENGTH - GROUP_HEADER_LENGTH - 16 - 4];
        let crossing = Example::new(1).group(1, 0, &[&long]).group(2, 0, &[&[b'b'; 2000]]);
        assert_eq!(crossing.groups[1], 496);
        for lost in [496..512, 512..1024, 1024..1536] {
            let text = judged(&crossing.clone().zero(lost.clone()), |_| ());
            assert!(text.starts_with("torn at 496:"), "{lost:?}: {text}");
        }
        for kept in [497..512, 512..535, 1025..1536] {
            let text = judged(&crossing.clone().zero(kept.clone()), |_| ());
            assert!(text.starts_with("damaged at byte 496:"), "{kept:?}: {text}");
        }
        // Zeros in an intact record are its content.
        let zeros = Example::new(1).group(1, 0, &[&[0; 2000], b"two"]);
        let changed = zeros.bytes.len() - 4;
        let text = judged(&zeros.clone().flip(changed), |_| ());
        assert!(text.starts_with("damaged at byte 32:"), "{text}");
        let text = judged(&zeros.clone().flip(100), |_| ());
        assert!(text.starts_with("torn at 32:"), "{text}");
    }

    #[test]
    fn keeps_a_bad_group_that_was_durable() {
        let torn =
            |durable| two().zero(150..160).group(3, durable, &[b"three"]).group(4, durable, &[]);
        // The groups after it show how far the journal was durable.
        let bytes = 64 + 64 + 40;
        let text = format!("torn at 96: {bytes} bytes, 2 groups, after 1, synced 0");
        assert_eq!(judged(&torn(1), |_| ()), text);
        let damaged =
            "damaged at byte 96: a group's records do not match their checksum (record 2)";
        assert_eq!(judged(&torn(2), |_| ()), damaged);
        // The synced mark does, unless a snapshot has all of it.
        for (synced, base, expected) in [
            (1, 0, &*format!("torn at 96: {bytes} bytes, 2 groups, after 1, synced 1")),
            (2, 0, damaged),
            (2, 1, damaged),
            (2, 2, &*text),
        ] {
            let found = judged(&torn(1), |segment| segment.note_synced(synced, base));
            assert_eq!(found, expected, "{synced} {base}");
        }
        // A group before it does as well: the last record that is known to be synced.
        let before = Example::new(1).group(1, 0, &[b"one", b"two"]).group(3, 2, &[b"three"]).group(
            4,
            2,
            &[b"four"],
        );
        let begin = before.groups[2];
        let before = before.zero(begin + 50..begin + 64);
        let text = format!("torn at {begin}: 64 bytes, 0 groups, after 3, synced 2");
        assert_eq!(judged(&before, |_| ()), text);
        assert_eq!(judged(&before, |segment| segment.note_synced(1, 0)), text);
    }

    #[test]
    fn names_the_records_of_a_damaged_group() {
        let damaged = |following| {
            let mut segment = two().zero(150..160).open();
            segment.step().unwrap();
            let Step::BadGroup(bad) = segment.step().unwrap() else { panic!("it is bad") };
            match segment.judge(&bad, following).unwrap() {
                Verdict::Torn(_) => panic!("the next segment exists"),
                Verdict::Damaged(damage) => (damage.offset, damage.records.unwrap()),
            }
        };
        assert_eq!(damaged(Some(3)), (96, 2..=2));
        assert_eq!(damaged(Some(9)), (96, 2..=8));
        // The group has one record at least, whatever its successor claims.
        assert_eq!(damaged(Some(1)), (96, 2..=2));
        let later = two().flip(153).group(7, 0, &[b"seven"]);
        let expected =
            "damaged at byte 96: a group's records do not match their checksum (records 2 to 6)";
        assert_eq!(judged(&later, |_| ()), expected);
    }

    #[test]
    fn finds_groups_at_each_offset_across_the_pieces_that_are_read() {
        let filled = |length: usize| {
            let mut example = Example::new(1).rest(&vec![0x55; length]);
            let begin = example.bytes.len();
            example = example.group(9, 3, &[b"nine"]);
            (example, begin as u64)
        };
        let begin = HEADER_LENGTH as u64;
        let sizes = [0, 8, 16, 24].into_iter().chain((PIECE - 64..=PIECE + 16).step_by(ALIGNMENT));
        for length in sizes {
            let (example, at) = filled(length);
            let mut segment = example.open();
            let found = segment.find_group(begin).unwrap();
            let (found_at, head) = found.expect("the group is there");
            assert_eq!((found_at, head.first, head.durable), (at, 9, 3), "{length}");
            assert_eq!(segment.find_group(at).unwrap(), found);
            assert_eq!(segment.find_group(at + 8).unwrap(), None);
            // The end of the file ends the search.
            let mut cut = example.clone();
            cut.bytes.truncate(at as usize + GROUP_HEADER_LENGTH);
            assert_eq!(cut.open().find_group(begin).unwrap(), found);
            cut.bytes.pop();
            assert_eq!(cut.open().find_group(begin).unwrap(), None);
        }
        let (unaligned, _) = filled(12);
        assert_eq!(unaligned.open().find_group(begin).unwrap(), None);
        assert_eq!(two().flip(100).open().find_group(40).unwrap(), None);
    }

    #[test]
    fn searches_many_groups_with_few_reads() {
        let mut example = Example::new(1);
        for number in 1..=500 {
            example = example.group(number, 0, &[b"record"]);
        }
        let folder = example.folder();
        let mut segment = Segment::open(folder.open(&example.name()).unwrap(), 1).unwrap();
        let before = folder.operations();
        let mut from = HEADER_LENGTH as u64;
        let mut found = Vec::new();
        while let Some((at, head)) = segment.find_group(from).unwrap() {
            found.push(head.first);
            from = at + ALIGNMENT as u64;
        }
        assert_eq!(found, (1..=500).collect::<Vec<_>>());
        assert!(folder.operations() - before <= 3, "{}", folder.operations() - before);
    }

    #[test]
    fn buffers_what_the_next_reads_need() {
        let folder = SimulatedFolder::new(1, 1 << 24);
        let bytes: Vec<u8> = (0..PIECE + 1000).map(|at| (at % 251) as u8).collect();
        folder.put("file", &bytes);
        let file = folder.open("file").unwrap();
        let mut buffer = ReadBuffer::default();
        let size = bytes.len() as u64;
        let mut fill = |at: usize, length: usize| {
            let before = folder.operations();
            buffer.fill(&*file, at as u64, length, size - at as u64).unwrap();
            assert_eq!(buffer.slice(at as u64, length), &bytes[at..at + length]);
            (folder.operations() - before, buffer.available_from(at as u64))
        };
        assert_eq!(fill(10, 5), (1, PIECE));
        // The bytes before, the first and the last ones that are buffered, and those after.
        assert_eq!(fill(10, PIECE), (0, PIECE));
        assert_eq!(fill(11, PIECE - 1), (0, PIECE - 1));
        assert_eq!(fill(PIECE + 10, 0), (0, 0));
        assert_eq!(fill(11, PIECE), (1, PIECE));
        assert_eq!(fill(10, 1), (1, PIECE));
        // More than a piece, and the end of the file.
        assert_eq!(fill(0, PIECE + 1), (1, PIECE + 1));
        assert_eq!(fill(PIECE + 900, 50), (1, 100));
        assert_eq!(buffer.available_from(PIECE as u64 + 899), 0);
        assert_eq!(buffer.available_from(PIECE as u64 + 1001), 0);
        let error = buffer.fill(&*file, size - 4, 5, 5).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(buffer.available_from(size - 4), 4);
    }

    #[test]
    fn reports_synced_records_that_are_missing_from_the_end() {
        let early = |synced, base| {
            let mut segment = two().open();
            while !matches!(segment.step().unwrap(), Step::End) {}
            segment.note_synced(synced, base);
            segment.ends_early(base).map(|damage| {
                assert_eq!(damage.file, "journal-0000000000000001.log");
                assert!(damage.what.contains("are missing from its end"), "{}", damage.what);
                (damage.offset, damage.records.unwrap())
            })
        };
        assert_eq!(early(2, 0), None);
        assert_eq!(early(3, 0), Some((160, 3..=3)));
        assert_eq!(early(9, 0), Some((160, 3..=9)));
        // The snapshot has the records up to its own.
        assert_eq!(early(9, 2), Some((160, 3..=9)));
        assert_eq!(early(9, 3), Some((160, 4..=9)));
        assert_eq!(early(9, 8), Some((160, 9..=9)));
        assert_eq!(early(9, 9), None);
    }

    #[test]
    fn knows_which_groups_no_later_one_covers() {
        let unproven = |durable: [Sequence; 3]| {
            let [first, second, third] = durable;
            let example = Example::new(1)
                .group(1, first, &[b"one", b"two"])
                .group(3, second, &[b"three"])
                .group(4, third, &[]);
            let mut segment = example.open();
            while !matches!(segment.step().unwrap(), Step::End) {}
            segment.unproven()
        };
        // The groups end at bytes 120, 184 and 224; the last one has no record.
        assert_eq!(unproven([0, 0, 0]), 32..224);
        assert_eq!(unproven([0, 0, 1]), 32..224);
        assert_eq!(unproven([0, 2, 0]), 120..224);
        assert_eq!(unproven([0, 0, 2]), 120..224);
        assert_eq!(unproven([0, 0, 3]), 224..224);
        // A group that only names a gap has nothing to prove.
        let gap = Example::new(1).group(1, 0, &[b"one"]).group(9, 1, &[]);
        let mut segment = gap.open();
        while !matches!(segment.step().unwrap(), Step::End) {}
        assert_eq!(segment.unproven(), 136..136);
    }

    #[test]
    fn rewrites_the_end_only_if_it_may_not_be_durable() {
        let rewritten = |example: &Example| {
            let folder = example.folder();
            let mut segment = Segment::open(folder.open(&example.name()).unwrap(), 1).unwrap();
            while !matches!(segment.step().unwrap(), Step::End | Step::BadGroup(_)) {}
            let before = folder.operations();
            rewrite_tail(&segment).unwrap();
            folder.lose_power();
            (folder.operations() - before, folder.content(&example.name()).unwrap())
        };
        // Everything is durable, and nothing follows.
        let proven = two().group(3, 2, &[]);
        assert_eq!(rewritten(&proven), (0, proven.bytes.clone()));
        assert_eq!(rewritten(&Example::new(1)), (0, Example::new(1).bytes));
        // A cut and a sync; a read and a write for each piece before them.
        assert_eq!(rewritten(&proven.clone().rest(&[0; 50])), (2, proven.bytes));
        assert_eq!(rewritten(&two()), (4, two().bytes));
        let long = Example::new(1).group(1, 0, &[&vec![b'a'; REWRITE_PIECE]]).group(
            2,
            0,
            &[&vec![b'b'; 1000]],
        );
        assert_eq!(rewritten(&long.clone().rest(&[0; 50])), (6, long.bytes));
    }
}
