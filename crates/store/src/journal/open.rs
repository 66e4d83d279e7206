//! Recovery: a start restores the last acknowledged state.

use std::fmt;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::file::{FileJournal, Options};
use super::folder::FolderContents;
use super::format::{DAMAGED, FileKind, LOCK};
use super::segment::{Segment, Step, Torn, Verdict, rewrite_tail};
use super::{Damage, Error, Sequence, snapshot, synced, times};
use crate::disk::{Folder, Lock};

/// An event during recovery: first the blocks of a snapshot, then records.
#[derive(Debug)]
pub enum RecoveryEvent<'b> {
    /// The next block of the newest intact snapshot.
    Block(&'b [u8]),
    /// The next record after the snapshot.
    Record(Sequence, &'b [u8]),
    /// Records that a repair could not recover.
    Lost(RangeInclusive<Sequence>),
    /// The progress of recovery.
    Progress {
        /// Bytes read.
        done: u64,
        /// Bytes of all required files.
        all: u64,
    },
}

/// An opened journal.
pub struct Opened {
    /// The journal, which continues after the last record.
    pub journal: FileJournal,
    /// The last record in the snapshot that was loaded; 0 without a snapshot.
    pub snapshot: Sequence,
    /// The sequence of the last record.
    pub last: Sequence,
    /// Warnings for the server's operator.
    pub warnings: Vec<Warning>,
}

/// A folder that was read and not changed. It stays locked until the value is dropped.
pub struct ReadFolder {
    /// The sequence of the last record.
    pub last: Sequence,
    /// Warnings for the operator.
    pub warnings: Vec<Warning>,
    _lock: Arc<dyn Lock>,
}

/// A problem that a start has repaired without losing data that was known to be durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Warning {
    /// The last group is incomplete and was cut off.
    Torn(Torn),
    /// The synced mark is unusable, so a loss at the end of the journal would not be detected.
    Mark {
        /// The reason.
        what: &'static str,
    },
    /// A snapshot is damaged; an older one and the journal were used.
    Snapshot {
        /// The damage.
        damage: Damage,
        /// The damaged file's new name.
        aside: String,
    },
}

impl FileJournal {
    /// Opens or creates the journal in `folder`, and passes all data to `receive`.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`]. [`Error::Damaged`] if acknowledged data cannot be read: then no file is
    /// changed, and `check` reports more. [`Error::Refused`] with an error of `receive`.
    pub fn open(
        folder: Arc<dyn Folder>,
        options: Options,
        receive: &mut dyn FnMut(RecoveryEvent<'_>) -> Result<(), String>,
    ) -> Result<Opened, Error> {
        let lock = lock(&*folder)?;
        let contents = FolderContents::of(&*folder)?;
        let recovered = Recovery::run(&*folder, &contents, receive)?;
        let Recovered { store, snapshot, last, tail, warnings } = recovered;
        // Recovery has succeeded; files are changed from here on.
        let mut pending_tail = None;
        if let Some(tail) = tail {
            match rewrite_tail(&tail) {
                Ok(()) => {}
                // The journal is readable, and does this before its first group.
                Err(Error::Full { .. }) => pending_tail = Some(tail),
                Err(error) => return Err(error),
            }
        }
        for warning in &warnings {
            if let Warning::Snapshot { damage, aside } = warning {
                let moved = folder.rename(&damage.file, aside);
                moved.map_err(|error| Error::disk(&damage.file, "rename", error))?;
            }
        }
        for name in &contents.unfinished {
            folder.remove(name).map_err(|error| Error::disk(name, "remove", error))?;
        }
        folder.sync().map_err(|error| Error::disk(&folder.name(), "sync", error))?;
        if let (Some(store), Some(number)) = (store, contents.segments.last()) {
            // Without this, a restore to a point in time keeps too few records, or too many.
            let _ = times::note_start(&*folder, store, *number, last);
        }
        let store = match store {
            Some(store) => store,
            None => new_store(&*folder)?,
        };
        let journal = FileJournal::continue_after(folder, lock, options, store, last, pending_tail);
        Ok(Opened { journal, snapshot, last, warnings })
    }

    /// Creates the journal of a store that another folder or a cluster has had: its first record
    /// follows `last`. Write a [snapshot](super::Journal::snapshot) of `last` first.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the folder has files of a journal; [`Error::Locked`], [`Error::Disk`].
    pub(crate) fn create_after(
        folder: Arc<dyn Folder>,
        options: Options,
        last: Sequence,
    ) -> Result<Self, Error> {
        let lock = lock(&*folder)?;
        if !FolderContents::of(&*folder)?.is_empty() {
            let folder = folder.name();
            return Err(Error::Refused(format!(
                "{folder} has data already: choose another folder"
            )));
        }
        let store = new_store(&*folder)?;
        Ok(Self::continue_after(folder, lock, options, store, last, None))
    }

    /// Passes all data in `folder` to `receive`, and changes nothing but the lock file.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`Error::Damaged`] also if a snapshot is damaged without which a start
    /// could continue.
    pub fn read(
        folder: &dyn Folder,
        receive: &mut dyn FnMut(RecoveryEvent<'_>) -> Result<(), String>,
    ) -> Result<ReadFolder, Error> {
        let lock = lock(folder)?;
        let contents = FolderContents::of(folder)?;
        let Recovered { last, mut warnings, .. } = Recovery::run(folder, &contents, receive)?;
        let is_damage = |warning: &Warning| matches!(warning, Warning::Snapshot { .. });
        if let Some(at) = warnings.iter().position(is_damage)
            && let Warning::Snapshot { damage, .. } = warnings.swap_remove(at)
        {
            return Err(Error::Damaged(damage));
        }
        Ok(ReadFolder { last, warnings, _lock: lock })
    }
}

/// A random number for a new store.
pub(super) fn new_store(folder: &dyn Folder) -> Result<u64, Error> {
    let number =
        folder.random_number().map_err(|error| Error::disk("a random number", "get", error))?;
    // The lowest bit is set, so that the number is never zero: empty space reads as zero.
    Ok(number | 1)
}

/// Locks the folder for this process.
pub(super) fn lock(folder: &dyn Folder) -> Result<Arc<dyn Lock>, Error> {
    match folder.lock(LOCK) {
        Ok(lock) => Ok(lock.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::Locked { folder: folder.name(), process: error.to_string() })
        }
        Err(error) => Err(Error::disk(LOCK, "lock", error)),
    }
}

/// Bytes between two reports of progress.
const PIECE: usize = 1 << 20;

/// A recovery in progress.
struct Recovery<'s> {
    folder: &'s dyn Folder,
    contents: &'s FolderContents,
    /// The number that all files share, once one is read.
    store: Option<u64>,
    mark: synced::MarkState,
    warnings: Vec<Warning>,
    done: u64,
    all: u64,
    receive: &'s mut dyn FnMut(RecoveryEvent<'_>) -> Result<(), String>,
}

/// The result of a recovery.
struct Recovered {
    store: Option<u64>,
    /// The last record in the snapshot that was loaded; 0 without a snapshot.
    snapshot: Sequence,
    last: Sequence,
    /// The last segment, if the journal continues after it.
    tail: Option<Segment>,
    warnings: Vec<Warning>,
}

impl<'s> Recovery<'s> {
    /// Passes all data of a folder to `receive`.
    fn run(
        folder: &'s dyn Folder,
        contents: &'s FolderContents,
        receive: &'s mut dyn FnMut(RecoveryEvent<'_>) -> Result<(), String>,
    ) -> Result<Recovered, Error> {
        let mark = synced::read(folder)?;
        let (store, warnings) = (None, Vec::new());
        let mut own = Self { folder, contents, store, mark, warnings, done: 0, all: 0, receive };
        let snapshot = own.snapshot()?;
        let (last, tail) = own.segments(snapshot)?;
        let Self { store, mark, mut warnings, .. } = own;
        warnings.extend(mark.fault(store).map(|what| Warning::Mark { what }));
        Ok(Recovered { store, snapshot, last, tail, warnings })
    }

    /// Loads the newest intact snapshot, and returns its sequence.
    fn snapshot(&mut self) -> Result<Sequence, Error> {
        for &number in self.contents.snapshots.iter().rev() {
            // Validates the whole snapshot before loading it, because its last block may be the
            // damaged one and loading cannot be undone. The second read is served from the page
            // cache.
            let (head, _) = match snapshot::read(self.folder, number, &mut |_| Ok(())) {
                Ok(found) => found,
                Err(Error::Damaged(damage)) => {
                    let aside = aside(self.folder, &damage.file)?;
                    self.warnings.push(Warning::Snapshot { damage, aside });
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.check_store(head.store, &head.name())?;
            self.all = self.size(&head.name())? + self.sizes_from(number + 1)?;
            snapshot::read(self.folder, number, &mut |block| {
                self.hand_over(RecoveryEvent::Block(block))?;
                self.progress(block.len() as u64)
            })?;
            return Ok(number);
        }
        self.all = self.sizes_from(1)?;
        Ok(0)
    }

    /// Replays each record after the snapshot. Returns the last sequence and the last segment.
    fn segments(&mut self, snapshot: Sequence) -> Result<(Sequence, Option<Segment>), Error> {
        // A snapshot is finished only after the journal up to it is durable, so the records up to
        // the newest snapshot must be intact even if an older one is used.
        let newest = self.contents.snapshots.last().copied().unwrap_or_default();
        let mut last = snapshot;
        let mut tail = None;
        for (first, following) in self.contents.from(snapshot + 1) {
            if first > last + 1 {
                return Err(Error::Damaged(missing(self.folder, last + 1, first - 1)));
            }
            let name = FileKind::Segment.name(first);
            let file = self.folder.open(&name);
            let file = file.map_err(|error| Error::disk(&name, "open", error))?;
            let mut segment = Segment::open(file, first)?;
            self.check_store(segment.head.store, &name)?;
            segment.note_synced(newest.max(self.mark.sequence(self.store)), snapshot);
            self.records(&mut segment, snapshot, following)?;
            last = last.max(segment.next() - 1);
            tail = following.is_none().then_some(segment);
        }
        // Accounts for headers and reserved space.
        self.progress(self.all)?;
        let reaches = newest.max(self.mark.sequence(self.store));
        if last < reaches {
            return Err(Error::Damaged(missing(self.folder, last + 1, reaches)));
        }
        Ok((last, tail))
    }

    fn records(
        &mut self,
        segment: &mut Segment,
        snapshot: Sequence,
        following: Option<Sequence>,
    ) -> Result<(), Error> {
        let name = segment.name().to_owned();
        let mut reported = 0;
        // After the first record of the next segment, this segment can only contain a cut-off
        // group.
        while following.is_none_or(|first| segment.next() < first) {
            let (at, next) = (segment.at(), segment.next());
            match segment.step()? {
                Step::Group(records) => {
                    for (sequence, record) in records.filter(|(number, _)| *number > snapshot) {
                        self.hand_over(RecoveryEvent::Record(sequence, record))?;
                    }
                }
                Step::Lost(first) if first > snapshot + 1 => {
                    self.hand_over(RecoveryEvent::Lost(next.max(snapshot + 1)..=first - 1))?;
                }
                Step::Lost(_) => {}
                Step::End => match following {
                    None => break,
                    Some(first) => {
                        let (what, records) = ("records are missing here", Some(next..=first - 1));
                        return Err(Error::Damaged(Damage {
                            file: name,
                            offset: at,
                            records,
                            what,
                        }));
                    }
                },
                Step::BadGroup(bad) => match segment.judge(&bad, following)? {
                    Verdict::Torn(torn) => {
                        self.warnings.push(Warning::Torn(torn));
                        break;
                    }
                    Verdict::Damaged(damage) => return Err(Error::Damaged(damage)),
                },
            }
            if segment.at() - reported >= PIECE as u64 {
                self.progress(segment.at() - reported)?;
                reported = segment.at();
            }
        }
        if let Some(damage) = segment.ends_early(snapshot).filter(|_| following.is_none()) {
            return Err(Error::Damaged(damage));
        }
        if following.is_some_and(|first| segment.next() > first) {
            let what = "it holds records that the next segment begins with";
            let records = following.map(|first| first..=segment.next() - 1);
            let damage = Damage { file: name, offset: segment.at(), records, what };
            return Err(Error::Damaged(damage));
        }
        self.progress(segment.size().saturating_sub(reported))
    }

    fn hand_over(&mut self, loaded: RecoveryEvent<'_>) -> Result<(), Error> {
        (self.receive)(loaded).map_err(Error::Refused)
    }

    fn progress(&mut self, bytes: u64) -> Result<(), Error> {
        self.done = (self.done + bytes).min(self.all);
        self.hand_over(RecoveryEvent::Progress { done: self.done, all: self.all })
    }

    fn check_store(&mut self, store: u64, file: &str) -> Result<(), Error> {
        if *self.store.get_or_insert(store) == store {
            return Ok(());
        }
        let what = "it belongs to another store";
        let file = file.to_owned();
        Err(Error::Damaged(Damage { file, offset: 8, records: None, what }))
    }

    fn sizes_from(&self, sequence: Sequence) -> Result<u64, Error> {
        let names = self.contents.from(sequence).into_iter().map(|(first, _)| first);
        names.map(|first| self.size(&FileKind::Segment.name(first))).sum()
    }

    fn size(&self, name: &str) -> Result<u64, Error> {
        let size = self.folder.open(name).and_then(|file| file.size());
        size.map_err(|error| Error::disk(name, "open", error))
    }
}

/// A free name for a damaged file.
pub(super) fn aside(folder: &dyn Folder, name: &str) -> Result<String, Error> {
    let taken = folder.list().map_err(|error| Error::disk(&folder.name(), "read", error))?;
    let plain = DAMAGED.to_owned() + name;
    let numbered = (2..).map(|number: u64| format!("{plain}.{number}"));
    let mut free =
        std::iter::once(plain.clone()).chain(numbered).filter(|name| !taken.contains(name));
    Ok(free.next().unwrap_or(plain))
}

/// Damage: no file holds these acknowledged records.
pub(super) fn missing(folder: &dyn Folder, first: Sequence, last: Sequence) -> Damage {
    let what = "no file holds records that were acknowledged";
    Damage { file: folder.name(), offset: 0, records: Some(first..=last), what }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn(torn) => torn.fmt(f),
            Self::Mark { what } => write!(
                f,
                "the file `synced` cannot be used ({what}): this start cannot detect a loss at the end of the journal. The next commit writes the file again"
            ),
            Self::Snapshot { damage, aside } => {
                write!(
                    f,
                    "{damage}; the previous snapshot and the journal were used, and the file is now {aside}"
                )
            }
        }
    }
}
