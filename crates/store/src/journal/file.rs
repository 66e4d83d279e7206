//! The journal on disk: writes groups to segment files, syncs them, and handles disk failures.

use std::io;
use std::sync::Arc;

use super::folder::FolderContents;
use super::format::{FileHeader, FileKind, HEADER_LENGTH, UNFINISHED, word};
use super::group::GroupBuilder;
use super::segment::{Segment, rewrite_tail};
use super::snapshot::Writer;
use super::synced::SyncedMark;
use super::times::TimesWriter;
use super::{Compaction, Error, Journal, Sequence, SnapshotWriter};
use crate::disk::{File, Folder, Lock, is_full, write_all};

/// Options of a [`FileJournal`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The size to which segments are preallocated. A segment with a longer first group is larger.
    pub segment: u64,
}

impl Default for Options {
    /// Segments of 16 MiB: two are small even on an embedded device, and the milliseconds of
    /// creating one are rare.
    fn default() -> Self {
        Self { segment: 16 << 20 }
    }
}

/// A journal in the segment files of one folder.
///
/// It holds the folder's lock until it is closed or dropped; each snapshot writer holds the lock
/// until it is dropped.
pub struct FileJournal {
    folder: Arc<dyn Folder>,
    /// `None` once the journal is closed.
    lock: Option<Arc<dyn Lock>>,
    options: Options,
    store: u64,
    draft: GroupBuilder,
    /// `None` until the first group: a start without a write creates no segment.
    current: Option<OpenSegment>,
    /// The last segment, if the disk had no room to rewrite its end at the start.
    pending_tail: Option<Segment>,
    /// `None` until the first segment, or if the file cannot be created.
    mark: Option<SyncedMark>,
    /// The last written record.
    written: Sequence,
    /// The last durable record.
    durable: Sequence,
    /// The disk failure after which the journal rejects writes.
    broken: Option<String>,
}

/// The segment being written.
struct OpenSegment {
    file: Box<dyn File>,
    name: String,
    /// The offset of the next group.
    at: u64,
    size: u64,
    /// The checksum of the previous group or header.
    previous: u32,
    /// Whether a partial write has closed the segment: no group may follow the remains.
    is_sealed: bool,
    /// `None` if the file of the times cannot be written.
    times: Option<TimesWriter>,
}

/// The least size of a segment on a nearly full disk: file systems allocate blocks of this length.
const BLOCK: u64 = 4096;

/// Why a segment was not created: the operation, its error, and whether it was a sync.
type CreateError = (&'static str, io::Error, bool);

impl FileJournal {
    /// A journal that continues after the record `last`, up to which everything is durable.
    pub(super) fn continue_after(
        folder: Arc<dyn Folder>,
        lock: Arc<dyn Lock>,
        options: Options,
        store: u64,
        last: Sequence,
        pending_tail: Option<Segment>,
    ) -> Self {
        Self {
            folder,
            lock: Some(lock),
            options,
            store,
            draft: GroupBuilder::new(store, last + 1),
            current: None,
            pending_tail,
            mark: None,
            written: last,
            durable: last,
            broken: None,
        }
    }

    fn is_usable(&self) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(closed());
        }
        self.broken.as_ref().map_or(Ok(()), |why| Err(Error::Broken { why: why.clone() }))
    }

    /// Records a disk failure. The journal does not retry, because the system may have dropped any
    /// unsynced page.
    fn fail(&mut self, action: &str, file: &str, error: &io::Error) -> Error {
        let why = format!("cannot {action} {file}: {error}");
        self.draft.discard();
        self.broken = Some(why.clone());
        Error::Broken { why }
    }

    /// Rejects a group: temporarily if the disk is full, for good if it failed.
    fn refuse(&mut self, action: &str, file: &str, error: io::Error) -> Error {
        if !is_full(&error) {
            return self.fail(action, file, &error);
        }
        self.draft.discard();
        Error::Full { file: file.to_owned(), error }
    }

    /// Prepares the segment for the current group: the current one if it has room, otherwise a new
    /// one.
    fn prepare_segment(&mut self) -> Result<(), Error> {
        self.prepare_segment_for(self.draft.length() as u64)
    }

    /// As `prepare_segment`, for a group of this length in bytes.
    fn prepare_segment_for(&mut self, length: u64) -> Result<(), Error> {
        self.rewrite_pending_tail()?;
        if let Some(current) = &self.current {
            if !current.is_sealed && current.at + length <= current.size {
                return Ok(());
            }
            // The existence of the next segment proves that this one is durable.
            self.sync_current()?;
        }
        let number = self.written + 1;
        let head = FileHeader { kind: FileKind::Segment, store: self.store, number };
        let name = head.name();
        if self.mark.is_none() {
            // Without a mark the journal is as safe as one of an earlier version.
            self.mark = SyncedMark::open(&*self.folder, self.store).ok();
        }
        // Created first, so that the sync of the folder makes its name durable too.
        let before = self.current.as_ref().and_then(|current| current.times.as_ref());
        let times = TimesWriter::create(&*self.folder, self.store, number, before).ok();
        let made =
            self.create_fitting_segment(&name, HEADER_LENGTH as u64 + length, &head.to_bytes());
        match made {
            Ok((file, size)) => {
                let previous = word(&head.to_bytes(), HEADER_LENGTH - 4);
                let at = HEADER_LENGTH as u64;
                let is_sealed = false;
                self.current =
                    Some(OpenSegment { file, name, at, size, previous, is_sealed, times });
                Ok(())
            }
            Err((action, error, false)) => {
                // If this fails, the next attempt or the next start removes the file.
                let _ = self.folder.remove(&(name.clone() + UNFINISHED));
                Err(self.refuse(action, &name, error))
            }
            Err((action, error, true)) => Err(self.fail(action, &name, &error)),
        }
    }

    /// Rewrites the end of the last segment if the start had no room for it.
    fn rewrite_pending_tail(&mut self) -> Result<(), Error> {
        let Some(segment) = &self.pending_tail else { return Ok(()) };
        match rewrite_tail(segment) {
            Ok(()) => {
                self.pending_tail = None;
                Ok(())
            }
            Err(Error::Disk { file, action, error }) => Err(self.fail(action, &file, &error)),
            Err(error) => {
                self.draft.discard();
                Err(error)
            }
        }
    }

    /// Creates a segment of the usual size, or a smaller one of at least `least` bytes on a nearly
    /// full disk, so that the last megabytes are usable too.
    fn create_fitting_segment(
        &self,
        name: &str,
        least: u64,
        head: &[u8],
    ) -> Result<(Box<dyn File>, u64), CreateError> {
        let mut size = self.options.segment.max(least);
        let least = least.next_multiple_of(BLOCK).min(size);
        loop {
            match self.create_segment(name, size, head) {
                Ok(file) => return Ok((file, size)),
                Err((_, error, false)) if is_full(&error) && size > least => {
                    size = (size / 4).max(least);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates a segment under a temporary name and renames it once it is complete. The error
    /// contains the operation and whether it was a sync, which is never retried.
    fn create_segment(
        &self,
        name: &str,
        size: u64,
        head: &[u8],
    ) -> Result<Box<dyn File>, CreateError> {
        let unfinished = name.to_owned() + UNFINISHED;
        let folder = &*self.folder;
        let file = match folder.create(&unfinished) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder.remove(&unfinished).and_then(|()| folder.create(&unfinished))
            }
            created => created,
        };
        let file = file.map_err(|error| ("make", error, false))?;
        file.reserve(size).map_err(|error| ("reserve", error, false))?;
        write_all(&*file, head, 0).map_err(|error| ("write", error, false))?;
        file.sync_all().map_err(|error| ("sync", error, true))?;
        folder.rename(&unfinished, name).map_err(|error| ("rename", error, false))?;
        folder.sync().map_err(|error| ("sync the folder of", error, true))?;
        Ok(file)
    }

    fn sync_current(&mut self) -> Result<(), Error> {
        let Some(current) = self.current.as_ref().filter(|_| self.durable < self.written) else {
            return Ok(());
        };
        if let Err(error) = current.file.sync_data() {
            let name = current.name.clone();
            return Err(self.fail("sync", &name, &error));
        }
        self.durable = self.written;
        if let Some(mark) = &mut self.mark {
            mark.set(self.durable);
        }
        Ok(())
    }

    /// Writes the current group; the second attempt uses a new segment.
    fn write_group(&mut self) -> Result<(), Error> {
        for _ in 0..2 {
            self.prepare_segment()?;
            self.note_time();
            if self.write_draft()? {
                return Ok(());
            }
        }
        let file = self.current.as_ref().map(|current| current.name.clone()).unwrap_or_default();
        Err(self.refuse("write", &file, io::ErrorKind::StorageFull.into()))
    }

    /// Records the time of the current group if it is the first one of its second: one read of the
    /// clock for each group, one write of 24 bytes for each second.
    fn note_time(&mut self) {
        let Some(current) = &mut self.current else { return };
        let Some(times) = &mut current.times else { return };
        if times.note(self.draft.first(), self.folder.now()).is_err() {
            // Without the file, a restore knows that it does not know the times of the segment.
            current.times = None;
            let segment = current.name.clone();
            self.remove_times(&segment);
        }
    }

    /// Removes the file of the times of a segment. If this fails, the disk has failed, and the
    /// journal soon notices.
    fn remove_times(&self, segment: &str) {
        if let Some((_, number)) = FileKind::of(segment) {
            let _ = self.folder.remove(&FileKind::Times.name(number));
        }
    }

    /// Writes the draft by one call. Returns `false` after a short write. A short write is never
    /// continued: a power failure could then leave zeros in the middle of the group, and an
    /// unfinished group is detected by the zeros at its end.
    fn write_draft(&mut self) -> Result<bool, Error> {
        let Some(current) = &mut self.current else { return Ok(false) };
        let (bytes, mark) = self.draft.seal(self.durable, current.previous);
        let length = bytes.len();
        let written = loop {
            match current.file.write_at(bytes, current.at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        if !matches!(written, Ok(all) if all == length) {
            current.is_sealed = true;
            let name = current.name.clone();
            return written.map(|_| false).map_err(|error| self.refuse("write", &name, error));
        }
        (current.at, current.previous) = (current.at + length as u64, mark);
        self.draft.begin_next();
        self.written = self.draft.next() - 1;
        Ok(true)
    }

    /// Records a clean shutdown, and frees the reserved rest of the last segment.
    fn end(&mut self) -> Result<(), Error> {
        self.draft.discard();
        self.sync_current()?;
        let has_room = |current: &OpenSegment| {
            !current.is_sealed && current.at + self.draft.length() as u64 <= current.size
        };
        if self.current.as_ref().is_some_and(has_room) {
            self.write_draft()?;
        }
        if let Some(mut current) = self.current.take() {
            if let Some(times) = &mut current.times {
                // Without this entry, a restore does not know when the last records were written.
                let _ = times.close(self.draft.next(), self.folder.now());
            }
            let cut = current.file.truncate(current.at).and_then(|()| current.file.sync_all());
            if let Err(error) = cut {
                return Err(self.fail("close", &current.name, &error));
            }
        }
        if let Some(mark) = self.unsynced_mark() {
            // A failed sync is harmless: an older mark is valid too.
            let _ = mark.sync_data();
        }
        Ok(())
    }
}

impl Journal for FileJournal {
    fn append(&mut self, record: &[u8]) -> Result<Sequence, Error> {
        self.is_usable()?;
        self.draft.append(record)
    }

    fn write(&mut self, durably: bool) -> Result<Sequence, Error> {
        self.is_usable()?;
        if !self.draft.is_empty() {
            self.write_group()?;
        }
        if durably {
            self.sync_current()?;
        }
        Ok(self.written)
    }

    fn sync(&mut self) -> Result<Sequence, Error> {
        self.is_usable()?;
        self.sync_current()?;
        Ok(self.durable)
    }

    fn find_room(&mut self, bytes: u64) -> Result<(), Error> {
        self.is_usable()?;
        let most = self.options.segment.saturating_sub(HEADER_LENGTH as u64);
        self.prepare_segment_for(bytes.min(most))
    }

    fn durable(&self) -> Sequence {
        self.durable
    }

    fn unsynced_mark(&mut self) -> Option<Arc<dyn File>> {
        self.mark.as_mut().and_then(SyncedMark::take_unsynced)
    }

    fn snapshot(&mut self, sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, Error> {
        self.is_usable()?;
        if sequence > self.written {
            return Err(Error::Refused(format!("there is no record {sequence} yet")));
        }
        self.rewrite_pending_tail()?;
        // A snapshot ahead of the journal would cause a gap after the previous one.
        if sequence > self.durable {
            self.sync_current()?;
        }
        let lock = self.lock.clone().ok_or_else(closed)?;
        Ok(Box::new(Writer::new(Arc::clone(&self.folder), lock, self.store, sequence)?))
    }

    fn compaction(&mut self, snapshot: Sequence) -> Result<Compaction, Error> {
        let contents = FolderContents::of(&*self.folder)?;
        if !contents.snapshots.contains(&snapshot) {
            return Err(Error::Refused(format!("there is no snapshot of record {snapshot}")));
        }
        let before = contents.snapshots.iter().copied().filter(|each| *each < snapshot).max();
        // With a single snapshot the second way to the current state is the whole journal.
        let Some(before) = before else { return Ok(Box::new(|| Ok(()))) };
        let needed = contents.from(before + 1).first().map_or(0, |(first, _)| *first);
        let snapshots = contents.snapshots.iter().filter(|last| **last < before);
        let segments = contents.segments.iter().filter(|first| **first < needed);
        // After the segments: a backup that finds a segment without its times rejects these.
        let times = contents.times.iter().filter(|first| **first < needed);
        let names: Vec<String> = snapshots
            .map(|last| FileKind::Snapshot.name(*last))
            .chain(segments.map(|first| FileKind::Segment.name(*first)))
            .chain(times.map(|first| FileKind::Times.name(*first)))
            .collect();
        // The lock is held until the files are removed.
        let (folder, lock) = (Arc::clone(&self.folder), self.lock.clone());
        Ok(Box::new(move || {
            let _lock = lock;
            for name in names {
                let removed = folder.remove(&name);
                removed.map_err(|error| Error::Disk { file: name, action: "remove", error })?;
            }
            let synced = folder.sync();
            synced.map_err(|error| Error::Disk { file: folder.name(), action: "sync", error })
        }))
    }

    fn close(&mut self) -> Result<(), Error> {
        let ended = self.is_usable().and_then(|()| self.end());
        // Even after a failure the journal is closed and the folder is unlocked.
        (self.current, self.lock) = (None, None);
        ended
    }
}

fn closed() -> Error {
    Error::Refused("the journal is closed".to_owned())
}
