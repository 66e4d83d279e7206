//! Decides where written lines end up: in a file that may be full, moved, removed or a pipe nobody
//! reads, and in which no line is ever glued to half of another.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::Timespec;

/// Where a writer's thread puts lines.
pub(super) trait Outlet: Send {
    /// Writes whole lines. What a failure left unwritten is offered again.
    fn write(&mut self, lines: &[u8]) -> Result<(), Cut>;

    /// Opens anew what can be opened anew. After a failure the old place is kept if it still is one.
    fn reopen(&mut self) -> io::Result<()>;
}

/// A failure in the midst of lines.
#[derive(Debug)]
pub(super) struct Cut {
    /// Bytes of the whole lines that were written before it.
    pub(super) written: usize,
    pub(super) error: io::Error,
}

/// A file by its path.
pub(super) struct LogFile {
    path: PathBuf,
    /// `None`: it could not be opened, or not again.
    open: Option<Open>,
    /// The last write failed, and another descriptor may do better.
    suspect: bool,
    /// When the path was last compared with what is open.
    looked: Instant,
}

struct Open {
    file: File,
    identity: Identity,
    is_pipe: bool,
    /// A line was cut short; the next begins on a line of its own.
    in_line: bool,
}

/// What tells one file from another, whatever their names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// How often the path is looked at, while there is something to write.
const LOOK: Duration = Duration::from_secs(1);
/// Lines up to this size enter a pipe whole or not at all (pipe(7)).
const ATOMIC: usize = 4096;
/// How long a full pipe is waited for before its thread looks after other things.
const FULL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl LogFile {
    /// Opens `path`, and makes it and its folder if need be. A pipe that nobody reads is no error
    /// yet: a reader may come.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let open = match Open::at(path) {
            Ok(open) => Some(open),
            Err(error) if is_unread(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path: path.to_owned(), open, suspect: false, looked: Instant::now() })
    }

    /// True when the path has come to lead elsewhere. Looks once in a while only.
    fn was_moved(&mut self) -> bool {
        let Some(open) = &self.open else { return false };
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        std::fs::metadata(&self.path).map_or(true, |there| Identity::of(&there) != open.identity)
    }
}

impl Outlet for LogFile {
    fn write(&mut self, lines: &[u8]) -> Result<(), Cut> {
        let mut opened = Ok(());
        if self.open.is_none() || self.suspect || self.was_moved() {
            opened = self.reopen();
        }
        let Some(open) = &mut self.open else {
            let error = opened.err().unwrap_or_else(|| ErrorKind::NotFound.into());
            return Err(Cut { written: 0, error });
        };
        let written = open.write(lines);
        // A full pipe has a reader, who would take a new descriptor for the end of the log.
        self.suspect = written.as_ref().is_err_and(|cut| cut.error.kind() != ErrorKind::WouldBlock);
        written?;
        // Everything is written, though perhaps not where the path leads by now.
        opened.map_err(|error| Cut { written: lines.len(), error })
    }

    fn reopen(&mut self) -> io::Result<()> {
        match Open::at(&self.path) {
            Ok(mut new) => {
                let old = self.open.as_ref().filter(|old| old.identity == new.identity);
                new.in_line = old.is_some_and(|old| old.in_line);
                self.open = Some(new);
                Ok(())
            }
            Err(error) => {
                // What was only moved still takes lines; what was removed would swallow them.
                self.open = self.open.take().filter(|old| !old.is_removed());
                Err(error)
            }
        }
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let file = open(path).or_else(|error| match path.parent() {
            Some(folder) if error.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                open(path)
            }
            _ => Err(error),
        })?;
        let found = file.metadata()?;
        let is_pipe = found.file_type().is_fifo();
        Ok(Self { file, identity: Identity::of(&found), is_pipe, in_line: false })
    }

    fn write(&mut self, lines: &[u8]) -> Result<(), Cut> {
        let mut written = 0;
        while written < lines.len() {
            let rest = &lines[written..];
            let piece = &rest[..self.piece(rest)];
            if let Err(error) = self.write_piece(piece, &mut written) {
                return Err(Cut { written, error });
            }
        }
        Ok(())
    }

    /// Length of the whole lines at the front of `rest` that are written at once.
    fn piece(&self, rest: &[u8]) -> usize {
        if !self.is_pipe || rest.len() <= ATOMIC {
            return rest.len();
        }
        let line_end = |byte: &u8| *byte == b'\n';
        let end = rest[..ATOMIC].iter().rposition(line_end);
        // One line that is longer than that may be cut.
        end.or_else(|| rest.iter().position(line_end)).map_or(rest.len(), |end| end + 1)
    }

    /// Writes whole lines, and counts in `written` those that went in whole.
    fn write_piece(&mut self, piece: &[u8], written: &mut usize) -> io::Result<()> {
        if self.in_line {
            self.put(b"\n")?;
            self.in_line = false;
        }
        let mut put = 0;
        while put < piece.len() {
            match self.put(&piece[put..]) {
                Ok(count) => put += count,
                Err(error) => {
                    let whole = piece[..put].iter().rposition(|byte| *byte == b'\n');
                    let whole = whole.map_or(0, |end| end + 1);
                    *written += whole;
                    self.in_line = put > whole;
                    return Err(error);
                }
            }
        }
        *written += piece.len();
        Ok(())
    }

    /// One write, for which a full pipe is waited for a while.
    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut has_waited = false;
        loop {
            match self.file.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !has_waited => {
                    has_waited = true;
                    // Ready, interrupted or not: the next write tells.
                    let _ = poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&FULL));
                }
                outcome => return outcome,
            }
        }
    }

    /// True when no name leads to it any more.
    fn is_removed(&self) -> bool {
        self.file.metadata().map_or(true, |file| file.nlink() == 0)
    }
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Without waiting: to open a pipe would take until it has a reader.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().append(true).create(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// A pipe without a reader (open(2)).
fn is_unread(error: &io::Error) -> bool {
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

    /// Lets the next write compare path and file without waiting for a second to pass.
    fn write(target: &mut LogFile, lines: &[u8]) -> Result<(), Cut> {
        target.looked -= LOOK;
        target.write(lines)
    }

    #[test]
    fn reopens_path_after_file_was_moved_or_removed() {
        let folder = ScratchFolder::new();
        let (path, moved) = (folder.path("log"), folder.path("log.1"));
        let mut target = LogFile::open(&path).unwrap();
        write(&mut target, b"a\n").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        write(&mut target, b"b\n").unwrap();
        assert_eq!((read(&moved), read(&path)), ("a\n".to_owned(), "b\n".to_owned()));
        std::fs::remove_file(&path).unwrap();
        write(&mut target, b"c\n").unwrap();
        assert_eq!(read(&path), "c\n");
    }

    #[test]
    fn recreates_removed_folder() {
        let folder = ScratchFolder::new();
        let path = folder.path("deep/er/log");
        let mut target = LogFile::open(&path).unwrap();
        std::fs::remove_dir_all(folder.path("deep")).unwrap();
        write(&mut target, b"a\n").unwrap();
        assert_eq!(read(&path), "a\n");
    }

    #[test]
    fn writes_to_moved_file_until_new_one_opens() {
        let folder = ScratchFolder::new();
        let (path, moved) = (folder.path("log"), folder.path("log.1"));
        let mut target = LogFile::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        let cut = write(&mut target, b"a\n").unwrap_err();
        assert_eq!((cut.written, cut.error.kind()), (2, ErrorKind::IsADirectory));
        assert_eq!(read(&moved), "a\n");
        std::fs::remove_file(&moved).unwrap();
        let cut = write(&mut target, b"b\n").unwrap_err();
        assert_eq!(cut.written, 0, "nobody would ever read it");
        std::fs::remove_dir(&path).unwrap();
        write(&mut target, b"b\n").unwrap();
        assert_eq!(read(&path), "b\n");
    }

    #[test]
    fn does_not_block_on_unread_pipe() {
        let folder = ScratchFolder::new();
        let path = folder.pipe();
        let mut target = LogFile::open(&path).unwrap();
        assert!(is_unread(&target.write(b"a\n").unwrap_err().error));
        let mut reader = OpenOptions::new();
        let reader = reader.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let mut reader = reader.open(&path).unwrap();
        target.write(b"a\n").unwrap();
        let mut read = [0; 8];
        assert_eq!(reader.read(&mut read).unwrap(), 2);
        // It is there, and does not read: only whole lines have gone in.
        let lines = b"0123456789abcdefghijklmnopqrstuvwxyz\n".repeat(10_000);
        let cut = target.write(&lines).unwrap_err();
        assert_eq!(cut.error.kind(), ErrorKind::WouldBlock);
        assert!(cut.written > 0 && cut.written.is_multiple_of(37) && cut.written < lines.len());
        assert!(target.open.as_ref().is_some_and(|open| !open.in_line));
        drop(reader);
        assert_eq!(target.write(b"a\n").unwrap_err().error.kind(), ErrorKind::BrokenPipe);
    }

    /// A disk that became full in the midst of a line, and was not full a moment later, left half a
    /// line with the next glued to it: both were lost to whoever read the log.
    #[test]
    fn starts_new_line_after_partial_write() {
        let folder = ScratchFolder::new();
        let path = folder.path("log");
        let mut target = LogFile::open(&path).unwrap();
        let open = target.open.as_mut().unwrap();
        open.file.write_all(b"ha").unwrap();
        open.in_line = true;
        target.suspect = true;
        target.write(b"half\nwhole\n").unwrap();
        assert_eq!(read(&path), "ha\nhalf\nwhole\n");
        // Another file has no such half.
        target.open.as_mut().unwrap().in_line = true;
        std::fs::remove_file(&path).unwrap();
        write(&mut target, b"new\n").unwrap();
        assert_eq!(read(&path), "new\n");
    }

    #[test]
    fn resumes_partial_write_after_full_disk() {
        let name = "log_file::tests::resumes_partial_write_after_full_disk";
        let Some(disk) = ScratchFolder::small_disk(name) else { return };
        let path = disk.path("log");
        let mut target = LogFile::open(&path).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        let lines = line.repeat(2000);
        let cut = target.write(lines.as_bytes()).unwrap_err();
        assert_eq!(cut.error.kind(), ErrorKind::StorageFull);
        assert_eq!(cut.written % 100, 0);
        let half = read(&path).len() - cut.written;
        assert!(half > 0 && half < 100, "{half}");
        std::fs::remove_file(disk.path("ballast")).unwrap();
        target.write(&lines.as_bytes()[cut.written..]).unwrap();
        let text = read(&path);
        assert_eq!(text.lines().filter(|each| each.len() == 99).count(), 2000);
        assert_eq!(text.lines().count(), 2001);
    }
}
