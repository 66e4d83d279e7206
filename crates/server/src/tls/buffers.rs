//! The buffers that the TLS connections of one thread share, and the owner of the one at hand.

use std::cell::{Ref, RefCell, RefMut};

use crate::quota::Owner;

/// Bytes encrypted, or received, at once: four records of the longest kind (RFC 8446 section 5.1).
pub(super) const PIECE: usize = 64 * 1024;
/// What records add to a piece, and the room for a handshake's answer.
const ADDED: usize = 16 * 1024;

/// The TLS buffers that one thread's connections share. They exist from its first such connection on.
#[derive(Default)]
pub(crate) struct TlsBuffers {
    buffers: RefCell<Buffers>,
    owner: RefCell<Owner>,
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

impl TlsBuffers {
    pub(super) fn buffers(&self) -> RefMut<'_, Buffers> {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.incoming.is_empty() {
            buffers.incoming = vec![0; PIECE].into();
            buffers.outgoing = vec![0; PIECE + ADDED].into();
        }
        buffers
    }

    /// Notes where the connection at hand is, which may begin a handshake.
    pub(crate) fn note_owner(&self, owner: &Owner) {
        *self.owner.borrow_mut() = owner.clone();
    }

    pub(super) fn owner(&self) -> Ref<'_, Owner> {
        self.owner.borrow()
    }
}
