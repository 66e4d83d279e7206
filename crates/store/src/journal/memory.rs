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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_records_and_accepts_every_call_at_once() {
        let mut journal = MemoryJournal::default();
        assert!(journal.is_instant());
        assert_eq!((journal.sync().ok(), journal.durable()), (Some(0), 0));
        assert_eq!((journal.append(b"a").ok(), journal.append(b"b").ok()), (Some(1), Some(2)));
        assert_eq!(journal.durable(), 0, "the group is not written yet");
        assert_eq!((journal.write(false).ok(), journal.durable()), (Some(2), 2));
        assert_eq!((journal.append(b"c").ok(), journal.write(true).ok()), (Some(3), Some(3)));
        assert_eq!((journal.sync().ok(), journal.durable()), (Some(3), 3));
        let mut snapshot = journal.snapshot(3).unwrap();
        snapshot.block(b"state").unwrap();
        snapshot.finish().unwrap();
        journal.compact(3).unwrap();
        assert!(journal.unsynced_mark().is_none());
        journal.close().unwrap();
    }
}
