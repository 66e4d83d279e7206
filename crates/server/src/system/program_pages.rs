//! Releases the pages of the program's files that only its start has used.
//!
//! A start runs code from all parts of the program once, and the kernel maps 64 KiB around each page
//! that it touches. These pages then count as memory of the process until the kernel needs them.

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::param::page_size;

/// Releases the code and the constants of the program and its libraries. They stay in the page cache,
/// and the next access maps them again. Returns the number of bytes that were mapped; 0 if the kernel
/// does not tell which pages equal a file (pagemap in proc(5)).
pub(crate) fn release_program_pages() -> usize {
    let Ok(pages) = File::open("/proc/self/pagemap") else { return 0 };
    let mut release = Release { pages, bytes: 0 };
    // SAFETY: the function calls `release_object` for each loaded object, with a valid description of it
    // and with the pointer, before it returns. `release` outlives the call and has no other user.
    unsafe { libc::dl_iterate_phdr(Some(release_object), (&raw mut release).cast()) };
    release.bytes
}

/// What the callback needs.
struct Release {
    pages: File,
    bytes: usize,
}

/// Releases the segments of one object. The loader unloads no object meanwhile.
unsafe extern "C" fn release_object(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    release: *mut c_void,
) -> libc::c_int {
    // SAFETY: `release_program_pages` passes this pointer, and nothing else uses it meanwhile.
    let release = unsafe { &mut *release.cast::<Release>() };
    // SAFETY: the loader passes a valid description.
    let object = unsafe { &*object };
    for number in 0..usize::from(object.dlpi_phnum) {
        // SAFETY: the array has `dlpi_phnum` elements.
        let segment = unsafe { &*object.dlpi_phdr.add(number) };
        if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_W != 0 {
            continue;
        }
        let start = object.dlpi_addr.wrapping_add(segment.p_vaddr) as usize;
        let range = whole_pages(start, segment.p_filesz as usize);
        let Some(mapped) = mapped_pages(&release.pages, &range) else { continue };
        let address = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
        // SAFETY: the range is a segment that the loader has mapped from a file and that the program
        // cannot write to; the object stays loaded. All its pages equal the file: a breakpoint of a
        // debugger, or a relocation of code, would be a page of its own, present or swapped out.
        let done = unsafe { libc::madvise(address, range.len(), libc::MADV_DONTNEED) };
        if done == 0 {
            release.bytes += mapped * page_size();
        }
    }
    0
}

/// The pages that this part of a file fills.
fn whole_pages(start: usize, length: usize) -> Range<usize> {
    let page = page_size();
    let end = start.saturating_add(length) / page * page;
    start.next_multiple_of(page).min(end)..end
}

/// The number of mapped pages in a range, if all of them equal a file.
fn mapped_pages(pages: &File, range: &Range<usize>) -> Option<usize> {
    const ENTRY: usize = size_of::<u64>();
    let mut mapped = 0;
    let mut entries = [0; 512 * ENTRY];
    let mut next = range.start / page_size();
    let end = range.end / page_size();
    while next < end {
        let part = &mut entries[..(end - next).min(512) * ENTRY];
        pages.read_exact_at(part, (next * ENTRY) as u64).ok()?;
        for entry in part.as_chunks().0 {
            mapped += usize::from(is_mapped(u64::from_ne_bytes(*entry))?);
        }
        next += 512;
    }
    Some(mapped)
}

/// Whether a page is mapped; `None` if it is one of the process itself. The bits of an entry are those
/// of Documentation/admin-guide/mm/pagemap.rst in Linux.
const fn is_mapped(entry: u64) -> Option<bool> {
    let (is_present, is_swapped, is_of_file) =
        (entry >> 63 & 1 == 1, entry >> 62 & 1 == 1, entry >> 61 & 1 == 1);
    if is_swapped || is_present && !is_of_file { None } else { Some(is_present) }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;

    #[test]
    fn tells_pages_of_a_file_from_those_of_the_process() {
        assert_eq!(is_mapped(0), Some(false));
        assert_eq!(is_mapped(PRESENT | OF_FILE | 0x1234), Some(true));
        // A relocated constant, or a breakpoint.
        assert_eq!(is_mapped(PRESENT), None);
        assert_eq!(is_mapped(SWAPPED), None);
        assert_eq!(is_mapped(SWAPPED | OF_FILE), None);
    }

    #[test]
    fn takes_whole_pages_only() {
        let page = page_size();
        assert_eq!(whole_pages(page, 2 * page), page..3 * page);
        assert_eq!(whole_pages(page + 1, 2 * page), 2 * page..3 * page);
        assert_eq!(whole_pages(page, 2 * page - 1), page..2 * page);
        assert!(whole_pages(page + 1, page).is_empty());
        assert!(whole_pages(page, 0).is_empty());
    }

    #[test]
    fn counts_mapped_pages_and_refuses_those_of_the_process() {
        let pages = File::open("/proc/self/pagemap").unwrap();
        let own = black_box(vec![1_u8; 4 * page_size()]);
        let range = whole_pages(own.as_ptr().addr(), own.len());
        assert_eq!(mapped_pages(&pages, &range), None);
        let code = release_program_pages as fn() -> usize as usize / page_size() * page_size();
        assert_eq!(mapped_pages(&pages, &(code..code)), Some(0));
    }

    #[test]
    fn releases_pages_and_reads_them_again() {
        /// Constants of the program, which fill some pages.
        static NUMBERS: [u64; 4096] = {
            let mut numbers = [0; 4096];
            let mut place = 0;
            while place < numbers.len() {
                numbers[place] = place as u64 * 3;
                place += 1;
            }
            numbers
        };
        let sum = || NUMBERS.iter().map(|number| black_box(*number)).sum::<u64>();
        let before = sum();
        assert!(release_program_pages() > 0);
        assert_eq!((before, sum()), (3 * 4095 * 4096 / 2, before));
    }
}
