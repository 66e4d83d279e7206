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

/// The bytes that are read or copied at once. They fit into the cache of a core, beside the data of
/// a server that shares it.
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
