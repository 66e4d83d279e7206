//! Decides how a start finds the last acknowledged state again.

use std::fmt;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::file::{FileJournal, Options};
use super::folder::Contents;
use super::format::{DAMAGED, Kind, LOCK};
use super::segment::{Segment, Step, Verdict};
use super::{Damage, Error, Sequence, snapshot, synced};
use crate::disk::{Folder, Lock, write_all};

/// What a start hands over, in this order: the blocks of a snapshot, then records.
#[derive(Debug)]
pub enum Loaded<'b> {
    /// The next block of the newest snapshot that is whole.
    Block(&'b [u8]),
    /// The next record behind the snapshot.
    Record(Sequence, &'b [u8]),
    /// A repair could not keep these records.
    Lost(RangeInclusive<Sequence>),
    /// So many bytes are done, of so many.
    Progress {
        /// Bytes done.
        done: u64,
        /// Bytes of all files that are needed.
        all: u64,
    },
}

/// A journal that was opened.
pub struct Opened {
    /// Goes on behind the last record.
    pub journal: FileJournal,
    /// The last record in the snapshot that was handed over; 0 if there was none.
    pub snapshot: Sequence,
    /// The last record.
    pub last: Sequence,
    /// What whoever runs the server should know.
    pub warnings: Vec<Warning>,
}

/// What a start has put right by itself, without losing what was known to be durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Warning {
    /// The last group is incomplete and is cut off.
    Torn(Torn),
    /// The synced mark cannot be used, so a loss at the end of the journal would not be noticed.
    Mark {
        /// Why not.
        what: &'static str,
    },
    /// A snapshot cannot be read; an older one and the journal were used.
    Snapshot {
        /// What is wrong with it.
        damage: Damage,
        /// The name it has now.
        aside: String,
    },
}

/// An incomplete group at the end of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The segment.
    pub file: String,
    /// Where it is cut.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub bytes: u64,
    /// Complete groups behind the incomplete one.
    pub groups: u64,
    /// The last record before it.
    pub last: Sequence,
    /// The last record that is known to have been synced; 0 if none is.
    pub synced: Sequence,
}

impl FileJournal {
    /// Opens the journal in `folder`, or begins one there, and hands over all that it holds.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`]; [`Error::Damaged`] if anything acknowledged cannot be read: then nothing
    /// was changed, and `check` tells more. What `receive` refuses comes back as
    /// [`Error::Refused`].
    pub fn open(
        folder: Arc<dyn Folder>,
        options: Options,
        receive: &mut dyn FnMut(Loaded<'_>) -> Result<(), String>,
    ) -> Result<Opened, Error> {
        let lock = lock(&*folder)?;
        let contents = Contents::of(&*folder)?;
        let mut start = Start {
            folder: &*folder,
            contents: &contents,
            store: None,
            mark: synced::read(&*folder)?,
            warnings: Vec::new(),
            done: 0,
            all: 0,
            receive,
        };
        let snapshot = start.snapshot()?;
        let (last, tail) = start.segments(snapshot)?;
        let Start { store, mark, mut warnings, .. } = start;
        warnings.extend(mark.fault(store).map(|what| Warning::Mark { what }));
        // Nothing was refused: from here on files are changed.
        let mut unsettled = None;
        if let Some(tail) = tail {
            match settle(&tail) {
                Ok(()) => {}
                // The journal can be read, and writes no group before it has settled this.
                Err(Error::Full { .. }) => unsettled = Some(tail),
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
        let store = match store {
            Some(store) => store,
            None => new_store(&*folder)?,
        };
        let journal = FileJournal::behind(folder, lock, options, store, last, unsettled);
        Ok(Opened { journal, snapshot, last, warnings })
    }
}

/// A number for a store that has none yet.
pub(super) fn new_store(folder: &dyn Folder) -> Result<u64, Error> {
    let number = folder.chance().map_err(|error| Error::disk("a random number", "get", error))?;
    // The lowest bit is set, so that it is never zero, which is what empty space reads as.
    Ok(number | 1)
}

/// Takes the folder for this process alone.
pub(super) fn lock(folder: &dyn Folder) -> Result<Arc<dyn Lock>, Error> {
    match folder.lock(LOCK) {
        Ok(lock) => Ok(lock.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::Locked { folder: folder.name(), process: error.to_string() })
        }
        Err(error) => Err(Error::disk(LOCK, "lock", error)),
    }
}

/// Makes the end of the last segment what it was read as. A sync that failed in an earlier process
/// may have left bytes that are read and are not on the disk: they are written once more, for a
/// second sync of the same bytes would say nothing.
pub(super) fn settle(segment: &Segment) -> Result<(), Error> {
    let fault = |error| Error::disk(segment.name(), "settle", error);
    let unsettled = segment.unsettled();
    if unsettled.is_empty() && segment.at() == segment.size() {
        return Ok(());
    }
    let length = unsettled.end - unsettled.start;
    let mut bytes = vec![0; length.min(PIECE as u64) as usize];
    let mut at = unsettled.start;
    while at < unsettled.end {
        let length = (unsettled.end - at).min(PIECE as u64) as usize;
        let piece = &mut bytes[..length];
        let read = crate::disk::read_full(&*segment.file, piece, at).map_err(fault)?;
        write_all(&*segment.file, &piece[..read], at).map_err(fault)?;
        at += length as u64;
    }
    segment.file.truncate(segment.at()).map_err(fault)?;
    segment.file.sync_all().map_err(fault)
}

const PIECE: usize = 1 << 20;

/// A start on its way.
struct Start<'s> {
    folder: &'s dyn Folder,
    contents: &'s Contents,
    /// The number all files share, once one is read.
    store: Option<u64>,
    mark: synced::Found,
    warnings: Vec<Warning>,
    done: u64,
    all: u64,
    receive: &'s mut dyn FnMut(Loaded<'_>) -> Result<(), String>,
}

impl Start<'_> {
    /// Hands over the newest snapshot that is whole, and says which that is.
    fn snapshot(&mut self) -> Result<Sequence, Error> {
        for &number in self.contents.snapshots.iter().rev() {
            // Read twice, the second time from the system's memory: what is handed over cannot be
            // taken back, and the last block may be the bad one.
            let (head, _) = match snapshot::read(self.folder, number, &mut |_| Ok(())) {
                Ok(found) => found,
                Err(Error::Damaged(damage)) => {
                    let aside = aside(self.folder, &damage.file)?;
                    self.warnings.push(Warning::Snapshot { damage, aside });
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.belongs(head.store, &head.name())?;
            self.all = self.size(&head.name())? + self.sizes_from(number + 1)?;
            snapshot::read(self.folder, number, &mut |block| {
                self.hand_over(Loaded::Block(block))?;
                self.progress(block.len() as u64)
            })?;
            return Ok(number);
        }
        self.all = self.sizes_from(1)?;
        Ok(0)
    }

    /// Hands over every record behind the snapshot. Says which is the last, and where it stands.
    fn segments(&mut self, snapshot: Sequence) -> Result<(Sequence, Option<Segment>), Error> {
        // A snapshot was finished only when the journal up to it was durable, so the way there must
        // be whole, whichever snapshot is used.
        let newest = self.contents.snapshots.last().copied().unwrap_or_default();
        let mut last = snapshot;
        let mut tail = None;
        for (first, following) in self.contents.from(snapshot + 1) {
            if first > last + 1 {
                return Err(Error::Damaged(missing(self.folder, last + 1, first - 1)));
            }
            let name = Kind::Segment.name(first);
            let file = self.folder.open(&name);
            let file = file.map_err(|error| Error::disk(&name, "open", error))?;
            let mut segment = Segment::open(file, first)?;
            self.belongs(segment.head.store, &name)?;
            segment.note_synced(newest.max(self.mark.sequence(self.store)), snapshot);
            self.records(&mut segment, snapshot, following)?;
            last = last.max(segment.next() - 1);
            tail = following.is_none().then_some(segment);
        }
        // What heads and reserved space came to.
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
        let mut told = 0;
        // Behind what the next segment begins with, only what was cut off can stand.
        while following.is_none_or(|first| segment.next() < first) {
            let (at, next) = (segment.at(), segment.next());
            match segment.step()? {
                Step::Group(records) => {
                    for (sequence, record) in records.filter(|(number, _)| *number > snapshot) {
                        self.hand_over(Loaded::Record(sequence, record))?;
                    }
                }
                Step::Lost(first) if first > snapshot + 1 => {
                    self.hand_over(Loaded::Lost(next.max(snapshot + 1)..=first - 1))?;
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
                Step::Bad(bad) => match segment.judge(&bad, following)? {
                    Verdict::Torn(torn) => {
                        self.warnings.push(Warning::Torn(torn));
                        break;
                    }
                    Verdict::Damaged(damage) => return Err(Error::Damaged(damage)),
                },
            }
            if segment.at() - told >= PIECE as u64 {
                self.progress(segment.at() - told)?;
                told = segment.at();
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
        self.progress(segment.size().saturating_sub(told))
    }

    fn hand_over(&mut self, loaded: Loaded<'_>) -> Result<(), Error> {
        (self.receive)(loaded).map_err(Error::Refused)
    }

    fn progress(&mut self, bytes: u64) -> Result<(), Error> {
        self.done = (self.done + bytes).min(self.all);
        self.hand_over(Loaded::Progress { done: self.done, all: self.all })
    }

    fn belongs(&mut self, store: u64, file: &str) -> Result<(), Error> {
        if *self.store.get_or_insert(store) == store {
            return Ok(());
        }
        let what = "it belongs to another store";
        let file = file.to_owned();
        Err(Error::Damaged(Damage { file, offset: 8, records: None, what }))
    }

    fn sizes_from(&self, sequence: Sequence) -> Result<u64, Error> {
        let names = self.contents.from(sequence).into_iter().map(|(first, _)| first);
        names.map(|first| self.size(&Kind::Segment.name(first))).sum()
    }

    fn size(&self, name: &str) -> Result<u64, Error> {
        let size = self.folder.open(name).and_then(|file| file.size());
        size.map_err(|error| Error::disk(name, "open", error))
    }
}

/// A name that is free for what is set aside.
pub(super) fn aside(folder: &dyn Folder, name: &str) -> Result<String, Error> {
    let taken = folder.list().map_err(|error| Error::disk(&folder.name(), "read", error))?;
    let plain = DAMAGED.to_owned() + name;
    let numbered = (2..).map(|number: u64| format!("{plain}.{number}"));
    let mut free =
        std::iter::once(plain.clone()).chain(numbered).filter(|name| !taken.contains(name));
    Ok(free.next().unwrap_or(plain))
}

/// No file holds these records, which were acknowledged.
pub(super) fn missing(folder: &dyn Folder, first: Sequence, last: Sequence) -> Damage {
    let what = "no file holds records that were acknowledged";
    Damage { file: folder.name(), offset: 0, records: Some(first..=last), what }
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, bytes, groups, last, synced } = self;
        write!(
            f,
            "{file} ends with an incomplete group and is cut off at byte {offset}, after record {last}"
        )?;
        match groups {
            0 => {}
            1 => f.write_str("; a complete group behind it is dropped too")?,
            more => write!(f, "; {more} complete groups behind it are dropped too")?,
        }
        match synced {
            0 => f.write_str(". No file says which records were synced")?,
            _ => write!(f, ". Records up to {synced} are known to have been synced and are there")?,
        }
        write!(
            f,
            ". If the disk keeps what it syncs, no later commit was acknowledged as durable; if it does not, up to {bytes} bytes of acknowledged records after record {last} are lost: compare the last changes with what clients were told, and restore a backup if some are missing"
        )
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn(torn) => torn.fmt(f),
            Self::Mark { what } => write!(
                f,
                "the file `synced` cannot be used ({what}): a loss at the end of the journal would not be noticed at this start. The next commit writes it anew"
            ),
            Self::Snapshot { damage, aside } => {
                write!(
                    f,
                    "{damage}; the snapshot before and the journal were used, and it is {aside} now"
                )
            }
        }
    }
}
