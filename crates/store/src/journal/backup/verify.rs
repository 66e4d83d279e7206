//! Reads the files of a backup as far as its manifest lists them, and checks each byte.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use super::super::format::{FileKind, HEADER_LENGTH};
use super::super::segment::{Segment, Step, Verdict};
use super::super::times::{self, UntimedRecords};
use super::super::{CheckedFile, Damage, Error, Finding, Report, Sequence, snapshot};
use super::manifest::{Manifest, Moment, SegmentEntry, SnapshotEntry};
use crate::disk::{File, Folder, read_full};

/// The result of reading a whole backup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackupReport {
    /// The files and the damage found.
    pub report: Report,
    /// The ranges of records up to which the backup can be restored, if its files are intact.
    pub ranges: Vec<RangeInclusive<Sequence>>,
    /// The last complete run that found new records.
    pub newest: Option<Moment>,
    /// The records whose times no intact file has: a restore to a point in time can omit them.
    pub untimed: Vec<RangeInclusive<Sequence>>,
}

/// The bytes that are read or copied at once. They fit into the cache of a core, next to the data
/// of a server that shares it.
pub(super) const PIECE: usize = 64 << 10;

/// Reads each file of a backup, and changes nothing. A backup may run meanwhile.
///
/// # Errors
///
/// [`Error::Disk`] if the disk cannot be read, [`Error::Version`], and [`Error::Refused`] for a
/// folder that is no backup.
pub fn check_backup(folder: &dyn Folder) -> Result<BackupReport, Error> {
    let mut found = BackupReport::default();
    let manifest = match Manifest::load(folder) {
        Ok(manifest) => complete(manifest, folder)?,
        Err(Error::Damaged(damage)) => {
            found.report.findings.push(Finding::Damaged(damage));
            return Ok(found);
        }
        Err(error) => return Err(error),
    };
    for (number, entry) in &manifest.snapshots {
        let mut checked = CheckedFile {
            file: FileKind::Snapshot.name(*number),
            bytes: entry.length,
            count: 0,
            records: None,
        };
        match self::snapshot(folder, manifest.store, *number, *entry) {
            Ok(blocks) => (checked.count, checked.records) = (blocks, Some(1..=*number)),
            Err(error) => found.report.findings.push(damage_of(error, &checked.file)?),
        }
        found.report.files.push(checked);
    }
    let mut untimed = UntimedRecords::default();
    for (first, entry) in &manifest.segments {
        let times = times::read(folder, manifest.store, *first);
        let times =
            times.map_err(|error| Error::disk(&FileKind::Times.name(*first), "read", error))?;
        untimed.add(*first, entry.last, &times);
        let mut checked = CheckedFile {
            file: FileKind::Segment.name(*first),
            bytes: entry.length,
            count: 0,
            records: None,
        };
        match segment(folder, manifest.store, *first, *entry) {
            Ok(count) => (checked.count, checked.records) = (count, Some(*first..=entry.last)),
            Err(error) => found.report.findings.push(damage_of(error, &checked.file)?),
        }
        found.report.files.push(checked);
    }
    found.ranges = manifest.ranges();
    found.newest = manifest.moments.last().copied();
    found.untimed = untimed.finish();
    Ok(found)
}

/// The manifest of a folder in which at least one run is complete.
pub(super) fn complete(manifest: Option<Manifest>, folder: &dyn Folder) -> Result<Manifest, Error> {
    match manifest {
        Some(manifest) if manifest.store != 0 => Ok(manifest),
        Some(_) => {
            Err(Error::Refused(format!("no backup into {} has been completed", folder.name())))
        }
        None => Err(Error::Refused(format!("{} is no backup", folder.name()))),
    }
}

fn damage_of(error: Error, file: &str) -> Result<Finding, Error> {
    match error {
        Error::Damaged(damage) => Ok(Finding::Damaged(damage)),
        Error::Disk { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            Ok(Finding::Damaged(missing(file)))
        }
        error => Err(error),
    }
}

/// Damage: a file of the backup does not exist.
pub(super) fn missing(file: &str) -> Damage {
    Damage { file: file.to_owned(), offset: 0, records: None, what: "the file is missing" }
}

/// Checks a snapshot of a backup, and returns the number of its blocks.
pub(super) fn snapshot(
    folder: &dyn Folder,
    store: u64,
    number: Sequence,
    entry: SnapshotEntry,
) -> Result<u64, Error> {
    let name = FileKind::Snapshot.name(number);
    let file = folder.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
    snapshot_file(&*file, store, number, entry)
}

/// As [`snapshot`], for a file that is open.
pub(super) fn snapshot_file(
    file: &dyn File,
    store: u64,
    number: Sequence,
    entry: SnapshotEntry,
) -> Result<u64, Error> {
    let name = FileKind::Snapshot.name(number);
    let damaged = |offset, what| {
        Err(Error::Damaged(Damage { file: name.clone(), offset, records: None, what }))
    };
    let summed = SummedFile::new(file);
    let (head, totals) = snapshot::read_file(&summed, number, &mut |_| Ok(()), &mut |damage| {
        Err(Error::Damaged(damage))
    })?;
    let size = file.size().map_err(|error| Error::disk(&name, "read", error))?;
    if head.store != store {
        return damaged(8, "it belongs to another store");
    }
    if size != entry.length {
        return damaged(size.min(entry.length), "its length is not as it was written");
    }
    if summed.checksum(&name)? != entry.check {
        return damaged(0, "it does not match its checksum in the manifest");
    }
    Ok(totals.blocks)
}

/// A file that is read from its beginning to its end, with the checksum of what was read: the reader
/// of a snapshot and the check of the whole file share one pass.
pub(super) struct SummedFile<'f> {
    file: &'f dyn File,
    sum: Mutex<Sum>,
}

/// The checksum of the first `length` bytes.
#[derive(Clone, Copy, Default)]
struct Sum {
    length: u64,
    check: u32,
}

impl<'f> SummedFile<'f> {
    pub(super) fn new(file: &'f dyn File) -> Self {
        Self { file, sum: Mutex::default() }
    }

    /// CRC-32C of the whole file. Reads the bytes after those that were read in order.
    pub(super) fn checksum(&self, name: &str) -> Result<u32, Error> {
        let mut piece = vec![0; PIECE];
        loop {
            let Sum { length, check } = *self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            let read = read_full(self, &mut piece, length);
            if read.map_err(|error| Error::disk(name, "read", error))? == 0 {
                return Ok(check);
            }
        }
    }
}

impl File for SummedFile<'_> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, at)?;
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        if at == sum.length {
            sum.length += read as u64;
            sum.check = crc32c::crc32c_append(sum.check, &buffer[..read]);
        }
        Ok(read)
    }

    fn write_at(&self, _bytes: &[u8], _at: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Checks a segment of a backup, and returns the number of its records.
fn segment(
    folder: &dyn Folder,
    store: u64,
    first: Sequence,
    entry: SegmentEntry,
) -> Result<u64, Error> {
    let mut segment = open(folder, store, first, entry.length)?;
    let (found, count) = scan(&mut segment, None, None)?;
    expect(&segment, found, entry)?;
    Ok(count)
}

/// Reports damage if a scan has not found all that the manifest lists.
pub(super) fn expect(
    segment: &Segment,
    found: Option<SegmentEntry>,
    entry: SegmentEntry,
) -> Result<(), Error> {
    if found == Some(entry) {
        return Ok(());
    }
    let what = "its groups are not those that were copied";
    let records = (segment.next() <= entry.last).then(|| segment.next()..=entry.last);
    let file = segment.name().to_owned();
    Err(Error::Damaged(Damage { file, offset: segment.at(), records, what }))
}

/// Opens the first bytes of a segment in a backup.
pub(super) fn open(
    folder: &dyn Folder,
    store: u64,
    first: Sequence,
    length: u64,
) -> Result<Segment, Error> {
    let name = FileKind::Segment.name(first);
    let file = folder.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
    open_file(file, store, first, length)
}

/// As [`open`], for a file that is open.
pub(super) fn open_file(
    file: Box<dyn File>,
    store: u64,
    first: Sequence,
    length: u64,
) -> Result<Segment, Error> {
    let segment = Segment::open(Box::new(Prefix { file, length }), first)?;
    if segment.head.store == store {
        return Ok(segment);
    }
    let (file, what) = (segment.name().to_owned(), "it belongs to another store");
    Err(Error::Damaged(Damage { file, offset: 8, records: None, what }))
}

/// Reads the groups of a segment up to the record before `following`, or to its end. Returns the
/// part that was read, `known` if there was no group, and the number of its records.
pub(super) fn scan(
    segment: &mut Segment,
    known: Option<SegmentEntry>,
    following: Option<Sequence>,
) -> Result<(Option<SegmentEntry>, u64), Error> {
    let mut found = known;
    let mut count = 0;
    let damaged = |segment: &Segment, records, what| {
        let (file, offset) = (segment.name().to_owned(), segment.at());
        Err(Error::Damaged(Damage { file, offset, records: Some(records), what }))
    };
    while following.is_none_or(|first| segment.next() < first) {
        let group = segment.at();
        match segment.step()? {
            Step::Group(records) => count += records.count() as u64,
            Step::Lost(_) => {}
            Step::End => match following {
                None => break,
                Some(first) => {
                    let records = segment.next()..=first - 1;
                    return damaged(segment, records, "records are missing here");
                }
            },
            Step::BadGroup(bad) => match segment.judge(&bad, following)? {
                // A server is writing this group, or stopped while it did.
                Verdict::Torn(_) => break,
                Verdict::Damaged(damage) => return Err(Error::Damaged(damage)),
            },
        }
        let (length, last) = (segment.at(), segment.next() - 1);
        found = Some(SegmentEntry { length, last, group, mark: segment.previous() });
    }
    match following {
        Some(first) if segment.next() > first => {
            let records = first..=segment.next() - 1;
            damaged(segment, records, "it holds records that the next segment begins with")
        }
        _ => Ok((found, count)),
    }
}

/// The first bytes of a file, read only.
struct Prefix {
    file: Box<dyn File>,
    length: u64,
}

impl File for Prefix {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = self.length.saturating_sub(at).min(buffer.len() as u64) as usize;
        self.file.read_at(&mut buffer[..rest], at)
    }

    fn write_at(&self, _bytes: &[u8], _at: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        // A file that ends before its header has no group either.
        Ok(self.file.size()?.min(self.length.max(HEADER_LENGTH as u64)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for range in &self.ranges {
            writeln!(
                f,
                "can be restored up to any change from {} to {}",
                range.start(),
                range.end()
            )?;
        }
        if let Some(Moment { time, last }) = self.newest {
            writeln!(f, "the newest is change {last}, found at {time}")?;
        }
        for range in &self.untimed {
            writeln!(
                f,
                "the times of the changes from {} to {} are not known: a restore to a point in time can end before them",
                range.start(),
                range.end()
            )?;
        }
        self.report.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::example::{Example, STORE};
    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    /// Three groups, which end with the records 2, 3 and 5.
    fn example() -> Example {
        Example::new(1).group(1, 0, &[b"one", b"two"]).group(3, 2, &[b"three"]).group(
            4,
            3,
            &[b"four", b"five"],
        )
    }

    fn text(error: Error) -> String {
        match error {
            Error::Damaged(damage) => damage.to_string().split_once(" is ").unwrap().1.to_owned(),
            error => error.to_string(),
        }
    }

    /// The length, the last record and the last group of what a scan finds, and the number of its
    /// records.
    type Found = (Option<(u64, Sequence, u64)>, u64);

    fn scanned(example: &Example, following: Option<Sequence>) -> Result<Found, String> {
        let (found, count) = scan(&mut example.open(), None, following).map_err(text)?;
        Ok((found.map(|found| (found.length, found.last, found.group)), count))
    }

    #[test]
    fn scans_to_the_end_of_a_segment_or_to_the_next_one() {
        let [_, second, third] = example().groups[..] else { panic!("three groups") };
        let end = example().bytes.len() as u64;
        let all = (Some((end, 5, third as u64)), 5);
        assert_eq!(scanned(&example(), None), Ok(all));
        assert_eq!(scanned(&example().rest(&[0; 99]), None), Ok(all));
        assert_eq!(scanned(&example(), Some(6)), Ok(all));
        let before = (Some((third as u64, 3, second as u64)), 3);
        assert_eq!(scanned(&example(), Some(4)), Ok(before));
        // A group that a server is writing.
        assert_eq!(scanned(&example().zero(end as usize - 4..end as usize), None), Ok(before));
        assert_eq!(scanned(&Example::new(1), None), Ok((None, 0)));
        let error = format!("damaged at byte {end}: records are missing here (records 6 to 8)");
        assert_eq!(scanned(&example(), Some(9)), Err(error));
        let error = format!(
            "damaged at byte {end}: it holds records that the next segment begins with (record 5)"
        );
        assert_eq!(scanned(&example(), Some(5)), Err(error));
        let error = format!(
            "damaged at byte {second}: a group's records do not match their checksum (record 3)"
        );
        assert_eq!(scanned(&example().flip(second + 57), None), Err(error));
        // Lost records count as a part of the segment.
        let gap = Example::new(1).group(1, 0, &[b"one"]).group(7, 0, &[]).group(7, 0, &[b"seven"]);
        assert_eq!(scanned(&gap, None), Ok((Some((200, 7, 136)), 2)));
        // The known part stays if no group follows it.
        let known = SegmentEntry { length: 32, last: 9, group: 32, mark: 7 };
        let found = scan(&mut Example::new(1).open(), Some(known), None).map_err(text);
        assert_eq!(found, Ok((Some(known), 0)));
    }

    #[test]
    fn describes_groups_that_are_not_those_of_the_manifest() {
        let mut segment = example().open();
        let (found, _) = scan(&mut segment, None, None).unwrap();
        let entry = found.unwrap();
        assert!(expect(&segment, found, entry).is_ok());
        let end = entry.length;
        let described = |entry| text(expect(&segment, found, entry).unwrap_err());
        let what = format!("damaged at byte {end}: its groups are not those that were copied");
        assert_eq!(described(SegmentEntry { mark: entry.mark + 1, ..entry }), what);
        assert_eq!(described(SegmentEntry { last: 6, ..entry }), format!("{what} (record 6)"));
        let longer = described(SegmentEntry { last: 8, ..entry });
        assert_eq!(longer, format!("{what} (records 6 to 8)"));
        assert!(expect(&segment, None, entry).is_err());
    }

    #[test]
    fn reads_only_the_bytes_that_the_manifest_lists() {
        let third = example().groups[2] as u64;
        let (folder, name) = (example().folder(), example().name());
        let prefix = |length| Prefix { file: folder.open(&name).unwrap(), length };
        let mut buffer = [0; 100];
        assert_eq!(prefix(50).read_at(&mut buffer, 10).unwrap(), 40);
        assert_eq!(buffer[..40], example().bytes[10..50]);
        for (at, read) in [(49, 1), (50, 0), (51, 0)] {
            assert_eq!(prefix(50).read_at(&mut buffer, at).unwrap(), read, "{at}");
        }
        assert_eq!(prefix(50).read_at(&mut buffer[..5], 10).unwrap(), 5);
        // The head is always a part of it.
        for (length, size) in [(0, 32), (31, 32), (33, 33), (1 << 20, example().bytes.len() as u64)]
        {
            assert_eq!(prefix(length).size().unwrap(), size, "{length}");
        }
        let mut segment = open(&folder, STORE, 1, third).unwrap();
        let (found, count) = scan(&mut segment, None, None).unwrap();
        assert_eq!((found.unwrap().last, count), (3, 3));
        let error = open(&folder, STORE + 1, 1, third).map(drop).map_err(text);
        assert_eq!(error, Err("damaged at byte 8: it belongs to another store".to_owned()));
        let error = open(&folder, STORE, 2, third).map(drop).map_err(text).unwrap_err();
        assert!(error.starts_with("cannot open journal-0000000000000002.log: "), "{error}");
    }

    #[test]
    fn sums_a_file_while_another_reader_reads_it() {
        let folder = SimulatedFolder::new(1, 1 << 24);
        let bytes: Vec<u8> = (0..2 * PIECE + 99).map(|at| (at % 251) as u8).collect();
        folder.put("file", &bytes);
        let file = folder.open("file").unwrap();
        let sum = crc32c::crc32c(&bytes);
        let read = |ranges: &[std::ops::Range<usize>]| {
            let summed = SummedFile::new(&*file);
            for range in ranges {
                let mut buffer = vec![0; range.len()];
                assert_eq!(summed.read_at(&mut buffer, range.start as u64).unwrap(), range.len());
                assert_eq!(buffer, bytes[range.clone()]);
            }
            let before = folder.operations();
            assert_eq!(summed.checksum("file").unwrap(), sum, "{ranges:?}");
            folder.operations() - before
        };
        // A read of each piece, and two that find the end. Bytes read in order are not read again.
        assert_eq!(read(&[]), 5);
        assert_eq!(read(&[0..PIECE, 0..9]), 4);
        assert_eq!(read(&[0..10, 10..PIECE, PIECE..2 * PIECE + 99]), 1);
        assert_eq!(read(&[5..20, 0..10, 20..30, 5..15, 10..PIECE]), 4);
        assert_eq!(SummedFile::new(&*file).size().unwrap(), bytes.len() as u64);
    }

    #[test]
    fn views_of_a_backup_are_read_only() {
        let folder = example().folder();
        let file = folder.open(&example().name()).unwrap();
        let summed = SummedFile::new(&*file);
        let prefix = Prefix { file: folder.open(&example().name()).unwrap(), length: 50 };
        let views: [&dyn File; 2] = [&summed, &prefix];
        for view in views {
            let outcomes =
                [view.write_at(b"a", 0).map(drop), view.reserve(1 << 20), view.truncate(0)];
            for outcome in outcomes {
                assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::Unsupported);
            }
            let before = folder.operations();
            view.sync_data().unwrap();
            view.sync_all().unwrap();
            assert_eq!(folder.operations() - before, 2, "the file is synced");
        }
        assert_eq!(folder.content(&example().name()), Some(example().bytes));
    }

    #[test]
    fn accepts_only_folders_with_a_complete_run() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let result = |manifest| complete(manifest, &folder).map_err(text);
        let manifest = Manifest { store: STORE, ..Manifest::default() };
        assert_eq!(result(Some(manifest.clone())), Ok(manifest));
        let error = "no backup into a simulated folder has been completed";
        assert_eq!(result(Some(Manifest::default())), Err(error.to_owned()));
        assert_eq!(result(None), Err("a simulated folder is no backup".to_owned()));
    }

    #[test]
    fn reports_a_missing_file_as_damage_and_a_failing_disk_as_such() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let entry = SegmentEntry { length: 272, last: 5, group: 208, mark: 1 };
        let manifest = Manifest {
            store: STORE,
            segments: [(1, entry)].into(),
            snapshots: [(7, SnapshotEntry { length: 100, check: 1 })].into(),
            ..Manifest::default()
        };
        manifest.save(&folder).unwrap();
        let report = check_backup(&folder).unwrap().report;
        assert_eq!(
            report.to_string(),
            "snapshot-0000000000000007.bin: 100 bytes, 0 read\n\
             journal-0000000000000001.log: 272 bytes, 0 read\n\
             snapshot-0000000000000007.bin is damaged at byte 0: the file is missing\n\
             journal-0000000000000001.log is damaged at byte 0: the file is missing\n\
             damaged\n"
        );
        // Three operations read the manifest.
        for (ahead, place) in [
            (3, "open snapshot-0000000000000007.bin"),
            (4, "read times-0000000000000001.bin"),
            (5, "open journal-0000000000000001.log"),
        ] {
            folder.fail(ahead, Fault::Broken);
            let error = check_backup(&folder).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot {place}: ")), "{error}");
        }
    }

    #[test]
    fn reports_what_a_backup_has() {
        let report = BackupReport {
            report: Report::default(),
            ranges: vec![1..=3, 8..=12],
            newest: Some(Moment { time: crate::time::Time(0), last: 12 }),
            untimed: vec![3..=4],
        };
        assert_eq!(
            report.to_string(),
            "can be restored up to any change from 1 to 3\n\
             can be restored up to any change from 8 to 12\n\
             the newest is change 12, found at 1970-01-01T00:00:00Z\n\
             the times of the changes from 3 to 4 are not known: a restore to a point in time can end before them\n\
             all is well\n"
        );
    }
}
