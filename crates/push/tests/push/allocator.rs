//! Decides what the tests count as memory: what the thread that asks has allocated and not given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that this thread holds, as it asked for them.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// How often this thread has asked for memory.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

// SAFETY: every call is handed to the system's allocator unchanged; the counters are plain cells of the thread, made
// without allocating and never dropped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size().cast_signed());
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps to the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size().cast_signed());
        // SAFETY: the memory came from `alloc` above, so from the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}
