//! Checkpoints: when the store writes all tables to a snapshot file, so that a start replays less
//! of the journal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::extension::{SnapshotBlocks, ExtensionSlot, with_marker};
use crate::journal::{Error, MAX_BLOCK_LENGTH, SnapshotWriter};
use crate::record;
use crate::row::Row;
use crate::schema::Stored;
use crate::state::{Definitions, Rows, State, Write};

/// The stored tables, and the state of checkpoints.
#[derive(Debug)]
pub(crate) struct Kept {
    /// All tables that ever existed, in the order in which records number them.
    pub(crate) stored: Vec<Stored>,
    /// The positions of the program's tables among these.
    pub(crate) places: Vec<usize>,
    /// The rows of tables that the program no longer declares.
    pub(crate) others: Vec<(usize, Rows)>,
    /// The store's extension.
    extension: ExtensionSlot,
    /// Bytes of records since the last checkpoint.
    grown: AtomicU64,
    /// The smallest journal growth that triggers a checkpoint; a start replays less than this in a
    /// moment.
    least: u64,
    /// The size of the last snapshot in bytes.
    last: AtomicU64,
    is_under_way: AtomicBool,
    /// Whether a running checkpoint must stop early.
    is_given_up: AtomicBool,
    /// The error of the last checkpoint, if it failed.
    failure: Mutex<Option<Error>>,
}

/// The size of a block of rows in bytes.
const BLOCK: usize = 256 << 10;
/// The longest row in bytes: a block ends with a whole row and fits the journal's limit.
pub(crate) const MAX_ROW_LENGTH: usize = MAX_BLOCK_LENGTH / 2;

impl Kept {
    pub(crate) fn new(
        stored: Vec<Stored>,
        places: Vec<usize>,
        others: Vec<(usize, Rows)>,
        grown: u64,
        extension: ExtensionSlot,
        least: u64,
    ) -> Self {
        Self {
            stored,
            places,
            others,
            extension,
            grown: AtomicU64::new(grown),
            least,
            last: AtomicU64::new(0),
            is_under_way: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn grown(&self, bytes: usize) {
        self.grown.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the journal has grown by more than a snapshot of all tables would take.
    pub(crate) fn is_due(&self) -> bool {
        let grown = self.grown.load(Ordering::Relaxed);
        grown >= self.least.max(self.last.load(Ordering::Relaxed))
            && !self.is_under_way.load(Ordering::Relaxed)
    }

    /// Begins a checkpoint if one is due; returns true if the caller must write it.
    pub(crate) fn begin_if_due(&self) -> bool {
        let begins = self.is_due() && !self.is_under_way.swap(true, Ordering::AcqRel);
        if begins {
            // After a failure the next attempt follows the same growth.
            self.grown.store(0, Ordering::Relaxed);
        }
        begins
    }

    pub(crate) fn end(&self, failure: Option<Error>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        self.is_under_way.store(false, Ordering::Release);
    }

    /// Stops a running checkpoint soon. Its snapshot is discarded; the journal has all data.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// The error of the last checkpoint. The journal has all data nevertheless.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(ToString::to_string)
    }

    /// The extension's snapshot as of now.
    pub(crate) fn extension_snapshot(&self) -> Option<SnapshotBlocks> {
        self.extension.0.as_ref().map(|extension| extension.image())
    }

    /// Writes the table definitions, then the rows, then the extension's blocks.
    pub(crate) fn write(
        &self,
        definitions: &Definitions,
        state: &State,
        extension: Option<SnapshotBlocks>,
        to: &mut dyn SnapshotWriter,
    ) -> Result<(), Error> {
        let mut bytes = 0;
        let mut put = |block: &[u8]| {
            if self.is_given_up.load(Ordering::Relaxed) {
                return Err(Error::Refused("the store is closed".to_owned()));
            }
            bytes += block.len() as u64;
            to.block(block)
        };
        put(&record::tables(&self.stored))?;
        let own =
            (0..definitions.len()).map(|table| (self.places[table], &state.tables[table].rows));
        let others = self.others.iter().map(|(place, rows)| (*place, rows));
        for (place, rows) in own.chain(others) {
            let (mut writes, mut length) = (Vec::new(), 0);
            for (id, row) in rows.iter() {
                writes.push(Write { table: 0, id, row: Some(Row::from(row)) });
                length += row.len() + 24;
                if length >= BLOCK {
                    put(&record::rows(&writes, &[place]))?;
                    writes.clear();
                    length = 0;
                }
            }
            if !writes.is_empty() {
                put(&record::rows(&writes, &[place]))?;
            }
        }
        for block in extension.into_iter().flatten() {
            put(&with_marker(&block))?;
        }
        self.last.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}
