//! What the TLS connections of one thread share: buffers, the order of handshakes, and the owner of
//! the current connection.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use crate::quota::Owner;
use crate::tls::HandshakeQueue;

/// Bytes encrypted or received at one time: four records of maximum length (RFC 8446 section 5.1).
pub(super) const PIECE: usize = 64 * 1024;
/// Extra space for record overhead and for the handshake messages that the server sends.
const ADDED: usize = 16 * 1024;

/// The TLS buffers that the connections of one thread share. The first TLS connection allocates
/// them.
#[derive(Default)]
pub(crate) struct TlsBuffers {
    buffers: RefCell<Buffers>,
    queue: Rc<HandshakeQueue>,
    owner: RefCell<Owner>,
}

/// Input and output buffer. Only one connection uses them at a time.
#[derive(Default)]
pub(super) struct Buffers {
    /// Bytes received from the socket, or read from a file.
    incoming: Box<[u8]>,
    /// Encrypted bytes to send.
    outgoing: Box<[u8]>,
}

impl Buffers {
    /// Returns the input buffer and the output buffer.
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

    /// The handshakes of this thread that wait for their turn.
    pub(crate) fn queue(&self) -> &Rc<HandshakeQueue> {
        &self.queue
    }

    /// Stores the owner of the current connection, which may begin a handshake.
    pub(crate) fn note_owner(&self, owner: &Owner) {
        *self.owner.borrow_mut() = owner.clone();
    }

    pub(super) fn owner(&self) -> Ref<'_, Owner> {
        self.owner.borrow()
    }
}
