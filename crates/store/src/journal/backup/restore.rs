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
    /// The snapshot that the restored journal begins with, or 0.
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

#[cfg(test)]
mod tests {
    use super::super::super::example::{Example, STORE};
    use super::super::super::times::TimesWriter;
    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    const SECOND: i64 = 1_000_000;

    fn entry(last: Sequence) -> SegmentEntry {
        SegmentEntry { length: 100, last, group: 32, mark: 1 }
    }

    /// A manifest of segments with these first and last records, and of moments at these seconds.
    fn manifest(segments: &[(Sequence, Sequence)], moments: &[(i64, Sequence)]) -> Manifest {
        let moment =
            |(second, last): &(i64, Sequence)| Moment { time: Time(second * SECOND), last: *last };
        Manifest {
            store: STORE,
            segments: segments.iter().map(|(first, last)| (*first, entry(*last))).collect(),
            moments: moments.iter().map(moment).collect(),
            ..Manifest::default()
        }
    }

    /// A backup with the times of a segment: the first record of each of these seconds.
    fn folder(first: Sequence, notes: &[(Sequence, i64)]) -> SimulatedFolder {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut times = TimesWriter::create(&folder, STORE, first, None).unwrap();
        for (sequence, second) in notes {
            times.note(*sequence, Time(second * SECOND)).unwrap();
        }
        folder
    }

    fn text(error: Error) -> String {
        match error {
            Error::Damaged(damage) => damage.to_string(),
            error => error.to_string(),
        }
    }

    #[test]
    fn restores_only_to_records_of_the_backup() {
        let empty = SimulatedFolder::new(1, 1 << 20);
        let manifest = manifest(&[(1, 3), (4, 5)], &[]);
        let last = |until| resolve(&empty, &manifest, until).map(|found| found.last).map_err(text);
        assert_eq!(last(Until::End), Ok(5));
        assert_eq!((last(Until::Change(1)), last(Until::Change(5))), (Ok(1), Ok(5)));
        for change in [0, 6] {
            let error = format!(
                "the backup cannot be restored to change {change}, only to any change from 1 to 5"
            );
            assert_eq!(last(Until::Change(change)), Err(error));
        }
        let mut parts = self::manifest(&[(1, 3), (9, 12)], &[]);
        let check = super::super::manifest::SnapshotEntry { length: 100, check: 1 };
        parts.snapshots.insert(8, check);
        let error = resolve(&empty, &parts, Until::Change(5)).map(|found| found.last).map_err(text);
        let expected = "the backup cannot be restored to change 5, only to any change from 1 to 3 and from 8 to 12";
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn uses_the_later_of_the_times_and_the_runs() {
        let backup = folder(1, &[(1, 10), (4, 20)]);
        let runs = manifest(&[(1, 9)], &[(15, 2), (30, 6), (25, 7), (60, 9)]);
        let at = |second, micros| {
            let found = last_before(&backup, &runs, Time(second * SECOND + micros));
            found.map(|found| (found.last, found.unknown.map(|(records, _)| records))).map_err(text)
        };
        // By the times, and by a run that ended exactly then.
        assert_eq!(at(20, 0), Ok((3, None)));
        assert_eq!(at(21, 0), Ok((9, None)));
        let unknown = folder(1, &[(1, 10)]);
        let mut bytes = unknown.content("times-0000000000000001.bin").unwrap();
        // The last entry is lost.
        bytes.extend_from_slice(&[1; 24]);
        unknown.put("times-0000000000000001.bin", &bytes);
        let at = |second, micros| {
            let found = last_before(&unknown, &runs, Time(second * SECOND + micros));
            found.map(|found| (found.last, found.unknown.map(|(records, _)| records))).map_err(text)
        };
        assert_eq!(at(15, 0), Ok((2, Some(3..=9))));
        assert_eq!(at(29, 999_999), Ok((2, Some(3..=9))));
        // The clock was set back after this run, so the later one with an earlier time counts too.
        assert_eq!(at(30, 0), Ok((7, Some(8..=9))));
        assert_eq!(at(59, 0), Ok((7, Some(8..=9))));
        assert_eq!(at(60, 0), Ok((9, None)));
        let last_unknown = manifest(&[(1, 9)], &[(15, 8)]);
        let found = last_before(&unknown, &last_unknown, Time(16 * SECOND)).unwrap();
        assert_eq!((found.last, found.unknown), (8, Some((9..=9, None))));
    }

    #[test]
    fn explains_why_no_record_is_that_old() {
        let why = |backup: &SimulatedFolder, moments: &[(i64, Sequence)], second: i64| {
            last_before(backup, &manifest(&[(1, 9)], moments), Time(second * SECOND))
                .map(|found| found.last)
                .map_err(text)
        };
        let known = folder(1, &[(1, 10), (4, 20)]);
        let expected = "the first change was made later than 1970-01-01T00:00:05Z";
        assert_eq!(why(&known, &[(30, 9)], 5), Err(expected.to_owned()));
        // The entry of the first records is lost.
        let later = folder(1, &[(4, 20)]);
        let expected = "the times of the changes up to 3 are not known; the next change was made at \
                        1970-01-01T00:00:20Z";
        assert_eq!(why(&later, &[(30, 9)], 5), Err(expected.to_owned()));
        let without = SimulatedFolder::new(1, 1 << 20);
        let expected = "the backup begins later: its first run ended at 1970-01-01T00:00:30Z";
        assert_eq!(why(&without, &[(30, 9)], 5), Err(expected.to_owned()));
        assert_eq!(why(&without, &[(30, 9)], 30), Ok(9));
        let expected = "the times of the changes are not known";
        assert_eq!(why(&without, &[], 5), Err(expected.to_owned()));
    }

    #[test]
    fn uses_an_older_plan_only_if_a_snapshot_is_damaged() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut manifest = manifest(&[(1, 9)], &[]);
        manifest
            .snapshots
            .insert(5, super::super::manifest::SnapshotEntry { length: 100, check: 1 });
        let used = |manifest: &Manifest, last| -> Result<_, String> {
            let mut damages = Vec::new();
            let plan = usable_plan(&folder, manifest, last, &mut damages).map_err(text)?;
            Ok((plan.snapshot, plan.segments, damages))
        };
        // A snapshot that is not needed is not read.
        assert_eq!(used(&manifest, 4), Ok((0, vec![1], vec![])));
        let missing = verify::missing("snapshot-0000000000000005.bin");
        assert_eq!(used(&manifest, 9), Ok((0, vec![1], vec![missing.clone()])));
        folder.fail(0, Fault::Broken);
        let error = used(&manifest, 9).unwrap_err();
        assert!(error.starts_with("cannot open snapshot-0000000000000005.bin: "), "{error}");
        // Without another plan, the damage is the reason.
        manifest.segments = [(6, entry(9))].into();
        assert_eq!(used(&manifest, 9), Err(missing.to_string()));
        let error = "the backup cannot be restored to change 4".to_owned();
        assert_eq!(used(&manifest, 4), Err(error));
        let open = |error: std::io::ErrorKind| {
            text(missing_is_damage(Error::disk("journal-1", "open", error.into())))
        };
        assert_eq!(open(ErrorKind::NotFound), verify::missing("journal-1").to_string());
        assert!(open(ErrorKind::Other).starts_with("cannot open journal-1: "));
    }

    #[test]
    fn cuts_a_segment_after_each_of_its_records() {
        let example = Example::new(1)
            .group(1, 0, &[b"one", b"two"])
            .group(3, 2, &[b"three"])
            .group(8, 3, &[])
            .group(8, 3, &[b"eight", b"nine"]);
        let ends = [32, 120, 184, 224];
        let cut_after = |last| {
            let mut segment = example.open();
            let (at, part) = cut(&mut segment, entry(9), last).unwrap();
            (at, part.map(|part| (part.group.first(), part.group.next(), part.group.is_empty())))
        };
        assert_eq!(example.groups, ends.map(|end: u64| end as usize));
        // The first part of a group, or the end of a whole one.
        assert_eq!(cut_after(1), (32, Some((1, 2, false))));
        assert_eq!(cut_after(2), (120, None));
        assert_eq!(cut_after(3), (184, None));
        // Lost records stay lost: an empty group names the next one.
        for last in 4..=6 {
            assert_eq!(cut_after(last), (184, Some((last + 1, last + 1, true))), "{last}");
        }
        assert_eq!(cut_after(7), (224, None));
        assert_eq!(cut_after(8), (224, Some((8, 9, false))));
        assert_eq!(cut_after(9), (example.bytes.len() as u64, None));
        // The checksum of the group before the part.
        let mut segment = example.open();
        let previous = segment.previous();
        assert_eq!(cut(&mut segment, entry(9), 1).unwrap().1.unwrap().previous, previous);
        let damaged = example.clone().flip(130);
        let error = cut(&mut damaged.open(), entry(9), 8).map(|cut| cut.0).map_err(text);
        let expected = "journal-0000000000000001.log is damaged at byte 120: its groups are not \
                        those that were copied (records 3 to 9)";
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn reports_what_was_restored() {
        let mut summary = RestoreSummary {
            last: 7,
            snapshot: 0,
            moment: None,
            unknown: None,
            dropped: None,
            bytes: 99,
            files: Vec::new(),
            damages: Vec::new(),
        };
        assert_eq!(summary.to_string(), "restored all changes up to change 7; 99 bytes\n");
        let damage = verify::missing("snapshot-3");
        summary.moment = Some(Moment { time: Time(0), last: 7 });
        summary.unknown = Some((8..=9, None));
        summary.dropped = Some(8..=12);
        summary.damages = vec![damage.clone()];
        let text = |unknown| {
            format!(
                "{damage}; an older snapshot and the journal were used\n\
                 restored all changes up to change 7, made before 1970-01-01T00:00:00Z; 99 bytes\n\
                 {unknown}, perhaps before the requested time: `--at 9` restores them too\n\
                 dropped: changes 8 to 12\n"
            )
        };
        assert_eq!(summary.to_string(), text("the times of changes 8 to 9 are not known"));
        summary.unknown = Some((8..=9, Some(Time(SECOND))));
        let before = "changes 8 to 9 were made before 1970-01-01T00:00:01Z";
        assert_eq!(summary.to_string(), text(before));
    }
}
