//! Whether part of a file is in the page cache. A send of a part that is not would make the event
//! loop wait for the disk, so another thread reads it first.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::handler::file_part::FilePart;

/// Size of the parts that are checked and read at one time.
pub(crate) const CHECK_SIZE: u64 = 1 << 20;
/// For a part up to this length, a check of the last byte is enough: the kernel reads ahead this
/// far.
const SHORT: u64 = 128 * 1024;

/// Whether the `length` bytes of `file` from `offset` are in the page cache; it checks the first
/// and the last byte. Returns true if the file system cannot report it.
pub(crate) fn is_cached(file: BorrowedFd<'_>, offset: u64, length: u64) -> bool {
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
        let file: Arc<std::os::fd::OwnedFd> = Arc::new(file.into());
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
    fn treats_ranges_beyond_the_end_of_a_file_as_cached() {
        let folder = ScratchFolder::new();
        let file = File::create_new(folder.path("empty")).unwrap();
        assert!(is_cached(file.as_fd(), 0, CHECK_SIZE));
        read_into_cache(&FilePart { file: Arc::new(file.into()), offset: 0, length: CHECK_SIZE });
    }
}
