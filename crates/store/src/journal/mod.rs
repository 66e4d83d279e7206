//! The journal: an append-only log that makes acknowledged records survive a power failure.
//!
//! A record is opaque bytes. One [`Sequence`] numbers the records of everything that uses a
//! journal. docs/formats/journal.md describes each byte on the disk.

mod backup;
mod check;
mod error;
#[cfg(test)]
mod example;
mod file;
mod folder;
mod format;
mod group;
mod memory;
mod open;
mod repair;
mod salvage;
mod segment;
mod snapshot;
mod synced;
mod times;

use std::sync::Arc;

pub use backup::{
    BackupOptions, BackupReport, BackupSummary, Link, Moment, RestoreSummary, StoredFile, Until,
    backup, check_backup, restore,
};
pub use check::{CheckedFile, Finding, Report, check};
pub use error::{Damage, Error};
pub use file::{FileJournal, Options};
pub(crate) use folder::bytes;
pub use group::MAX_GROUP_LENGTH;
pub use memory::MemoryJournal;
pub use open::{Opened, ReadFolder, RecoveryEvent, Warning};
pub use repair::{Repair, repair};
pub use segment::Torn;
pub use snapshot::MAX_BLOCK_LENGTH;

use crate::disk::File;

/// The number of a record. The first record has 1, and no number is used twice; 0 precedes all
/// records.
pub type Sequence = u64;

/// An append-only log of records.
///
/// Records collect in a group. Writing a group is one step, so many commits share one sync.
pub trait Journal: Send {
    /// Adds a record to the current group and returns its sequence. The group stays in memory.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] if the group has no room for it, [`Error::Broken`] after a disk failure.
    fn append(&mut self, record: &[u8]) -> Result<Sequence, Error>;

    /// Writes the group and returns the sequence of the last record written. With `durably`, syncs
    /// it and all groups written earlier.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: the group is discarded, and its sequences are free again; the next group
    /// may succeed. [`Error::Broken`]: the disk failed, and each later call fails too. It is
    /// unknown whether the next start finds this group; if so, it finds all of it.
    fn write(&mut self, durably: bool) -> Result<Sequence, Error>;

    /// Whether [`write`](Self::write) never waits for a disk.
    fn is_instant(&self) -> bool {
        false
    }

    /// Syncs all groups written so far, and returns the sequence of the last durable record.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`]: the disk failed, and each later call fails too.
    fn sync(&mut self) -> Result<Sequence, Error>;

    /// Ensures that a group of this length has room, and reserves it.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: the disk has no room. [`Error::Broken`].
    fn find_room(&mut self, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// The sequence of the last durable record.
    fn durable(&self) -> Sequence;

    /// The file that names the last durable record, if it has changed since the last call. The
    /// caller syncs it without holding the journal. With it a later start detects that a disk has
    /// lost synced data.
    fn unsynced_mark(&mut self) -> Option<Arc<dyn File>> {
        None
    }

    /// Begins a snapshot of everything up to `sequence`. The writer may be used on another thread
    /// while this journal continues. The journal up to `sequence` is synced first.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`], [`Error::Full`] and [`Error::Disk`]; the last two do not change the
    /// journal.
    fn snapshot(&mut self, sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, Error>;

    /// Finds the files that the finished snapshot of `sequence` makes obsolete. That snapshot, the
    /// previous one, and each record after the previous one are kept, so that two independent ways
    /// lead to the current state. The returned function removes the other files; removing long
    /// files takes a disk tens of milliseconds, during which this journal may go on.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`], also from the returned function; the journal continues, and the next call
    /// removes the remaining files.
    fn compaction(&mut self, snapshot: Sequence) -> Result<Compaction, Error>;

    /// Removes the files that [`compaction`](Self::compaction) finds at once.
    ///
    /// # Errors
    ///
    /// As [`compaction`](Self::compaction).
    fn compact(&mut self, snapshot: Sequence) -> Result<(), Error> {
        self.compaction(snapshot)?()
    }

    /// Syncs the journal and records the clean shutdown, so that the next start can distinguish
    /// damage of the last bytes from an unfinished group. After the call, even a failed one, the
    /// journal rejects all records, and another process may lock the folder.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`] and [`Error::Full`].
    fn close(&mut self) -> Result<(), Error>;
}

/// Removes the files that a snapshot has made obsolete.
pub type Compaction = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// A snapshot being written. Dropping it before [`finish`](Self::finish) discards it.
pub trait SnapshotWriter: Send {
    /// Adds a block of 1 to [`MAX_BLOCK_LENGTH`] bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::TooLong`] and [`Error::Disk`]; after an error the snapshot can
    /// only be dropped.
    fn block(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Syncs the snapshot, and then gives the file its final name.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] and [`Error::Disk`]: the snapshot does not exist, and the journal is as it
    /// was.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}
