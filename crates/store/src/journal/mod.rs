//! Decides how what was acknowledged outlives the machine.
//!
//! A record is opaque bytes; one [`Sequence`] counts the records of everything that uses a journal.
//! What lies on the disk is told byte by byte in docs/formats/journal.md.

mod check;
mod error;
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

use std::sync::Arc;

pub use check::{Checked, Finding, Report, check};
pub use error::{Damage, Error};
pub use file::{FileJournal, Options};
pub(crate) use folder::bytes;
pub use group::LONGEST_GROUP;
pub use memory::MemoryJournal;
pub use open::{Loaded, Opened, Torn, Warning};

pub use repair::{Repair, repair};
pub use snapshot::LONGEST_BLOCK;

use crate::disk::File;

/// The number of a record: the first is 1, and none is used twice. 0 is before all of them.
pub type Sequence = u64;

/// What keeps records in order.
///
/// Records gather in a group; writing it is one step, so many commits share one wait for the disk.
pub trait Journal: Send {
    /// Adds a record to the group under way and says which number it will have. Nothing is written
    /// yet.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] if the group has no place for it, [`Error::Broken`] after the disk failed.
    fn append(&mut self, record: &[u8]) -> Result<Sequence, Error>;

    /// Writes the group, makes it durable if `durably`, and says the number of the last record
    /// written. What was written and not made durable earlier is durable then as well.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: the group is taken back, its numbers with it, and will not come back; the
    /// journal tries again with the next group. [`Error::Broken`]: the disk failed, and so does
    /// every later call. Whether this group is found at the next start, whole, is unknown.
    fn write(&mut self, durably: bool) -> Result<Sequence, Error>;

    /// Whether [`write`](Self::write) waits for nothing.
    fn is_instant(&self) -> bool {
        false
    }

    /// Makes all groups written so far durable, and says the number of the last record in them.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`]: the disk failed, and so does every later call.
    fn sync(&mut self) -> Result<Sequence, Error>;

    /// Makes sure that there is room for a group of so many bytes, and reserves it.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: there is none. [`Error::Broken`].
    fn find_room(&mut self, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// The number of the last record that is durable.
    fn durable(&self) -> Sequence;

    /// The file that names the last durable record, if it has changed since the last call. A sync of it, which the caller
    /// makes without holding the journal, lets a later start notice that a disk has lost what it had synced.
    fn unsynced_mark(&mut self) -> Option<Arc<dyn File>> {
        None
    }

    /// A writer for a snapshot of everything up to `sequence`, which may be used on another thread
    /// while this journal goes on. The journal up to there is made durable first.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`], [`Error::Full`] and [`Error::Disk`]; the last two leave all as it was.
    fn snapshot(&mut self, sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, Error>;

    /// Finds what the finished snapshot of `sequence` makes needless. It, the one before and every
    /// record after that one stay, so that there are always two ways to the present. What is
    /// returned removes the rest; to remove long files takes a disk tens of milliseconds, and this
    /// journal may go on meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`], also of what is returned; the journal goes on, and the next call removes
    /// what this one left.
    fn compaction(&mut self, snapshot: Sequence) -> Result<Compaction, Error>;

    /// Removes at once what [`compaction`](Self::compaction) finds.
    ///
    /// # Errors
    ///
    /// Its own.
    fn compact(&mut self, snapshot: Sequence) -> Result<(), Error> {
        self.compaction(snapshot)?()
    }

    /// Makes everything durable and says so on the disk, so that the next start can tell a change
    /// of the last bytes from a group that was never finished. However that goes, nothing is taken
    /// afterwards, and another may have what this one kept for itself.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`] and [`Error::Full`].
    fn close(&mut self) -> Result<(), Error>;
}

/// Removes the files that a snapshot has made needless.
pub type Compaction = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// A snapshot that is being written. Dropped before [`finish`](Self::finish), it never was.
pub trait SnapshotWriter: Send {
    /// Adds a block of 1 to [`LONGEST_BLOCK`] bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::TooLong`] and [`Error::Disk`]; the snapshot can only be dropped then.
    fn block(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Makes the snapshot durable and gives it its name, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] and [`Error::Disk`]: there is no snapshot, and the journal is as it was.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}
