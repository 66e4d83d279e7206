//! Decides how others than tables keep something in the same journal, in the one order of all that happens.

use std::sync::Arc;

/// Somebody who keeps something in a store's journal: each record has its place among the commits, and becomes true
/// when those before it have.
///
/// What it says in a record is told once as soon as it is kept ([`Store::keep`](crate::Store::keep)), and again at each start behind
/// the blocks of the last image.
pub trait Guest: Send + Sync {
    /// Takes in the next block of its own image, at a start.
    ///
    /// # Errors
    ///
    /// It is none. The store is not opened then, and nothing is changed.
    fn block(&self, block: &[u8]) -> Result<(), String>;

    /// Takes in a record that it kept, at a start.
    ///
    /// # Errors
    ///
    /// It is none. The store is not opened then, and nothing is changed.
    fn record(&self, sequence: u64, record: &[u8]) -> Result<(), String>;

    /// Everything has been told that it kept, at a start.
    ///
    /// # Errors
    ///
    /// That is not whole. The store is not opened then.
    fn told_all(&self) -> Result<(), String>;

    /// All that it keeps up to the last record that it was told of, as blocks of at most 8 MB each. They are made while the
    /// store goes on.
    fn image(&self) -> Blocks;
}

/// The blocks of an image.
pub type Blocks = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// What is done when a record is kept, with its sequence.
pub(crate) type Then = Box<dyn FnOnce(u64) + Send>;

/// What a guest keeps stands behind this in a record and in a block.
const GUEST: u8 = 16;

/// What a guest's bytes are as a record or a block of the store.
pub(crate) fn wrapped(bytes: &[u8]) -> Vec<u8> {
    [&[GUEST], bytes].concat()
}

/// What a guest said in a record or a block; `None`: it is the store's own.
pub(crate) fn unwrapped(record: &[u8]) -> Option<&[u8]> {
    record.split_first().filter(|(kind, _)| **kind == GUEST).map(|(_, bytes)| bytes)
}

/// A store's guest, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Seat(pub(crate) Option<Arc<dyn Guest>>);

impl Seat {
    /// Has told a guest everything.
    ///
    /// # Errors
    ///
    /// It misses something.
    pub(crate) fn told_all(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |guest| guest.told_all())
    }

    /// Gives a guest what it kept.
    ///
    /// # Errors
    ///
    /// It is not here, or does not know it.
    pub(crate) fn receive(&self, record: Option<u64>, bytes: &[u8]) -> Result<(), String> {
        let Some(guest) = &self.0 else {
            return Err("others than tables have kept something here, such as channels, and this program does not \
                        know them: open the folder with the program that does"
                .to_owned());
        };
        match record {
            Some(sequence) => guest.record(sequence, bytes),
            None => guest.block(bytes),
        }
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(if self.0.is_some() { "a guest" } else { "no guest" })
    }
}

#[cfg(test)]
mod tests;
