//! Request bodies on disk: a body too long for memory is stored in a file without a name. A thread
//! that may block writes it, one piece at a time.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::limits::{Budget, Claim, Refused, Reservation};

/// Size of the pieces that are written. The server keeps at most this much of such a body in
/// memory.
pub(crate) const PIECE: usize = 256 * 1024;

/// The name of the work that writes a piece.
pub(crate) const STORING: &str = "storing a body";

/// A body on disk. Its file has no name; the kernel deletes it when the last owner drops this.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    file: OnceLock<File>,
    length: AtomicU64,
    /// The bytes that it holds of the server's budget.
    reserved: Mutex<Reservation>,
}

impl Spool {
    /// An empty spool. The first piece creates the file in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            file: OnceLock::new(),
            length: AtomicU64::new(0),
            reserved: Mutex::default(),
        }
    }

    /// Reserves `bytes` of `budget` in total.
    pub(crate) fn reach(
        &self,
        bytes: u64,
        budget: &Arc<Budget>,
        claim: Claim<'_>,
    ) -> Result<(), Refused> {
        self.reserved().reach(bytes, budget, claim)
    }

    /// Records that the whole body has been received.
    pub(crate) fn settle(&self) {
        self.reserved().settle();
    }

    /// Whether the budget has revoked its reservation.
    pub(crate) fn is_evicted(&self) -> bool {
        self.reserved().is_evicted()
    }

    /// Revokes its reservation.
    #[cfg(test)]
    pub(crate) fn revoke(&self) {
        self.reserved().revoke();
    }

    fn reserved(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that contains the file.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Reads from `offset` into `buffer`. Returns 0 at the end.
    ///
    /// # Errors
    ///
    /// The error of the disk.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.file.get() {
            Some(file) => file.read_at(buffer, offset),
            None => Ok(0),
        }
    }

    /// Appends `piece` to the file.
    pub(crate) fn append(&self, piece: &[u8]) -> io::Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let file = unnamed_file(&self.folder)?;
                self.file.get_or_init(|| file)
            }
        };
        // Appends never run concurrently: the connection waits for each piece to be written.
        let length = self.length();
        file.write_all_at(piece, length)?;
        self.length.store(length + piece.len() as u64, Ordering::Release);
        Ok(())
    }
}

/// How a file without a name is opened.
const UNNAMED: OFlags = OFlags::TMPFILE.union(OFlags::RDWR).union(OFlags::CLOEXEC);
/// The mode of a file that only its owner may read and write.
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// A new file in `folder` without a name, or with a name that is removed at once.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    match rustix::fs::open(folder, UNNAMED, OWNER) {
        Ok(file) => Ok(file.into()),
        // Not every file system supports O_TMPFILE.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => unlinked_file(folder),
        Err(error) => Err(error.into()),
    }
}

fn unlinked_file(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".bine-body-{}-{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bine_log::test_support::ScratchFolder;

    #[test]
    fn reads_appended_pieces_from_a_file_without_name() {
        let folder = ScratchFolder::new();
        let spool = Spool::new(&folder.path(""));
        let mut buffer = [0; 8];
        assert_eq!(spool.read_at(&mut buffer, 0).unwrap(), 0);
        spool.append(b"abc").unwrap();
        spool.append(b"def").unwrap();
        assert_eq!((spool.length(), spool.read_at(&mut buffer, 1).unwrap()), (6, 5));
        assert_eq!(&buffer[..5], b"bcdef");
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
    }

    #[test]
    fn protects_a_whole_body_from_eviction() {
        let spool = Spool::new(Path::new("unused"));
        let budgets = crate::limits::Budgets::default();
        let owner = crate::quota::Owner::default();
        let claim = Claim { block: crate::ClientAddress::UNIX.block(), owner: &owner };
        spool.reach(1 << 20, &budgets.uploads, claim).unwrap();
        assert_eq!(budgets.metrics()[1].held, 1 << 20);
        assert!(spool.reserved().is_evictable() && !spool.is_evicted());
        spool.settle();
        assert!(!spool.reserved().is_evictable());
        spool.revoke();
        assert!(spool.is_evicted());
        drop(spool);
        assert_eq!(budgets.metrics()[1].held, 0);
    }

    #[test]
    fn unlinks_the_file_where_unnamed_files_are_not_supported() {
        let folder = ScratchFolder::new();
        let one = unlinked_file(&folder.path("")).unwrap();
        let other = unlinked_file(&folder.path("")).unwrap();
        one.write_all_at(b"one", 0).unwrap();
        assert_eq!(other.metadata().unwrap().len(), 0);
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
    }

    #[test]
    fn reports_a_folder_that_is_missing() {
        let folder = ScratchFolder::new();
        let missing = folder.path("missing");
        for opened in [unnamed_file(&missing), unlinked_file(&missing)] {
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
