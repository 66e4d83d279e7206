//! Opens files below a root directory and never outside it, regardless of links and renames.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

use crate::name;
use crate::rules::Rules;

/// An open directory whose files are served.
///
/// The kernel resolves each name below the open directory (`RESOLVE_BENEATH`) in the same call that
/// opens it. No time passes between check and use, a link out of the root is rejected however it is
/// spelled, and the root may be renamed while it is served.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) enum Found {
    /// A regular file, open for reading. For a directory's path it is the index, with its position
    /// in the rules.
    File(File, Metadata, Option<usize>),
    /// A directory whose path lacks the trailing slash.
    Directory,
    /// A directory without an index, to be listed.
    Unindexed,
}

/// The reason why a path cannot be served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No such file exists, or it is not readable.
    NotFound,
    /// A system call failed, so whether the file exists is unknown.
    System(io::Error),
}

/// The number of attempts to open a file. The kernel returns `EAGAIN` when a rename anywhere
/// interrupts the resolution of a link that contains `..`. This number has always been enough.
const ATTEMPTS: usize = 16;

impl Root {
    /// Opens the directory at `path`. The error contains the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let with_path = |error: Errno, what: &str| {
            let text = format!("cannot serve files from {}: {error}{what}", path.display());
            io::Error::new(io::Error::from(error).kind(), text)
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty()).map_err(|error| with_path(error, ""))?;
        // Detects a kernel or a sandbox without openat2 now, instead of responding with 404 to each
        // request.
        openat2(&directory, ".", flags, Mode::empty(), ResolveFlags::BENEATH)
            .map_err(|error| with_path(error, " (openat2 is required: use Linux 5.6 or later)"))?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// Returns the path that was passed to [`open`](Self::open).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up a decoded path.
    pub(crate) fn find(&self, path: &str, rules: &Rules) -> Result<Found, Failure> {
        let name = name::resolve(path, rules.hidden).ok_or(Failure::NotFound)?;
        if name::is_directory(name) {
            return match self.index_of(name, rules) {
                Err(Failure::NotFound) if rules.listing => {
                    self.directory(name)?;
                    Ok(Found::Unindexed)
                }
                found => found,
            };
        }
        let found = self.lookup(name)?;
        if matches!(found, Found::Directory) && !rules.listing {
            // Without an index, the redirect target would not exist.
            self.index_of(&[name, "/"].concat(), rules)?;
        }
        Ok(found)
    }

    /// Looks up the index of a directory. The directory's name is empty or ends with a slash.
    fn index_of(&self, directory: &str, rules: &Rules) -> Result<Found, Failure> {
        for (position, index) in rules.index.iter().enumerate() {
            match self.lookup(&[directory, index].concat()) {
                Ok(Found::File(file, metadata, _)) => {
                    return Ok(Found::File(file, metadata, Some(position)));
                }
                Ok(Found::Directory | Found::Unindexed) | Err(Failure::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::NotFound)
    }

    /// Opens a directory for reading. Its name is empty or ends with a slash.
    pub(crate) fn directory(&self, name: &str) -> io::Result<File> {
        let file = self.open_beneath(if name.is_empty() { "." } else { name })?;
        if file.metadata()?.is_dir() { Ok(file) } else { Err(Errno::NOTDIR.into()) }
    }

    /// Looks up a name that has no trailing slash.
    pub(crate) fn lookup(&self, name: &str) -> Result<Found, Failure> {
        let file = self.open_beneath(name)?;
        let metadata = file.metadata()?;
        match metadata.file_type() {
            kind if kind.is_file() => Ok(Found::File(file, metadata, None)),
            kind if kind.is_dir() => Ok(Found::Directory),
            _ => Err(Failure::NotFound),
        }
    }

    fn open_beneath(&self, name: &str) -> io::Result<File> {
        // Without O_NONBLOCK, opening a FIFO would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = retry(|| openat2(&self.directory, name, flags, Mode::empty(), resolve))?;
        Ok(File::from(file))
    }
}

/// Repeats a system call that was interrupted, up to [`ATTEMPTS`] calls in all.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..ATTEMPTS {
        match call() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    call()
}

impl From<io::Error> for Failure {
    /// Errors that concern the system rather than the file are not reported as 404, which clients
    /// would cache.
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(
                Errno::AGAIN
                | Errno::INTR
                | Errno::IO
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOBUFS
                | Errno::NOMEM,
            ) => Self::System(error),
            _ => Self::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn shares_root_between_threads() {
        const fn is_shared<T: Send + Sync>() {}
        is_shared::<Root>();
    }

    #[test]
    fn names_missing_root_in_error() {
        let error = Root::open(Path::new("no/such/root")).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("cannot serve files from no/such/root: "), "{error}");
    }

    #[test]
    fn rejects_root_that_is_a_file() {
        let error = Root::open(Path::new("Cargo.toml")).expect_err("it is a file");
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn does_not_pass_descriptors_to_child_processes() -> io::Result<()> {
        let root = Root::open(Path::new("."))?;
        assert!(fcntl_getfd(&root.directory)?.contains(FdFlags::CLOEXEC));
        assert!(fcntl_getfd(root.open_beneath("Cargo.toml")?)?.contains(FdFlags::CLOEXEC));
        Ok(())
    }

    #[test]
    fn retries_interrupted_calls_sixteen_times_in_all() {
        for interruption in [Errno::AGAIN, Errno::INTR] {
            for interrupted in 0..20 {
                let mut calls = 0;
                let result = retry(|| {
                    calls += 1;
                    if calls > interrupted { Ok(()) } else { Err(interruption) }
                });
                assert_eq!(result.is_ok(), interrupted < 16, "{interrupted} interruptions");
                assert_eq!(calls, 16.min(interrupted + 1));
            }
        }
    }

    #[test]
    fn does_not_retry_failed_calls() {
        let mut calls = 0;
        let result: Result<(), Errno> = retry(|| {
            calls += 1;
            Err(Errno::NOENT)
        });
        assert_eq!((result, calls), (Err(Errno::NOENT), 1));
    }

    #[test]
    fn distinguishes_system_errors_from_missing_files() {
        let failure = |errno: Errno| Failure::from(io::Error::from(errno));
        assert!(matches!(failure(Errno::MFILE), Failure::System(_)));
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::XDEV, Errno::LOOP, Errno::NAMETOOLONG] {
            assert!(matches!(failure(errno), Failure::NotFound), "{errno}");
        }
    }
}
