//! A store on one node among several: all nodes follow one stream of messages and hold the same
//! tables.
//!
//! A [`Replica`] knows no network. The transport takes its [unconfirmed
//! messages](Replica::unconfirmed_after), appends them to a stream that all nodes share, and
//! [delivers](Replica::deliver) each message of the stream to each node, in one order. A commit is
//! acknowledged when its own message is delivered, so the guarantees of the stream for a message hold
//! for the commit.

use std::fmt;
use std::sync::Arc;

use crate::checkpoint::Checkpointer;
use crate::commit::{Committer, DeclareError, Delivered, Pending, Shared, SharedSnapshot, Sync};
use crate::contents::StoreContents;
use crate::declaration::Declaration;
use crate::error::Error;
use crate::journal::{MemoryJournal, RecoveryEvent};
use crate::load::Loader;
use crate::options::Options;
use crate::state::State;
use crate::store::Store;
use crate::stream::message::{MAX_PIECE, RESERVATION};

/// The store of one node among several.
///
/// ```
/// use bine_store::{Column, Field, Options, Replica, Schema, Value};
///
/// let replica = Replica::new(Options::new(), || {})?;
/// let store = replica.store().clone();
/// let mut note = Schema::new("note");
/// note.columns.push(Column::of::<String>("text"));
/// let declared = store.declare(&[note])?;
/// // What a transport does: a stream of one node.
/// let (number, message) = replica.unconfirmed_after(0).unwrap();
/// replica.deliver(number, &message)?;
/// declared.wait()?;
/// assert_eq!(store.read().table_named("note").unwrap().count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replica {
    store: Store,
    /// The tables of the program, until it declares them.
    declaration: Declaration,
}

/// A snapshot of a replica at a position of the stream.
pub struct ReplicaSnapshot(SharedSnapshot);

/// The first byte of a block with a part of a snapshot's header.
const HEADER: u8 = 32;
/// The only byte of the last block.
const END: u8 = 33;
/// Bytes of the header in one block.
const MAX_HEADER_BLOCK: usize = 4 << 20;

impl Replica {
    /// The length of the longest message in bytes.
    pub const MAX_MESSAGE: usize = MAX_PIECE + 64;

    /// The message that reserves an empty stream for a [first
    /// snapshot](ReplicaSnapshot::first) at its position. A node that has not loaded the snapshot cannot pass it.
    pub const RESERVATION: &[u8] = &[RESERVATION];

    /// Creates the replica of an empty stream. `wake` tells the transport that there is an
    /// unconfirmed message; it must not block.
    ///
    /// The tables of `options` exist once [`declare`](Self::declare) has resolved.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn new(
        options: Options,
        wake: impl Fn() + Send + std::marker::Sync + 'static,
    ) -> Result<Self, String> {
        Self::start(options, Loader::default(), None, Box::new(wake))
    }

    /// Creates a replica from the blocks of a [snapshot](ReplicaSnapshot::write). The stream
    /// continues after its [position](Self::position).
    ///
    /// # Errors
    ///
    /// The blocks are invalid, or cannot be read.
    pub fn from_snapshot(
        options: Options,
        blocks: impl IntoIterator<Item = Result<Vec<u8>, String>>,
        wake: impl Fn() + Send + std::marker::Sync + 'static,
    ) -> Result<Self, String> {
        let mut loader = Loader::for_extension(options.extension.clone());
        let (mut header, mut is_complete) = (Vec::new(), false);
        for block in blocks {
            let block = block?;
            match block.split_first() {
                Some((&END, _)) => is_complete = true,
                Some((&HEADER, part)) => header.extend_from_slice(part),
                _ => loader.receive(RecoveryEvent::Block(&block), &mut |_, _| {})?,
            }
        }
        if !is_complete {
            return Err("the snapshot has no end: whoever wrote it has failed".to_owned());
        }
        Self::start(options, loader, Some(header), Box::new(wake))
    }

    fn start(
        options: Options,
        loader: Loader,
        header: Option<Vec<u8>>,
        wake: Box<dyn Fn() + Send + std::marker::Sync>,
    ) -> Result<Self, String> {
        let Options { tables, extension, .. } = options;
        extension.finish_load()?;
        let shared = Shared::new(extension.clone(), wake);
        let (shared, sequence) = match header {
            Some(header) => {
                shared.at_snapshot(&header).ok_or("the header of the snapshot is invalid")?
            }
            None => (shared, 0),
        };
        let (stored, rows, warnings) = loader.into_parts();
        let last = rows.iter().filter_map(|rows| rows.iter().next_back()).map(|(id, _)| id).max();
        let state = State::undeclared(sequence, stored, rows);
        let checkpointer = Checkpointer::new(0, extension, u64::MAX);
        let journal = Box::new(MemoryJournal::new());
        let committer = Committer::new(checkpointer, state, journal, Sync::None).sharing(shared);
        let store = Store::of(committer, last.unwrap_or_default(), warnings)?;
        Ok(Self { store, declaration: Declaration::Program(tables) })
    }

    /// The tables. A commit resolves when the stream has delivered its message.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Declares the program's tables, once the replica has caught up with the stream. The transport
    /// must be running: columns that are new are sent by the stream.
    ///
    /// # Errors
    ///
    /// The tables contradict each other or those of the stream.
    pub fn declare(&self) -> Result<Pending, DeclareError> {
        let (committer, shared) = self.parts();
        committer.declare_shared(shared, self.declaration.clone())
    }

    /// The position of the last message that was delivered; 0 before the first one.
    pub fn position(&self) -> u64 {
        self.parts().1.position()
    }

    /// The first message of this node that is not delivered yet and has a number above `number`, with
    /// its number.
    pub fn unconfirmed_after(&self, number: u64) -> Option<(u64, Arc<[u8]>)> {
        self.parts().1.unconfirmed_after(number)
    }

    /// The number of commits and records that wait for the stream.
    pub fn waiting(&self) -> usize {
        self.parts().1.waiting()
    }

    /// Applies the message at a position of the stream. Positions have no gaps.
    ///
    /// # Errors
    ///
    /// This node cannot follow the stream any more. The message names the correction.
    pub fn deliver(&self, position: u64, message: &[u8]) -> Result<Delivered, String> {
        let (committer, shared) = self.parts();
        committer.deliver(shared, position, message)
    }

    /// Notes that the transport cannot reach the stream. Commits are rejected with
    /// [`Error::CutOff`], and those under way fail with [`Error::Unconfirmed`].
    pub fn cut_off(&self, why: &str) {
        let (rejected, pending) = (Error::CutOff(why.into()), Error::Unconfirmed(why.into()));
        self.parts().1.cut_off(rejected, &pending);
    }

    /// Notes that the replica follows the stream again: commits are accepted.
    pub fn reconnect(&self) {
        self.parts().1.reconnect();
    }

    /// Notes that the replica cannot follow the stream any more: all commits fail.
    pub fn end(&self, why: &str) {
        let (rejected, pending) = (Error::Broken(why.into()), Error::Unconfirmed(why.into()));
        self.parts().1.cut_off(rejected, &pending);
    }

    /// Bytes of messages since the last mark of a snapshot.
    pub fn growth(&self) -> u64 {
        self.parts().1.growth()
    }

    /// Sends a mark by the stream. When it is delivered, `then` receives the snapshot of this node. All
    /// nodes forget the changes before the mark, so transactions under way run again.
    ///
    /// # Errors
    ///
    /// The store rejects commits.
    pub fn request_snapshot(
        &self,
        then: impl FnOnce(ReplicaSnapshot) + Send + 'static,
    ) -> Result<(), Error> {
        let (committer, shared) = self.parts();
        committer.request_snapshot(shared, Box::new(|snapshot| then(ReplicaSnapshot(snapshot))))
    }

    /// All that the replica holds. The transport must have ended: later messages change the extension,
    /// which the contents share with the replica.
    pub fn contents(&self) -> StoreContents {
        let extension = self.parts().1.extension().clone();
        StoreContents::of(&self.store.committer().visible(), extension)
    }

    fn parts(&self) -> (&Arc<Committer>, &Shared) {
        let committer = self.store.committer();
        (committer, committer.shared().expect("`start` has set it"))
    }
}

impl ReplicaSnapshot {
    /// The snapshot with which a stream begins. `position` is that of its last message, and no node
    /// has written a message yet.
    pub fn first(contents: &StoreContents, position: u64) -> Self {
        Self(contents.shared_snapshot(position))
    }

    /// The position in the stream after which a node goes on.
    pub const fn position(&self) -> u64 {
        self.0.position
    }

    /// Writes the snapshot as blocks of at most 8 MB. Commits continue meanwhile.
    ///
    /// # Errors
    ///
    /// Those of `put`.
    pub fn write(
        self,
        put: &mut (dyn FnMut(&[u8]) -> Result<(), String> + Send),
    ) -> Result<(), String> {
        for part in self.0.header().chunks(MAX_HEADER_BLOCK) {
            put(&[&[HEADER], part].concat())?;
        }
        self.0.write(put)?;
        put(&[END])
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Replica").field("position", &self.position()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReplicaSnapshot {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ReplicaSnapshot")
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod tests;
