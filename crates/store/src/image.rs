//! Decides when all tables are written beside the journal, so that a start need not read all that ever happened.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::guest::{Blocks, Seat, wrapped};
use crate::journal::{Error, LONGEST_BLOCK, SnapshotWriter};
use crate::record;
use crate::row::Row;
use crate::schema::Stored;
use crate::state::{Definitions, Rows, State, Write};

/// What a store keeps beside the tables of the program, and about them.
#[derive(Debug)]
pub(crate) struct Kept {
    /// All tables that were ever made, in the order in which records name them.
    pub(crate) stored: Vec<Stored>,
    /// Where the program's tables are among these.
    pub(crate) places: Vec<usize>,
    /// The rows of those that the program does not have.
    pub(crate) others: Vec<(usize, Rows)>,
    /// Who keeps something beside tables.
    guest: Seat,
    /// Bytes of records since the last image.
    grown: AtomicU64,
    /// Less than this is read in a moment.
    least: u64,
    /// Bytes of the last image.
    last: AtomicU64,
    is_under_way: AtomicBool,
    /// Nobody waits for one that is under way.
    is_given_up: AtomicBool,
    /// What became of the last one.
    failure: Mutex<Option<Error>>,
}

/// Rows that are written at once, in bytes.
const BLOCK: usize = 256 << 10;
/// A row, in bytes: what is written at once ends with a whole one, and fits a block of the image.
pub(crate) const LONGEST_ROW: usize = LONGEST_BLOCK / 2;

impl Kept {
    pub(crate) fn new(
        stored: Vec<Stored>,
        places: Vec<usize>,
        others: Vec<(usize, Rows)>,
        grown: u64,
        guest: Seat,
        least: u64,
    ) -> Self {
        Self {
            stored,
            places,
            others,
            guest,
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

    /// Whether the journal is longer than what an image of all tables would be.
    pub(crate) fn is_due(&self) -> bool {
        let grown = self.grown.load(Ordering::Relaxed);
        grown >= self.least.max(self.last.load(Ordering::Relaxed))
            && !self.is_under_way.load(Ordering::Relaxed)
    }

    /// True: it is, and the caller writes one.
    pub(crate) fn begin_if_due(&self) -> bool {
        let begins = self.is_due() && !self.is_under_way.swap(true, Ordering::AcqRel);
        if begins {
            // What fails is tried again when as much has come once more.
            self.grown.store(0, Ordering::Relaxed);
        }
        begins
    }

    pub(crate) fn end(&self, failure: Option<Error>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        self.is_under_way.store(false, Ordering::Release);
    }

    /// One that is under way ends soon, and is not there: the journal has everything.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Why the last image could not be written. The journal has everything all the same.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(ToString::to_string)
    }

    /// What the guest keeps at this moment.
    pub(crate) fn guest_image(&self) -> Option<Blocks> {
        self.guest.0.as_ref().map(|guest| guest.image())
    }

    /// Writes all tables: first what they consist of, then their rows; then what the guest keeps.
    pub(crate) fn write(
        &self,
        definitions: &Definitions,
        state: &State,
        guest: Option<Blocks>,
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
        for block in guest.into_iter().flatten() {
            put(&wrapped(&block))?;
        }
        self.last.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}
