//! Decides what one thread keeps for all of its secret connections together: two buffers, and the count of
//! handshakes under way.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

/// Bytes encrypted, or received, at once: four records of the longest kind (RFC 8446 section 5.1).
pub(super) const PIECE: usize = 64 * 1024;
/// What records add to a piece, and the room for a handshake's answer.
const ADDED: usize = 16 * 1024;

/// One thread's buffers for TLS. They exist from its first such connection on.
#[derive(Default)]
pub(crate) struct Desk {
    buffers: RefCell<Buffers>,
    in_flight: Cell<usize>,
}

/// Only one connection uses them at a time.
#[derive(Default)]
pub(super) struct Buffers {
    /// What was received, or read from a file.
    incoming: Box<[u8]>,
    /// What is to be sent.
    outgoing: Box<[u8]>,
}

impl Buffers {
    /// For what comes in, and for what goes out.
    pub(super) fn both(&mut self) -> (&mut [u8], &mut [u8]) {
        (&mut self.incoming, &mut self.outgoing)
    }
}

impl Desk {
    pub(super) fn buffers(&self) -> RefMut<'_, Buffers> {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.incoming.is_empty() {
            buffers.incoming = vec![0; PIECE].into();
            buffers.outgoing = vec![0; PIECE + ADDED].into();
        }
        buffers
    }

    /// A place among at most `most` handshakes.
    pub(super) fn begin(self: &Rc<Self>, most: usize) -> Option<Handshake> {
        let begun = self.in_flight.get();
        if begun >= most {
            return None;
        }
        self.in_flight.set(begun + 1);
        Some(Handshake(Rc::clone(self)))
    }
}

/// A handshake under way.
pub(super) struct Handshake(Rc<Desk>);

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_handshakes_begin_than_may() {
        let desk = Rc::new(Desk::default());
        let first = desk.begin(2).unwrap();
        let _second = desk.begin(2).unwrap();
        assert!(desk.begin(2).is_none());
        drop(first);
        assert!(desk.begin(2).is_some());
    }
}
