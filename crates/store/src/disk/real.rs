//! The store's folder on Linux.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::GetRandomFlags;

use super::{File, Folder, Lock, read_full, write_all};
use crate::time::Time;

/// A folder of the file system. It is held open, so renaming it has no effect on the store.
pub struct RealFolder {
    path: PathBuf,
    folder: OwnedFd,
    /// How `open` opens files.
    access: OFlags,
}

/// Only the owner may read the files: rows may contain secrets.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
/// Written where the file system does not support `fallocate`.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

impl RealFolder {
    /// Opens the folder at `path`, and creates it with its parents if it does not exist.
    ///
    /// # Errors
    ///
    /// An I/O error of the system, with the path.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        fs::create_dir_all(path).map_err(|error| cannot_open(path, &error))?;
        let opened = Self::open_existing(path, OFlags::RDWR)?;
        // The folder's own name must survive a power failure too. Some file systems reject this
        // sync.
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = fs::File::open(parent).and_then(|parent| parent.sync_all());
        }
        Ok(opened)
    }

    /// Opens an existing folder whose files are only read. A server may use it meanwhile.
    ///
    /// # Errors
    ///
    /// An I/O error of the system, with the path.
    pub fn open_read_only(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_existing(path.as_ref(), OFlags::RDONLY)
    }

    fn open_existing(path: &Path, access: OFlags) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|errno| cannot_open(path, &errno.into()))?;
        Ok(Self { path: path.to_owned(), folder, access })
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<RealFile> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(&self.folder, name, flags, OWNER_ONLY);
        Ok(RealFile(retry_on_intr(open)?))
    }
}

fn cannot_open(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display()))
}

impl RealFolder {
    fn acquire_lock(&self, name: &str) -> io::Result<HeldLock> {
        let file = self.open_with(name, OFlags::RDWR | OFlags::CREATE)?;
        let lock = || rustix::fs::flock(&file.0, FlockOperation::NonBlockingLockExclusive);
        match retry_on_intr(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = [0; 20];
                let length = read_full(&file, &mut text, 0)?;
                let process = std::str::from_utf8(&text[..length]).unwrap_or_default().trim();
                return Err(io::Error::new(ErrorKind::WouldBlock, process.to_owned()));
            }
            Err(errno) => return Err(errno.into()),
        }
        // The process id serves a second process's error message; on a full disk the file is empty.
        let process = format!("{}\n", std::process::id());
        let _ = file.truncate(0).and_then(|()| write_all(&file, process.as_bytes(), 0));
        Ok(HeldLock(file))
    }
}

impl Folder for RealFolder {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            // File names of the store are valid UTF-8.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        names.retain(|name| name != "." && name != "..");
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(Box::new(self.open_with(name, self.access)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(Box::new(self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.folder))?)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(self.acquire_lock(name)?))
    }

    fn available(&self) -> io::Result<u64> {
        let stats = rustix::fs::fstatvfs(&self.folder)?;
        Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
    }

    fn now(&self) -> Time {
        // The time of the last tick: the journal reads it for each group, and the exact one costs
        // several times as much.
        let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Time(time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1000))
    }

    fn random_number(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Fills at most 256 bytes with unpredictable data.
///
/// # Panics
///
/// The system has no random source, which Linux has had since 2014.
pub fn random(bytes: &mut [u8]) {
    fill(bytes).expect("the system's own source");
}

/// The id of the system's current boot: data that an earlier boot wrote may not have reached the
/// disk. `None` if it is unknown.
pub fn boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: Vec<u8> = text.trim().bytes().filter(|byte| *byte != b'-').collect();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    (digits.len() == 32).then_some(id)
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    // Requests of up to 256 bytes are not interrupted halfway.
    retry_on_intr(|| rustix::rand::getrandom(&mut *bytes, GetRandomFlags::empty()))?;
    Ok(())
}

struct RealFile(OwnedFd);

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.0, buffer, at)?)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.0, bytes, at)?)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let reserve = || rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, length);
        match retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP) => {
                let mut at = self.size()?;
                while at < length {
                    let piece = (length - at).min(ZEROS.len() as u64);
                    write_all(self, &ZEROS[..piece as usize], at)?;
                    at += piece;
                }
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::ftruncate(&self.0, length))?)
    }

    fn size(&self) -> io::Result<u64> {
        let size = rustix::fs::fstat(&self.0)?.st_size;
        Ok(u64::try_from(size).unwrap_or_default())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&self.0))?)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.0))?)
    }
}

/// A held lock. It belongs to the open file, which a child process shares from its fork to its exec:
/// closing the file would keep the lock until then.
struct HeldLock(RealFile);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // If this fails, the lock ends with the open file.
        let _ = rustix::fs::flock(&self.0.0, FlockOperation::Unlock);
    }
}

impl Lock for HeldLock {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: a folder was in use by the same process after its store was closed. Cause: a child
    /// process that was started at that moment had a copy of the locked file. Fix: an explicit
    /// release.
    #[test]
    fn released_lock_is_free_while_a_copy_of_its_file_is_open() {
        let path = std::env::temp_dir().join(format!("bine-lock-{}", std::process::id()));
        let folder = RealFolder::open(&path).unwrap();
        let lock = folder.acquire_lock("lock").unwrap();
        assert!(folder.acquire_lock("lock").is_err());
        let copy = lock.0.0.try_clone().unwrap();
        drop(lock);
        assert!(folder.acquire_lock("lock").is_ok());
        drop(copy);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn draws_a_different_number_each_time() {
        let path = std::env::temp_dir().join(format!("bine-random-{}", std::process::id()));
        let folder = RealFolder::open(&path).unwrap();
        let [first, second] = [(); 2].map(|()| folder.random_number().unwrap());
        assert_ne!(first, second);
        std::fs::remove_dir_all(&path).unwrap();
        let (mut first, mut second) = ([0; 32], [0; 32]);
        random(&mut first);
        random(&mut second);
        assert!(first != second && first != [0; 32]);
    }

    #[test]
    fn names_the_process_that_holds_the_lock() {
        let path = std::env::temp_dir().join(format!("bine-holder-{}", std::process::id()));
        let folder = RealFolder::open(&path).unwrap();
        let lock = folder.lock("lock").unwrap();
        let error = folder.lock("lock").map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(error.to_string(), std::process::id().to_string());
        drop(lock);
        std::fs::remove_dir_all(&path).unwrap();
    }

    /// Rows may contain secrets, and a program that the server starts must not inherit them.
    #[test]
    fn files_are_private_to_owner_and_process() {
        let path = std::env::temp_dir().join(format!("bine-private-{}", std::process::id()));
        let folder = RealFolder::open(&path).unwrap();
        let file = folder.open_with("a", OFlags::RDWR | OFlags::CREATE).unwrap();
        let mode = rustix::fs::fstat(&file.0).unwrap().st_mode;
        assert_eq!(mode & 0o777, 0o600);
        for descriptor in [&file.0, &folder.folder] {
            let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        std::os::unix::fs::symlink("a", path.join("link")).unwrap();
        assert!(folder.open("link").is_err(), "a link may lead out of the folder");
        let mut names = folder.list().unwrap();
        names.sort();
        assert_eq!(names, ["a", "link"]);
        assert_eq!(folder.name(), path.display().to_string());
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn folder_opened_for_reading_rejects_writes() {
        let path = std::env::temp_dir().join(format!("bine-reading-{}", std::process::id()));
        let folder = RealFolder::open(&path).unwrap();
        let file = folder.create("a").unwrap();
        file.reserve(3).unwrap();
        write_all(&*file, b"b", 1).unwrap();
        let read_only = RealFolder::open_read_only(&path).unwrap().open("a").unwrap();
        let mut bytes = [9; 4];
        assert_eq!(read_full(&*read_only, &mut bytes, 0).unwrap(), 3);
        assert_eq!((bytes, read_only.size().unwrap()), (*b"\0b\0\x09", 3));
        assert!(write_all(&*read_only, b"c", 0).is_err());
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn reads_the_clock_of_the_system() {
        let folder = RealFolder::open_read_only(std::env::temp_dir()).unwrap();
        let (before, now, after) = (Time::now(), folder.now(), Time::now());
        // The time is that of the last tick of the system: some milliseconds ago, or more after a pause
        // of a virtual machine.
        assert!((before.0 - 5_000_000..=after.0).contains(&now.0), "{before} {now} {after}");
    }

    #[test]
    fn returns_free_space_and_boot_id_of_the_system() {
        let path = std::env::temp_dir();
        let available = RealFolder::open_read_only(&path).unwrap().available().unwrap();
        assert!((1 << 12..u64::MAX).contains(&available), "{available}");
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let id: crate::id::RowId = text.trim().parse().unwrap();
        assert_eq!(boot_id(), Some(id.bytes()));
    }
}
