//! Wakes a thread that waits in its own epoll, through an eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// The wakeup of one thread, and whether its waiters have news.
pub(crate) struct Wakeup {
    has_rung: AtomicBool,
    eventfd: OwnedFd,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { has_rung: AtomicBool::new(false), eventfd })
    }

    /// Tells the thread that its waiters have news, with one system call until it has looked.
    pub(crate) fn ring(&self) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            self.signal();
        }
    }

    /// Whether it was rung for the waiters since the last time.
    pub(crate) fn take_ring(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }

    /// Wakes the thread.
    pub(crate) fn signal(&self) {
        // The counter cannot overflow: the thread clears it before it looks.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Has the next signal wake the thread again.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
