//! The manifest of a backup: the file that lists which bytes of which files belong to it.
//!
//! docs/formats/backup.md describes the lines. Each run writes a new manifest last and renames it
//! over the previous one, so bytes that an interrupted run has written belong to no backup.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::ops::RangeInclusive;

use super::super::format::{BACKUP, HEADER_LENGTH, LAST, UNFINISHED};
use super::super::group::GROUP_HEADER_LENGTH;
use super::super::{Damage, Error, Sequence};
use crate::disk::{Folder, read_full, write_all};
use crate::time::Time;

/// The contents of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Manifest {
    /// The number of the store; 0 until the first run is complete.
    pub(super) store: u64,
    /// Snapshots by their last record.
    pub(super) snapshots: BTreeMap<Sequence, SnapshotEntry>,
    /// Segments by their first record.
    pub(super) segments: BTreeMap<Sequence, SegmentEntry>,
    /// The numbers at which files begin that are not known to continue the files before them.
    pub(super) breaks: Vec<Sequence>,
    /// The runs that found new records, the oldest first.
    pub(super) moments: Vec<Moment>,
    pub(super) files: Vec<StoredFile>,
}

/// A snapshot in a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SnapshotEntry {
    pub(super) length: u64,
    /// CRC-32C of the file.
    pub(super) check: u32,
}

/// The part of a segment that is in a backup; it has at least one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentEntry {
    pub(super) length: u64,
    /// The last record.
    pub(super) last: Sequence,
    /// The offset of the last group.
    pub(super) group: u64,
    /// The checksum of the last group's header. It depends on all groups before it.
    pub(super) mark: u32,
}

/// A point in time at which all records up to `last` existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When a run of the backup had read the last record.
    pub time: Time,
    /// The last record that it found.
    pub last: Sequence,
}

/// A small file that is stored with a journal, such as a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredFile {
    /// Its path in the data folder: names of printable ASCII characters, separated by `/`.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The records that a restore needs, up to one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// The snapshot to begin with, or 0.
    pub(super) snapshot: Sequence,
    /// The first records of the segments that follow it.
    pub(super) segments: Vec<Sequence>,
}

/// The longest manifest in bytes, of about half a million segments.
const MAX_LENGTH: u64 = 64 << 20;
/// Moments that a manifest keeps. Beyond that, every second one of the older half is dropped.
const MAX_MOMENTS: usize = 1 << 14;
/// The bytes of all stored files together.
const MAX_FILE_BYTES: usize = 4 << 20;

const TITLE: &str = "bine backup 1";

impl Manifest {
    /// Reads the manifest of a backup; `None` if the folder has no manifest.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], [`Error::Version`], and errors of the disk.
    pub(super) fn load(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let fault = |error| Error::disk(BACKUP, "read", error);
        let file = match folder.open(BACKUP) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fault)?,
        };
        let size = file.size().map_err(fault)?;
        if size > MAX_LENGTH {
            return Err(damaged(MAX_LENGTH, "it is longer than any manifest"));
        }
        let mut bytes = vec![0; size as usize];
        let length = read_full(&*file, &mut bytes, 0).map_err(fault)?;
        Self::read(&bytes[..length]).map(Some)
    }

    /// Replaces the manifest of a backup. All files that it lists must be durable.
    pub(super) fn save(&self, folder: &dyn Folder) -> Result<(), Error> {
        let unfinished = BACKUP.to_owned() + UNFINISHED;
        let bytes = self.to_bytes();
        if bytes.len() as u64 > MAX_LENGTH {
            let why = "the list of its files is too long: begin a backup in a new folder";
            return Err(Error::Refused(why.to_owned()));
        }
        let written = (|| {
            match folder.remove(&unfinished) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = folder.create(&unfinished)?;
            write_all(&*file, &bytes, 0)?;
            file.sync_all()?;
            folder.rename(&unfinished, BACKUP)?;
            folder.sync()
        })();
        written.map_err(|error| Error::disk(BACKUP, "write", error))
    }

    /// Adds a moment, unless it has no record that the last moment lacks.
    pub(super) fn add_moment(&mut self, moment: Moment) {
        if self.moments.last().is_some_and(|newest| newest.last >= moment.last) {
            return;
        }
        if self.moments.len() >= MAX_MOMENTS {
            let mut index = 0;
            self.moments.retain(|_| {
                index += 1;
                index > MAX_MOMENTS / 2 || index % 2 == 1
            });
        }
        self.moments.push(moment);
    }

    /// Replaces the stored files.
    pub(super) fn set_files(&mut self, files: &[StoredFile]) -> Result<(), Error> {
        let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
        if bytes > MAX_FILE_BYTES {
            let why = format!("the files beside the journal have {bytes} bytes, which is too much");
            return Err(Error::Refused(why));
        }
        if let Some(file) = files.iter().find(|file| !is_valid_name(&file.name)) {
            return Err(Error::Refused(format!("the file name `{}` is not allowed", file.name)));
        }
        self.files = files.to_vec();
        self.files.sort_by(|one, other| one.name.cmp(&other.name));
        self.files.dedup_by(|one, other| one.name == other.name);
        Ok(())
    }

    /// The last record in the backup.
    pub(super) fn last(&self) -> Sequence {
        let segment = self.segments.values().map(|segment| segment.last).max();
        segment.max(self.snapshots.keys().next_back().copied()).unwrap_or_default()
    }

    /// The ways to restore everything up to this record, the one with the newest snapshot first.
    pub(super) fn plans(&self, last: Sequence) -> Vec<Plan> {
        let snapshots = self.snapshots.range(..=last).rev().map(|(number, _)| *number);
        snapshots.chain([0]).filter_map(|snapshot| self.plan(snapshot, last)).collect()
    }

    fn plan(&self, snapshot: Sequence, last: Sequence) -> Option<Plan> {
        let mut segments = Vec::new();
        let mut reached = snapshot;
        while reached < last {
            let (first, end) = self.next_segment(snapshot, reached)?;
            segments.push(first);
            reached = end;
        }
        Some(Plan { snapshot, segments })
    }

    /// The first and the last record of the segment with the record after `reached`, if it
    /// continues the files from `base` on.
    fn next_segment(&self, base: Sequence, reached: Sequence) -> Option<(Sequence, Sequence)> {
        let (first, segment) = self.segments.range(..=reached + 1).next_back()?;
        let is_next = segment.last > reached
            && !self.breaks.iter().any(|number| (base + 1..=*first).contains(number));
        is_next.then_some((*first, segment.last))
    }

    /// The ranges of records up to which a restore is possible.
    pub(super) fn ranges(&self) -> Vec<RangeInclusive<Sequence>> {
        let mut ranges: Vec<RangeInclusive<Sequence>> = Vec::new();
        for base in [0].into_iter().chain(self.snapshots.keys().copied()) {
            let mut reached = base;
            while let Some((_, end)) = self.next_segment(base, reached) {
                reached = end;
            }
            let first = base.max(1);
            match ranges.last_mut() {
                Some(before) if *before.end() + 1 >= first => {
                    *before = *before.start()..=reached.max(*before.end());
                }
                _ if reached >= first => ranges.push(first..=reached),
                _ => {}
            }
        }
        ranges
    }

    /// Drops what only a restore to a moment before `time` needs.
    pub(super) fn forget_before(&mut self, time: Time) {
        let Some(index) = self.moments.iter().rposition(|moment| moment.time <= time) else {
            return;
        };
        let oldest = self.moments[index].last;
        let Some(plan) = self.plans(oldest).into_iter().next() else { return };
        self.moments.drain(..index);
        self.snapshots.retain(|number, _| *number >= plan.snapshot);
        self.segments.retain(|_, segment| segment.last > plan.snapshot);
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{TITLE}\nstore {:016x}\n", self.store);
        // Writing to a string cannot fail.
        for (number, SnapshotEntry { length, check }) in &self.snapshots {
            let _ = writeln!(text, "snapshot {number} length {length} check {check:08x}");
        }
        for (first, SegmentEntry { length, last, group, mark }) in &self.segments {
            let _ = writeln!(
                text,
                "segment {first} length {length} last {last} group {group} mark {mark:08x}"
            );
        }
        for number in &self.breaks {
            let _ = writeln!(text, "break {number}");
        }
        for Moment { time, last } in &self.moments {
            let _ = writeln!(text, "moment {time} last {last}");
        }
        for StoredFile { name, bytes } in &self.files {
            let _ = write!(text, "file {name} ");
            for byte in bytes {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        let check = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "end {check:08x}");
        text.into_bytes()
    }

    /// Parses a manifest. Only the bytes that [`to_bytes`](Self::to_bytes) writes are accepted.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| damaged(0, "it is no text"))?;
        let title = text.lines().next().unwrap_or_default();
        let version = title.strip_prefix("bine backup ").and_then(|version| version.parse().ok());
        if let Some(found) = version.filter(|version: &u32| *version != 1) {
            return Err(Error::Version { file: BACKUP.to_owned(), found });
        }
        let end = bytes.len().saturating_sub("end 00000000\n".len());
        let check = crc32c::crc32c(&bytes[..end]);
        if text.get(end..) != Some(&*format!("end {check:08x}\n")) {
            return Err(damaged(end as u64, "it does not match its checksum"));
        }
        let mut manifest = Self::default();
        let mut lines = text[..end].lines();
        let is_begun = lines.next() == Some(TITLE)
            && lines.next().is_some_and(|line| manifest.read_store(line).is_some());
        let is_read = is_begun && lines.all(|line| manifest.read_line(line).is_some());
        // The order of lines, spaces and digits are checked by writing the lines again.
        if !is_read || !manifest.is_consistent() || manifest.to_bytes() != bytes {
            return Err(damaged(0, "a line is not as it was written"));
        }
        Ok(manifest)
    }

    fn read_store(&mut self, line: &str) -> Option<()> {
        self.store = u64::from_str_radix(line.strip_prefix("store ")?, 16).ok()?;
        Some(())
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["snapshot", number, "length", length, "check", check] => {
                let entry = SnapshotEntry { length: length.parse().ok()?, check: hex(check)? };
                self.snapshots.insert(number.parse().ok()?, entry);
            }
            ["segment", first, "length", length, "last", last, "group", group, "mark", mark] => {
                let entry = SegmentEntry {
                    length: length.parse().ok()?,
                    last: last.parse().ok()?,
                    group: group.parse().ok()?,
                    mark: hex(mark)?,
                };
                self.segments.insert(first.parse().ok()?, entry);
            }
            ["break", number] => self.breaks.push(number.parse().ok()?),
            ["moment", time, "last", last] => {
                let moment = Moment { time: time.parse().ok()?, last: last.parse().ok()? };
                self.moments.push(moment);
            }
            ["file", name, digits] => {
                let bytes = (0..digits.len()).step_by(2).map(|at| {
                    digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())
                });
                let bytes = bytes.collect::<Option<_>>()?;
                self.files.push(StoredFile { name: name.to_owned(), bytes });
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether the numbers are possible, so that later arithmetic cannot overflow.
    pub(super) fn is_consistent(&self) -> bool {
        let header = HEADER_LENGTH as u64;
        let is_snapshot = |(number, snapshot): (&Sequence, &SnapshotEntry)| {
            (1..LAST).contains(number) && snapshot.length >= header
        };
        let is_segment = |(first, segment): (&Sequence, &SegmentEntry)| {
            let SegmentEntry { length, last, group, .. } = *segment;
            (1..=last).contains(first)
                && last < LAST
                && group >= header
                && group.checked_add(GROUP_HEADER_LENGTH as u64).is_some_and(|end| end <= length)
        };
        let firsts = self.segments.keys().skip(1);
        let mut following = self.segments.values().zip(firsts);
        self.snapshots.iter().all(is_snapshot)
            && self.segments.iter().all(is_segment)
            && following.all(|(segment, next)| segment.last < *next)
            && self.breaks.windows(2).all(|pair| pair[0] < pair[1])
            && self.breaks.iter().all(|number| (1..LAST).contains(number))
            && self.moments.windows(2).all(|pair| pair[0].last < pair[1].last)
            && self.moments.last().is_none_or(|newest| newest.last <= self.last())
            && self.files.windows(2).all(|pair| pair[0].name < pair[1].name)
            && self.files.iter().all(|file| is_valid_name(&file.name))
    }
}

/// Whether a name can be joined to a folder and stays in it.
fn is_valid_name(name: &str) -> bool {
    let is_valid = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|byte| byte.is_ascii_graphic())
    };
    name.len() <= 255 && name.split('/').all(is_valid)
}

fn hex(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 16).ok()
}

fn damaged(offset: u64, what: &'static str) -> Error {
    Error::Damaged(Damage { file: BACKUP.to_owned(), offset, records: None, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    type Change = fn(&mut Manifest);

    fn segment(last: Sequence) -> SegmentEntry {
        let group = HEADER_LENGTH as u64;
        SegmentEntry { length: group + GROUP_HEADER_LENGTH as u64, last, group, mark: 1 }
    }

    fn snapshot(length: u64) -> SnapshotEntry {
        SnapshotEntry { length, check: 1 }
    }

    /// The smallest possible numbers everywhere.
    fn manifest() -> Manifest {
        let moment = |last| Moment { time: Time(0), last };
        let file = |name: &str| StoredFile { name: name.to_owned(), bytes: Vec::new() };
        Manifest {
            store: 1,
            snapshots: [(1, snapshot(HEADER_LENGTH as u64))].into(),
            segments: [(1, segment(1)), (2, segment(3))].into(),
            breaks: vec![1, 2],
            moments: vec![moment(1), moment(3)],
            files: vec![file("a/b"), file("c")],
        }
    }

    #[test]
    fn loads_what_was_saved_unless_the_disk_fails() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        assert!(matches!(Manifest::load(&folder), Ok(None)));
        folder.put("backup.new", b"leftover");
        manifest().save(&folder).unwrap();
        assert_eq!(Manifest::load(&folder).unwrap(), Some(manifest()));
        assert_eq!(folder.list().unwrap(), ["backup"]);
        for ahead in 0..3 {
            folder.fail(ahead, Fault::Broken);
            let error = Manifest::load(&folder).unwrap_err();
            assert!(error.to_string().starts_with("cannot read backup: "), "{error}");
        }
        let mut failed = 0;
        loop {
            folder.fail(failed, Fault::Broken);
            let Err(error) = Manifest::default().save(&folder) else { break };
            assert!(error.to_string().starts_with("cannot write backup: "), "{error}");
            failed += 1;
        }
        // The removal of an earlier attempt, then each step.
        assert_eq!(failed, 6);
    }

    #[test]
    fn accepts_only_manifests_as_they_were_written() {
        let text = String::from_utf8(manifest().to_bytes()).unwrap();
        let lines = text.rsplit_once("end ").unwrap().0;
        assert_eq!(
            lines,
            "bine backup 1\nstore 0000000000000001\n\
             snapshot 1 length 32 check 00000001\n\
             segment 1 length 72 last 1 group 32 mark 00000001\n\
             segment 2 length 72 last 3 group 32 mark 00000001\n\
             break 1\nbreak 2\n\
             moment 1970-01-01T00:00:00Z last 1\nmoment 1970-01-01T00:00:00Z last 3\n\
             file a/b \nfile c \n"
        );
        let read = |lines: &str| {
            let check = crc32c::crc32c(lines.as_bytes());
            Manifest::read(format!("{lines}end {check:08x}\n").as_bytes())
        };
        assert_eq!(read(lines).unwrap(), manifest());
        let error = |lines: &str| read(lines).unwrap_err();
        for (is, becomes) in [
            ("bine backup 1\n", ""),
            ("bine backup 1\n", "bine backup\n"),
            ("store 0000000000000001\n", ""),
            ("store 0000000000000001", "store 1"),
            ("store 0000000000000001", "store 000000000000000g"),
            ("snapshot 1", "snapshot x"),
            ("snapshot 1 length", "snapshot 1 size"),
            ("check 00000001", "check 1"),
            ("segment 1 ", "segment 01 "),
            ("last 1 group", "last x group"),
            ("group 32", "group -32"),
            ("break 1\nbreak 2", "break 2\nbreak 1"),
            ("moment 1970-01-01T00:00:00Z last 1", "moment 1970 last 1"),
            ("file a/b \n", "file a/b 0\n"),
            ("file a/b \n", "file a/b 0g\n"),
            ("file a/b \n", "file a/b \u{e4}\n"),
            ("file c \n", "files c \n"),
            ("file c \n", "file c\n"),
        ] {
            let changed = lines.replacen(is, becomes, 1);
            assert_ne!(changed, lines);
            let text = error(&changed).to_string();
            let expected = "backup is damaged at byte 0: a line is not as it was written";
            assert!(text.starts_with(expected), "{becomes}: {text}");
        }
        let with_bytes = lines.replace("file c \n", "file c 00ff7a\n");
        assert_eq!(read(&with_bytes).unwrap().files[1].bytes, [0, 255, 0x7a]);
        // Another version, whatever follows.
        let newer = Manifest::read(b"bine backup 2\nother lines").unwrap_err();
        assert!(matches!(newer, Error::Version { found: 2, .. }), "{newer}");
        let begin = |bytes: &[u8]| Manifest::read(bytes).unwrap_err().to_string();
        assert!(begin(b"\xff").starts_with("backup is damaged at byte 0: it is no text"));
        let expected = "backup is damaged at byte 0: it does not match its checksum";
        assert!(begin(b"").starts_with(expected));
        assert!(begin(b"bine backup").starts_with(expected), "{}", begin(b"bine backup"));
        let end = lines.len();
        let expected = format!("backup is damaged at byte {end}: it does not match its checksum");
        let wrong = format!("{lines}end 00000000\n");
        assert!(begin(wrong.as_bytes()).starts_with(&expected));
    }

    #[test]
    fn plans_restores_from_the_newest_snapshot_on() {
        let mut own = manifest();
        own.snapshots = [3, 8].into_iter().map(|number| (number, snapshot(100))).collect();
        own.segments = [(1, segment(3)), (4, segment(6)), (7, segment(9))].into();
        own.breaks.clear();
        let plans = |own: &Manifest, last| {
            own.plans(last)
                .into_iter()
                .map(|plan| (plan.snapshot, plan.segments))
                .collect::<Vec<_>>()
        };
        assert_eq!(plans(&own, 9), [(8, vec![7]), (3, vec![4, 7]), (0, vec![1, 4, 7])]);
        assert_eq!(plans(&own, 8), [(8, vec![]), (3, vec![4, 7]), (0, vec![1, 4, 7])]);
        assert_eq!(plans(&own, 7), [(3, vec![4, 7]), (0, vec![1, 4, 7])]);
        assert_eq!(plans(&own, 6), [(3, vec![4]), (0, vec![1, 4])]);
        assert_eq!(plans(&own, 3), [(3, vec![]), (0, vec![1])]);
        assert_eq!(plans(&own, 10), []);
        // No way leads across a break, except from a snapshot after it.
        own.breaks = vec![7];
        assert_eq!(plans(&own, 9), [(8, vec![7])]);
        assert_eq!(plans(&own, 6), [(3, vec![4]), (0, vec![1, 4])]);
        assert_eq!(own.ranges(), [1..=6, 8..=9]);
        own.breaks = vec![4];
        assert_eq!(plans(&own, 6), []);
        // A file is missing.
        own.breaks.clear();
        own.segments.remove(&4);
        assert_eq!(plans(&own, 9), [(8, vec![7])]);
        assert_eq!(own.last(), 9);
        own.segments.clear();
        assert_eq!(own.last(), 8);
        assert_eq!(Manifest::default().last(), 0);
    }

    #[test]
    fn forgets_what_only_older_moments_need() {
        let moment = |time, last| Moment { time: Time(time), last };
        let forgotten = |time| {
            let mut own = manifest();
            own.snapshots = [3, 6].into_iter().map(|number| (number, snapshot(100))).collect();
            own.segments = [(1, segment(3)), (4, segment(6)), (7, segment(9))].into();
            own.breaks.clear();
            own.moments = vec![moment(10, 2), moment(20, 5), moment(30, 6), moment(40, 9)];
            own.forget_before(Time(time));
            let firsts: Vec<_> = own.segments.keys().copied().collect();
            let snapshots: Vec<_> = own.snapshots.keys().copied().collect();
            (own.moments.len(), snapshots, firsts)
        };
        let all = (4, vec![3, 6], vec![1, 4, 7]);
        assert_eq!(forgotten(9), all, "no moment is that old");
        assert_eq!(forgotten(10), all);
        assert_eq!(forgotten(19), all);
        assert_eq!(forgotten(20), (3, vec![3, 6], vec![4, 7]));
        assert_eq!(forgotten(29), (3, vec![3, 6], vec![4, 7]));
        assert_eq!(forgotten(30), (2, vec![6], vec![7]));
        assert_eq!(forgotten(99), (1, vec![6], vec![7]));
    }

    #[test]
    fn limits_the_bytes_of_stored_files() {
        let file =
            |name: &str, length| StoredFile { name: name.to_owned(), bytes: vec![7; length] };
        let mut own = manifest();
        own.set_files(&[file("b", MAX_FILE_BYTES - 1), file("a", 1), file("b", 0)]).unwrap();
        assert_eq!(own.files.iter().map(|file| &*file.name).collect::<Vec<_>>(), ["a", "b"]);
        let error = own.set_files(&[file("b", MAX_FILE_BYTES), file("a", 1)]).unwrap_err();
        let expected = "the files beside the journal have 4194305 bytes, which is too much";
        assert_eq!(error.to_string(), expected);
        let error = own.set_files(&[file("a b", 1)]).unwrap_err().to_string();
        assert_eq!(error, "the file name `a b` is not allowed");
    }

    #[test]
    fn keeps_every_second_one_of_the_older_moments() {
        let mut own = manifest();
        own.moments.clear();
        for last in 1..=MAX_MOMENTS as Sequence + 1 {
            // A moment without new records adds no entry.
            for time in [0, 1] {
                own.add_moment(Moment { time: Time(time), last });
            }
        }
        let half = MAX_MOMENTS as Sequence / 2;
        let older = (1..=half).filter(|last| last % 2 == 1);
        let kept: Vec<_> = own.moments.iter().map(|moment| moment.last).collect();
        assert_eq!(kept, older.chain(half + 1..=2 * half + 1).collect::<Vec<_>>());
        assert!(own.moments.iter().all(|moment| moment.time == Time(0)));
    }

    #[test]
    fn joins_ranges_that_follow_each_other() {
        let ranges = |snapshots: &[Sequence], segments: &[(Sequence, Sequence)]| {
            let mut own = manifest();
            own.snapshots = snapshots.iter().map(|number| (*number, snapshot(100))).collect();
            own.segments = segments.iter().map(|(first, last)| (*first, segment(*last))).collect();
            own.breaks.clear();
            own.ranges()
        };
        assert_eq!(ranges(&[], &[(1, 3), (4, 9)]), [1..=9]);
        // The segments between them are missing.
        assert_eq!(ranges(&[8], &[(1, 3), (9, 12)]), [1..=3, 8..=12]);
        assert_eq!(ranges(&[4], &[(1, 3), (5, 12)]), [1..=12]);
        assert_eq!(ranges(&[2, 6], &[(1, 3), (7, 12)]), [1..=3, 6..=12]);
    }

    #[test]
    fn rejects_impossible_numbers() {
        assert!(manifest().is_consistent());
        let is_rejected = |change: Change| {
            let mut changed = manifest();
            change(&mut changed);
            !changed.is_consistent()
        };
        let changes: [(&str, Change); 20] = [
            ("a snapshot of no record", |to| _ = to.snapshots.insert(0, snapshot(1 << 10))),
            ("a snapshot after all", |to| _ = to.snapshots.insert(LAST, snapshot(1 << 10))),
            ("a snapshot without a head", |to| {
                _ = to.snapshots.insert(1, snapshot(HEADER_LENGTH as u64 - 1));
            }),
            ("record 0", |to| _ = to.segments.insert(0, segment(0))),
            ("a segment after its last record", |to| _ = to.segments.insert(2, segment(1))),
            ("a last record after all", |to| _ = to.segments.insert(2, segment(LAST))),
            ("a group in the head", |to| {
                let group = HEADER_LENGTH as u64 - 1;
                _ = to.segments.insert(2, SegmentEntry { group, ..segment(3) });
            }),
            ("a group that ends after the file", |to| {
                let group = HEADER_LENGTH as u64 + 1;
                _ = to.segments.insert(2, SegmentEntry { group, ..segment(3) });
            }),
            ("an offset without an end", |to| {
                _ = to.segments.insert(2, SegmentEntry { group: u64::MAX, ..segment(3) });
            }),
            ("segments that overlap", |to| _ = to.segments.insert(1, segment(2))),
            ("a break at 0", |to| to.breaks = vec![0]),
            ("a break after all", |to| to.breaks = vec![LAST]),
            ("a repeated break", |to| to.breaks = vec![2, 2]),
            ("breaks out of order", |to| to.breaks = vec![2, 1]),
            ("a moment without a new record", |to| to.moments[0].last = 3),
            ("a moment after the last record", |to| to.moments[1].last = 4),
            ("a repeated file", |to| to.files[1].name = "a/b".to_owned()),
            ("files out of order", |to| to.files[1].name = "a".to_owned()),
            ("a file outside of the folder", |to| to.files[0].name = "a/..".to_owned()),
            ("a long name", |to| to.files[1].name = "c".repeat(256)),
        ];
        for (what, change) in changes {
            assert!(is_rejected(change), "{what}");
        }
    }

    #[test]
    fn accepts_names_that_stay_in_the_folder() {
        for name in ["a", "a/b", "a.b", "...", &"a".repeat(255)] {
            assert!(is_valid_name(name), "{name}");
        }
        for name in ["", "/", "/a", "a/", "a//b", ".", "a/.", "../a", "a b", "\u{e4}"] {
            assert!(!is_valid_name(name), "{name}");
        }
    }
}
