//! Decides what this room asks of an operating system: one folder, flat, and the files in it.
//!
//! The seam is narrow so that everything behind it can be tried on a disk that fails: [`RealFolder`]
//! is the system's, [`SimulatedFolder`] one in memory that tears, forgets and fills up by a seed.

mod real;
mod simulated;

use std::io::{self, ErrorKind};

pub use real::RealFolder;
pub use real::{boot, random};
pub use simulated::{Fault, SimulatedFolder};

/// A folder that holds one store. Names are plain: no separators, no folders within.
pub trait Folder: Send + Sync {
    /// What a person calls it, for messages.
    fn name(&self) -> String;

    /// The names of all files in it, in no order.
    ///
    /// # Errors
    ///
    /// The system's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    ///
    /// The system's; `NotFound` if it is not there.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    ///
    /// The system's; `AlreadyExists` if it is there.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Gives a file another name, at once: whoever had that name is gone. Durable after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// The system's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when every name made, changed or removed so far is durable.
    ///
    /// # Errors
    ///
    /// The system's. What is durable then is unknown.
    fn sync(&self) -> io::Result<()>;

    /// Locks the folder by a file of this name, for as long as the value lives or the process does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if another has it, with a message that names its process if known.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>>;

    /// How many bytes the file system has left for this process, as far as it says so; `u64::MAX` if it does not. A quota
    /// may leave less.
    ///
    /// # Errors
    ///
    /// The system's.
    fn available(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// A number nobody can guess.
    ///
    /// # Errors
    ///
    /// The system's.
    fn chance(&self) -> io::Result<u64>;
}

/// An open file. Reads and writes name their place; nothing is durable before a sync.
pub trait File: Send + Sync {
    /// Reads at most `buffer.len()` bytes at `at`; 0 only at the end of the file.
    ///
    /// # Errors
    ///
    /// The system's.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes bytes at `at`, perhaps only the first of them, and says how many.
    ///
    /// # Errors
    ///
    /// The system's; none of the bytes of this call are written then.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize>;

    /// Makes the file `length` bytes long, with room on the disk for all of them; what was not
    /// written reads as zeros.
    ///
    /// # Errors
    ///
    /// The system's; [`is_full`] tells whether only room is missing.
    fn reserve(&self, length: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes.
    ///
    /// # Errors
    ///
    /// The system's.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    ///
    /// The system's.
    fn size(&self) -> io::Result<u64>;

    /// Returns when all bytes written are durable (fdatasync).
    ///
    /// # Errors
    ///
    /// The system's. What is durable then is unknown, and asking again would be answered wrongly:
    /// the system forgets which pages it failed to write.
    fn sync_data(&self) -> io::Result<()>;

    /// The same for bytes and length (fsync).
    ///
    /// # Errors
    ///
    /// As [`sync_data`](Self::sync_data).
    fn sync_all(&self) -> io::Result<()>;
}

/// A held lock; dropping it lets go.
pub trait Lock: Send + Sync {}

/// Whether an error says that there is no room now, where there may be some later: blocks, a quota,
/// the longest file allowed, descriptors, or the system's own memory.
pub fn is_full(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    error.kind() == ErrorKind::StorageFull
        || Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

/// Writes all of the bytes, in as many steps as the system takes.
///
/// # Errors
///
/// As [`File::write_at`]; some of the bytes may be written.
pub fn write_all(file: &dyn File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, at) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills the buffer as far as the file reaches, and says how far that was.
///
/// # Errors
///
/// As [`File::read_at`].
pub fn read_full(file: &dyn File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
