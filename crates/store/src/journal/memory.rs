//! A journal without storage: the baseline of measurements, and a test double.

use super::group::GroupBuilder;
use super::{Compaction, Error, Journal, Sequence, SnapshotWriter};

/// A journal that numbers records and discards them.
pub struct MemoryJournal {
    draft: GroupBuilder,
    written: Sequence,
}

impl MemoryJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self { draft: GroupBuilder::new(0, 1), written: 0 }
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, record: &[u8]) -> Result<Sequence, Error> {
        self.draft.append(record)
    }

    fn write(&mut self, _durably: bool) -> Result<Sequence, Error> {
        self.draft.begin_next();
        self.written = self.draft.next() - 1;
        Ok(self.written)
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn sync(&mut self) -> Result<Sequence, Error> {
        Ok(self.written)
    }

    fn durable(&self) -> Sequence {
        self.written
    }

    fn snapshot(&mut self, _sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, Error> {
        Ok(Box::new(Nowhere))
    }

    fn compaction(&mut self, _snapshot: Sequence) -> Result<Compaction, Error> {
        Ok(Box::new(|| Ok(())))
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

struct Nowhere;

impl SnapshotWriter for Nowhere {
    fn block(&mut self, _bytes: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}
