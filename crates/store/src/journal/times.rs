//! The times of records: a file beside each segment that names the first record of each second in
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

/// Reads the times of the segment `number`. A missing file and one of another store have none.
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
    use crate::disk::SimulatedFolder;

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
}
