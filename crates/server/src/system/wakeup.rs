//! An eventfd that wakes a thread from its epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// The eventfd of one thread, and a flag for its suspended requests.
pub(crate) struct Wakeup {
    has_rung: AtomicBool,
    eventfd: OwnedFd,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { has_rung: AtomicBool::new(false), eventfd })
    }

    /// Notifies the thread that an event has occurred for its waiters. Further calls cost no system
    /// call until the thread has checked the flag.
    pub(crate) fn ring(&self) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            self.signal();
        }
    }

    /// Returns and clears the flag that [`ring`](Self::ring) sets.
    pub(crate) fn take_ring(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }

    /// Wakes the thread.
    pub(crate) fn signal(&self) {
        // The counter cannot overflow, because the thread clears it after each wakeup.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Resets the eventfd, so that the next signal wakes the thread again.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
