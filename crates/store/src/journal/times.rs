//! The times of records: a file next to each segment that names the first record of each second in
//! which records were written.
//!
//! Only a restore to a point in time reads these files. A journal opens and works the same without
//! them, so they are written without a sync, and an error while writing ends the file. A reader
//! detects each lost or damaged entry, because an entry contains the checksum of the previous one.

use std::io;
use std::ops::RangeInclusive;

use super::Sequence;
use super::format::{FileHeader, FileKind, HEADER_LENGTH, LAST, checksum, long, word};
use crate::disk::{File, Folder, read_full, write_all};
use crate::time::Time;

/// The length of an entry in bytes.
pub(super) const ENTRY_LENGTH: usize = 24;
/// The longest file in bytes. A group has at least 64 bytes and at most one entry, so the file of a
/// segment of the default size is shorter. A longer file counts as damaged.
pub(super) const MAX_LENGTH: u64 = 8 << 20;
/// `previous` of an entry that does not continue another one.
const NO_ENTRY: u32 = 0;
const SECOND: i64 = 1_000_000;

/// The writer of the times of one segment.
pub(super) struct TimesWriter {
    file: Box<dyn File>,
    store: u64,
    /// The number of the segment.
    number: Sequence,
    /// The offset of the next entry.
    at: u64,
    /// The checksum of the last entry, also of an earlier segment.
    previous: u32,
    /// The second of the last entry of this file.
    second: Option<i64>,
}

/// The first record of a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TimeEntry {
    /// The record.
    pub(super) sequence: Sequence,
    /// When it was written.
    pub(super) time: Time,
    previous: u32,
    check: u32,
}

/// The last record that was written before a point in time, as far as entries determine it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LastBefore {
    /// Everything up to this record was written before. 0 if no entry is that old.
    pub(super) last: Sequence,
    /// The records after `last` of which no file has the time, and a time before which they were
    /// written, if known.
    pub(super) unknown: Option<(RangeInclusive<Sequence>, Option<Time>)>,
}

/// The records that a search for a point in time cannot place, from the entries of one segment after
/// the other.
#[derive(Default)]
pub(super) struct UntimedRecords {
    ranges: Vec<RangeInclusive<Sequence>>,
    /// The last entry.
    before: Option<TimeEntry>,
    /// The first record whose time is not certain yet.
    first: Sequence,
    /// The record after the last segment.
    end: Sequence,
    /// Whether the entries of the last segment cover its end.
    covers_end: bool,
}

/// Finds the last record before a point in time, from the entries of one segment after the other.
pub(super) struct TimeSearch {
    /// The beginning of the second of that point in time.
    limit: Time,
    /// The last entry before the limit.
    before: Option<TimeEntry>,
    /// The first entry from the limit on.
    after: Option<TimeEntry>,
    /// The last record of the last segment, and whether its entries cover its end.
    end: Option<(Sequence, bool)>,
}

impl TimesWriter {
    /// Creates the file of a segment. `before` is the writer of the segment before it, unless
    /// another process has written that one.
    pub(super) fn create(
        folder: &dyn Folder,
        store: u64,
        number: Sequence,
        before: Option<&Self>,
    ) -> io::Result<Self> {
        let head = FileHeader { kind: FileKind::Times, store, number };
        let file = match folder.create(&head.name()) {
            // A process ended before it had created the segment.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder.remove(&head.name()).and_then(|()| folder.create(&head.name()))
            }
            created => created,
        }?;
        write_all(&*file, &head.to_bytes(), 0)?;
        let previous = before.map_or(NO_ENTRY, |before| before.previous);
        Ok(Self { file, store, number, at: HEADER_LENGTH as u64, previous, second: None })
    }

    /// Records that `sequence` is about to be written. Called before the record is, so that no
    /// record exists without its entry while the process lives.
    pub(super) fn note(&mut self, sequence: Sequence, now: Time) -> io::Result<()> {
        let second = now.0.div_euclid(SECOND);
        if self.second == Some(second) {
            return Ok(());
        }
        self.write(sequence, now)?;
        self.second = Some(second);
        Ok(())
    }

    /// Records that all records before `next` have entries, and syncs the file.
    pub(super) fn close(&mut self, next: Sequence, now: Time) -> io::Result<()> {
        self.write(next, now)?;
        self.file.sync_data()
    }

    fn write(&mut self, sequence: Sequence, time: Time) -> io::Result<()> {
        let (bytes, check) = entry_bytes(self.store, self.number, sequence, time, self.previous);
        write_all(&*self.file, &bytes, self.at)?;
        self.at += ENTRY_LENGTH as u64;
        self.previous = check;
        Ok(())
    }
}

fn entry_bytes(
    store: u64,
    number: Sequence,
    sequence: Sequence,
    time: Time,
    previous: u32,
) -> ([u8; ENTRY_LENGTH], u32) {
    let mut bytes = [0; ENTRY_LENGTH];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..16].copy_from_slice(&time.0.to_le_bytes());
    bytes[16..20].copy_from_slice(&previous.to_le_bytes());
    let check = checksum(store, &[&number.to_le_bytes(), &bytes[..20]]);
    bytes[20..].copy_from_slice(&check.to_le_bytes());
    (bytes, check)
}

/// The times of one segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SegmentTimes {
    /// The intact entries.
    pub(super) entries: Vec<TimeEntry>,
    /// The length of the beginning of the file that ends with the last intact entry.
    pub(super) length: usize,
    /// Whether the file ends there.
    pub(super) ends_intact: bool,
}

/// Reads the times of the segment `number`. A missing file and one of another store have no times.
pub(super) fn read(folder: &dyn Folder, store: u64, number: Sequence) -> io::Result<SegmentTimes> {
    let file = match folder.open(&FileKind::Times.name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SegmentTimes::default()),
        opened => opened?,
    };
    let size = file.size()?;
    if size > MAX_LENGTH {
        return Ok(SegmentTimes::default());
    }
    let mut bytes = vec![0; size as usize];
    let length = read_full(&*file, &mut bytes, 0)?;
    Ok(parse(&bytes[..length], store, number))
}

/// A file of the segment `number` with these entries.
pub(super) fn to_bytes<'e>(
    store: u64,
    number: Sequence,
    entries: impl Iterator<Item = &'e TimeEntry>,
) -> Vec<u8> {
    let mut bytes = FileHeader { kind: FileKind::Times, store, number }.to_bytes().to_vec();
    for TimeEntry { sequence, time, previous, .. } in entries {
        bytes.extend_from_slice(&entry_bytes(store, number, *sequence, *time, *previous).0);
    }
    bytes
}

/// Parses the file of the segment `number`.
pub(super) fn parse(bytes: &[u8], store: u64, number: Sequence) -> SegmentTimes {
    let mut found = SegmentTimes::default();
    let head = FileHeader::read(bytes, FileKind::Times, number);
    if !head.is_ok_and(|head| head.store == store) {
        return found;
    }
    found.length = HEADER_LENGTH;
    for (index, bytes) in bytes[HEADER_LENGTH..].chunks_exact(ENTRY_LENGTH).enumerate() {
        if let Some(entry) = parse_entry(bytes, store, number) {
            found.entries.push(entry);
            found.length = HEADER_LENGTH + (index + 1) * ENTRY_LENGTH;
        }
    }
    found.ends_intact = found.length == bytes.len();
    found
}

fn parse_entry(bytes: &[u8], store: u64, number: Sequence) -> Option<TimeEntry> {
    let check = checksum(store, &[&number.to_le_bytes(), &bytes[..20]]);
    let entry = TimeEntry {
        sequence: long(bytes, 0),
        time: Time(long(bytes, 8).cast_signed()),
        previous: word(bytes, 16),
        check,
    };
    let is_possible = (number..=LAST).contains(&entry.sequence);
    (check == word(bytes, 20) && is_possible).then_some(entry)
}

/// Records that the process has ended that wrote the segment `number`, the last one, and that
/// `last` is its last record: entries after the last intact one may be lost. Does nothing if that
/// process has ended in order, or if the segment has no times.
pub(super) fn note_start(
    folder: &dyn Folder,
    store: u64,
    number: Sequence,
    last: Sequence,
) -> io::Result<()> {
    let found = read(folder, store, number)?;
    if found.entries.last().is_none_or(|entry| entry.sequence == last + 1) {
        return Ok(());
    }
    let file = folder.open(&FileKind::Times.name(number))?;
    let after = (file.size()? as usize).saturating_sub(HEADER_LENGTH);
    let at = HEADER_LENGTH + after.next_multiple_of(ENTRY_LENGTH);
    let (bytes, _) = entry_bytes(store, number, last + 1, folder.now(), NO_ENTRY);
    write_all(&*file, &bytes, at as u64)
}

impl TimeEntry {
    /// Whether each record from this entry's to the one before `next`'s was written in the second of
    /// this entry.
    fn leads_to(&self, next: &Self) -> bool {
        next.sequence == self.sequence || (next.previous != NO_ENTRY && next.previous == self.check)
    }
}

impl UntimedRecords {
    /// Adds the times of the next segment, which has the records from `first` to `last`.
    pub(super) fn add(&mut self, first: Sequence, last: Sequence, times: &SegmentTimes) {
        if self.end != first {
            // The records before this segment are not in the backup.
            self.close();
            (self.before, self.first) = (None, first);
        }
        (self.end, self.covers_end) = (last + 1, false);
        for entry in &times.entries {
            // As in a search: entries of lost records, and entries that do not follow.
            if entry.sequence > self.end {
                self.covers_end &= self.before.is_none_or(|before| before.leads_to(entry));
                break;
            }
            if self.before.is_some_and(|before| before.sequence > entry.sequence) {
                continue;
            }
            let is_certain = self.before.is_some_and(|before| {
                let is_one_second =
                    before.time.0.div_euclid(SECOND) >= entry.time.0.div_euclid(SECOND);
                is_one_second || before.leads_to(entry)
            });
            if !is_certain {
                self.push(entry.sequence);
            }
            (self.before, self.first) = (Some(*entry), entry.sequence);
            self.covers_end = times.ends_intact;
        }
    }

    /// The ranges, in order.
    pub(super) fn finish(mut self) -> Vec<RangeInclusive<Sequence>> {
        self.close();
        self.ranges
    }

    fn close(&mut self) {
        if !self.covers_end {
            self.push(self.end);
        }
    }

    /// Adds the records before `end` whose time is not certain.
    fn push(&mut self, end: Sequence) {
        if self.first >= end {
            return;
        }
        match self.ranges.last_mut() {
            Some(range) if *range.end() + 1 == self.first => *range = *range.start()..=end - 1,
            _ => self.ranges.push(self.first..=end - 1),
        }
        self.first = end;
    }
}

impl TimeSearch {
    /// Begins a search for the last record before the second of `time`: entries do not order the
    /// records within a second.
    pub(super) fn new(time: Time) -> Self {
        let limit = Time(time.0.div_euclid(SECOND).saturating_mul(SECOND));
        Self { limit, before: None, after: None, end: None }
    }

    /// Adds the times of the next segment, whose last record is `last`. Returns whether later segments
    /// can change the result.
    pub(super) fn add(&mut self, last: Sequence, times: &SegmentTimes) -> bool {
        if self.after.is_some() {
            return false;
        }
        self.end = Some((last, false));
        let mut is_past = false;
        for entry in &times.entries {
            // A power failure can lose records and keep their entries; their numbers are used
            // again by the next segment.
            if entry.sequence > last + 1 {
                // The first such entry still shows whether earlier entries are lost.
                if !is_past && self.before.is_some_and(|before| !before.leads_to(entry)) {
                    self.end = Some((last, false));
                }
                is_past = true;
                continue;
            }
            // Entries that do not follow those before are damage that no checksum shows.
            if self.before.is_some_and(|before| before.sequence > entry.sequence) {
                continue;
            }
            if entry.time >= self.limit {
                self.after = Some(*entry);
                return false;
            }
            self.before = Some(*entry);
            self.end = Some((last, times.ends_intact));
        }
        true
    }

    /// The result, when the entries of all segments were added.
    pub(super) fn finish(self) -> LastBefore {
        let exact = |last| LastBefore { last, unknown: None };
        // An entry may name a record that was not written, as the one at an orderly end does.
        let certain = self.before.map_or(0, |entry| entry.sequence - 1);
        let up_to = |end, time| {
            let unknown = (certain < end).then_some((certain + 1..=end, time));
            LastBefore { last: certain.min(end), unknown }
        };
        match (self.after, self.end) {
            (Some(after), _) if self.before.is_none() && after.sequence == 1 => exact(0),
            (Some(after), _) if self.before.is_some_and(|before| before.leads_to(&after)) => {
                exact(after.sequence - 1)
            }
            (Some(after), _) => up_to(after.sequence - 1, Some(after.time)),
            (None, Some((last, true))) => exact(last),
            (None, Some((last, false))) => up_to(last, None),
            (None, None) => exact(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    const STORE: u64 = 0x0123_4567_89AB_CDEF;

    proptest! {
        #[test]
        fn reads_what_was_written(notes in prop::collection::vec((0_u64..5, 0_i64..3_000_000), 1..30)) {
            let folder = SimulatedFolder::new(1, 1 << 20);
            let mut writer = TimesWriter::create(&folder, STORE, 7, None).unwrap();
            let (mut sequence, mut now, mut expected) = (7, 0, Vec::new());
            for (records, passed) in notes {
                now += passed;
                let is_new = expected
                    .last()
                    .is_none_or(|(_, before): &(u64, i64)| before / SECOND != now / SECOND);
                if is_new {
                    expected.push((sequence, now));
                }
                writer.note(sequence, Time(now)).unwrap();
                sequence += records;
            }
            let found = read(&folder, STORE, 7).unwrap();
            let entries = found.entries.iter().map(|entry| (entry.sequence, entry.time.0));
            prop_assert_eq!(entries.collect::<Vec<_>>(), expected);
            prop_assert!(found.ends_intact);
            prop_assert!(found.entries.windows(2).all(|two| two[0].leads_to(&two[1])));
            let bytes = to_bytes(STORE, 7, found.entries.iter());
            prop_assert_eq!(folder.content(&FileKind::Times.name(7)), Some(bytes));
        }

        /// A search for each second finds the same records without a time.
        #[test]
        fn lists_the_records_that_searches_cannot_place(
            segments in prop::collection::vec(
                prop::collection::vec((1_u64..5, 0_i64..3), 1..6),
                1..5,
            ),
            damages in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..200), 0..4),
            is_closed in any::<bool>(),
        ) {
            let folder = SimulatedFolder::new(1, 1 << 20);
            let (mut sequence, mut now) = (1, 0);
            let (mut before, mut bounds) = (None::<TimesWriter>, Vec::new());
            for notes in &segments {
                let first = sequence;
                let mut writer =
                    TimesWriter::create(&folder, STORE, first, before.as_ref()).unwrap();
                for (records, seconds) in notes {
                    now += seconds * SECOND;
                    writer.note(sequence, Time(now)).unwrap();
                    sequence += records;
                }
                bounds.push((first, sequence - 1));
                before = Some(writer);
            }
            if is_closed {
                before.unwrap().close(sequence, Time(now)).unwrap();
            }
            for (segment, at) in damages {
                let name = FileKind::Times.name(segment.get(&bounds).0);
                let mut bytes = folder.content(&name).unwrap();
                let at = at % bytes.len();
                bytes[at] ^= 1;
                folder.put(&name, &bytes);
            }
            let times: Vec<_> =
                bounds.iter().map(|(first, _)| read(&folder, STORE, *first).unwrap()).collect();
            let mut untimed = UntimedRecords::default();
            for ((first, last), times) in bounds.iter().zip(&times) {
                untimed.add(*first, *last, times);
            }
            let listed = untimed.finish();
            prop_assert!(listed.windows(2).all(|two| two[0].end() + 1 < *two[1].start()));
            let mut missed = std::collections::BTreeSet::new();
            for second in 0..=now / SECOND + 1 {
                let mut search = TimeSearch::new(Time(second * SECOND));
                for ((_, last), times) in bounds.iter().zip(&times) {
                    if !search.add(*last, times) {
                        break;
                    }
                }
                missed.extend(search.finish().unknown.into_iter().flat_map(|(range, _)| range));
            }
            prop_assert_eq!(listed.into_iter().flatten().collect::<Vec<_>>(), Vec::from_iter(missed));
        }

        #[test]
        fn reads_any_bytes_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            has_head in any::<bool>(),
        ) {
            let head = FileHeader { kind: FileKind::Times, store: STORE, number: 7 }.to_bytes();
            let bytes = if has_head { [&head[..], &bytes].concat() } else { bytes };
            let found = parse(&bytes, STORE, 7);
            prop_assert!(found.length <= bytes.len() && found.entries.is_empty());
        }
    }

    #[test]
    fn start_marks_an_end_out_of_order_once() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut writer = TimesWriter::create(&folder, STORE, 1, None).unwrap();
        writer.note(1, Time(0)).unwrap();
        folder.set_time(Time(9 * SECOND));
        for _ in 0..3 {
            note_start(&folder, STORE, 1, 4).unwrap();
        }
        let found = read(&folder, STORE, 1).unwrap();
        let entries: Vec<_> = found.entries.iter().map(|entry| entry.sequence).collect();
        assert_eq!((entries, found.ends_intact), (vec![1, 5], true));
        assert!(!found.entries[0].leads_to(&found.entries[1]));
        // An interrupted write stores only a part of an entry.
        let mut bytes = folder.content(&FileKind::Times.name(1)).unwrap();
        bytes.extend_from_slice(&[1; 5]);
        folder.put(&FileKind::Times.name(1), &bytes);
        note_start(&folder, STORE, 1, 6).unwrap();
        let found = read(&folder, STORE, 1).unwrap();
        assert_eq!((found.entries.len(), found.ends_intact), (3, true));
    }

    fn entry(sequence: Sequence, second: i64, previous: u32, check: u32) -> TimeEntry {
        TimeEntry { sequence, time: Time(second * SECOND), previous, check }
    }

    /// Three entries, each of which continues the one before it.
    fn entries() -> [TimeEntry; 3] {
        [entry(1, 10, NO_ENTRY, 7), entry(4, 20, 7, 8), entry(6, 30, 8, 9)]
    }

    type Unknown = Option<(RangeInclusive<Sequence>, Option<i64>)>;

    /// The result of a search in segments: the last record, the entries, and whether these cover the
    /// end of each.
    fn searched(second: i64, segments: &[(Sequence, &[TimeEntry], bool)]) -> (Sequence, Unknown) {
        let mut search = TimeSearch::new(Time(second * SECOND));
        for (last, entries, ends_intact) in segments {
            let times = SegmentTimes {
                entries: entries.to_vec(),
                length: HEADER_LENGTH,
                ends_intact: *ends_intact,
            };
            if !search.add(*last, &times) {
                break;
            }
        }
        let LastBefore { last, unknown } = search.finish();
        (last, unknown.map(|(records, time)| (records, time.map(|time| time.0 / SECOND))))
    }

    #[test]
    fn finds_the_last_record_before_a_second() {
        let all = [(8, &entries()[..], true)];
        for (second, last) in
            [(9, 0), (10, 0), (11, 3), (20, 3), (21, 5), (30, 5), (31, 8), (99, 8)]
        {
            assert_eq!(searched(second, &all), (last, None), "{second}");
        }
        assert_eq!(searched(10, &[]), (0, None));
        // The order of records within a second is not known.
        let mut search = TimeSearch::new(Time(20 * SECOND + SECOND - 1));
        assert!(!search.add(
            8,
            &SegmentTimes { entries: entries().to_vec(), length: HEADER_LENGTH, ends_intact: true }
        ));
        assert_eq!(search.finish().last, 3);
        assert_eq!(TimeSearch::new(Time(-1)).limit, Time(-SECOND));
        assert_eq!(TimeSearch::new(Time(i64::MIN)).limit, Time(i64::MIN));
    }

    #[test]
    fn continues_a_search_in_the_next_segment() {
        let [first, second, third] = entries();
        let (one, two) = ([first, second], [third]);
        let both = [(5, &one[..], true), (8, &two[..], true)];
        for (second, last) in [(10, 0), (20, 3), (21, 5), (30, 5), (31, 8)] {
            assert_eq!(searched(second, &both), (last, None), "{second}");
        }
        // A segment without times is not known, unless a later entry continues the one before it.
        let gap = [(5, &one[..], true), (7, &[][..], false), (9, &two[..], true)];
        assert_eq!(searched(31, &gap), (9, None));
        let foreign = [entry(8, 30, 1, 9)];
        let gap = [(5, &one[..], true), (7, &[][..], false), (9, &foreign[..], true)];
        assert_eq!(searched(25, &gap), (3, Some((4..=7, Some(30)))));
        assert_eq!(searched(25, &gap[..2]), (3, Some((4..=7, None))));
        // The first later entry ends the search.
        let mut search = TimeSearch::new(Time(15 * SECOND));
        let times = |entries: &[TimeEntry]| SegmentTimes {
            entries: entries.to_vec(),
            length: HEADER_LENGTH,
            ends_intact: true,
        };
        assert!(search.add(3, &times(&one[..1])));
        assert!(!search.add(5, &times(&one[1..])));
        assert!(!search.add(8, &times(&[entry(6, 12, 8, 9)])));
        assert_eq!(search.finish(), LastBefore { last: 3, unknown: None });
    }

    #[test]
    fn names_the_records_of_unknown_times() {
        let [first, second, third] = entries();
        let unknown =
            |second, entries: &[TimeEntry], is_intact| searched(second, &[(8, entries, is_intact)]);
        // The entry between them is lost, or the first one, or the last one.
        assert_eq!(unknown(20, &[first, third], true), (0, Some((1..=5, Some(30)))));
        assert_eq!(unknown(31, &[first, third], true), (8, None));
        assert_eq!(unknown(5, &[second, third], true), (0, Some((1..=3, Some(20)))));
        assert_eq!(unknown(25, &[second, third], true), (5, None));
        assert_eq!(unknown(31, &entries(), false), (5, Some((6..=8, None))));
        assert_eq!(unknown(25, &entries(), false), (5, None));
        // The last entry is that of an orderly end, so no later time is unknown.
        assert_eq!(searched(31, &[(5, &entries()[..], false)]), (5, None));
        assert_eq!(unknown(25, &[], false), (0, Some((1..=8, None))));
        // An entry without a predecessor does not continue one.
        assert_eq!(
            unknown(20, &[first, entry(6, 30, NO_ENTRY, 9)], true).1,
            Some((1..=5, Some(30)))
        );
        let zero = entry(1, 10, NO_ENTRY, NO_ENTRY);
        assert_eq!(
            unknown(20, &[zero, entry(6, 30, NO_ENTRY, 9)], true).1,
            Some((1..=5, Some(30)))
        );
        // Two entries of one record need no chain.
        assert_eq!(unknown(25, &[first, entry(1, 30, 99, 9)], true), (0, None));
    }

    #[test]
    fn ignores_entries_of_records_that_a_power_failure_lost() {
        let [first, second, _] = entries();
        let search = |last, entries: &[TimeEntry]| searched(25, &[(last, entries, true)]);
        let later = entry(9, 22, 8, 10);
        assert_eq!(search(5, &[first, second, later]), (5, None));
        assert_eq!(search(7, &[first, second, later]), (7, None));
        // The number after the last record is that of an orderly end.
        assert_eq!(search(8, &[first, second, later]), (8, None));
        assert_eq!(
            search(8, &[first, second, entry(9, 24, 8, 10), entry(10, 26, 10, 11)]),
            (8, None)
        );
        // It does not continue the one before it: entries between them are lost.
        let foreign = entry(9, 22, 99, 10);
        assert_eq!(search(5, &[first, second, foreign]), (3, Some((4..=5, None))));
        // Only the first one counts.
        assert_eq!(search(5, &[first, second, later, entry(12, 23, 99, 11)]), (5, None));
        assert_eq!(search(5, &[later]), (0, Some((1..=5, None))));
    }

    #[test]
    fn ignores_entries_out_of_order() {
        let [first, second, _] = entries();
        let stale = entry(3, 21, 8, 10);
        let found = searched(25, &[(8, &[first, second, stale], true)]);
        assert_eq!(found, (8, None));
        // It does not end the search either.
        let stale = entry(3, 40, 8, 10);
        let found = searched(35, &[(8, &[first, second, stale, entry(6, 30, 8, 9)], true)]);
        assert_eq!(found, (8, None));
    }

    #[test]
    fn reads_the_intact_entries_around_damaged_ones() {
        let head = FileHeader { kind: FileKind::Times, store: STORE, number: 7 }.to_bytes();
        let file = |sequences: &[Sequence]| {
            let mut bytes = head.to_vec();
            for sequence in sequences {
                bytes.extend_from_slice(&entry_bytes(STORE, 7, *sequence, Time(5), 3).0);
            }
            bytes
        };
        let parsed = |bytes: &[u8]| {
            let SegmentTimes { entries, length, ends_intact } = parse(bytes, STORE, 7);
            let sequences: Vec<_> = entries.iter().map(|entry| entry.sequence).collect();
            (sequences, length, ends_intact)
        };
        let whole = file(&[7, 8, 9]);
        assert_eq!(parsed(&whole), (vec![7, 8, 9], 104, true));
        assert_eq!(parsed(&head), (vec![], 32, true));
        for (damaged, expected) in [
            (40, (vec![8, 9], 104, true)),
            (64, (vec![7, 9], 104, true)),
            (88, (vec![7, 8], 80, false)),
            (31, (vec![], 0, false)),
        ] {
            let mut bytes = whole.clone();
            bytes[damaged] ^= 1;
            assert_eq!(parsed(&bytes), expected, "{damaged}");
        }
        assert_eq!(parsed(&whole[..103]), (vec![7, 8], 80, false));
        assert_eq!(parsed(&[&whole[..], &[0]].concat()), (vec![7, 8, 9], 104, false));
        // Numbers that the segment cannot have.
        assert_eq!(parsed(&file(&[6, 7, LAST, LAST + 1])), (vec![7, LAST], 104, false));
        // A file of another store or of another segment.
        assert_eq!(parse(&whole, STORE + 1, 7), SegmentTimes::default());
        assert_eq!(parse(&whole, STORE, 8), SegmentTimes::default());
        let entry = parse(&whole, STORE, 7).entries[0];
        assert_eq!((entry.time, entry.previous), (Time(5), 3));
    }

    #[test]
    fn rejects_a_file_that_is_too_long() {
        let folder = SimulatedFolder::new(1, 1 << 30);
        let name = FileKind::Times.name(7);
        let head = FileHeader { kind: FileKind::Times, store: STORE, number: 7 }.to_bytes();
        let entry = entry_bytes(STORE, 7, 7, Time(0), NO_ENTRY).0;
        let mut bytes = [&head[..], &entry].concat();
        bytes.resize(MAX_LENGTH as usize, 0);
        folder.put(&name, &bytes);
        assert_eq!(read(&folder, STORE, 7).unwrap().entries.len(), 1);
        bytes.push(0);
        folder.put(&name, &bytes);
        assert_eq!(read(&folder, STORE, 7).unwrap(), SegmentTimes::default());
        assert_eq!(read(&folder, STORE, 8).unwrap(), SegmentTimes::default());
    }

    #[test]
    fn reports_a_failing_disk() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        TimesWriter::create(&folder, STORE, 7, None).unwrap();
        // The open, the size and the read of the head.
        for ahead in 0..3 {
            folder.fail(ahead, Fault::Broken);
            assert!(read(&folder, STORE, 7).is_err(), "{ahead}");
        }
        folder.fail(0, Fault::Broken);
        assert!(TimesWriter::create(&folder, STORE, 7, None).is_err());
        assert!(folder.content(&FileKind::Times.name(7)).is_some(), "the file is still there");
        let mut writer = TimesWriter::create(&folder, STORE, 7, None).unwrap();
        folder.fail(0, Fault::Broken);
        assert!(writer.note(7, Time(0)).is_err());
        // The entry is written again.
        writer.note(7, Time(0)).unwrap();
        assert_eq!(read(&folder, STORE, 7).unwrap().entries.len(), 1);
        folder.fail(1, Fault::Broken);
        assert!(writer.close(8, Time(SECOND)).is_err(), "its sync fails");
        folder.fail(1, Fault::Broken);
        assert!(note_start(&folder, STORE, 7, 9).is_err());
    }

    #[test]
    fn links_the_entries_of_successive_segments() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut first = TimesWriter::create(&folder, STORE, 1, None).unwrap();
        first.note(1, Time(0)).unwrap();
        first.note(2, Time(SECOND - 1)).unwrap();
        let mut second = TimesWriter::create(&folder, STORE, 3, Some(&first)).unwrap();
        second.note(3, Time(SECOND - 1)).unwrap();
        second.close(4, Time(2 * SECOND)).unwrap();
        folder.sync().unwrap();
        let of = |number| read(&folder, STORE, number).unwrap().entries;
        let numbers = |entries: &[TimeEntry]| {
            entries.iter().map(|entry| (entry.sequence, entry.time.0)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&of(1)), [(1, 0)]);
        assert_eq!(numbers(&of(3)), [(3, SECOND - 1), (4, 2 * SECOND)]);
        assert!(of(1)[0].leads_to(&of(3)[0]) && of(3)[0].leads_to(&of(3)[1]));
        assert!(!of(1)[0].leads_to(&of(3)[1]));
        // The next process replaces the file of a segment that it creates again.
        let mut again = TimesWriter::create(&folder, STORE, 3, None).unwrap();
        again.note(3, Time(9 * SECOND)).unwrap();
        assert_eq!(numbers(&of(3)), [(3, 9 * SECOND)]);
        assert!(!of(1)[0].leads_to(&of(3)[0]));
        // A closed file is durable.
        again.close(4, Time(10 * SECOND)).unwrap();
        folder.sync().unwrap();
        folder.lose_power();
        assert_eq!(numbers(&of(3)), [(3, 9 * SECOND), (4, 10 * SECOND)]);
    }
}
