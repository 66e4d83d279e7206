//! Checks a folder for damage without changing it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::folder::FolderContents;
use super::format::{FileHeader, FileKind};
use super::open::{self, Warning};
use super::salvage::{Salvaged, salvage};
use super::segment::Segment;
use super::{Damage, Error, Sequence, snapshot, synced};
use crate::disk::Folder;

/// The files of a folder and the problems found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The checked files, snapshots first.
    pub files: Vec<CheckedFile>,
    /// The problems found.
    pub findings: Vec<Finding>,
}

/// A checked file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedFile {
    /// The file's name.
    pub file: String,
    /// The file's length in bytes.
    pub bytes: u64,
    /// The number of readable records; for a snapshot, of blocks.
    pub count: u64,
    /// The first and the last readable record; for a snapshot, all records up to its own.
    pub records: Option<RangeInclusive<Sequence>>,
}

/// A problem in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// The next start repairs it without losing data that is known to be durable.
    Harmless(Warning),
    /// Acknowledged data cannot be read.
    Damaged(Damage),
}

impl Report {
    /// Whether a start would find all acknowledged data.
    pub fn is_intact(&self) -> bool {
        self.findings.iter().all(|finding| matches!(finding, Finding::Harmless(_)))
    }
}

/// Reads each file of the store in `folder`.
///
/// # Errors
///
/// [`Error::Locked`] while a server uses the folder, [`Error::Disk`] if the disk cannot be read,
/// and [`Error::Version`].
pub fn check(folder: &Arc<dyn Folder>) -> Result<Report, Error> {
    let _lock = open::lock(&**folder)?;
    let survey = Survey::of(&**folder)?;
    let mut report = Report::default();
    for (number, found) in &survey.snapshots {
        let name = FileKind::Snapshot.name(*number);
        let (count, whole) = match found {
            Ok(totals) => (totals.blocks, true),
            Err(damage) => {
                report.findings.push(Finding::Damaged(damage.clone()));
                (0, false)
            }
        };
        let records = (whole && *number > 0).then_some(1..=*number);
        report.files.push(CheckedFile {
            bytes: size_of(&**folder, &name)?,
            file: name,
            count,
            records,
        });
    }
    report.findings.extend(survey.missing(&**folder).map(Finding::Damaged));
    let mark = survey.mark.fault(survey.store).map(|what| Warning::Mark { what });
    report.findings.extend(mark.map(Finding::Harmless));
    for (first, following) in survey.contents.from(survey.base + 1) {
        let name = FileKind::Segment.name(first);
        let mut checked =
            CheckedFile { bytes: size_of(&**folder, &name)?, file: name, count: 0, records: None };
        let (segment, damage) = survey.segment(&**folder, first)?;
        report.findings.extend(damage.map(Finding::Damaged));
        if let Some(mut segment) = segment {
            salvage(&mut segment, following, &mut |salvaged| {
                match salvaged {
                    Salvaged::Record(sequence, _) => {
                        let begin = checked.records.as_ref().map_or(sequence, |all| *all.start());
                        checked.records = Some(begin..=sequence);
                        checked.count += 1;
                    }
                    Salvaged::Lost(_) => {}
                    Salvaged::Torn(torn) => {
                        report.findings.push(Finding::Harmless(Warning::Torn(torn)));
                    }
                    Salvaged::Damaged(damage) => report.findings.push(Finding::Damaged(damage)),
                }
                Ok(())
            })?;
            let early = segment.ends_early(survey.base).filter(|_| following.is_none());
            report.findings.extend(early.map(Finding::Damaged));
        }
        report.files.push(checked);
    }
    Ok(report)
}

/// An overview of a folder before its segments are read.
pub(super) struct Survey {
    pub(super) contents: FolderContents,
    /// The number that all files share, if one can be read.
    pub(super) store: Option<u64>,
    /// Each snapshot with its totals or its damage.
    pub(super) snapshots: Vec<(Sequence, Result<snapshot::Totals, Damage>)>,
    /// The oldest intact snapshot; 0 without one.
    pub(super) base: Sequence,
    pub(super) mark: synced::MarkState,
}

impl Survey {
    pub(super) fn of(folder: &dyn Folder) -> Result<Self, Error> {
        let contents = FolderContents::of(folder)?;
        let mark = synced::read(folder)?;
        let mut survey = Self { contents, store: None, snapshots: Vec::new(), base: 0, mark };
        for &number in &survey.contents.snapshots {
            let read = match snapshot::read(folder, number, &mut |_| Ok(())) {
                Ok((head, totals)) => {
                    let is_ours = *survey.store.get_or_insert(head.store) == head.store;
                    if is_ours { Ok(totals) } else { Err(foreign(head.name())) }
                }
                Err(Error::Damaged(damage)) => Err(damage),
                Err(error) => return Err(error),
            };
            if read.is_ok() && survey.base == 0 {
                survey.base = number;
            }
            survey.snapshots.push((number, read));
        }
        for &first in &survey.contents.segments {
            match Segment::open(open_file(folder, first)?, first) {
                Ok(segment) => {
                    survey.store.get_or_insert(segment.head.store);
                }
                Err(Error::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(survey)
    }

    /// The missing records before the first segment, which are in no snapshot either.
    pub(super) fn missing(&self, folder: &dyn Folder) -> Option<Damage> {
        let first = self.contents.from(self.base + 1).first().map(|(first, _)| *first);
        let first = first.unwrap_or_else(|| self.reaches() + 1);
        (first > self.base + 1).then(|| open::missing(folder, self.base + 1, first - 1))
    }

    /// The last record that is known to have been durable, by the newest snapshot or the synced
    /// mark.
    pub(super) fn reaches(&self) -> Sequence {
        let newest = self.contents.snapshots.last().copied().unwrap_or_default();
        newest.max(self.mark.sequence(self.store))
    }

    /// Opens a segment, even with a damaged header: the store's remaining files supply its number.
    /// `None` for a segment of another store.
    pub(super) fn segment(
        &self,
        folder: &dyn Folder,
        first: Sequence,
    ) -> Result<(Option<Segment>, Option<Damage>), Error> {
        let damage = match Segment::open(open_file(folder, first)?, first) {
            Ok(mut segment) if self.store == Some(segment.head.store) => {
                segment.note_synced(self.reaches(), self.base);
                return Ok((Some(segment), None));
            }
            Ok(segment) => return Ok((None, Some(foreign(segment.name().to_owned())))),
            Err(Error::Damaged(damage)) => damage,
            Err(error) => return Err(error),
        };
        let Some(store) = self.store else { return Ok((None, Some(damage))) };
        let head = FileHeader { kind: FileKind::Segment, store, number: first };
        let mut segment = Segment::without_head(open_file(folder, first)?, head)?;
        segment.note_synced(self.reaches(), self.base);
        Ok((Some(segment), Some(damage)))
    }
}

fn open_file(folder: &dyn Folder, first: Sequence) -> Result<Box<dyn crate::disk::File>, Error> {
    let name = FileKind::Segment.name(first);
    folder.open(&name).map_err(|error| Error::disk(&name, "open", error))
}

fn foreign(file: String) -> Damage {
    Damage { file, offset: 8, records: None, what: "it belongs to another store" }
}

/// The length of a segment in bytes.
pub(super) fn size(folder: &dyn Folder, first: Sequence) -> Result<u64, Error> {
    size_of(folder, &FileKind::Segment.name(first))
}

fn size_of(folder: &dyn Folder, name: &str) -> Result<u64, Error> {
    let size = folder.open(name).and_then(|file| file.size());
    size.map_err(|error| Error::disk(name, "open", error))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CheckedFile { file, bytes, count, records } in &self.files {
            match records {
                Some(records) => {
                    let (first, last) = (records.start(), records.end());
                    writeln!(f, "{file}: {bytes} bytes, {count} read, records {first} to {last}")?;
                }
                None => writeln!(f, "{file}: {bytes} bytes, {count} read")?,
            }
        }
        for finding in &self.findings {
            match finding {
                Finding::Harmless(warning) => writeln!(f, "{warning}")?,
                Finding::Damaged(damage) => writeln!(f, "{damage}")?,
            }
        }
        f.write_str(if self.is_intact() { "all is well\n" } else { "damaged\n" })
    }
}
