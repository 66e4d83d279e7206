//! Whether part of a file is in the page cache. A send of a part that is not would make the event
//! loop wait for the disk, so another thread reads it first.

use std::io::IoSliceMut;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::handler::file_part::FilePart;

/// Size of the parts that are checked and read at one time.
pub(crate) const CHECK_SIZE: u64 = 1 << 20;
/// For a part up to this length, a check of the last byte is enough: the kernel reads ahead this
/// far.
const SHORT: u64 = 128 * 1024;

/// For this time, in milliseconds, a part that was found in the page cache is not checked again: a
/// check is a system call, and the kernel evicts pages that were used a moment ago last.
const TRUSTED: u64 = 1000;
/// The number of parts that a thread remembers, as a power of two.
const REMEMBERED_BITS: u32 = 6;

/// What a thread that must not wait for a disk knows of the page cache.
#[derive(Default)]
pub(crate) struct CachedParts {
    /// The parts that were found. The place of a part follows from its file and its offset, and a
    /// later part replaces an earlier one. Empty until the first part.
    found: Vec<Found>,
}

/// A part that was in the page cache.
#[derive(Clone, Copy, Default)]
struct Found {
    part: Part,
    /// When the part must be checked again, in milliseconds of the clock.
    until: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Part {
    /// The address of the shared file. A file that is opened later may have the same address; then
    /// its first send may wait for the disk.
    file: usize,
    offset: u64,
    length: u64,
}

impl CachedParts {
    /// Whether the `length` bytes of `file` from `offset` are in the page cache, or were within the
    /// last second. `now` is in milliseconds of a monotonic clock.
    pub(crate) fn contain(
        &mut self,
        file: &Arc<OwnedFd>,
        offset: u64,
        length: u64,
        now: u64,
    ) -> bool {
        let part = Part { file: Arc::as_ptr(file).addr(), offset, length };
        self.contain_by(part, now, || is_cached(file.as_fd(), offset, length))
    }

    /// Like [`contain`](Self::contain), by the result of `check` for a part that is not known.
    fn contain_by(&mut self, part: Part, now: u64, check: impl FnOnce() -> bool) -> bool {
        // A multiplicative hash (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        let scattered = (part.file as u64 ^ part.offset).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (scattered >> (u64::BITS - REMEMBERED_BITS)) as usize;
        if self.found.get(place).is_some_and(|found| found.part == part && now < found.until) {
            return true;
        }
        let is_cached = check();
        if is_cached {
            self.found.resize(1 << REMEMBERED_BITS, Found::default());
            self.found[place] = Found { part, until: now + TRUSTED };
        }
        is_cached
    }
}

/// Whether the `length` bytes of `file` from `offset` are in the page cache; it checks the first
/// and the last byte. Returns true if the file system cannot report it.
fn is_cached(file: BorrowedFd<'_>, offset: u64, length: u64) -> bool {
    let last = length.saturating_sub(1);
    (length <= SHORT || is_byte_cached(file, offset)) && is_byte_cached(file, offset + last)
}

fn is_byte_cached(file: BorrowedFd<'_>, offset: u64) -> bool {
    let mut byte = [0];
    let mut space = [IoSliceMut::new(&mut byte)];
    loop {
        return match preadv2(file, &mut space, offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => continue,
            // The send reports any other error.
            Ok(_) | Err(_) => true,
        };
    }
}

/// Reads `part` into the page cache; the calling thread waits for the disk instead of the event
/// loop.
pub(crate) fn read_into_cache(part: &FilePart) {
    let mut space = vec![0; SHORT as usize];
    for offset in (part.offset..part.offset + part.length).step_by(space.len()) {
        // The last read may go beyond the part, as the kernel's read-ahead does.
        let mut read = pread(&part.file, &mut space, offset);
        while read == Err(Errno::INTR) {
            read = pread(&part.file, &mut space, offset);
        }
        // The send reports the error, or the end of the file.
        if read.unwrap_or(0) == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use rustix::fs::{Advice, fadvise};

    use super::*;
    use bine_log::test_support::ScratchFolder;

    #[test]
    fn detects_evicted_pages_and_reads_them_into_the_cache() {
        let folder = ScratchFolder::new();
        let length = 3 * CHECK_SIZE;
        let mut file = File::create_new(folder.path("long")).unwrap();
        file.write_all(&vec![b'x'; length as usize]).unwrap();
        let file = File::open(folder.path("long")).unwrap();
        assert!(is_cached(file.as_fd(), 0, length), "it was written a moment ago");
        file.sync_all().unwrap();
        let file: Arc<OwnedFd> = Arc::new(file.into());
        for offset in [0, CHECK_SIZE] {
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            if is_cached(file.as_fd(), offset, CHECK_SIZE) {
                // A file system in memory, such as tmpfs, evicts no pages.
                return;
            }
            let part = FilePart { file: Arc::clone(&file), offset, length: CHECK_SIZE };
            read_into_cache(&part);
            assert!(is_cached(file.as_fd(), offset, CHECK_SIZE));
        }
    }

    #[test]
    fn checks_a_part_again_after_a_second() {
        let mut parts = CachedParts::default();
        let mut checks = |part, now, is_cached| {
            let mut is_checked = false;
            let found = parts.contain_by(part, now, || {
                is_checked = true;
                is_cached
            });
            assert_eq!(found, is_cached || !is_checked);
            is_checked
        };
        let part = Part { file: 0x1000, offset: 0, length: SHORT };
        assert!(checks(part, 0, false));
        assert!(checks(part, 0, true), "a missing part is not remembered");
        assert!(!checks(part, 0, false));
        assert!(!checks(part, 999, false));
        assert!(checks(part, 1000, true));
        assert!(!checks(part, 1999, false));
        assert!(checks(part, 2000, false));
        // Other parts of the file, also one that begins there, and other files are not known.
        let others = [
            Part { length: SHORT + 1, ..part },
            Part { offset: CHECK_SIZE, ..part },
            Part { file: 0x2000, ..part },
        ];
        for other in others {
            checks(part, 3000, true);
            assert!(checks(other, 3000, true));
            assert!(!checks(other, 3000, false));
        }
    }

    #[test]
    fn remembers_the_file_by_its_address() {
        let folder = ScratchFolder::new();
        let open = || {
            let file = File::options().append(true).create(true).open(folder.path("file"));
            Arc::new(OwnedFd::from(file.unwrap()))
        };
        let (file, same, other) = (open(), open(), open());
        let mut parts = CachedParts::default();
        assert!(parts.contain(&file, 0, 7, 0));
        for (file, is_known) in [(&Arc::clone(&file), true), (&same, false), (&other, false)] {
            let part = Part { file: Arc::as_ptr(file).addr(), offset: 0, length: 7 };
            assert_eq!(parts.contain_by(part, 0, || false), is_known);
        }
    }

    #[test]
    fn treats_ranges_beyond_the_end_of_a_file_as_cached() {
        let folder = ScratchFolder::new();
        let file = File::create_new(folder.path("empty")).unwrap();
        assert!(is_cached(file.as_fd(), 0, CHECK_SIZE));
        read_into_cache(&FilePart { file: Arc::new(file.into()), offset: 0, length: CHECK_SIZE });
    }
}
