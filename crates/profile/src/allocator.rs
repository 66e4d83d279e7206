//! The allocator of a program whose allocations can be recorded.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::{recorder, span};

/// An allocator whose allocations can be recorded. While no profile is recorded, an allocation costs
/// one load and one branch more than one of `A`.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: bine_profile::Allocator = bine_profile::Allocator::system();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System>(A);

impl Allocator<System> {
    /// The allocator of the system, as Rust programs use it by default.
    pub const fn system() -> Self {
        Self(System)
    }
}

impl<A> Allocator<A> {
    /// Records the allocations of a different allocator.
    pub const fn of(allocator: A) -> Self {
        Self(allocator)
    }
}

// SAFETY: every call is passed to `A` with the same arguments, and its result is returned. The calls
// of `note` allocate only by the same allocator, and do not record these allocations.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { self.0.realloc(old, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }
}

#[inline]
fn note(size: usize) {
    if span::is_recording() {
        recorder::record(size);
    }
}
