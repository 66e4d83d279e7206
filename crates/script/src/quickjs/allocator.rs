//! The allocator of one engine: it counts every byte and enforces the limit of memory.

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::allocator::Allocator;

/// Bytes beyond the limit that remain usable once it was exceeded, so that the engine can build
/// the error with its stack trace.
const RESERVE: usize = 64 << 10;

/// The memory of one engine, shared by its allocator and its owner.
#[derive(Debug)]
pub(crate) struct Memory {
    used: Cell<usize>,
    limit: usize,
    is_exceeded: Cell<bool>,
}

/// Allocates with the C library, as the engine would, but detects for certain that the limit was
/// exceeded: a script can catch the engine's own error.
pub(crate) struct LimitedAllocator(Rc<Memory>);

impl Memory {
    pub(crate) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { used: Cell::new(0), limit, is_exceeded: Cell::new(false) })
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Counts bytes that the host has allocated for the script. Returns false, as the allocator would,
    /// if the limit does not allow them.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let is_allowed = self.allows(bytes);
        if is_allowed {
            self.used.set(self.used.get() + bytes);
        }
        is_allowed
    }

    /// Gives reserved bytes back.
    pub(crate) fn release(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
    }

    /// Ends the instance as if the limit was exceeded.
    pub(crate) fn exceed(&self) {
        self.is_exceeded.set(true);
    }

    /// Whether `more` bytes may be allocated.
    fn allows(&self, more: usize) -> bool {
        let wanted = self.used.get().saturating_add(more);
        if wanted <= self.limit {
            return true;
        }
        let was_exceeded = self.is_exceeded.replace(true);
        was_exceeded && wanted <= self.limit.saturating_add(RESERVE)
    }
}

impl LimitedAllocator {
    pub(crate) const fn new(memory: Rc<Memory>) -> Self {
        Self(memory)
    }

    fn count(&self, pointer: *mut u8) -> *mut u8 {
        if !pointer.is_null() {
            self.0.used.set(self.0.used.get() + size_of_block(pointer));
        }
        pointer
    }
}

/// The usable size of a block of the C library.
fn size_of_block(pointer: *mut u8) -> usize {
    // SAFETY: every pointer that reaches this function was returned by the C library's allocator
    // and has not been freed.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

// SAFETY: all blocks are those of the C library's allocator, with its size and alignment; a block
// that is refused is reported as null.
unsafe impl Allocator for LimitedAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.allows(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: `malloc` accepts any size.
        self.count(unsafe { libc::malloc(size) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !count.checked_mul(size).is_some_and(|bytes| self.0.allows(bytes)) {
            return std::ptr::null_mut();
        }
        // SAFETY: `calloc` accepts any size.
        self.count(unsafe { libc::calloc(count, size) }.cast())
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        if pointer.is_null() {
            return;
        }
        self.0.used.set(self.0.used.get() - size_of_block(pointer));
        // SAFETY: the engine passes each block of this allocator once.
        unsafe { libc::free(pointer.cast()) };
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        if pointer.is_null() {
            return self.alloc(new_size);
        }
        if new_size == 0 {
            // SAFETY: the engine gives the block up.
            unsafe { self.dealloc(pointer) };
            return std::ptr::null_mut();
        }
        let old = size_of_block(pointer);
        if new_size > old && !self.0.allows(new_size - old) {
            return std::ptr::null_mut();
        }
        // SAFETY: the block belongs to the engine, which uses only the result from now on.
        let moved: *mut u8 = unsafe { libc::realloc(pointer.cast(), new_size) }.cast();
        if !moved.is_null() {
            self.0.used.set(self.0.used.get() - old + size_of_block(moved));
        }
        moved
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        size_of_block(pointer)
    }
}
