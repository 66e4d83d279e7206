//! Counters of the kernel that wake threads (`eventfd(2)`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// How each counter is opened: child processes do not inherit it, and a read of zero fails.
const FLAGS: EventfdFlags = EventfdFlags::CLOEXEC.union(EventfdFlags::NONBLOCK);

/// Creates a counter with the value zero. It is readable while its value is not zero.
pub(crate) fn event_counter() -> io::Result<OwnedFd> {
    Ok(eventfd(0, FLAGS)?)
}

/// The eventfd of one thread, and a flag for its suspended requests.
pub(crate) struct Wakeup {
    has_rung: AtomicBool,
    eventfd: OwnedFd,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { has_rung: AtomicBool::new(false), eventfd: event_counter()? })
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

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::{Errno, FdFlags, fcntl_getfd};

    use super::*;

    fn is_readable(wakeup: &Wakeup) -> bool {
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(wakeup, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn opens_counters_that_do_not_block_and_are_not_inherited() {
        let counter = event_counter().unwrap();
        assert_eq!(fcntl_getfd(&counter), Ok(FdFlags::CLOEXEC));
        assert_eq!(rustix::io::read(&counter, &mut [0; 8]), Err(Errno::AGAIN));
    }

    /// Rings between two checks of the flag cost one system call.
    #[test]
    fn wakes_once_for_all_rings_until_the_flag_is_checked() {
        let wakeup = Wakeup::new().unwrap();
        assert!(!wakeup.take_ring() && !is_readable(&wakeup));
        wakeup.ring();
        assert!(is_readable(&wakeup));
        wakeup.clear();
        assert!(!is_readable(&wakeup));
        wakeup.ring();
        assert!(!is_readable(&wakeup), "the flag is set already");
        assert!(wakeup.take_ring() && !wakeup.take_ring());
        wakeup.ring();
        assert!(is_readable(&wakeup));
        // A signal has no flag.
        wakeup.clear();
        assert!(wakeup.take_ring());
        wakeup.signal();
        assert!(is_readable(&wakeup) && !wakeup.take_ring());
    }
}
