//! Messages from other threads to an event loop: a queue, and a wakeup in the loop's own epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::ClientAddress;
use crate::handler::{Finished, Retained};
use crate::limits::Room;
use crate::quota::Evict;
use crate::slab::Token;
use crate::system::Wakeup;

/// A message to an event loop.
pub(crate) enum Letter {
    /// A connection that a different loop accepted but has no room for.
    Adopt(OwnedFd, ClientAddress),
    /// The reply of a worker.
    Finished(Token, Box<Retained>, Finished),
    /// A task that no worker started in time.
    Refused(Token, Box<Retained>),
    /// The part of a file that a reply waits for is in the page cache.
    Warm(Token),
    /// Drop this connection, because other connections need its bytes.
    Evict(Token),
    /// Close idle connections.
    MakeRoom(Room),
    /// Check the server's state and settings.
    Look,
}

/// The mailbox of one loop.
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    wakeup: Arc<Wakeup>,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { letters: Mutex::default(), wakeup: Arc::new(Wakeup::new()?) })
    }

    /// The wakeup of the loop, for threads that post no letters.
    pub(crate) const fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }

    /// Adds a letter. Signals the wakeup only if the mailbox was empty: one system call per batch.
    pub(crate) fn post(&self, letter: Letter) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(letter);
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.wakeup.signal();
        }
    }

    /// Moves all letters into `letters`.
    pub(crate) fn take(&self, letters: &mut Vec<Letter>) {
        // The wakeup is cleared first, so a letter posted in between signals again.
        self.wakeup.clear();
        let mut queued = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.append(&mut queued);
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

/// Identifies the connection that waits for a [`Task`](crate::Task), and the mailbox for the reply.
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
    fn tickets_are_equal_for_the_same_connection_of_the_same_loop() {
        let (one, other) = (Arc::new(Mailbox::new().unwrap()), Arc::new(Mailbox::new().unwrap()));
        let ticket = |index, mailbox: &Arc<Mailbox>| {
            let token = Token { index, generation: 0 };
            Ticket { token, reply_to: Arc::clone(mailbox) }
        };
        assert!(ticket(1, &one) == ticket(1, &one));
        assert!(ticket(1, &one) != ticket(2, &one));
        assert!(ticket(1, &one) != ticket(1, &other));
    }

    #[test]
    fn signals_once_per_batch() {
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
