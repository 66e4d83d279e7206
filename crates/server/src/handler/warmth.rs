//! Decides whether a part of a file is in memory, or sending it would make its loop wait for a disk;
//! and brings it there.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::handler::file_part::FilePart;

/// What is looked at, and brought into memory, at one time.
pub(crate) const STRETCH: u64 = 1 << 20;
/// Of a part no longer than this the last byte tells enough: the kernel reads ahead as far.
const SHORT: u64 = 128 * 1024;

/// Whether the stretch of `file` that begins at `offset` is in memory, as its first and last bytes tell.
/// A file system that cannot say so is taken at its best.
pub(crate) fn is_warm(file: BorrowedFd<'_>, offset: u64, length: u64) -> bool {
    let last = length.saturating_sub(1);
    (length <= SHORT || is_byte_warm(file, offset)) && is_byte_warm(file, offset + last)
}

fn is_byte_warm(file: BorrowedFd<'_>, offset: u64) -> bool {
    let mut byte = [0];
    let mut space = [IoSliceMut::new(&mut byte)];
    loop {
        return match preadv2(file, &mut space, offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => continue,
            // Whatever else is wrong with it, sending it will tell.
            Ok(_) | Err(_) => true,
        };
    }
}

/// Reads `part`, and so waits for the disk in place of its loop.
pub(crate) fn warm_up(part: &FilePart) {
    let mut space = vec![0; SHORT as usize];
    let (mut offset, end) = (part.offset, part.offset + part.length);
    while offset < end {
        let most = space.len().min((end - offset) as usize);
        match pread(&part.file, &mut space[..most], offset) {
            Ok(0) => return,
            Ok(count) => offset += count as u64,
            Err(Errno::INTR) => {}
            // Sending it will tell.
            Err(_) => return,
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
    fn what_the_kernel_has_let_go_is_cold_until_it_is_read() {
        let folder = ScratchFolder::new();
        let length = 3 * STRETCH;
        let mut file = File::create_new(folder.path("long")).unwrap();
        file.write_all(&vec![b'x'; length as usize]).unwrap();
        let file = File::open(folder.path("long")).unwrap();
        assert!(is_warm(file.as_fd(), 0, length), "it was written a moment ago");
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if is_warm(file.as_fd(), STRETCH, STRETCH) {
            // A file system that has nothing but memory lets nothing go.
            return;
        }
        let part = FilePart { file: Arc::new(file.into()), offset: STRETCH, length: STRETCH };
        warm_up(&part);
        assert!(is_warm(part.file.as_fd(), STRETCH, STRETCH));
    }

    #[test]
    fn an_end_that_is_not_there_is_not_waited_for() {
        let folder = ScratchFolder::new();
        let file = File::create_new(folder.path("empty")).unwrap();
        assert!(is_warm(file.as_fd(), 0, STRETCH));
        warm_up(&FilePart { file: Arc::new(file.into()), offset: 0, length: STRETCH });
    }
}
