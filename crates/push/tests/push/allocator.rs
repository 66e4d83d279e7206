//! A global allocator that counts the memory that the calling thread allocated and has not freed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of bytes that this thread holds, as requested.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// Returns the number of allocations of this thread.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

// SAFETY: every call is passed to the system's allocator unchanged. The counters are plain
// thread-local cells, which need no allocation and no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size().cast_signed());
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size().cast_signed());
        // SAFETY: `alloc` above got the memory from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}
