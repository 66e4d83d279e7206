//! Small files in memory, and when they are still current.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use bine_server::Answer;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::description::{Description, SETTLE_SECONDS};
use crate::response::{Responder, Source};

/// The maximum length of a file that is kept in memory and sent together with its head.
///
/// Up to 192 KiB, one copy costs no more than the second system call that sendfile needs
/// (docs/measurements/files.md). Memory determines the limit: every event loop has its own cache,
/// and also holds the bytes that a slow client has not read yet. lighttpd has the same limit. A
/// cache hit of 984 bytes takes 80 ns, against 2.8 us for one lookup on disk.
pub(crate) const MAX_LENGTH: u64 = 32 * 1024;

/// The number of attempts to read a file that changes during the read.
const ATTEMPTS: usize = 3;

/// A small file in memory.
#[derive(Debug)]
pub(crate) struct SmallFile {
    description: Description,
    bytes: Box<[u8]>,
    /// The state of the file. `None` if it changed so recently that its times may not differ from
    /// those of the next state.
    fingerprint: Option<Fingerprint>,
    /// The second of the last comparison with the disk.
    checked: u64,
}

/// The attributes that differ between two states of a file once it has [settled](SETTLE_SECONDS).
///
/// They include the time of the last inode change, because no program can set it back, as copying
/// programs do with the modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl SmallFile {
    /// Reads a file. Returns `None` if it is not small or the read would block; `metadata` is then
    /// the latest state.
    pub(crate) fn read(
        file: &File,
        metadata: &mut Metadata,
        second: u64,
        describe: impl Fn(&Metadata) -> Description,
    ) -> io::Result<Option<Self>> {
        let mut bytes = Box::default();
        let mut fingerprint = None;
        for _ in 0..ATTEMPTS {
            if metadata.len() > MAX_LENGTH {
                return Ok(None);
            }
            let before = Fingerprint::of(metadata);
            let Some(read) = read_up_to(file, metadata.len() as usize)? else { return Ok(None) };
            bytes = read;
            *metadata = file.metadata()?;
            fingerprint = Some(Fingerprint::of(metadata)).filter(|after| *after == before);
            if fingerprint.is_some() {
                break;
            }
        }
        // Even if the file keeps changing, the stated length is that of the bytes that follow.
        Ok(Some(Self {
            description: describe(metadata).with_length(bytes.len() as u64),
            bytes,
            fingerprint: fingerprint.and_then(|fingerprint| fingerprint.settled(second)),
            checked: second,
        }))
    }

    /// Whether it was compared with the disk in this second.
    ///
    /// Seconds of the wall clock are compared for equality, so they never wrap and do not stay
    /// fresh when the clock is set.
    pub(crate) const fn is_fresh(&self, second: u64) -> bool {
        self.checked == second
    }

    /// Compares it with the current state on disk. Returns `false` if it must be read again.
    pub(crate) fn revalidate(&mut self, metadata: &Metadata, second: u64) -> bool {
        let is_unchanged = self.fingerprint == Some(Fingerprint::of(metadata));
        if is_unchanged {
            self.checked = second;
        }
        is_unchanged
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Responds with the file.
    #[inline]
    pub(crate) fn respond(&self, responder: &mut Responder<'_>) -> Answer {
        responder.respond(&self.description, Source::Memory(&self.bytes))
    }
}

impl Fingerprint {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns the fingerprint if the next change is certain to produce another one.
    fn settled(self, second: u64) -> Option<Self> {
        let now = i64::try_from(second).unwrap_or(i64::MAX);
        (self.changed.0.saturating_add(SETTLE_SECONDS) < now).then_some(self)
    }
}

/// Reads the first `length` bytes, or fewer if the file is shorter. Returns `None` if the kernel
/// must read from disk, which an event loop does not wait for; sending the file from disk does.
fn read_up_to(file: &File, length: usize) -> io::Result<Option<Box<[u8]>>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    let mut flags = ReadWriteFlags::NOWAIT;
    while filled < length {
        let mut space = [io::IoSliceMut::new(&mut bytes[filled..])];
        match preadv2(file, &mut space, filled as u64, flags) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            // The file system does not support non-blocking reads.
            Err(Errno::OPNOTSUPP) if !flags.is_empty() => flags = ReadWriteFlags::empty(),
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes.into_boxed_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Variant;

    fn changed_at(second: i64) -> Fingerprint {
        Fingerprint { device: 1, inode: 2, length: 3, modified: (4, 0), changed: (second, 0) }
    }

    #[test]
    fn has_no_fingerprint_until_changes_settle() {
        assert_eq!(changed_at(100).settled(100), None);
        assert_eq!(changed_at(100).settled(102), None);
        assert_eq!(changed_at(100).settled(103), Some(changed_at(100)));
    }

    #[test]
    fn has_no_fingerprint_for_future_change_times() {
        assert_eq!(changed_at(100).settled(7), None);
        assert_eq!(changed_at(i64::MAX).settled(u64::MAX), None);
    }

    #[test]
    fn reads_at_most_the_existing_bytes() -> io::Result<()> {
        let file = open_cached("Cargo.toml")?;
        let length = file.metadata()?.len() as usize;
        assert_eq!(read_up_to(&file, length + 100)?.unwrap().len(), length);
        assert_eq!(read_up_to(&file, 10)?.unwrap().len(), 10);
        Ok(())
    }

    /// The kernel rejects non-blocking reads of files in `/proc`.
    #[test]
    fn reads_file_of_file_system_without_non_blocking_reads() -> io::Result<()> {
        let file = File::open("/proc/version")?;
        assert_eq!(read_up_to(&file, 5)?.as_deref(), Some(&b"Linux"[..]));
        Ok(())
    }

    #[test]
    fn reads_all_bytes_of_a_file_that_grew_after_its_lookup() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("bine-grown-{}", std::process::id()));
        std::fs::write(&path, "old")?;
        let file = File::open(&path)?;
        let mut metadata = file.metadata()?;
        std::fs::write(&path, "longer")?;
        let small = SmallFile::read(&file, &mut metadata, FAR_FUTURE, |metadata| {
            Description::of("/a.txt", metadata, FAR_FUTURE, Variant::Single, &[])
        });
        std::fs::remove_file(&path)?;
        let mut small = small?.expect("six bytes are small");
        assert_eq!((&*small.bytes, small.description.length()), (&b"longer"[..], 6));
        assert!(small.revalidate(&metadata, FAR_FUTURE + 1));
        Ok(())
    }

    #[test]
    fn revalidates_settled_file_for_one_second() -> io::Result<()> {
        let (mut small, metadata) = read_at_second(FAR_FUTURE)?;
        assert!(small.is_fresh(FAR_FUTURE) && !small.is_fresh(FAR_FUTURE + 1));
        assert!(small.revalidate(&metadata, FAR_FUTURE + 1));
        assert!(small.is_fresh(FAR_FUTURE + 1) && !small.is_fresh(FAR_FUTURE + 2));
        Ok(())
    }

    #[test]
    fn rereads_unsettled_file() -> io::Result<()> {
        let (mut small, metadata) = read_at_second(0)?;
        assert!(small.is_fresh(0));
        assert!(!small.revalidate(&metadata, 1));
        Ok(())
    }

    #[test]
    fn does_not_revalidate_another_file() -> io::Result<()> {
        let (mut small, _) = read_at_second(FAR_FUTURE)?;
        let other = std::fs::metadata("src/lib.rs")?;
        assert!(!small.revalidate(&other, FAR_FUTURE + 1));
        Ok(())
    }

    /// A time long after the last change of every file that a test reads.
    const FAR_FUTURE: u64 = 100_000_000_000;

    /// Opens a file whose content is in the kernel's page cache. Reading it first ensures that.
    fn open_cached(path: &str) -> io::Result<File> {
        std::fs::read(path)?;
        File::open(path)
    }

    fn read_at_second(second: u64) -> io::Result<(SmallFile, Metadata)> {
        let file = open_cached("Cargo.toml")?;
        let mut metadata = file.metadata()?;
        let small = SmallFile::read(&file, &mut metadata, second, |metadata| {
            Description::of("/Cargo.toml", metadata, second, Variant::Single, &[])
        })?;
        Ok((small.expect("a manifest is small"), metadata))
    }
}
