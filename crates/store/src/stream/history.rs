//! The rows that the last records changed: whether a transaction that read an earlier state may
//! still commit.
//!
//! The history of all nodes is the same, because it depends only on the records and on the rows
//! before them. A snapshot contains no history: its place in the stream is a mark at which all nodes
//! forget theirs.

use std::collections::{BTreeMap, VecDeque};

use super::access::{Access, ChangedRow};
use crate::row::Row;
use crate::schema::StoredTable;

/// The last changes.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Changes after this sequence are known.
    floor: u64,
    records: VecDeque<ChangedRecord>,
    bytes: usize,
    /// When the stored columns of a table last changed.
    redefined: BTreeMap<usize, u64>,
}

#[derive(Debug)]
struct ChangedRecord {
    sequence: u64,
    rows: Vec<ChangedRow>,
    bytes: usize,
}

/// Records that are remembered. A transaction that began before the oldest one conflicts.
const MAX_RECORDS: usize = 1 << 13;
/// Bytes of rows that are remembered.
const MAX_BYTES: usize = 16 << 20;
/// What a row costs besides its bytes.
const ROW_OVERHEAD: usize = 64;

impl History {
    /// A history that knows nothing before this sequence.
    pub(crate) fn after(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    /// Forgets all changes up to a sequence.
    pub(crate) fn mark(&mut self, sequence: u64) {
        self.records.clear();
        (self.floor, self.bytes) = (sequence, 0);
        // A transaction with a base below the floor conflicts anyway.
        self.redefined.clear();
    }

    /// Remembers the rows that a record changed.
    pub(crate) fn note(&mut self, sequence: u64, rows: Vec<ChangedRow>) {
        let length = |row: &Option<Row>| row.as_ref().map_or(0, |row| row.len());
        let bytes =
            rows.iter().map(|row| ROW_OVERHEAD + length(&row.before) + length(&row.after)).sum();
        self.bytes += bytes;
        self.records.push_back(ChangedRecord { sequence, rows, bytes });
        while self.records.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.bytes;
            self.floor = oldest.sequence;
        }
    }

    /// Notes that a record changed the stored columns of a table.
    pub(crate) fn note_redefined(&mut self, sequence: u64, table: usize) {
        self.redefined.insert(table, sequence);
    }

    /// Whether a record after `base` changed what a transaction read, or the columns of a table that
    /// it read or wrote.
    pub(crate) fn conflicts(
        &self,
        base: u64,
        accesses: &[Access],
        written: impl IntoIterator<Item = usize>,
        tables: &[StoredTable],
    ) -> bool {
        let is_redefined =
            |table: usize| self.redefined.get(&table).is_some_and(|sequence| *sequence > base);
        base < self.floor
            || written.into_iter().any(is_redefined)
            || accesses.iter().any(|access| is_redefined(access.table))
            || self.records.iter().rev().take_while(|record| record.sequence > base).any(|record| {
                record.rows.iter().any(|row| {
                    accesses.iter().any(|access| {
                        access.table == row.table
                            && tables
                                .get(row.table)
                                .is_none_or(|table| access.is_touched_by(row, table))
                    })
                })
            })
    }

    /// The sequence whose changes and all later ones are known.
    #[cfg(test)]
    pub(crate) const fn floor(&self) -> u64 {
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RowId;

    fn row(id: u128, length: usize) -> ChangedRow {
        let after = Some(vec![0; length].into());
        ChangedRow { table: 0, id: RowId::from_number(id), before: None, after }
    }

    #[test]
    fn forgets_the_oldest_records_beyond_its_limits() {
        let mut history = History::default();
        for sequence in 1..=MAX_RECORDS as u64 + 3 {
            history.note(sequence, vec![row(1, 1)]);
        }
        assert_eq!(history.floor(), 3);
        assert!(history.conflicts(2, &[], [], &[]) && !history.conflicts(3, &[], [], &[]));
        history.note(10_000, vec![row(1, MAX_BYTES)]);
        assert_eq!((history.floor(), history.records.len()), (10_000, 0));
        history.mark(20_000);
        assert_eq!((history.floor(), history.bytes), (20_000, 0));
    }

    #[test]
    fn rejects_transactions_from_before_a_new_definition_of_their_table() {
        let mut history = History::default();
        history.note_redefined(7, 2);
        assert!(history.conflicts(6, &[], [1, 2], &[]));
        assert!(!history.conflicts(7, &[], [1, 2], &[]) && !history.conflicts(6, &[], [1], &[]));
    }
}
