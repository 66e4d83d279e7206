//! Copies what is new in a journal's folder into a backup.

use std::fmt;
use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use super::super::folder::FolderContents;
use super::super::format::{FileKind, UNFINISHED};
use super::super::group::GROUP_HEADER_LENGTH;
use super::super::open::{self, missing};
use super::super::segment::Segment;
use super::super::{Damage, Error, Sequence, snapshot, synced, times};
use super::manifest::{Manifest, Moment, SegmentEntry, SnapshotEntry, StoredFile};
use super::verify::{self, PIECE, SummedFile};
use crate::disk::{File, Folder, read_full, write_all};
use crate::time::Time;

/// Makes a hard link to a file of the journal in the folder of the backup. The arguments are the
/// names of the file and of the link.
pub type Link<'l> = dyn Fn(&str, &str) -> io::Result<()> + 'l;

/// Options of a backup.
pub struct BackupOptions<'o> {
    /// Reads the time. Restores to a point in time use it.
    pub clock: &'o dyn Fn() -> Time,
    /// Small files to store in the backup, in place of those of the previous run.
    pub files: &'o [StoredFile],
    /// Links files that do not change again instead of copying them. A file for which it fails is
    /// copied.
    pub link: Option<&'o Link<'o>>,
    /// Forgets moments that are older than this.
    pub keep: Option<Duration>,
}

/// The work of a completed backup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackupSummary {
    /// The last record in the backup.
    pub last: Sequence,
    /// The last record of the previous run; 0 without one.
    pub before: Sequence,
    /// The bytes that were copied.
    pub copied: u64,
    /// The number of files that were linked.
    pub linked: u64,
    /// The number of files that are no longer needed and were removed.
    pub removed: u64,
    /// Damaged snapshots of the journal, which were not copied. The backup is complete without them.
    pub damages: Vec<Damage>,
}

/// How often a backup lists the folder, which a server may change meanwhile.
const MAX_PASSES: usize = 100;
/// How often the synced mark is read, which a server may write meanwhile.
const MAX_MARK_READS: usize = 10;

/// Copies everything in the journal's folder `source` that `target` does not have. A server may use
/// `source` meanwhile; it is not changed. All records that the journal had acknowledged before the
/// call are in the backup. An interrupted call leaves the previous backup as it was.
///
/// # Errors
///
/// [`Error::Locked`] while another backup writes to `target`. [`Error::Damaged`] if records cannot be
/// read. [`Error::Refused`] if `target` is not empty and no backup of this journal. [`Error::Full`]
/// and [`Error::Disk`]: a later call continues.
pub fn backup(
    source: &dyn Folder,
    target: &dyn Folder,
    options: &BackupOptions<'_>,
) -> Result<BackupSummary, Error> {
    let _lock = open::lock(target)?;
    let manifest = begin(target)?;
    let summary = BackupSummary { before: manifest.last(), ..BackupSummary::default() };
    let mut copier = Copier { source, target, options, manifest, summary };
    copier.copy()?;
    let Copier { mut manifest, mut summary, .. } = copier;
    summary.last = manifest.last();
    // The clock is read after the last record, so all records up to it are older.
    let time = (options.clock)();
    manifest.add_moment(Moment { time, last: summary.last });
    manifest.set_files(options.files)?;
    if let Some(keep) = options.keep {
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        manifest.forget_before(Time(time.0.saturating_sub(keep)));
    }
    // The names of the new files are durable before the manifest lists them.
    target.sync().map_err(|error| Error::disk(&target.name(), "sync", error))?;
    manifest.save(target)?;
    summary.removed = remove_unlisted(target, &manifest)?;
    Ok(summary)
}

/// Reads the manifest, or writes an empty one into an empty folder.
fn begin(target: &dyn Folder) -> Result<Manifest, Error> {
    if let Some(manifest) = Manifest::load(target)? {
        return Ok(manifest);
    }
    let contents = FolderContents::of(target)?;
    if !contents.segments.is_empty() || !contents.snapshots.is_empty() {
        let folder = target.name();
        let why = format!("{folder} has a journal and no backup: choose an empty folder");
        return Err(Error::Refused(why));
    }
    let manifest = Manifest::default();
    manifest.save(target)?;
    Ok(manifest)
}

/// Removes the files of journals that the manifest does not list: those of an interrupted run, and
/// those that are no longer needed.
fn remove_unlisted(target: &dyn Folder, manifest: &Manifest) -> Result<u64, Error> {
    let names = target.list().map_err(|error| Error::disk(&target.name(), "read", error))?;
    let mut removed = 0;
    for name in names {
        let is_useless = match FileKind::of(&name) {
            Some((FileKind::Snapshot, number)) => !manifest.snapshots.contains_key(&number),
            Some((FileKind::Segment | FileKind::Times, first)) => {
                !manifest.segments.contains_key(&first)
            }
            None => name.strip_suffix(UNFINISHED).is_some_and(|name| FileKind::of(name).is_some()),
        };
        if is_useless {
            target.remove(&name).map_err(|error| Error::disk(&name, "remove", error))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A backup in progress.
struct Copier<'c> {
    source: &'c dyn Folder,
    target: &'c dyn Folder,
    options: &'c BackupOptions<'c>,
    manifest: Manifest,
    summary: BackupSummary,
}

impl Copier<'_> {
    /// Copies all files of one listing of the folder. Repeats this when the server has changed the
    /// folder meanwhile: it removes files that it no longer needs, and creates new ones.
    fn copy(&mut self) -> Result<(), Error> {
        let synced = self.synced()?;
        let mut passes = 0;
        loop {
            passes += 1;
            let Err(error) = self.pass(synced) else { return Ok(()) };
            let is_passing = match &error {
                Error::Damaged(_) => true,
                // The server has removed a file, or has ended and freed the rest of its last segment.
                Error::Disk { error, .. } => {
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
                }
                _ => false,
            };
            if !is_passing || passes == MAX_PASSES {
                return Err(error);
            }
            // Lets the server finish its write.
            thread::yield_now();
        }
    }

    /// The last record that the journal has synced, as far as it is known.
    fn synced(&self) -> Result<(Option<u64>, Sequence), Error> {
        for _ in 0..MAX_MARK_READS {
            let mark = synced::read(self.source)?;
            if mark.fault(None).is_none() {
                return Ok((mark.store(), mark.sequence(None)));
            }
            thread::yield_now();
        }
        Ok((None, 0))
    }

    fn pass(&mut self, (marked, synced): (Option<u64>, Sequence)) -> Result<(), Error> {
        let contents = FolderContents::of(self.source)?;
        if contents.segments.is_empty() && contents.snapshots.is_empty() {
            let why = format!("there is no journal in {}", self.source.name());
            return Err(Error::Refused(why));
        }
        self.summary.damages.clear();
        self.link_history(&contents)?;
        let begin = self.manifest.breaks.last().copied().unwrap_or_default();
        for &number in contents.snapshots.iter().filter(|number| **number >= begin) {
            self.snapshot(number)?;
        }
        let mut last = 0;
        for (first, following) in contents.from(0) {
            last = last.max(self.segment(first, following, synced)?);
            // Only then: an entry is written before its record, so each copied record has its entry.
            self.times(first)?;
        }
        let newest = contents.snapshots.last().copied().unwrap_or_default();
        let is_ours = marked.is_none_or(|store| store == self.manifest.store);
        let reaches = if is_ours { newest.max(synced) } else { newest };
        let has_newest = self.manifest.snapshots.contains_key(&newest);
        let found = if has_newest { last.max(newest) } else { last };
        if found < reaches {
            return Err(Error::Damaged(missing(self.source, found + 1, reaches)));
        }
        if found < self.manifest.last() || !self.manifest.is_consistent() {
            return Err(self.diverged(found));
        }
        if self.manifest.plans(found).is_empty() {
            let begin = contents.segments.first().copied().unwrap_or(found);
            return Err(Error::Damaged(missing(self.source, 1, begin.saturating_sub(1).max(1))));
        }
        Ok(())
    }

    /// Checks whether the folder has a file of the backup, which proves that its new files continue
    /// those of the backup. Otherwise the server has removed all of them, and the new files must not
    /// be combined with older ones.
    fn link_history(&mut self, contents: &FolderContents) -> Result<(), Error> {
        let last = self.manifest.last();
        // `segment` compares all common segments.
        let is_known = |first: &Sequence| self.manifest.segments.contains_key(first);
        if last == 0 || contents.segments.iter().any(is_known) {
            return Ok(());
        }
        for number in &contents.snapshots {
            let name = FileKind::Snapshot.name(*number);
            let Some(known) = self.manifest.snapshots.get(number) else { continue };
            let file =
                self.source.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
            let length = file.size().map_err(|error| Error::disk(&name, "read", error))?;
            if length == known.length && SummedFile::new(&*file).checksum(&name)? == known.check {
                return Ok(());
            }
        }
        let begin = contents.segments.first().or(contents.snapshots.first()).copied();
        match begin {
            Some(begin) if begin > last => {
                self.manifest.breaks.push(begin);
                Ok(())
            }
            _ => Err(self.diverged(last.min(begin.unwrap_or_default().saturating_sub(1)))),
        }
    }

    /// Copies a snapshot that the backup does not have.
    fn snapshot(&mut self, number: Sequence) -> Result<(), Error> {
        if number == 0 || self.manifest.snapshots.contains_key(&number) {
            return Ok(());
        }
        let name = FileKind::Snapshot.name(number);
        let file = self.source.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
        let summed = SummedFile::new(&*file);
        let read = snapshot::read_file(&summed, number, &mut |_| Ok(()), &mut |damage| {
            Err(Error::Damaged(damage))
        });
        let head = match read {
            Ok((head, _)) => head,
            Err(Error::Damaged(damage)) => {
                self.summary.damages.push(damage);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.check_store(head.store)?;
        let length = file.size().map_err(|error| Error::disk(&name, "read", error))?;
        let check = summed.checksum(&name)?;
        let entry = SnapshotEntry { length, check };
        if !self.link(&name)? {
            let unfinished = name.clone() + UNFINISHED;
            let copy = create(self.target, &unfinished)?;
            self.copy_bytes(&name, &*file, &*copy, 0..length)?;
            verify::snapshot_file(&*copy, self.manifest.store, number, entry)?;
            self.put(&name, &*copy)?;
        }
        self.manifest.snapshots.insert(number, entry);
        Ok(())
    }

    /// Copies the groups of a segment that the backup does not have. Returns the segment's last
    /// record.
    fn segment(
        &mut self,
        first: Sequence,
        following: Option<Sequence>,
        synced: Sequence,
    ) -> Result<Sequence, Error> {
        let name = FileKind::Segment.name(first);
        let file = self.source.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
        let mut segment = Segment::open(file, first)?;
        self.check_store(segment.head.store)?;
        segment.note_synced(synced, 0);
        let known = self.manifest.segments.get(&first).copied();
        if let Some(known) = known {
            self.check_history(&mut segment, known)?;
            if following == Some(known.last + 1) {
                return Ok(known.last);
            }
            segment.continue_after_group(known.length, known.last + 1, known.mark);
        }
        let (Some(found), _) = verify::scan(&mut segment, known, following)? else {
            // A segment without groups.
            return Ok(first - 1);
        };
        if following.is_none() {
            // The server may not have synced these groups: without this, a power failure could
            // replace them by others.
            segment.file.sync_data().map_err(|error| Error::disk(&name, "sync", error))?;
        }
        if known == Some(found) {
            return Ok(found.last);
        }
        if following.is_none() || !self.link(&name)? {
            self.copy_segment(&segment, known, found)?;
        }
        self.manifest.segments.insert(first, found);
        Ok(found.last)
    }

    /// Copies the bytes from the end of `known` to the end of `found`, and reads the copy.
    fn copy_segment(
        &mut self,
        segment: &Segment,
        known: Option<SegmentEntry>,
        found: SegmentEntry,
    ) -> Result<(), Error> {
        let (name, first) = (segment.name(), segment.head.number);
        let disk = |error| Error::disk(name, "open", error);
        let copy = match known {
            // Bytes beyond the end of `known` belong to no backup.
            Some(_) => self.target.open(name).map_err(disk)?,
            None => create(self.target, &(name.to_owned() + UNFINISHED))?,
        };
        let from = known.map_or(0, |known| known.length);
        self.copy_bytes(name, &*segment.file, &*copy, from..found.length)?;
        match known {
            Some(_) => copy.sync_all().map_err(|error| Error::disk(name, "sync", error))?,
            None => self.put(name, &*copy)?,
        }
        let mut written = verify::open_file(copy, self.manifest.store, first, found.length)?;
        if let Some(known) = known {
            written.continue_after_group(known.length, known.last + 1, known.mark);
        }
        let (copied, _) = verify::scan(&mut written, known, None)?;
        verify::expect(&written, copied, found)
    }

    /// Copies the times of a segment as far as the backup does not have them.
    fn times(&mut self, first: Sequence) -> Result<(), Error> {
        let (store, name) = (self.manifest.store, FileKind::Times.name(first));
        // Times that cannot be read only make a restore to a point in time less exact.
        let found = times::read(self.source, store, first).unwrap_or_default();
        if found.length == 0 {
            // The journal could not write all entries, unless a compaction has removed both files.
            let segment = FileKind::Segment.name(first);
            let opened = self.source.open(&segment);
            opened.map_err(|error| Error::disk(&segment, "open", error))?;
            return remove_if_exists(self.target, &name);
        }
        let disk = |error| Error::disk(&name, "write", error);
        let copied = times::read(self.target, store, first).unwrap_or_default();
        if copied == found {
            return Ok(());
        }
        // A power failure can lose entries that the backup has. Those of the journal are used,
        // since its last one shows that entries are lost.
        let continues = found.entries.starts_with(&copied.entries);
        let from = if continues { copied.length.min(found.length) } else { 0 };
        let source = self.source.open(&name).map_err(|error| Error::disk(&name, "open", error))?;
        let copy = match from {
            0 => create(self.target, &name)?,
            _ => self.target.open(&name).map_err(disk)?,
        };
        let copied = self.summary.copied;
        self.copy_bytes(&name, &*source, &*copy, from as u64..found.length as u64)?;
        // The summary counts the bytes of records.
        self.summary.copied = copied;
        copy.truncate(found.length as u64).and_then(|()| copy.sync_all()).map_err(disk)
    }

    fn copy_bytes(
        &mut self,
        name: &str,
        from: &dyn File,
        to: &dyn File,
        range: std::ops::Range<u64>,
    ) -> Result<(), Error> {
        let mut piece = vec![0; PIECE.min((range.end - range.start) as usize)];
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(PIECE as u64) as usize;
            let read = read_full(from, &mut piece[..length], at);
            let read = read.map_err(|error| Error::disk(name, "read", error))?;
            if read == 0 {
                return Err(Error::disk(name, "read", ErrorKind::UnexpectedEof.into()));
            }
            let written = write_all(to, &piece[..read], at);
            written.map_err(|error| Error::disk(name, "write", error))?;
            self.summary.copied += read as u64;
            at += read as u64;
        }
        Ok(())
    }

    /// Links a file that does not change again, if links are wanted and possible.
    fn link(&mut self, name: &str) -> Result<bool, Error> {
        let Some(link) = self.options.link else { return Ok(false) };
        let unfinished = name.to_owned() + UNFINISHED;
        remove_if_exists(self.target, &unfinished)?;
        match link(name, &unfinished) {
            Ok(()) => {}
            // The server has removed the file.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::disk(name, "link", error));
            }
            Err(_) => return Ok(false),
        }
        let renamed = self.target.rename(&unfinished, name);
        renamed.map_err(|error| Error::disk(&unfinished, "rename", error))?;
        // A rename between two links to one file leaves both.
        remove_if_exists(self.target, &unfinished)?;
        self.summary.linked += 1;
        Ok(true)
    }

    /// Syncs a new file and gives it its name.
    fn put(&self, name: &str, file: &dyn File) -> Result<(), Error> {
        file.sync_all().map_err(|error| Error::disk(name, "sync", error))?;
        let renamed = self.target.rename(&(name.to_owned() + UNFINISHED), name);
        renamed.map_err(|error| Error::disk(name, "rename", error))
    }

    fn check_store(&mut self, store: u64) -> Result<(), Error> {
        if self.manifest.store == 0 {
            self.manifest.store = store;
        }
        if self.manifest.store == store {
            return Ok(());
        }
        let target = self.target.name();
        let why = format!("{target} is a backup of another store: choose an empty folder");
        Err(Error::Refused(why))
    }

    /// Checks that a segment still has the groups that were copied earlier.
    fn check_history(&self, segment: &mut Segment, known: SegmentEntry) -> Result<(), Error> {
        let group = segment.group_at(known.group)?;
        let is_same = group.is_some_and(|group| {
            let end = known.group + (GROUP_HEADER_LENGTH + group.length) as u64;
            group.mark == known.mark && end == known.length
        });
        if is_same {
            return Ok(());
        }
        Err(self.diverged(segment.head.number.saturating_sub(1)))
    }

    fn diverged(&self, last: Sequence) -> Error {
        let (source, target) = (self.source.name(), self.target.name());
        Error::Refused(format!(
            "{target} has changes after change {last} that {source} does not have, because {source} was restored or repaired, or has lost data: choose an empty folder for its next backup, and keep {target} until you know why"
        ))
    }
}

fn create(folder: &dyn Folder, name: &str) -> Result<Box<dyn File>, Error> {
    remove_if_exists(folder, name)?;
    folder.create(name).map_err(|error| Error::disk(name, "make", error))
}

fn remove_if_exists(folder: &dyn Folder, name: &str) -> Result<(), Error> {
    match folder.remove(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::disk(name, "remove", error))
        }
        _ => Ok(()),
    }
}

impl fmt::Display for BackupSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { last, before, copied, linked, removed, damages } = self;
        for damage in damages {
            writeln!(f, "{damage}; it is not in the backup, which is complete without it")?;
        }
        match last - before {
            0 => write!(f, "no new changes after change {last}")?,
            new => write!(f, "{new} new changes, up to change {last}")?,
        }
        write!(f, "; {copied} bytes copied")?;
        if *linked > 0 {
            write!(f, ", {linked} files linked")?;
        }
        if *removed > 0 {
            write!(f, ", {removed} files removed")?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    #[test]
    fn replaces_a_file_unless_the_disk_fails() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        create(&folder, "a").unwrap();
        folder.put("a", b"old");
        create(&folder, "a").unwrap();
        assert_eq!(folder.content("a"), Some(Vec::new()));
        for (ahead, action) in [(0, "remove"), (1, "make")] {
            folder.fail(ahead, Fault::Broken);
            let error = create(&folder, "a").map(drop).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot {action} a: ")), "{error}");
        }
    }

    #[test]
    fn reports_the_work_of_a_run() {
        let summary = BackupSummary { last: 7, before: 7, ..BackupSummary::default() };
        assert_eq!(summary.to_string(), "no new changes after change 7; 0 bytes copied\n");
        let damage = Damage {
            file: "snapshot-3".to_owned(),
            offset: 8,
            records: None,
            what: "a block is not whole",
        };
        let text = format!(
            "{damage}; it is not in the backup, which is complete without it\n\
             4 new changes, up to change 7; 99 bytes copied, 1 files linked, 2 files removed\n"
        );
        let damages = vec![damage];
        let summary =
            BackupSummary { last: 7, before: 3, copied: 99, linked: 1, removed: 2, damages };
        assert_eq!(summary.to_string(), text);
    }
}
