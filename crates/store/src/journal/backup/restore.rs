//! Restores a journal from a backup, up to its end or to an earlier record.

use std::fmt;
use std::io::ErrorKind;
use std::ops::RangeInclusive;

use super::super::folder::FolderContents;
use super::super::format::FileKind;
use super::super::group::GroupBuilder;
use super::super::segment::{Segment, Step};
use super::super::{Damage, Error, Sequence, open, synced};
use super::manifest::{Manifest, Moment, Plan, SegmentEntry, StoredFile};
use super::verify;
use crate::disk::{File, Folder, read_full, write_all};
use crate::time::Time;

/// The last change that a restore keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The last one in the backup.
    End,
    /// The one with this number.
    Change(Sequence),
    /// The last one that a run of the backup had found by this time.
    Time(Time),
}

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreSummary {
    /// The last restored record.
    pub last: Sequence,
    /// The snapshot that the restored journal begins with; 0 for none.
    pub snapshot: Sequence,
    /// The first run of the backup that found the last restored record.
    pub moment: Option<Moment>,
    /// The records of the backup after the last restored one, if there are any.
    pub dropped: Option<RangeInclusive<Sequence>>,
    /// The bytes of the restored files.
    pub bytes: u64,
    /// The files that are stored with the journal. The caller writes them.
    pub files: Vec<StoredFile>,
    /// Damaged snapshots, in place of which an older one and the journal were used.
    pub damages: Vec<Damage>,
}

const PIECE: usize = 1 << 20;

/// Restores a backup into an empty folder. Everything that is restored is verified. Until the call
/// has succeeded, a journal refuses to open the folder, because it lacks acknowledged records.
///
/// # Errors
///
/// [`Error::Refused`] if the folder is not empty or the backup does not have the record.
/// [`Error::Damaged`] if no undamaged files lead to the record. [`Error::Locked`], [`Error::Full`]
/// and [`Error::Disk`].
pub fn restore(
    backup: &dyn Folder,
    target: &dyn Folder,
    until: Until,
) -> Result<RestoreSummary, Error> {
    let manifest = verify::complete(Manifest::load(backup)?, backup)?;
    let last = resolve(&manifest, until)?;
    let _lock = open::lock(target)?;
    let contents = FolderContents::of(target)?;
    let is_empty = contents.segments.is_empty() && contents.snapshots.is_empty();
    if !is_empty || synced::read(target)? != synced::MarkState::Missing {
        return Err(Error::Refused(format!("{} has data already", target.name())));
    }
    let mut damages = Vec::new();
    let plan = usable_plan(backup, &manifest, last, &mut damages)?;
    let mark = synced::create(target, manifest.store, last).and_then(|()| target.sync());
    mark.map_err(|error| Error::disk(synced::NAME, "write", error))?;
    let mut restorer = Restorer { backup, target, manifest: &manifest, bytes: 0 };
    if plan.snapshot > 0 {
        restorer.snapshot(plan.snapshot)?;
    }
    for first in &plan.segments {
        restorer.segment(*first, last)?;
    }
    target.sync().map_err(|error| Error::disk(&target.name(), "sync", error))?;
    let bytes = restorer.bytes;
    let end = manifest.last();
    Ok(RestoreSummary {
        last,
        snapshot: plan.snapshot,
        moment: manifest.moments.iter().find(|moment| moment.last >= last).copied(),
        dropped: (last < end).then_some(last + 1..=end),
        bytes,
        files: manifest.files,
        damages,
    })
}

/// The number of the last record to restore.
fn resolve(manifest: &Manifest, until: Until) -> Result<Sequence, Error> {
    let ranges = manifest.ranges();
    let last = match until {
        Until::End => manifest.last(),
        Until::Change(change) => change,
        Until::Time(time) => {
            // The first later moment ends the search, even if the clock was set back after it.
            let known = manifest.moments.iter().take_while(|moment| moment.time <= time).last();
            match (known, manifest.moments.first()) {
                (Some(moment), _) => moment.last,
                (None, Some(first)) => {
                    let why =
                        format!("the backup begins later: its first run ended at {}", first.time);
                    return Err(Error::Refused(why));
                }
                (None, None) => manifest.last(),
            }
        }
    };
    if ranges.iter().any(|range| range.contains(&last)) {
        return Ok(last);
    }
    let ranges: Vec<String> =
        ranges.iter().map(|range| format!("from {} to {}", range.start(), range.end())).collect();
    Err(Error::Refused(format!(
        "the backup cannot be restored to change {last}, only to any change {}",
        ranges.join(" and ")
    )))
}

/// The first plan whose snapshot is intact.
fn usable_plan(
    backup: &dyn Folder,
    manifest: &Manifest,
    last: Sequence,
    damages: &mut Vec<Damage>,
) -> Result<Plan, Error> {
    for plan in manifest.plans(last) {
        let Some(entry) = manifest.snapshots.get(&plan.snapshot) else { return Ok(plan) };
        match verify::snapshot(backup, manifest.store, plan.snapshot, *entry) {
            Ok(_) => return Ok(plan),
            Err(Error::Damaged(damage)) => damages.push(damage),
            Err(Error::Disk { file, error, .. }) if error.kind() == ErrorKind::NotFound => {
                damages.push(verify::missing(&file));
            }
            Err(error) => return Err(error),
        }
    }
    Err(damages.pop().map_or_else(
        || Error::Refused(format!("the backup cannot be restored to change {last}")),
        Error::Damaged,
    ))
}

/// A restore in progress.
struct Restorer<'r> {
    backup: &'r dyn Folder,
    target: &'r dyn Folder,
    manifest: &'r Manifest,
    bytes: u64,
}

impl Restorer<'_> {
    fn snapshot(&mut self, number: Sequence) -> Result<(), Error> {
        let name = FileKind::Snapshot.name(number);
        let entry = self.manifest.snapshots[&number];
        let file = self.backup.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
        let copy = self.create(&name)?;
        self.copy_bytes(&name, &*file, &*copy, entry.length)?;
        copy.sync_all().map_err(|error| Error::disk(&name, "sync", error))?;
        verify::snapshot_file(&*copy, self.manifest.store, number, entry).map(|_| ())
    }

    /// Restores the records of a segment up to `last`.
    fn segment(&mut self, first: Sequence, last: Sequence) -> Result<(), Error> {
        let name = FileKind::Segment.name(first);
        let entry = self.manifest.segments[&first];
        let mut source = verify::open(self.backup, self.manifest.store, first, entry.length)
            .map_err(missing_is_damage)?;
        let copy = self.create(&name)?;
        let mut part = None;
        let length = if entry.last <= last {
            let (found, _) = verify::scan(&mut source, None, None)?;
            verify::expect(&source, found, entry)?;
            entry.length
        } else {
            let cut = cut(&mut source, entry, last)?;
            part = cut.1;
            cut.0
        };
        self.copy_bytes(&name, &*source.file, &*copy, length)?;
        let mut end = length;
        if let Some(mut part) = part {
            // The group has the `durable` of the group that it replaces, or less.
            let durable = part.group.first() - 1;
            let (bytes, _) = part.group.seal(durable, part.previous);
            let written = write_all(&*copy, bytes, length);
            written.map_err(|error| Error::disk(&name, "write", error))?;
            end += bytes.len() as u64;
            self.bytes += bytes.len() as u64;
        }
        copy.sync_all().map_err(|error| Error::disk(&name, "sync", error))?;
        let mut written = verify::open_file(copy, self.manifest.store, first, end)?;
        let (found, _) = verify::scan(&mut written, None, None)?;
        let expected = entry.last.min(last);
        if found.is_none_or(|found| found.last != expected || found.length != end) {
            let what = "the restored copy is not as it was written";
            let (file, offset) = (name, written.at());
            return Err(Error::Damaged(Damage { file, offset, records: None, what }));
        }
        Ok(())
    }

    fn create(&self, name: &str) -> Result<Box<dyn File>, Error> {
        self.target.create(name).map_err(|error| Error::disk(name, "make", error))
    }

    fn copy_bytes(
        &mut self,
        name: &str,
        from: &dyn File,
        to: &dyn File,
        length: u64,
    ) -> Result<(), Error> {
        let mut piece = vec![0; PIECE.min(length as usize)];
        let mut at = 0;
        while at < length {
            let wanted = (length - at).min(PIECE as u64) as usize;
            let read = read_full(from, &mut piece[..wanted], at);
            let read = read.map_err(|error| Error::disk(name, "read", error))?;
            if read == 0 {
                return Err(Error::disk(name, "read", ErrorKind::UnexpectedEof.into()));
            }
            let written = write_all(to, &piece[..read], at);
            written.map_err(|error| Error::disk(name, "write", error))?;
            at += read as u64;
        }
        self.bytes += length;
        Ok(())
    }
}

fn missing_is_damage(error: Error) -> Error {
    match error {
        Error::Disk { file, error, .. } if error.kind() == ErrorKind::NotFound => {
            Error::Damaged(verify::missing(&file))
        }
        error => error,
    }
}

/// The first records of a group of which the others are dropped.
struct PartOfGroup {
    group: GroupBuilder,
    previous: u32,
}

/// Finds where a segment is cut after the record `last`: the end of the groups that stay whole, and
/// the part of the next group that is kept.
fn cut(
    segment: &mut Segment,
    entry: SegmentEntry,
    last: Sequence,
) -> Result<(u64, Option<PartOfGroup>), Error> {
    let store = segment.head.store;
    loop {
        let (at, next, previous) = (segment.at(), segment.next(), segment.previous());
        if next > last {
            return Ok((at, None));
        }
        let mut group = GroupBuilder::new(store, next);
        match segment.step()? {
            Step::Group(records) => {
                for (sequence, record) in records.filter(|(sequence, _)| *sequence <= last) {
                    debug_assert_eq!(sequence, group.next(), "records have no gaps");
                    group.append(record)?;
                }
            }
            // A repair has lost the records up to this one and later ones.
            Step::Lost(first) if first > last + 1 => group.skip_to(last + 1),
            Step::Lost(_) => {}
            Step::End | Step::BadGroup(_) => {
                verify::expect(segment, None, entry)?;
                return Ok((at, None));
            }
        }
        if segment.next() > last + 1 {
            return Ok((at, Some(PartOfGroup { group, previous })));
        }
    }
}

impl fmt::Display for RestoreSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { last, moment, dropped, bytes, damages, .. } = self;
        for damage in damages {
            writeln!(f, "{damage}; an older snapshot and the journal were used")?;
        }
        write!(f, "restored all changes up to change {last}")?;
        if let Some(Moment { time, .. }) = moment {
            write!(f, ", made before {time}")?;
        }
        writeln!(f, "; {bytes} bytes")?;
        if let Some(dropped) = dropped {
            writeln!(f, "dropped: changes {} to {}", dropped.start(), dropped.end())?;
        }
        Ok(())
    }
}
