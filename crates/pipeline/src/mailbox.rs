//! Decides how other threads reach a loop: a box of letters and a bell in the loop's own epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::address::Peer;
use crate::handler::{Finished, Retained};
use crate::owner::Evict;
use crate::pressure::Room;
use crate::slab::Token;

/// What another thread has for a loop.
pub(crate) enum Letter {
    /// A connection that another loop accepted and has no room for.
    Adopt(OwnedFd, Peer),
    /// A worker's reply.
    Finished(Token, Box<Retained>, Finished),
    /// No worker had time for it.
    Refused(Token, Box<Retained>),
    /// The part of a file that its reply waits for is in memory.
    Warm(Token),
    /// Drop a connection whose bytes others need.
    Evict(Token),
    /// Close idle connections.
    MakeRoom(Room),
    /// Look at the server's state and settings.
    Look,
}

/// One loop's box.
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    /// Its waiters have news.
    has_rung: AtomicBool,
    bell: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { letters: Mutex::default(), has_rung: AtomicBool::new(false), bell })
    }

    /// Drops a letter in; the bell rings only when the box was empty, one system call for a batch.
    pub(crate) fn post(&self, letter: Letter) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(letter);
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.sound();
        }
    }

    /// Rings for the waiters, with one system call until they have been looked after.
    pub(crate) fn ring(&self) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            self.sound();
        }
    }

    /// Whether it was rung for the waiters since the last time.
    pub(crate) fn take_ring(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }

    fn sound(&self) {
        // The counter cannot overflow: it is cleared before the box is emptied.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// So that the next sound is heard anew.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// Empties the box into `letters`.
    pub(crate) fn take(&self, letters: &mut Vec<Letter>) {
        // Silence the bell first: a letter that comes in between rings again.
        self.silence();
        let mut box_ = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.append(&mut box_);
    }
}

impl Evict for Mailbox {
    fn evict(&self, token: Token) {
        self.post(Letter::Evict(token));
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn the_bell_rings_once_for_a_batch_and_again_for_the_next() {
        let mailbox = Mailbox::new().unwrap();
        let rings = || {
            let mut bell = [PollFd::new(&mailbox, PollFlags::IN)];
            poll(&mut bell, Some(&rustix::time::Timespec::default())).unwrap() == 1
        };
        assert!(!rings());
        mailbox.post(Letter::Look);
        mailbox.post(Letter::Look);
        assert!(rings());
        let mut letters = Vec::new();
        mailbox.take(&mut letters);
        assert_eq!(letters.len(), 2);
        assert!(!rings());
        mailbox.post(Letter::Look);
        assert!(rings());
    }
}
