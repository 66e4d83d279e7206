//! The synced mark: a small file that names the last record that was synced.
//!
//! Segments and snapshots state what was synced before them, but the end of the last segment has no
//! successor. Without the mark, a disk that loses the end of that segment looks like a write that a
//! power failure interrupted. The mark is written after each sync, without its own sync: it may be
//! older than the last sync, but never newer.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::format::{HEADER_LENGTH, LAST, VERSION, checksum, long, word};
use super::{Error, Sequence};
use crate::disk::{File, Folder, read_full, write_all};

/// The file name.
pub(super) const NAME: &str = "synced";

const MAGIC: &[u8; 8] = b"BINE-SYN";

/// The mark as the journal updates it.
pub(super) struct SyncedMark {
    file: Arc<dyn File>,
    store: u64,
    /// Whether the file has changed since the last call of [`take_unsynced`](Self::take_unsynced).
    is_unsynced: bool,
}

/// The mark as a start reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MarkState {
    /// The file is missing: an earlier version wrote the journal, or no sync has happened.
    Missing,
    /// All records up to `sequence` of the store were synced.
    Mark {
        store: u64,
        sequence: Sequence,
    },
    Unreadable(&'static str),
}

impl SyncedMark {
    /// Opens or creates the file. Its name is durable after the folder's next sync.
    pub(super) fn open(folder: &dyn Folder, store: u64) -> io::Result<Self> {
        let file = match folder.open(NAME) {
            Err(error) if error.kind() == ErrorKind::NotFound => folder.create(NAME)?,
            opened => opened?,
        };
        if file.size()? > HEADER_LENGTH as u64 {
            file.truncate(0)?;
        }
        Ok(Self { file: file.into(), store, is_unsynced: false })
    }

    /// Records that everything up to this sequence is synced. After a failed write the file
    /// contains an older mark or an unreadable one; neither claims too much.
    pub(super) fn set(&mut self, sequence: Sequence) {
        let written = write_all(&*self.file, &to_bytes(self.store, sequence), 0);
        self.is_unsynced |= written.is_ok();
    }

    /// The file, if it has changed since the last call. The caller syncs it.
    pub(super) fn take_unsynced(&mut self) -> Option<Arc<dyn File>> {
        std::mem::take(&mut self.is_unsynced).then(|| Arc::clone(&self.file))
    }
}

impl MarkState {
    /// The last record of this store that is known to have been synced, or 0 without a valid mark.
    /// If no other file identifies the store, the mark is accepted.
    pub(super) fn sequence(self, of: Option<u64>) -> Sequence {
        match self {
            Self::Mark { store, sequence } if of.is_none_or(|of| of == store) => sequence,
            _ => 0,
        }
    }

    pub(super) fn store(self) -> Option<u64> {
        match self {
            Self::Mark { store, .. } => Some(store),
            _ => None,
        }
    }

    /// The reason why a start cannot use the mark, if any.
    pub(super) fn fault(self, of: Option<u64>) -> Option<&'static str> {
        match self {
            Self::Unreadable(what) => Some(what),
            Self::Mark { store, .. } if of.is_some_and(|of| of != store) => {
                Some("it belongs to another store")
            }
            _ => None,
        }
    }
}

/// Reads the mark of a folder.
///
/// # Errors
///
/// [`Error::Disk`] if the file exists and cannot be read, [`Error::Version`].
pub(super) fn read(folder: &dyn Folder) -> Result<MarkState, Error> {
    let fault = |error| Error::disk(NAME, "read", error);
    let file = match folder.open(NAME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(MarkState::Missing),
        opened => opened.map_err(fault)?,
    };
    // One extra byte detects a file that is too long.
    let mut bytes = [0; HEADER_LENGTH + 1];
    let length = read_full(&*file, &mut bytes, 0).map_err(fault)?;
    // The power failed before the first mark reached the disk.
    if length <= HEADER_LENGTH && bytes == [0; HEADER_LENGTH + 1] {
        return Ok(MarkState::Missing);
    }
    let store = long(&bytes, 8);
    if length != HEADER_LENGTH || checksum(store, &[&bytes[..28]]) != word(&bytes, 28) {
        return Ok(MarkState::Unreadable("it does not match its checksum"));
    }
    let found = word(&bytes, 24);
    if found != VERSION {
        return Err(Error::Version { file: NAME.to_owned(), found });
    }
    if bytes[..8] != *MAGIC {
        return Ok(MarkState::Unreadable("it is a file of another kind"));
    }
    let sequence = long(&bytes, 16);
    // A repair must be able to write the next sequence.
    if sequence >= LAST {
        return Ok(MarkState::Unreadable("it names a record that no journal has"));
    }
    Ok(MarkState::Mark { store, sequence })
}

/// Writes and syncs the mark of a folder that has no mark yet. The name is durable after the
/// folder's next sync.
pub(super) fn create(folder: &dyn Folder, store: u64, sequence: Sequence) -> io::Result<()> {
    let file = folder.create(NAME)?;
    write_all(&*file, &to_bytes(store, sequence), 0)?;
    file.sync_all()
}

fn to_bytes(store: u64, sequence: Sequence) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&store.to_le_bytes());
    bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
    bytes[24..28].copy_from_slice(&VERSION.to_le_bytes());
    let check = checksum(store, &[&bytes[..28]]);
    bytes[28..].copy_from_slice(&check.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Fault, SimulatedFolder};

    #[test]
    fn reads_the_last_mark_that_was_set() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        assert_eq!(read(&folder).ok(), Some(MarkState::Missing));
        let mut mark = SyncedMark::open(&folder, 7).unwrap();
        assert_eq!(read(&folder).ok(), Some(MarkState::Missing));
        assert!(mark.take_unsynced().is_none());
        mark.set(3);
        mark.set(5);
        assert!(mark.take_unsynced().is_some() && mark.take_unsynced().is_none());
        let found = read(&folder).unwrap();
        assert_eq!(found, MarkState::Mark { store: 7, sequence: 5 });
        assert_eq!(
            (found.sequence(Some(7)), found.sequence(Some(8)), found.sequence(None)),
            (5, 0, 5)
        );
        assert_eq!((found.fault(Some(7)), found.fault(None)), (None, None));
        assert_eq!(found.fault(Some(8)), Some("it belongs to another store"));
        // The next process uses the same file.
        SyncedMark::open(&folder, 7).unwrap().set(6);
        assert_eq!(read(&folder).ok(), Some(MarkState::Mark { store: 7, sequence: 6 }));
    }

    #[test]
    fn distinguishes_a_missing_mark_from_a_failing_disk() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        folder.fail(0, Fault::Broken);
        assert!(matches!(read(&folder), Err(Error::Disk { action: "read", .. })));
        folder.fail(0, Fault::Broken);
        assert!(SyncedMark::open(&folder, 7).is_err());
        assert!(folder.list().unwrap().is_empty());
        create(&folder, 7, 5).unwrap();
        assert_eq!(read(&folder).ok(), Some(MarkState::Mark { store: 7, sequence: 5 }));
        assert!(create(&folder, 7, 6).is_err(), "there is a mark");
        // The open, and the read.
        for ahead in 0..2 {
            folder.fail(ahead, Fault::Broken);
            assert!(matches!(read(&folder), Err(Error::Disk { action: "read", .. })), "{ahead}");
        }
        // A failed write is no new mark.
        let mut mark = SyncedMark::open(&folder, 7).unwrap();
        folder.fail(0, Fault::Broken);
        mark.set(8);
        assert!(mark.take_unsynced().is_none());
        assert_eq!(read(&folder).ok(), Some(MarkState::Mark { store: 7, sequence: 5 }));
    }

    #[test]
    fn ignores_a_corrupt_mark() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let whole = to_bytes(7, 5);
        for bit in 0..8 * HEADER_LENGTH {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            folder.put(NAME, &bytes);
            assert!(matches!(read(&folder), Ok(MarkState::Unreadable(_))), "{bit}");
        }
        for bytes in [&whole[..31], &[&whole[..], &[0]].concat(), &[0; HEADER_LENGTH + 1]] {
            folder.put(NAME, bytes);
            assert!(matches!(read(&folder), Ok(MarkState::Unreadable(_))));
            SyncedMark::open(&folder, 7).unwrap().set(6);
            assert_eq!(read(&folder).ok(), Some(MarkState::Mark { store: 7, sequence: 6 }));
        }
        folder.put(NAME, &[0; HEADER_LENGTH]);
        assert_eq!(read(&folder).ok(), Some(MarkState::Missing));
    }

    /// Symptom: a repair panicked. Cause: a mark with the highest sequence, which has no successor.
    /// Found by fuzzing.
    #[test]
    fn refuses_a_sequence_out_of_range() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        for (sequence, found) in [
            (LAST - 1, MarkState::Mark { store: 7, sequence: LAST - 1 }),
            (LAST, MarkState::Unreadable("it names a record that no journal has")),
            (u64::MAX, MarkState::Unreadable("it names a record that no journal has")),
        ] {
            folder.put(NAME, &to_bytes(7, sequence));
            assert_eq!(read(&folder).ok(), Some(found));
        }
    }

    #[test]
    fn refuses_a_mark_of_a_newer_version() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut bytes = to_bytes(7, 5);
        bytes[24] = 9;
        let check = checksum(7, &[&bytes[..28]]);
        bytes[28..].copy_from_slice(&check.to_le_bytes());
        folder.put(NAME, &bytes);
        let error = read(&folder).expect_err("9 is unknown");
        assert!(error.to_string().contains("version 9"), "{error}");
    }
}
