//! Repair: turns a damaged folder into one that opens, with all data that can be read.
//!
//! A repair deletes no data: it first copies each file that it replaces, and it reports lost
//! records by their sequences, now and at each later start.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::check::{Survey, size};
use super::format::{FileHeader, FileKind, HEADER_LENGTH, UNFINISHED, word};
use super::group::{GroupBuilder, MIN_RECORD_LENGTH};
use super::open::{self, aside};
use super::salvage::{Salvaged, salvage};
use super::segment::Segment;
use super::snapshot::{self, Writer};
use super::{Damage, Error, Sequence, SnapshotWriter};
use crate::disk::{File, Folder, Lock, read_full, write_all};

/// The result of a repair.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repair {
    /// The damage found.
    pub damages: Vec<Damage>,
    /// The lost records. Their sequences are not reused.
    pub lost: Vec<RangeInclusive<Sequence>>,
    /// The number of lost snapshot blocks.
    pub blocks: u64,
    /// The names of the copies of replaced files.
    pub aside: Vec<String>,
}

/// Repairs a store that does not open, and reports the loss. An intact store stays unchanged.
///
/// # Errors
///
/// [`Error::Locked`] while a server uses the folder. [`Error::Full`] and [`Error::Disk`]: the
/// repair may be tried again. [`Error::Version`].
pub fn repair(folder: &Arc<dyn Folder>) -> Result<Repair, Error> {
    let lock = open::lock(&**folder)?;
    let mut survey = Survey::of(&**folder)?;
    let mut work = RepairRun { folder: &**folder, done: Repair::default(), useless: Vec::new() };
    for name in &survey.contents.unfinished {
        folder.remove(name).map_err(|error| Error::disk(name, "remove", error))?;
    }
    work.snapshots(&mut survey, folder, &lock)?;
    survey.store = survey.store.or_else(|| store_of_first_group(&**folder, &survey));
    survey.store = survey.store.or(survey.mark.store());
    // If no file identifies the store, its groups cannot be distinguished from noise.
    let store = survey.store.map_or_else(|| open::new_store(&**folder), Ok)?;
    if let Some(damage) = survey.missing(&**folder) {
        let first = survey.base + 1;
        let following = damage.records.as_ref().map(|records| records.end() + 1);
        work.done.damages.push(damage);
        work.rewrite(None, store, first, following)?;
    }
    for (first, following) in survey.contents.from(survey.base + 1) {
        let (segment, damage) = survey.segment(&**folder, first)?;
        let mut is_damaged = damage.is_some();
        work.done.damages.extend(damage);
        let mut ends_early = None;
        if let Some(mut segment) = segment {
            salvage(&mut segment, following, &mut |salvaged| {
                if let Salvaged::Damaged(damage) = salvaged {
                    work.done.damages.push(damage);
                    is_damaged = true;
                }
                Ok(())
            })?;
            ends_early = segment.ends_early(survey.base).filter(|_| following.is_none());
        }
        if is_damaged || ends_early.is_some() {
            let segment = survey.segment(&**folder, first)?.0;
            let early = ends_early.as_ref().map(|_| survey.reaches() + 1);
            // The number of records in a segment that is unreadable as a whole is unknown: use an
            // upper bound.
            let beyond = match &segment {
                None => {
                    let most = first + size(&**folder, first)? / MIN_RECORD_LENGTH as u64;
                    Some(most.max(survey.reaches() + 1))
                }
                Some(_) => None,
            };
            work.rewrite(segment, store, first, following.or(early.max(beyond)))?;
        }
        work.done.damages.extend(ends_early);
    }
    // Last, because these files prove how far the journal reached, in case the repair is
    // interrupted.
    for name in std::mem::take(&mut work.useless) {
        work.set_aside(&name)?;
    }
    folder.sync().map_err(|error| Error::disk(&folder.name(), "sync", error))?;
    Ok(work.done)
}

/// The store's number from the first intact group after a damaged header.
fn store_of_first_group(folder: &dyn Folder, survey: &Survey) -> Option<u64> {
    survey.contents.segments.iter().find_map(|first| {
        let file = folder.open(&FileKind::Segment.name(*first)).ok()?;
        let mut bytes = [0; 8];
        let read = read_full(&*file, &mut bytes, HEADER_LENGTH as u64).ok()?;
        let store = u64::from_le_bytes(bytes);
        let head = FileHeader { kind: FileKind::Segment, store, number: *first };
        let mut segment = Segment::without_head(file, head).ok()?;
        let found = segment.find_group(HEADER_LENGTH as u64).ok()?;
        (read == bytes.len() && store != 0 && found.is_some()).then_some(store)
    })
}

/// A repair in progress.
struct RepairRun<'f> {
    folder: &'f dyn Folder,
    done: Repair,
    /// Damaged snapshots that are not needed.
    useless: Vec<String>,
}

impl RepairRun<'_> {
    /// Determines which damaged snapshots are obsolete. If no intact one exists and the journal
    /// does not begin with the first record, rewrites the newest with the blocks that can be read.
    fn snapshots(
        &mut self,
        survey: &mut Survey,
        folder: &Arc<dyn Folder>,
        lock: &Arc<dyn Lock>,
    ) -> Result<(), Error> {
        let is_needed = survey.base == 0 && survey.contents.segments.first() != Some(&1);
        let newest = survey.snapshots.last().map(|(number, _)| *number);
        for (number, found) in &survey.snapshots {
            let Err(damage) = found else { continue };
            let name = FileKind::Snapshot.name(*number);
            self.done.damages.push(damage.clone());
            let store = survey.store;
            if let (true, true, Some(store)) = (is_needed, newest == Some(*number), store) {
                self.copy_aside(&name)?;
                self.rewrite_snapshot(*number, store, folder, lock)?;
                survey.base = *number;
            } else {
                self.useless.push(name);
            }
        }
        Ok(())
    }

    fn rewrite_snapshot(
        &mut self,
        number: Sequence,
        store: u64,
        folder: &Arc<dyn Folder>,
        lock: &Arc<dyn Lock>,
    ) -> Result<(), Error> {
        let mut writer = Writer::new(Arc::clone(folder), Arc::clone(lock), store, number)?;
        let mut lost = 0;
        let read =
            snapshot::read_over(self.folder, number, &mut |block| writer.block(block), &mut |_| {
                lost += 1;
                Ok(())
            });
        match read {
            Ok(_) => {}
            // The rest of the file is unreadable.
            Err(Error::Damaged(_)) => lost += 1,
            Err(error) => return Err(error),
        }
        self.done.blocks += lost;
        Box::new(writer).finish()
    }

    /// Rewrites a segment from its intact records, and records the gaps.
    fn rewrite(
        &mut self,
        old: Option<Segment>,
        store: u64,
        first: Sequence,
        following: Option<Sequence>,
    ) -> Result<(), Error> {
        let name = FileKind::Segment.name(first);
        let unfinished = name.clone() + UNFINISHED;
        let head = FileHeader { kind: FileKind::Segment, store, number: first };
        let file = self.folder.create(&unfinished);
        let file = file.map_err(|error| Error::disk(&unfinished, "make", error))?;
        let mut writer = Rewriter {
            name: &unfinished,
            file: &*file,
            at: 0,
            previous: word(&head.to_bytes(), HEADER_LENGTH - 4),
            draft: GroupBuilder::new(store, first),
            lost: Vec::new(),
        };
        writer.write(&head.to_bytes())?;
        if let Some(mut segment) = old {
            salvage(&mut segment, following, &mut |salvaged| match salvaged {
                Salvaged::Record(sequence, record) => writer.record(sequence, record),
                Salvaged::Lost(first) => writer.gap(first),
                Salvaged::Damaged(_) | Salvaged::Torn { .. } => Ok(()),
            })?;
        }
        if let Some(beyond) = following {
            writer.gap(beyond)?;
        }
        writer.flush()?;
        let Rewriter { lost, .. } = writer;
        self.done.lost.extend(lost);
        file.sync_all().map_err(|error| Error::disk(&unfinished, "sync", error))?;
        match self.copy_aside(&name) {
            Err(Error::Disk { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            copied => copied?,
        }
        let renamed = self.folder.rename(&unfinished, &name);
        renamed.map_err(|error| Error::disk(&unfinished, "rename", error))
    }

    fn set_aside(&mut self, name: &str) -> Result<(), Error> {
        let aside = aside(self.folder, name)?;
        let moved = self.folder.rename(name, &aside);
        moved.map_err(|error| Error::disk(name, "rename", error))?;
        self.done.aside.push(aside);
        Ok(())
    }

    /// Copies a file before it is replaced. The original keeps its name until then, so that after
    /// an interrupted repair the file is damaged instead of missing.
    fn copy_aside(&mut self, name: &str) -> Result<(), Error> {
        let old = self.folder.open(name).map_err(|error| Error::disk(name, "open", error))?;
        let aside = aside(self.folder, name)?;
        let copy = || {
            let new = self.folder.create(&aside)?;
            let mut piece = vec![0; PIECE];
            let mut at = 0;
            loop {
                let length = read_full(&*old, &mut piece, at)?;
                if length == 0 {
                    break;
                }
                write_all(&*new, &piece[..length], at)?;
                at += length as u64;
            }
            new.sync_all()?;
            self.folder.sync()
        };
        copy().map_err(|error| Error::disk(&aside, "write", error))?;
        self.done.aside.push(aside);
        Ok(())
    }
}

const PIECE: usize = 1 << 20;

/// The writer of a repaired segment.
struct Rewriter<'w> {
    name: &'w str,
    file: &'w dyn File,
    at: u64,
    previous: u32,
    draft: GroupBuilder,
    lost: Vec<RangeInclusive<Sequence>>,
}

impl Rewriter<'_> {
    fn record(&mut self, sequence: Sequence, record: &[u8]) -> Result<(), Error> {
        self.gap(sequence)?;
        if self.draft.length() + record.len() > PIECE {
            self.flush()?;
        }
        self.draft.append(record).map(|_| ())
    }

    /// Records that everything before this sequence is lost, if anything is.
    fn gap(&mut self, first: Sequence) -> Result<(), Error> {
        let next = self.draft.next();
        if first <= next {
            return Ok(());
        }
        self.flush()?;
        self.lost.push(next..=first - 1);
        self.draft.skip_to(first);
        self.seal()
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.draft.is_empty() { Ok(()) } else { self.seal() }
    }

    fn seal(&mut self) -> Result<(), Error> {
        let durable = self.draft.first() - 1;
        let (bytes, mark) = self.draft.seal(durable, self.previous);
        let written = write_all(self.file, bytes, self.at);
        written.map_err(|error| Error::disk(self.name, "write", error))?;
        self.at += bytes.len() as u64;
        self.previous = mark;
        self.draft.begin_next();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = write_all(self.file, bytes, self.at);
        self.at += bytes.len() as u64;
        written.map_err(|error| Error::disk(self.name, "write", error))
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.damages.is_empty() {
            return f.write_str("nothing was damaged, and nothing was changed\n");
        }
        for damage in &self.damages {
            writeln!(f, "{damage}")?;
        }
        for lost in &self.lost {
            writeln!(f, "lost: records {} to {}", lost.start(), lost.end())?;
        }
        if self.blocks > 0 {
            writeln!(f, "lost: {} blocks of the snapshot, or more", self.blocks)?;
        }
        if self.lost.is_empty() && self.blocks == 0 {
            writeln!(f, "no record is known to be lost")?;
        }
        for aside in &self.aside {
            writeln!(f, "kept as it was: {aside}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_each_kind_of_loss() {
        let damage = |file: &str| Damage {
            file: file.to_owned(),
            offset: 8,
            records: None,
            what: "it is not whole",
        };
        let text = |lost: &[RangeInclusive<Sequence>], blocks| {
            let (damages, aside) = (vec![damage("journal-1")], vec!["copy".to_owned()]);
            let text = Repair { damages, lost: lost.to_vec(), blocks, aside }.to_string();
            let (first, rest) = text.split_once('\n').unwrap();
            assert_eq!(first, damage("journal-1").to_string());
            rest.strip_suffix("kept as it was: copy\n").unwrap().to_owned()
        };
        assert_eq!(text(&[], 0), "no record is known to be lost\n");
        assert_eq!(text(&[1..=2, 5..=5], 0), "lost: records 1 to 2\nlost: records 5 to 5\n");
        let blocks = "lost: 1 blocks of the snapshot, or more\n";
        assert_eq!(text(&[], 1), blocks);
        assert_eq!(text(&[3..=4], 1), format!("lost: records 3 to 4\n{blocks}"));
        assert_eq!(Repair::default().to_string(), "nothing was damaged, and nothing was changed\n");
    }
}
