//! Extensions: parts of a program that keep their own records in the store's journal, in one order
//! with the commits.

use std::sync::Arc;

/// A part of the program that keeps its own records in a store's journal, channels for example.
/// Each record has a sequence among the commits and takes effect after all earlier ones.
///
/// [`Store::append`](crate::Store::append) calls its callback once the record is durable. At each start
/// the store hands over the blocks of the last snapshot, then all later records.
pub trait Extension: Send + Sync {
    /// Whether the records and blocks with this first byte are its own: several extensions share a
    /// journal, and each first byte belongs to one of them. By default it is the only extension.
    fn owns(&self, _first: u8) -> bool {
        true
    }

    /// Loads the next block of the extension's last snapshot, at a start.
    ///
    /// # Errors
    ///
    /// The block is invalid. The store then fails to open and changes nothing on disk.
    fn load_block(&self, block: &[u8]) -> Result<(), String>;

    /// Replays a record, at a start.
    ///
    /// # Errors
    ///
    /// The record is invalid. The store then fails to open and changes nothing on disk.
    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String>;

    /// Applies a record of another node, while the program runs. The store calls it in the order of
    /// sequences, under the journal's lock: it must be quick and must not commit.
    ///
    /// # Errors
    ///
    /// The record is invalid: this node cannot follow the others any more.
    fn follow(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.replay(sequence, record)
    }

    /// Ends the replay: all blocks and records were handed over.
    ///
    /// # Errors
    ///
    /// The replayed state is incomplete. The store then fails to open.
    fn finish_load(&self) -> Result<(), String>;

    /// All state up to the last acknowledged record, as blocks of at most 8 MB each. The store
    /// drains the iterator in the background, while commits continue.
    fn snapshot(&self) -> SnapshotBlocks;
}

/// The blocks of an extension's snapshot.
pub type SnapshotBlocks = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// The callback of a durable record. Its argument is the record's sequence.
pub(crate) type OnDurable = Box<dyn FnOnce(u64) + Send>;

/// The first byte of an extension's records and blocks.
const EXTENSION: u8 = 16;

/// Marks an extension's bytes as its record or block.
pub(crate) fn with_marker(bytes: &[u8]) -> Vec<u8> {
    [&[EXTENSION], bytes].concat()
}

/// The extension's bytes of a record or a block; `None` if it is the store's own.
pub(crate) fn strip_marker(record: &[u8]) -> Option<&[u8]> {
    record.split_first().filter(|(kind, _)| **kind == EXTENSION).map(|(_, bytes)| bytes)
}

/// The extensions of a store.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Vec<Arc<dyn Extension>>);

impl Extensions {
    /// Adds an extension.
    pub(crate) fn add(&mut self, extension: Arc<dyn Extension>) {
        self.0.push(extension);
    }

    /// Whether there is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The extension that has these bytes.
    fn owner(&self, bytes: &[u8]) -> Option<&Arc<dyn Extension>> {
        let first = bytes.first().copied().unwrap_or_default();
        self.0.iter().find(|extension| extension.owns(first))
    }

    /// The snapshots of all, one after the other; `None` without an extension.
    pub(crate) fn snapshot(&self) -> Option<SnapshotBlocks> {
        if let [only] = &self.0[..] {
            return Some(only.snapshot());
        }
        // All are taken now: the iterators are drained later.
        let all: Vec<SnapshotBlocks> = self.0.iter().map(|one| one.snapshot()).collect();
        (!all.is_empty()).then(|| Box::new(all.into_iter().flatten()) as SnapshotBlocks)
    }

    /// Notifies the extensions that the replay is complete.
    ///
    /// # Errors
    ///
    /// An extension finds its state incomplete.
    pub(crate) fn finish_load(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|extension| extension.finish_load())
    }

    /// Hands a record of another node to the extension.
    ///
    /// # Errors
    ///
    /// The program has no extension, or the extension does not accept the record.
    pub(crate) fn follow(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        match self.owner(record) {
            Some(extension) => extension.follow(sequence, record),
            None => Err("another node has data of an extension, such as channels, that this program does not have: run the same program on all nodes".to_owned()),
        }
    }

    /// Hands a record or a block of the journal to the extension.
    ///
    /// # Errors
    ///
    /// The program has no extension, or the extension does not accept the bytes.
    pub(crate) fn receive(&self, record: Option<u64>, bytes: &[u8]) -> Result<(), String> {
        let Some(extension) = self.owner(bytes) else {
            return Err("the folder has data of an extension, such as channels, that this program does not have: open the folder \
                        with the program that wrote it"
                .to_owned());
        };
        match record {
            Some(sequence) => extension.replay(sequence, bytes),
            None => extension.load_block(bytes),
        }
    }
}

impl FromIterator<Arc<dyn Extension>> for Extensions {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Extension>>>(extensions: I) -> Self {
        Self(extensions.into_iter().collect())
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} extensions", self.0.len())
    }
}

#[cfg(test)]
mod tests;
