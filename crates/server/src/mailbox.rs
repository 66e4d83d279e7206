//! Decides how other threads reach a loop: a box of letters and a bell in the loop's own epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::Peer;
use crate::handler::{Finished, Retained};
use crate::limits::Room;
use crate::quota::Evict;
use crate::slab::Token;
use crate::system::Wakeup;

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
    wakeup: Arc<Wakeup>,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { letters: Mutex::default(), wakeup: Arc::new(Wakeup::new()?) })
    }

    /// The loop's wakeup, for others than those who post letters.
    pub(crate) const fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }

    /// Drops a letter in; the wakeup is signaled only when the box was empty, one system call for a batch.
    pub(crate) fn post(&self, letter: Letter) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(letter);
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.wakeup.signal();
        }
    }

    /// Empties the box into `letters`.
    pub(crate) fn take(&self, letters: &mut Vec<Letter>) {
        // Clear the wakeup first: a letter that comes in between signals again.
        self.wakeup.clear();
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
        self.wakeup.as_fd()
    }
}

/// Names the connection that waits for a [`Task`](crate::Task), and where to answer it.
#[derive(Clone)]
pub struct Ticket {
    pub(crate) token: Token,
    pub(crate) reply_to: Arc<Mailbox>,
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token && Arc::ptr_eq(&self.reply_to, &other.reply_to)
    }
}

impl Eq for Ticket {}

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
