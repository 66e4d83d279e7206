//! The store's interface to the file system: one flat folder and its files.
//!
//! The interface is narrow so that tests can run the whole store on a failing disk: [`RealFolder`]
//! uses the operating system, [`SimulatedFolder`] is an in-memory folder that tears writes, loses
//! unsynced data and fills up, driven by a seed.

mod real;
mod simulated;

use std::io::{self, ErrorKind};

use crate::time::Time;

pub use real::RealFolder;
pub use real::{boot_id, random};
pub use simulated::{Fault, SimulatedFolder};

/// A folder that holds one store. File names contain no separators, and there are no subfolders.
pub trait Folder: Send + Sync {
    /// The folder's name in messages.
    fn name(&self) -> String;

    /// The names of all files, in any order.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    ///
    /// An I/O error of the system; `NotFound` if the file does not exist.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Creates a new file.
    ///
    /// # Errors
    ///
    /// An I/O error of the system; `AlreadyExists` if the file exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Renames a file atomically, and replaces a file with the new name. Durable after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all created, renamed and removed names durable.
    ///
    /// # Errors
    ///
    /// An I/O error of the system. It is then unknown which names are durable.
    fn sync(&self) -> io::Result<()>;

    /// Locks the folder with a lock file of this name, until the value is dropped or the process
    /// ends.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if a different process holds the lock; the message is its process
    /// id if known.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>>;

    /// The free bytes of the file system, `u64::MAX` if unknown. A quota may allow less.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn available(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// The time of the system's clock, at most some milliseconds ago.
    fn now(&self) -> Time {
        Time::now()
    }

    /// An unpredictable number.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn random_number(&self) -> io::Result<u64>;
}

/// An open file. Reads and writes take an offset; writes are durable after a sync.
pub trait File: Send + Sync {
    /// Reads at most `buffer.len()` bytes at `at`. Returns 0 only at the end of the file.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes bytes at `at`, possibly fewer than given, and returns how many.
    ///
    /// # Errors
    ///
    /// An I/O error of the system; the call then wrote no byte.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize>;

    /// Extends the file to `length` bytes and allocates their disk space. Unwritten bytes read as
    /// zero.
    ///
    /// # Errors
    ///
    /// An I/O error of the system; [`is_full`] detects a lack of room.
    fn reserve(&self, length: u64) -> io::Result<()>;

    /// Truncates the file to `length` bytes.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    fn size(&self) -> io::Result<u64>;

    /// Makes all written bytes durable (fdatasync).
    ///
    /// # Errors
    ///
    /// An I/O error of the system. It is then unknown which bytes are durable, and a second sync
    /// may report success wrongly: the system forgets which pages it failed to write.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes bytes and length durable (fsync).
    ///
    /// # Errors
    ///
    /// As [`sync_data`](Self::sync_data).
    fn sync_all(&self) -> io::Result<()>;
}

/// A held lock, released on drop.
pub trait Lock: Send + Sync {}

/// Whether an error is a lack of room that may pass: blocks, a quota, the file size limit, file
/// descriptors, or kernel memory.
pub fn is_full(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    error.kind() == ErrorKind::StorageFull
        || Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

/// Writes all bytes, with as many calls as needed.
///
/// # Errors
///
/// As [`File::write_at`]; a part of the bytes may be written.
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

/// Reads until the buffer is full or the file ends, and returns the number of bytes read.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rustix::io::Errno;

    use super::*;

    /// A file whose calls transfer at most the scripted number of bytes, or fail.
    struct Scripted {
        bytes: Mutex<Vec<u8>>,
        results: Mutex<Vec<Result<usize, ErrorKind>>>,
    }

    impl Scripted {
        fn new(bytes: &[u8], results: &[Result<usize, ErrorKind>]) -> Self {
            let results = results.iter().rev().copied().collect();
            Self { bytes: Mutex::new(bytes.to_vec()), results: Mutex::new(results) }
        }

        fn next(&self) -> io::Result<usize> {
            Ok(self.results.lock().unwrap().pop().expect("no further call")?)
        }
    }

    impl File for Scripted {
        fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
            let length = self.next()?;
            buffer[..length].copy_from_slice(&self.bytes.lock().unwrap()[at as usize..][..length]);
            Ok(length)
        }

        fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
            let length = self.next()?;
            self.bytes.lock().unwrap()[at as usize..][..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn reserve(&self, _: u64) -> io::Result<()> {
            unreachable!()
        }

        fn truncate(&self, _: u64) -> io::Result<()> {
            unreachable!()
        }

        fn size(&self) -> io::Result<u64> {
            unreachable!()
        }

        fn sync_data(&self) -> io::Result<()> {
            unreachable!()
        }

        fn sync_all(&self) -> io::Result<()> {
            unreachable!()
        }
    }

    const INTERRUPTED: Result<usize, ErrorKind> = Err(ErrorKind::Interrupted);

    #[test]
    fn writes_all_bytes_with_several_calls() {
        let file = Scripted::new(b"........", &[Ok(2), INTERRUPTED, Ok(3)]);
        write_all(&file, b"abcde", 1).unwrap();
        assert_eq!(*file.bytes.lock().unwrap(), b".abcde..");
        assert!(file.results.lock().unwrap().is_empty());
        let kind = |results: &[_]| {
            write_all(&Scripted::new(b"..", results), b"ab", 0).map_err(|error| error.kind())
        };
        assert_eq!(kind(&[Ok(1), Ok(0)]), Err(ErrorKind::WriteZero));
        assert_eq!(kind(&[Ok(1), Err(ErrorKind::StorageFull)]), Err(ErrorKind::StorageFull));
    }

    #[test]
    fn reads_until_the_buffer_is_full_or_the_file_ends() {
        let read = |results: &[_]| {
            let (file, mut buffer) = (Scripted::new(b".abcde..", results), [0; 5]);
            let length = read_full(&file, &mut buffer, 1).map_err(|error| error.kind())?;
            assert!(file.results.lock().unwrap().is_empty());
            Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        assert_eq!(read(&[Ok(2), INTERRUPTED, Ok(3)]), Ok("abcde".to_owned()));
        assert_eq!(read(&[Ok(2), Ok(0)]), Ok("ab".to_owned()));
        assert_eq!(read(&[Ok(2), Err(ErrorKind::Other)]), Err(ErrorKind::Other));
    }

    #[test]
    fn distinguishes_lack_of_room_from_failure() {
        for errno in
            [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE, Errno::NOMEM]
        {
            assert!(is_full(&errno.into()), "{errno}");
        }
        assert!(is_full(&ErrorKind::StorageFull.into()));
        for errno in [Errno::IO, Errno::ROFS, Errno::ACCESS, Errno::NOENT] {
            assert!(!is_full(&errno.into()), "{errno}");
        }
    }
}
