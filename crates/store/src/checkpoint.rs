//! Checkpoints: when the store writes all tables to a snapshot file, so that a start replays less
//! of the journal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::extension::{Extensions, SnapshotBlocks, with_marker};
use crate::journal::{Error, MAX_BLOCK_LENGTH, SnapshotWriter};
use crate::record;
use crate::row::Row;
use crate::state::{State, Write};

/// The state of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// The store's extension.
    extension: Extensions,
    /// Bytes of records since the last checkpoint.
    growth: AtomicU64,
    /// The smallest journal growth that triggers a checkpoint; a start replays less than this in a
    /// moment.
    min_growth: u64,
    /// The size of the last snapshot in bytes.
    last_size: AtomicU64,
    is_running: AtomicBool,
    /// Whether a running checkpoint must stop early.
    is_canceled: AtomicBool,
    /// The error of the last checkpoint, if it failed.
    failure: Mutex<Option<Error>>,
}

/// The size of a block of rows in bytes.
const BLOCK: usize = 256 << 10;
/// The longest row in bytes: a block ends with a whole row and fits the journal's limit.
pub(crate) const MAX_ROW_LENGTH: usize = MAX_BLOCK_LENGTH / 2;

impl Checkpointer {
    pub(crate) fn new(growth: u64, extension: Extensions, min_growth: u64) -> Self {
        Self {
            extension,
            growth: AtomicU64::new(growth),
            min_growth,
            last_size: AtomicU64::new(0),
            is_running: AtomicBool::new(false),
            is_canceled: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn add_growth(&self, bytes: usize) {
        self.growth.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the journal has grown by more than a snapshot of all tables would take.
    pub(crate) fn is_due(&self) -> bool {
        let growth = self.growth.load(Ordering::Relaxed);
        growth >= self.min_growth.max(self.last_size.load(Ordering::Relaxed))
            && !self.is_running.load(Ordering::Relaxed)
    }

    /// Begins a checkpoint if one is due; returns true if the caller must write it.
    pub(crate) fn start_if_due(&self) -> bool {
        let begins = self.is_due() && !self.is_running.swap(true, Ordering::AcqRel);
        if begins {
            // After a failure the next attempt follows the same growth.
            self.growth.store(0, Ordering::Relaxed);
        }
        begins
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self, failure: Option<Error>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        self.is_running.store(false, Ordering::Release);
    }

    /// Stops a running checkpoint soon. Its snapshot is discarded; the journal has all data.
    pub(crate) fn cancel(&self) {
        self.is_canceled.store(true, Ordering::Relaxed);
    }

    /// The error of the last checkpoint. The journal has all data nevertheless.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(ToString::to_string)
    }

    /// The extension's snapshot as of now.
    pub(crate) fn extension_snapshot(&self) -> Option<SnapshotBlocks> {
        self.extension.snapshot()
    }

    /// Writes the table definitions, then the rows, then the extension's blocks.
    pub(crate) fn write(
        &self,
        state: &State,
        extension: Option<SnapshotBlocks>,
        to: &mut dyn SnapshotWriter,
    ) -> Result<(), Error> {
        let mut bytes = 0;
        let mut put = |block: &[u8]| {
            if self.is_canceled.load(Ordering::Relaxed) {
                return Err(Error::Refused("the store is closed".to_owned()));
            }
            bytes += block.len() as u64;
            to.block(block)
        };
        let catalog = &state.definitions;
        put(&record::tables(&catalog.stored))?;
        let rows = state.tables.iter().map(|table| &table.rows);
        let declared = catalog.positions.iter().copied().zip(rows);
        let undeclared = state.undeclared.iter().map(|(position, rows)| (*position, rows));
        for (position, rows) in declared.chain(undeclared) {
            let (mut writes, mut length) = (Vec::new(), 0);
            for (id, row) in rows.iter() {
                writes.push(Write { table: 0, id, row: Some(Row::from(row)) });
                length += row.len() + 24;
                if length >= BLOCK {
                    put(&record::rows(&writes, &[position]))?;
                    writes.clear();
                    length = 0;
                }
            }
            if !writes.is_empty() {
                put(&record::rows(&writes, &[position]))?;
            }
        }
        for block in extension.into_iter().flatten() {
            put(&with_marker(&block))?;
        }
        self.last_size.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::RowId;
    use crate::record::Record;
    use crate::schema::StoredTable;
    use crate::state::{Catalog, Rows};

    /// Collects the blocks of a snapshot.
    #[derive(Default)]
    struct Blocks(Vec<Vec<u8>>);

    impl SnapshotWriter for Blocks {
        fn block(&mut self, bytes: &[u8]) -> Result<(), Error> {
            self.0.push(bytes.to_vec());
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<(), Error> {
            Ok(())
        }
    }

    fn checkpointer(growth: u64, min_growth: u64) -> Checkpointer {
        Checkpointer::new(growth, Extensions::default(), min_growth)
    }

    /// Writes one table that the program does not declare, with rows of these lengths.
    fn write(checkpointer: &Checkpointer, lengths: &[usize]) -> Result<Vec<Vec<u8>>, Error> {
        let mut rows = Rows::default();
        for (id, length) in (1..).zip(lengths) {
            rows.insert(RowId::from_number(id), &vec![7; *length]);
        }
        let stored = vec![StoredTable { name: "t".into(), columns: Vec::new() }];
        let catalog = Catalog::new(Vec::new(), stored, Vec::new());
        let undeclared = catalog.undeclared([(0, rows)]);
        let definitions = Arc::new(catalog);
        let state = State { sequence: 1, epoch: 0, definitions, tables: Vec::new(), undeclared };
        let mut blocks = Blocks::default();
        checkpointer.write(&state, None, &mut blocks)?;
        Ok(blocks.0)
    }

    #[test]
    fn is_due_after_its_growth_and_once_at_a_time() {
        let checkpointer = checkpointer(90, 100);
        checkpointer.add_growth(9);
        assert!(!checkpointer.is_due() && !checkpointer.start_if_due());
        checkpointer.add_growth(1);
        assert!(checkpointer.is_due() && !checkpointer.is_running());
        assert!(checkpointer.start_if_due() && checkpointer.is_running());
        // Growth during a checkpoint counts towards the next one.
        checkpointer.add_growth(100);
        assert!(!checkpointer.is_due() && !checkpointer.start_if_due());
        checkpointer.finish(Some(Error::Refused("no".to_owned())));
        assert_eq!(checkpointer.failure().as_deref(), Some("no"));
        assert!(checkpointer.start_if_due());
        checkpointer.finish(None);
        assert_eq!((checkpointer.failure(), checkpointer.is_due()), (None, false));
    }

    #[test]
    fn is_due_again_after_growth_by_the_size_of_the_snapshot() {
        let checkpointer = checkpointer(0, 100);
        let size = write(&checkpointer, &[1000; 3]).unwrap().concat().len();
        assert!(size > 3000);
        checkpointer.add_growth(size - 1);
        assert!(!checkpointer.is_due());
        checkpointer.add_growth(1);
        assert!(checkpointer.is_due());
    }

    #[test]
    fn divides_rows_into_blocks() {
        // Each row counts as 24 bytes more.
        let quarter = BLOCK / 4 - 24;
        for (lengths, expected) in [
            (vec![], vec![]),
            (vec![1, 2, 3], vec![3]),
            (vec![quarter; 4], vec![4]),
            (vec![quarter; 9], vec![4, 4, 1]),
            (vec![quarter - 1; 9], vec![5, 4]),
            (vec![BLOCK, 1, BLOCK, 1], vec![1, 2, 1]),
        ] {
            let blocks = write(&checkpointer(0, 100), &lengths).unwrap();
            let (tables, rows) = blocks.split_first().unwrap();
            assert!(
                matches!(record::read(tables), Some(Record::Tables(tables)) if tables.len() == 1)
            );
            let read = |block: &Vec<u8>| match record::read(block) {
                Some(Record::Rows(writes)) => writes,
                other => panic!("{other:?} instead of rows"),
            };
            let rows: Vec<Vec<Write>> = rows.iter().map(read).collect();
            assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            let written: Vec<usize> =
                rows.iter().flatten().map(|write| write.row.as_ref().unwrap().len()).collect();
            assert_eq!(written, lengths);
        }
    }

    #[test]
    fn stops_when_the_store_closes() {
        let checkpointer = checkpointer(0, 100);
        checkpointer.cancel();
        let refused = write(&checkpointer, &[1]).unwrap_err().to_string();
        assert_eq!(refused, "the store is closed");
        assert!(!checkpointer.is_running());
    }
}
