//! Decides what is kept in memory of a small file, and when that is still the file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use bine_pipeline::Answer;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::description::{Description, SETTLE_SECONDS};
use crate::response::{Responder, Source};

/// The longest file that is kept in memory and sent in one piece with its head.
///
/// One copy is no dearer than the second system call that sendfile needs, up to 192 KiB (docs/measurements.md): what
/// draws the line is memory, since every loop keeps its own, and keeps what a slow peer leaves; lighttpd has it here
/// too. A hit of 984 bytes costs 80 ns, against 2.8 us for one look at the disk.
pub(crate) const MAX_LENGTH: u64 = 32 * 1024;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// A small file in memory.
#[derive(Debug)]
pub(crate) struct SmallFile {
    description: Description,
    bytes: Box<[u8]>,
    /// `None`: it changed so lately that its times do not tell it from the next state.
    fingerprint: Option<Fingerprint>,
    /// The second of the last look at the disk.
    checked: u64,
}

/// What differs between two states of what a name means, once the state has [settled](SETTLE_SECONDS).
///
/// The time of the last change to the inode is in it because nobody can set it back, as copying programs
/// do with the time of the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl SmallFile {
    /// Reads a file. `None`: it is not small, or must be waited for, and `metadata` is the latest known of it.
    pub(crate) fn read(
        file: &File,
        metadata: &mut Metadata,
        second: u64,
        describe: impl Fn(&Metadata) -> Description,
    ) -> io::Result<Option<Self>> {
        let mut attempt = 1;
        loop {
            if metadata.len() > MAX_LENGTH {
                return Ok(None);
            }
            let Some(bytes) = read_up_to(file, metadata.len() as usize)? else { return Ok(None) };
            let before = Fingerprint::of(metadata);
            *metadata = file.metadata()?;
            let fingerprint = Fingerprint::of(metadata);
            if fingerprint == before || attempt == ATTEMPTS {
                // Even of a file that never rests, the length told is that of the bytes behind it.
                return Ok(Some(Self {
                    description: describe(metadata).with_length(bytes.len() as u64),
                    bytes,
                    fingerprint: fingerprint
                        .settled(second)
                        .filter(|fingerprint| *fingerprint == before),
                    checked: second,
                }));
            }
            attempt += 1;
        }
    }

    /// Whether it was compared with the disk in this very second.
    ///
    /// Seconds of the wall clock, compared for equality: they neither wrap nor stay fresh when the clock is set.
    pub(crate) const fn is_fresh(&self, second: u64) -> bool {
        self.checked == second
    }

    /// Told what its name means now; `false` if it must be read again.
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

    /// Answers with the file.
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

    /// This identity, if at this second the next change is sure to make another.
    fn settled(self, second: u64) -> Option<Self> {
        let now = i64::try_from(second).unwrap_or(i64::MAX);
        (self.changed.0.saturating_add(SETTLE_SECONDS) < now).then_some(self)
    }
}

/// The first `length` bytes, or all if there are fewer by now. `None`: the kernel must read them from a disk, which
/// a loop does not wait for; sending the file will.
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
            // A file system that never says whether it would wait.
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

    /// Long after the last change of any file that a test reads.
    const FAR_FUTURE: u64 = 100_000_000_000;

    /// Opens a file that the kernel has in memory now: one that nobody has read for a while it may have let go.
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
