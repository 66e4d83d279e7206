//! Whether part of a file is in the page cache. A send of a part that is not would make the event
//! loop wait for the disk, so another thread reads it first.

use std::io::IoSliceMut;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

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
#[derive(Default)]
struct Found {
    /// Keeps the address of the file, so that no later file has it, but not the file open.
    file: Weak<OwnedFd>,
    offset: u64,
    length: u64,
    /// When the part must be checked again, in milliseconds of the clock.
    until: u64,
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
        self.contain_by(file, (offset, length), now, || is_cached(file.as_fd(), offset, length))
    }

    /// Like [`contain`](Self::contain), by the result of `check` for a part that is not known.
    fn contain_by(
        &mut self,
        file: &Arc<OwnedFd>,
        (offset, length): (u64, u64),
        now: u64,
        check: impl FnOnce() -> bool,
    ) -> bool {
        let address = Arc::as_ptr(file);
        // A multiplicative hash (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        let scattered = (address.addr() as u64 ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (scattered >> (u64::BITS - REMEMBERED_BITS)) as usize;
        if let Some(found) = self.found.get(place)
            && now < found.until
            && (found.offset, found.length) == (offset, length)
            && found.file.as_ptr() == address
        {
            return true;
        }
        let is_cached = check();
        if is_cached {
            self.found.resize_with(1 << REMEMBERED_BITS, Found::default);
            let (file, until) = (Arc::downgrade(file), now + TRUSTED);
            self.found[place] = Found { file, offset, length, until };
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

    fn open() -> Arc<OwnedFd> {
        Arc::new(File::open("/dev/null").unwrap().into())
    }

    /// Whether the part is checked. `is_cached` is the result of the check.
    fn is_checked(
        parts: &mut CachedParts,
        file: &Arc<OwnedFd>,
        part: (u64, u64),
        now: u64,
        is_cached: bool,
    ) -> bool {
        let mut is_checked = false;
        let found = parts.contain_by(file, part, now, || {
            is_checked = true;
            is_cached
        });
        assert_eq!(found, is_cached || !is_checked);
        is_checked
    }

    #[test]
    fn checks_a_part_again_after_a_second() {
        let (mut parts, file, other) = (CachedParts::default(), open(), open());
        let part = (0, SHORT);
        let mut checks =
            |file, part, now, is_cached| is_checked(&mut parts, file, part, now, is_cached);
        assert!(checks(&file, part, 0, false));
        assert!(checks(&file, part, 0, true), "a missing part is not remembered");
        assert!(!checks(&file, part, 0, false));
        assert!(!checks(&file, part, 999, false));
        assert!(checks(&file, part, 1000, true));
        assert!(!checks(&file, part, 1999, false));
        assert!(checks(&file, part, 2000, false));
        // Other parts of the file, also one that begins there, and other files are not known.
        for (file, part) in [(&file, (0, SHORT + 1)), (&file, (CHECK_SIZE, SHORT)), (&other, part)]
        {
            assert!(checks(file, part, 3000, true));
            assert!(!checks(file, part, 3000, false));
        }
    }

    /// The allocator returns the address of a dropped value to the next one of the same size.
    #[test]
    fn knows_no_file_by_the_address_of_a_closed_one() {
        let mut parts = CachedParts::default();
        for _ in 0..100 {
            let file = open();
            assert!(is_checked(&mut parts, &file, (0, SHORT), 0, true));
            assert!(!is_checked(&mut parts, &file, (0, SHORT), 0, true));
        }
        // It keeps no file open.
        let file = open();
        assert!(parts.contain(&file, 0, SHORT, 0));
        assert_eq!(Arc::strong_count(&file), 1);
    }

    #[test]
    fn treats_ranges_beyond_the_end_of_a_file_as_cached() {
        let folder = ScratchFolder::new();
        let file = File::create_new(folder.path("empty")).unwrap();
        assert!(is_cached(file.as_fd(), 0, CHECK_SIZE));
        read_into_cache(&FilePart { file: Arc::new(file.into()), offset: 0, length: CHECK_SIZE });
    }
}
