//! Decides where a body is kept that is too long for memory: in a file without a name, written a
//! piece at a time by whoever may block.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::limits::{Budget, Claim, Refused, Reservation};

/// A piece of a body that is worth a write, and the most of it that stays in memory.
pub(crate) const PIECE: usize = 256 * 1024;

/// A body on disk. Its file has no name and goes with the last owner.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    file: OnceLock<File>,
    length: AtomicU64,
    /// What it holds of the server's budget.
    reserved: Mutex<Reservation>,
}

impl Spool {
    /// Nothing yet; the file is made in `folder` when the first piece comes.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            file: OnceLock::new(),
            length: AtomicU64::new(0),
            reserved: Mutex::default(),
        }
    }

    /// Has `bytes` of `budget` reserved for it.
    pub(crate) fn reach(
        &self,
        bytes: u64,
        budget: &Arc<Budget>,
        claim: Claim<'_>,
    ) -> Result<(), Refused> {
        self.reserved().reach(bytes, budget, claim)
    }

    /// The whole body is there.
    pub(crate) fn settle(&self) {
        self.reserved().settle();
    }

    /// Whether others need what it holds.
    pub(crate) fn is_evicted(&self) -> bool {
        self.reserved().is_evicted()
    }

    fn reserved(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that has its file.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Reads from `offset` into `buffer`; 0 bytes are read at the end.
    ///
    /// # Errors
    ///
    /// The disk's.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.file.get() {
            Some(file) => file.read_at(buffer, offset),
            None => Ok(0),
        }
    }

    /// Keeps `piece` behind what is there.
    pub(crate) fn append(&self, piece: &[u8]) -> io::Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let made = nameless(&self.folder)?;
                self.file.get_or_init(|| made)
            }
        };
        // One piece at a time: its connection waits for it.
        let length = self.length();
        file.write_all_at(piece, length)?;
        self.length.store(length + piece.len() as u64, Ordering::Release);
        Ok(())
    }
}

/// A new file in `folder` that has no name, or had one only for a moment.
fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Not every file system has them.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => named_for_a_moment(folder),
        Err(error) => Err(error.into()),
    }
}

fn named_for_a_moment(folder: &Path) -> io::Result<File> {
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
    fn pieces_are_read_as_they_were_written_and_leave_no_name() {
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
    fn where_no_nameless_files_are_a_name_lasts_for_a_moment() {
        let folder = ScratchFolder::new();
        let one = named_for_a_moment(&folder.path("")).unwrap();
        let other = named_for_a_moment(&folder.path("")).unwrap();
        one.write_all_at(b"one", 0).unwrap();
        assert_eq!(other.metadata().unwrap().len(), 0);
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
    }
}
