//! Restores a journal from a backup, up to its end or to an earlier record.

use std::fmt;
use std::io::ErrorKind;
use std::ops::RangeInclusive;

use super::super::folder::FolderContents;
use super::super::format::FileKind;
use super::super::group::GroupBuilder;
use super::super::segment::{Segment, Step};
use super::super::times::{self, LastBefore, TimeSearch};
use super::super::{Damage, Error, Sequence, open, synced};
use super::manifest::{Manifest, Moment, Plan, SegmentEntry, StoredFile};
use super::verify::{self, PIECE};
use crate::disk::{File, Folder, read_full, write_all};
use crate::time::Time;

/// The last change that a restore keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The last one in the backup.
    End,
    /// The one with this number.
    Change(Sequence),
    /// The last one before the second of this time, as far as the files of times determine it, or
    /// the last one that a run of the backup had found by this time, if that is later.
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
    /// Dropped records that may have been written before the requested time, because no file has
    /// their times; and a time before which they were written, if it is known.
    pub unknown: Option<(RangeInclusive<Sequence>, Option<Time>)>,
    /// The records of the backup after the last restored one, if there are any.
    pub dropped: Option<RangeInclusive<Sequence>>,
    /// The bytes of the restored files.
    pub bytes: u64,
    /// The files that are stored with the journal. The caller writes them.
    pub files: Vec<StoredFile>,
    /// Damaged snapshots, in place of which an older one and the journal were used.
    pub damages: Vec<Damage>,
}

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
    let LastBefore { last, unknown } = resolve(backup, &manifest, until)?;
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
        restorer.times(*first, last)?;
        restorer.segment(*first, last)?;
    }
    target.sync().map_err(|error| Error::disk(&target.name(), "sync", error))?;
    let bytes = restorer.bytes;
    let end = manifest.last();
    Ok(RestoreSummary {
        last,
        snapshot: plan.snapshot,
        moment: manifest.moments.iter().find(|moment| moment.last >= last).copied(),
        unknown,
        dropped: (last < end).then_some(last + 1..=end),
        bytes,
        files: manifest.files,
        damages,
    })
}

/// The last record to restore.
fn resolve(backup: &dyn Folder, manifest: &Manifest, until: Until) -> Result<LastBefore, Error> {
    let exact = |last| LastBefore { last, unknown: None };
    let found = match until {
        Until::End => exact(manifest.last()),
        Until::Change(change) => exact(change),
        Until::Time(time) => last_before(backup, manifest, time)?,
    };
    let (ranges, last) = (manifest.ranges(), found.last);
    if ranges.iter().any(|range| range.contains(&last)) {
        return Ok(found);
    }
    let ranges: Vec<String> =
        ranges.iter().map(|range| format!("from {} to {}", range.start(), range.end())).collect();
    Err(Error::Refused(format!(
        "the backup cannot be restored to change {last}, only to any change {}",
        ranges.join(" and ")
    )))
}

/// The last record before a point in time.
fn last_before(backup: &dyn Folder, manifest: &Manifest, time: Time) -> Result<LastBefore, Error> {
    let mut search = TimeSearch::new(time);
    for (first, segment) in &manifest.segments {
        // Damage of these files only makes the result less exact.
        let times = times::read(backup, manifest.store, *first).unwrap_or_default();
        if !search.add(segment.last, &times) {
            break;
        }
    }
    let mut found = search.finish();
    // The first later moment ends the search, even if the clock was set back after it.
    let moments = manifest.moments.iter().take_while(|moment| moment.time <= time);
    let moment = moments.last().map_or(0, |moment| moment.last);
    found.last = found.last.max(moment);
    found.unknown = found.unknown.and_then(|(records, before)| {
        let first = found.last + 1;
        (first <= *records.end()).then_some((first..=*records.end(), before))
    });
    if found.last > 0 {
        return Ok(found);
    }
    let why = match (&found.unknown, manifest.moments.first()) {
        (Some((records, Some(end))), _) => format!(
            "the times of the changes up to {} are not known; the next change was made at {end}",
            records.end()
        ),
        (None, _) => format!("the first change was made later than {time}"),
        (_, Some(first)) => {
            format!("the backup begins later: its first run ended at {}", first.time)
        }
        (_, None) => "the times of the changes are not known".to_owned(),
    };
    Err(Error::Refused(why))
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

    /// Restores the times of a segment, for the next backup. They may be missing.
    fn times(&mut self, first: Sequence, last: Sequence) -> Result<(), Error> {
        let (store, name) = (self.manifest.store, FileKind::Times.name(first));
        let times = times::read(self.backup, store, first).unwrap_or_default();
        // Numbers after `last` are used again. The next one ends the second of the last record.
        let kept = times.entries.iter().take_while(|entry| entry.sequence <= last + 1);
        if times.entries.is_empty() {
            return Ok(());
        }
        let bytes = times::to_bytes(store, first, kept);
        let copy = self.create(&name)?;
        let written = write_all(&*copy, &bytes, 0).and_then(|()| copy.sync_all());
        written.map_err(|error| Error::disk(&name, "write", error))
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

/// The first records of a group whose other records are dropped.
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
        let Self { last, moment, unknown, dropped, bytes, damages, .. } = self;
        for damage in damages {
            writeln!(f, "{damage}; an older snapshot and the journal were used")?;
        }
        write!(f, "restored all changes up to change {last}")?;
        if let Some(Moment { time, .. }) = moment {
            write!(f, ", made before {time}")?;
        }
        writeln!(f, "; {bytes} bytes")?;
        if let Some((records, before)) = unknown {
            let (first, last) = (records.start(), records.end());
            match before {
                Some(before) => write!(f, "changes {first} to {last} were made before {before}")?,
                None => write!(f, "the times of changes {first} to {last} are not known")?,
            }
            writeln!(f, ", perhaps before the requested time: `--at {last}` restores them too")?;
        }
        if let Some(dropped) = dropped {
            writeln!(f, "dropped: changes {} to {}", dropped.start(), dropped.end())?;
        }
        Ok(())
    }
}
