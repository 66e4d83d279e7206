//! The file of a log: follows its path after a rotation, resumes after a full disk, and writes to a
//! pipe without blocking. A partial line stays on a line by itself.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::Timespec;

/// The destination of the lines of a writer's thread.
pub(super) trait Sink: Send {
    /// Writes whole lines. After an error the thread passes the unwritten lines again.
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError>;

    /// Reopens the destination, if it can be reopened. If that fails, the sink keeps the old
    /// destination as long as it is usable.
    fn reopen(&mut self) -> io::Result<()>;
}

/// A failed write.
#[derive(Debug)]
pub(super) struct WriteError {
    /// Bytes of the whole lines that were written before the error.
    pub(super) written: usize,
    pub(super) error: io::Error,
}

/// A log file and its path.
pub(super) struct LogFile {
    path: PathBuf,
    /// `None` if the file could not be opened or reopened.
    file: Option<OpenFile>,
    /// Whether the last write failed, so that the next one reopens the path first.
    must_reopen: bool,
    /// When the path was last compared with the open file.
    checked_at: Instant,
}

struct OpenFile {
    file: File,
    id: FileId,
    is_pipe: bool,
    /// Whether the last write ended within a line. The next write then begins a new line.
    ends_mid_line: bool,
}

/// The identity of a file, independent of its path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// The shortest time between two comparisons of the path with the open file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A write of at most this size to a pipe is atomic (pipe(7)).
const PIPE_BUF: usize = 4096;
/// How long a write waits for a full pipe before it fails, so that the thread can handle a reopen
/// or a close.
const FULL_PIPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl LogFile {
    /// Opens `path`, and creates the file and its folder if necessary. A pipe without a reader is
    /// not an error: a process may open it later.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = match OpenFile::open(path) {
            Ok(file) => Some(file),
            Err(error) if has_no_reader(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path: path.to_owned(), file, must_reopen: false, checked_at: Instant::now() })
    }

    /// Whether the path now names a different file or none. Checks at most once per
    /// [`CHECK_INTERVAL`].
    fn was_moved(&mut self) -> bool {
        let Some(file) = &self.file else { return false };
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return false;
        }
        self.checked_at = Instant::now();
        std::fs::metadata(&self.path).map_or(true, |found| FileId::of(&found) != file.id)
    }
}

impl Sink for LogFile {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let mut reopened = Ok(());
        if self.file.is_none() || self.must_reopen || self.was_moved() {
            reopened = self.reopen();
        }
        let Some(file) = &mut self.file else {
            let error = reopened.err().unwrap_or_else(|| ErrorKind::NotFound.into());
            return Err(WriteError { written: 0, error });
        };
        let outcome = file.write(lines);
        // A full pipe has a reader. Reopening it would close the old descriptor, which the reader
        // sees as the end of the log.
        let is_fault = |failure: &WriteError| failure.error.kind() != ErrorKind::WouldBlock;
        self.must_reopen = outcome.as_ref().is_err_and(is_fault);
        outcome?;
        // All lines are written, but if the reopen failed, not to the file that the path names now.
        reopened.map_err(|error| WriteError { written: lines.len(), error })
    }

    fn reopen(&mut self) -> io::Result<()> {
        match OpenFile::open(&self.path) {
            Ok(mut new) => {
                let old = self.file.as_ref().filter(|old| old.id == new.id);
                new.ends_mid_line = old.is_some_and(|old| old.ends_mid_line);
                self.file = Some(new);
                Ok(())
            }
            Err(error) => {
                // A moved file still accepts lines. Lines in a removed file would be lost.
                self.file = self.file.take().filter(|old| !old.is_removed());
                Err(error)
            }
        }
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path).or_else(|error| match path.parent() {
            Some(folder) if error.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                open(path)
            }
            _ => Err(error),
        })?;
        let found = file.metadata()?;
        let is_pipe = found.file_type().is_fifo();
        Ok(Self { file, id: FileId::of(&found), is_pipe, ends_mid_line: false })
    }

    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let mut written = 0;
        while written < lines.len() {
            let rest = &lines[written..];
            let piece = &rest[..self.next_piece(rest)];
            if let Err(error) = self.write_piece(piece, &mut written) {
                return Err(WriteError { written, error });
            }
        }
        Ok(())
    }

    /// Returns the length of the whole lines at the start of `rest` to write at once.
    fn next_piece(&self, rest: &[u8]) -> usize {
        if !self.is_pipe || rest.len() <= PIPE_BUF {
            return rest.len();
        }
        let line_end = |byte: &u8| *byte == b'\n';
        let end = rest[..PIPE_BUF].iter().rposition(line_end);
        // A line that is longer than `PIPE_BUF` may be written partially.
        end.or_else(|| rest.iter().position(line_end)).map_or(rest.len(), |end| end + 1)
    }

    /// Writes whole lines, and adds the bytes of completely written lines to `written`.
    fn write_piece(&mut self, piece: &[u8], written: &mut usize) -> io::Result<()> {
        if self.ends_mid_line {
            self.write_once(b"\n")?;
            self.ends_mid_line = false;
        }
        let mut done = 0;
        while done < piece.len() {
            match self.write_once(&piece[done..]) {
                Ok(count) => done += count,
                Err(error) => {
                    let whole = piece[..done].iter().rposition(|byte| *byte == b'\n');
                    let whole = whole.map_or(0, |end| end + 1);
                    *written += whole;
                    self.ends_mid_line = done > whole;
                    return Err(error);
                }
            }
        }
        *written += piece.len();
        Ok(())
    }

    /// Performs one write. If a pipe is full, waits for room for at most [`FULL_PIPE_WAIT`].
    fn write_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut has_waited = false;
        loop {
            match self.file.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !has_waited => {
                    has_waited = true;
                    // The next write shows whether the pipe has room, so the result is not needed.
                    let _ =
                        poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&FULL_PIPE_WAIT));
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether the file has no path any more.
    fn is_removed(&self) -> bool {
        self.file.metadata().map_or(true, |file| file.nlink() == 0)
    }
}

impl FileId {
    fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Opens `path` without blocking. A blocking open of a pipe would wait until the pipe has a reader.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().append(true).create(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Whether a pipe could not be opened because it has no reader (open(2)).
fn has_no_reader(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NXIO)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::test_support::ScratchFolder;

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    /// Writes after an immediate comparison of the path with the file.
    fn write(log: &mut LogFile, lines: &[u8]) -> Result<(), WriteError> {
        log.checked_at -= CHECK_INTERVAL;
        log.write(lines)
    }

    #[test]
    fn reopens_path_after_file_was_moved_or_removed() {
        let folder = ScratchFolder::new();
        let (path, moved) = (folder.path("log"), folder.path("log.1"));
        let mut log = LogFile::open(&path).unwrap();
        write(&mut log, b"a\n").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        write(&mut log, b"b\n").unwrap();
        assert_eq!((read(&moved), read(&path)), ("a\n".to_owned(), "b\n".to_owned()));
        std::fs::remove_file(&path).unwrap();
        write(&mut log, b"c\n").unwrap();
        assert_eq!(read(&path), "c\n");
    }

    /// Comparing the path costs a system call, so a moved file gets the lines of a second at most.
    #[test]
    fn compares_path_once_per_interval() {
        let folder = ScratchFolder::new();
        let (path, moved) = (folder.path("log"), folder.path("log.1"));
        let mut log = LogFile::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        // As if the last comparison had been in the future, so that the interval cannot end.
        log.checked_at += Duration::from_hours(1);
        log.write(b"a\n").unwrap();
        assert_eq!(read(&moved), "a\n");
        log.checked_at -= Duration::from_hours(1);
        write(&mut log, b"b\n").unwrap();
        assert_eq!((read(&moved), read(&path)), ("a\n".to_owned(), "b\n".to_owned()));
    }

    #[test]
    fn recreates_removed_folder() {
        let folder = ScratchFolder::new();
        let path = folder.path("deep/er/log");
        let mut log = LogFile::open(&path).unwrap();
        std::fs::remove_dir_all(folder.path("deep")).unwrap();
        write(&mut log, b"a\n").unwrap();
        assert_eq!(read(&path), "a\n");
    }

    /// A folder is created only if it does not exist, so the error names the real fault.
    #[test]
    fn rejects_path_below_a_file() {
        let folder = ScratchFolder::new();
        std::fs::write(folder.path("file"), "").unwrap();
        let error = LogFile::open(&folder.path("file/log")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn writes_to_moved_file_until_new_one_opens() {
        let folder = ScratchFolder::new();
        let (path, moved) = (folder.path("log"), folder.path("log.1"));
        let mut log = LogFile::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        let failure = write(&mut log, b"a\n").unwrap_err();
        assert_eq!((failure.written, failure.error.kind()), (2, ErrorKind::IsADirectory));
        assert_eq!(read(&moved), "a\n");
        std::fs::remove_file(&moved).unwrap();
        let failure = write(&mut log, b"b\n").unwrap_err();
        assert_eq!(failure.written, 0, "a removed file has no reader");
        std::fs::remove_dir(&path).unwrap();
        write(&mut log, b"b\n").unwrap();
        assert_eq!(read(&path), "b\n");
    }

    #[test]
    fn does_not_block_on_unread_pipe() {
        let folder = ScratchFolder::new();
        let path = folder.pipe();
        let mut log = LogFile::open(&path).unwrap();
        assert!(has_no_reader(&log.write(b"a\n").unwrap_err().error));
        let mut reader = OpenOptions::new();
        let reader = reader.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let mut reader = reader.open(&path).unwrap();
        log.write(b"a\n").unwrap();
        let mut read = [0; 8];
        assert_eq!(reader.read(&mut read).unwrap(), 2);
        // The reader does not read: only whole lines are written.
        let lines = b"0123456789abcdefghijklmnopqrstuvwxyz\n".repeat(10_000);
        let started = Instant::now();
        let failure = log.write(&lines).unwrap_err();
        // A lower bound, which holds on any machine: without the wait, the thread of the log would
        // use a core until the reader reads.
        assert!(started.elapsed() >= Duration::try_from(FULL_PIPE_WAIT).unwrap());
        assert_eq!(failure.error.kind(), ErrorKind::WouldBlock);
        assert!(
            failure.written > 0
                && failure.written.is_multiple_of(37)
                && failure.written < lines.len()
        );
        assert!(log.file.as_ref().is_some_and(|file| !file.ends_mid_line));
        // The reader would take a reopen for the end of the log.
        assert!(!log.must_reopen);
        drop(reader);
        assert_eq!(log.write(b"a\n").unwrap_err().error.kind(), ErrorKind::BrokenPipe);
        assert!(log.must_reopen);
    }

    /// Symptom: after a full disk, a log reader could parse neither the partial line nor the next
    /// one. Cause: the next line was appended directly to the partial line. Fix: the writer ends
    /// the partial line first.
    #[test]
    fn starts_new_line_after_partial_write() {
        let folder = ScratchFolder::new();
        let path = folder.path("log");
        let mut log = LogFile::open(&path).unwrap();
        let open = log.file.as_mut().unwrap();
        open.file.write_all(b"ha").unwrap();
        open.ends_mid_line = true;
        log.must_reopen = true;
        log.write(b"half\nwhole\n").unwrap();
        assert_eq!(read(&path), "ha\nhalf\nwhole\n");
        // A different file has no partial line.
        log.file.as_mut().unwrap().ends_mid_line = true;
        std::fs::remove_file(&path).unwrap();
        write(&mut log, b"new\n").unwrap();
        assert_eq!(read(&path), "new\n");
    }

    #[test]
    fn resumes_partial_write_after_full_disk() {
        let name = "log_file::tests::resumes_partial_write_after_full_disk";
        let Some(disk) = ScratchFolder::small_disk(name) else { return };
        let path = disk.path("log");
        let mut log = LogFile::open(&path).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        let lines = line.repeat(2000);
        let failure = log.write(lines.as_bytes()).unwrap_err();
        assert_eq!(failure.error.kind(), ErrorKind::StorageFull);
        assert_eq!(failure.written % 100, 0);
        let partial = read(&path).len() - failure.written;
        assert!(partial > 0 && partial < 100, "{partial}");
        std::fs::remove_file(disk.path("ballast")).unwrap();
        log.write(&lines.as_bytes()[failure.written..]).unwrap();
        let text = read(&path);
        assert_eq!(text.lines().filter(|each| each.len() == 99).count(), 2000);
        assert_eq!(text.lines().count(), 2001);
    }
}
