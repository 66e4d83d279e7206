//! Loading tables at a start: rows from the snapshot and the journal, then the indexes built from
//! them.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::checkpoint::Checkpointer;
use crate::declaration::MergedTables;
use crate::extension::{Extensions, strip_marker};
use crate::id::RowId;
use crate::index_builder::with_indexes;
use crate::journal::{self, Journal, RecoveryEvent, Sequence};
use crate::options::Options;
use crate::record::{self, Record};
use crate::schema::{StoredTable, UnknownColumns};
use crate::state::{Catalog, Rows, State, Write};

/// A warning for the operator from a start that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Warning {
    /// A repair could not recover the changes in these records.
    Lost(RangeInclusive<Sequence>),
    /// The journal repaired itself.
    Journal(journal::Warning),
    /// The folder has records of an extension, which an [`Archive`](crate::Archive) does not
    /// change.
    Extension,
}

/// A callback for the progress of a start: bytes read, of bytes in all.
pub type Progress<'p> = dyn FnMut(u64, u64) + 'p;

/// The tables as loaded so far.
#[derive(Default)]
pub(crate) struct Loader {
    stored: Vec<StoredTable>,
    /// Rows by the stored position of their table.
    rows: Vec<Rows>,
    /// Staged rows without a `Taken` record so far, with the sequences of their records.
    staged: Vec<(Sequence, Vec<Write>)>,
    /// Bytes of records after the last snapshot.
    journal_growth: u64,
    /// Receives the records that belong to no table.
    extension: Extensions,
    warnings: Vec<Warning>,
}

/// A loaded store before its first commit.
pub(crate) struct LoadedStore {
    pub(crate) checkpointer: Checkpointer,
    pub(crate) state: State,
    /// The highest id of all rows.
    pub(crate) last: RowId,
    pub(crate) warnings: Vec<Warning>,
    /// The record of table definitions, if the disk had no room for it. The state counts it
    /// already.
    pub(crate) deferred_tables: Option<Vec<u8>>,
}

impl Loader {
    /// Begins to load. Records that belong to no table are passed to `extension`.
    pub(crate) fn for_extension(extension: Extensions) -> Self {
        Self { extension, ..Self::default() }
    }

    /// Loads the next part.
    pub(crate) fn receive(
        &mut self,
        loaded: RecoveryEvent<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<(), String> {
        match loaded {
            RecoveryEvent::Block(block) => match strip_marker(block) {
                Some(bytes) => self.extension.receive(None, bytes),
                None => self.read(0, block),
            }
            .map_err(|why| format!("the snapshot: {why}")),
            RecoveryEvent::Record(sequence, record) => {
                self.journal_growth += record.len() as u64;
                match strip_marker(record) {
                    Some(bytes) => self.extension.receive(Some(sequence), bytes),
                    None => self.read(sequence, record),
                }
                .map_err(|why| format!("record {sequence}: {why}"))
            }
            RecoveryEvent::Lost(records) => {
                self.warnings.push(Warning::Lost(records));
                Ok(())
            }
            RecoveryEvent::Progress { done, all } => {
                progress(done, all);
                Ok(())
            }
        }
    }

    fn read(&mut self, sequence: Sequence, bytes: &[u8]) -> Result<(), String> {
        match record::read(bytes).ok_or("it cannot be decoded, although its checksum is correct")? {
            Record::Tables(tables) => self.define_tables(tables)?,
            Record::Rows(writes) => self.apply(writes)?,
            Record::Staged(writes) => {
                self.staged.push((sequence, writes));
                return Ok(());
            }
            Record::Taken(first, tables) => {
                self.define_tables(tables)?;
                let staged = std::mem::take(&mut self.staged);
                for (_, writes) in staged.into_iter().filter(|(number, _)| *number >= first) {
                    self.apply(writes)?;
                }
            }
        }
        // The next record that is not staged ends a load: staged rows without a `Taken` record by
        // then have no effect.
        self.staged.clear();
        Ok(())
    }

    fn define_tables(&mut self, tables: Vec<StoredTable>) -> Result<(), String> {
        if tables.len() < self.rows.len() {
            return Err("it defines fewer tables than the record before it".to_owned());
        }
        self.rows.resize_with(tables.len(), Rows::default);
        self.stored = tables;
        Ok(())
    }

    fn apply(&mut self, writes: Vec<Write>) -> Result<(), String> {
        for write in writes {
            let Some(rows) = self.rows.get_mut(write.table) else {
                return Err(self.unknown_table());
            };
            match write.row {
                Some(row) => rows.insert(write.id, &row),
                None => rows.remove(write.id),
            }
        }
        Ok(())
    }

    fn unknown_table(&self) -> String {
        if self.warnings.is_empty() {
            return "it refers to a table that is not defined".to_owned();
        }
        "the definition of its table was in a record that is lost: restore the folder from a dump with `bine data load`".to_owned()
    }

    /// All tables as loaded, for tools that do not know the program's schema.
    pub(crate) fn into_parts(self) -> (Vec<StoredTable>, Vec<Rows>, Vec<Warning>) {
        (self.stored, self.rows, self.warnings)
    }

    /// Merges the loaded tables with the program's, and writes the new table definitions to the
    /// journal.
    pub(crate) fn finish(
        self,
        options: Options,
        sequence: u64,
        journal: &mut dyn Journal,
    ) -> Result<LoadedStore, String> {
        let Self { stored: before, mut rows, journal_growth, extension, warnings, .. } = self;
        let min_growth = options.journal.segment.saturating_mul(4);
        let MergedTables { definitions, positions, stored } =
            MergedTables::merge(options.tables, &before, UnknownColumns::Reject)?;
        rows.resize_with(stored.len(), Rows::default);
        let last = rows.iter().filter_map(|rows| rows.iter().next_back()).map(|(id, _)| id).max();
        let mut tables = Vec::new();
        for (definition, position) in definitions.iter().zip(&positions) {
            tables.push(with_indexes(definition, std::mem::take(&mut rows[*position]))?);
        }
        let catalog = Catalog::new(definitions, stored, positions);
        let undeclared = catalog.undeclared(rows.into_iter().enumerate());
        let definitions = Arc::new(catalog);
        let mut state = State { sequence, epoch: 0, definitions, tables, undeclared };
        let mut deferred_tables = None;
        if state.definitions.stored != before {
            let tables = record::tables(&state.definitions.stored);
            state.sequence += 1;
            match journal.append(&tables).and_then(|_| journal.write(true)) {
                Ok(written) => state.sequence = written,
                Err(journal::Error::Full { .. }) => deferred_tables = Some(tables),
                Err(error) => return Err(error.to_string()),
            }
        }
        let checkpointer = Checkpointer::new(journal_growth, extension, min_growth);
        let last = last.unwrap_or_default();
        Ok(LoadedStore { checkpointer, state, last, warnings, deferred_tables })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(records) if records.start() == records.end() => {
                write!(to, "record {} is lost: a repair could not read it", records.start())
            }
            Self::Lost(records) => {
                let (first, last) = (records.start(), records.end());
                write!(to, "records {first} to {last} are lost: a repair could not read them")
            }
            Self::Journal(warning) => warning.fmt(to),
            Self::Extension => to.write_str(
                "the folder also has data of an extension, such as channels; it stays unchanged and is not part of a dump",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(count: usize) -> Vec<StoredTable> {
        let table = |number| StoredTable { name: format!("t{number}").into(), columns: Vec::new() };
        (0..count).map(table).collect()
    }

    /// One row of the first table.
    fn row(id: u128) -> [Write; 1] {
        [Write { table: 0, id: RowId::from_number(id), row: Some([7][..].into()) }]
    }

    fn record(loader: &mut Loader, sequence: Sequence, bytes: &[u8]) -> Result<(), String> {
        loader.receive(RecoveryEvent::Record(sequence, bytes), &mut |_, _| {})
    }

    /// Loads records from sequence 1 on. Returns the ids of the first table's rows.
    fn loaded(records: &[Vec<u8>]) -> Result<Vec<u128>, String> {
        let mut loader = Loader::default();
        for (sequence, bytes) in (1..).zip(records) {
            record(&mut loader, sequence, bytes)?;
        }
        Ok(loader.rows[0].iter().map(|(id, _)| id.number()).collect())
    }

    #[test]
    fn rejects_records_that_contradict_the_definitions() {
        let (one, two) = (record::tables(&defined(1)), record::tables(&defined(2)));
        let second = record::rows(&row(1), &[1]);
        assert_eq!(loaded(&[two.clone(), second.clone()]), Ok(Vec::new()));
        assert_eq!(loaded(&[one.clone(), one.clone(), two.clone()]), Ok(Vec::new()));
        for (records, expected) in [
            (vec![one.clone(), second], "record 2: it refers to a table that is not defined"),
            (vec![two, one], "record 2: it defines fewer tables than the record before it"),
            (vec![vec![99]], "record 1: it cannot be decoded, although its checksum is correct"),
        ] {
            assert_eq!(loaded(&records), Err(expected.to_owned()));
        }
        let mut loader = Loader::default();
        let block = loader.receive(RecoveryEvent::Block(&[99]), &mut |_, _| {});
        assert!(block.is_err_and(|error| error.starts_with("the snapshot: it cannot be decoded")));
    }

    #[test]
    fn staged_rows_take_effect_from_the_named_record_on() {
        let staged = |id| record::staged(&row(id), &[0]);
        let taken = |first| record::taken(first, &defined(1));
        let rows = |id| record::rows(&row(id), &[0]);
        let tables = record::tables(&defined(1));
        let begin = || [tables.clone(), staged(12), staged(13), staged(14)];
        for (rest, expected) in [
            (vec![], vec![]),
            (vec![taken(2)], vec![12, 13, 14]),
            (vec![taken(3)], vec![13, 14]),
            (vec![taken(5)], vec![]),
            // Another record ends the load before.
            (vec![rows(15), taken(2)], vec![15]),
            (vec![taken(4), taken(2)], vec![14]),
        ] {
            assert_eq!(loaded(&[&begin()[..], &rest].concat()), Ok(expected), "{rest:?}");
        }
    }

    #[test]
    fn counts_bytes_of_records_but_not_of_the_snapshot() {
        let mut loader = Loader::default();
        let mut reported = Vec::new();
        let tables = record::tables(&defined(1));
        let mut receive =
            |event| loader.receive(event, &mut |done, all| reported.push((done, all)));
        receive(RecoveryEvent::Block(&tables)).unwrap();
        receive(RecoveryEvent::Progress { done: 3, all: 9 }).unwrap();
        let row = record::rows(&row(1), &[0]);
        receive(RecoveryEvent::Record(1, &row)).unwrap();
        receive(RecoveryEvent::Record(2, &tables)).unwrap();
        assert_eq!(loader.journal_growth, (row.len() + tables.len()) as u64);
        assert_eq!(reported, [(3, 9)]);
    }

    #[test]
    fn names_lost_records_in_warnings() {
        for (warning, expected) in [
            (Warning::Lost(3..=3), "record 3 is lost: a repair could not read it"),
            (Warning::Lost(3..=5), "records 3 to 5 are lost: a repair could not read them"),
            (
                Warning::Extension,
                "the folder also has data of an extension, such as channels; it stays unchanged and is not part of a dump",
            ),
        ] {
            assert_eq!(warning.to_string(), expected);
        }
    }
}
