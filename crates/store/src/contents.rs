//! All that a store holds at one moment, without the program that declares its tables: read from a
//! folder or a replica, written to either, and compared.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::checkpoint::{Checkpointer, MAX_ROW_LENGTH};
use crate::commit::SharedSnapshot;
use crate::disk::{self, Folder};
use crate::extension::{Extension, Extensions};
use crate::id::{Ids, RowId};
use crate::journal::{self, FileJournal, Journal, ReadFolder, SnapshotWriter};
use crate::load::{Loader, Progress, Warning};
use crate::record;
use crate::schema::{Schema, StoredTable, UnknownColumns};
use crate::state::{Rows, State};
use crate::store::now;
use crate::value::Value;

/// The tables of a store with all their rows, and its extension, at one moment.
///
/// Rows are copied as bytes, so columns and tables that no program declares any more are copied too.
/// Ids of new rows follow from the ids of these rows, and need no copy.
pub struct StoreContents {
    /// The sequence of the last record.
    sequence: u64,
    stored: Vec<StoredTable>,
    /// Rows by the stored position of their table.
    rows: Vec<Rows>,
    extension: Extensions,
    warnings: Vec<Warning>,
    /// Keeps the folder locked.
    _folder: Option<ReadFolder>,
}

/// The size of contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContentsSize {
    /// The number of tables, those without rows included.
    pub tables: usize,
    /// The number of rows of all tables.
    pub rows: usize,
    /// The bytes of all rows, without the extension.
    pub bytes: u64,
}

/// The first difference between two contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The tables or their columns differ.
    Definitions,
    /// A row is different, or only one of the contents has it.
    Row {
        /// The table.
        table: String,
        /// The id of the row.
        id: RowId,
    },
    /// The data of the extension differs.
    Extension,
}

impl StoreContents {
    /// Reads a folder, and changes nothing but its lock file. The folder stays locked until the
    /// contents are dropped. `extension` receives the records that belong to no table. `progress` is
    /// called during the read.
    ///
    /// # Errors
    ///
    /// A different program has locked the folder, it is damaged, or it has data of an extension that
    /// is not given.
    pub fn read(
        folder: &dyn Folder,
        extension: Option<Arc<dyn Extension>>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let extension: Extensions = extension.into_iter().collect();
        let mut loader = Loader::for_extension(extension.clone());
        let mut receive = |loaded: journal::RecoveryEvent<'_>| loader.receive(loaded, progress);
        let read = FileJournal::read(folder, &mut receive).map_err(|error| error.to_string())?;
        extension.finish_load()?;
        let (stored, rows, mut warnings) = loader.into_parts();
        warnings.extend(read.warnings.iter().cloned().map(Warning::Journal));
        Ok(Self { sequence: read.last, stored, rows, extension, warnings, _folder: Some(read) })
    }

    pub(crate) fn of(state: &State, extension: Extensions) -> Self {
        let stored = state.definitions.stored.clone();
        let mut rows = vec![Rows::default(); stored.len()];
        let declared = state.definitions.positions.iter().zip(&state.tables);
        for (position, table) in declared {
            rows[*position] = table.rows.clone();
        }
        for (position, undeclared) in state.undeclared.iter() {
            rows[*position] = undeclared.clone();
        }
        let sequence = state.sequence;
        Self { sequence, stored, rows, extension, warnings: Vec::new(), _folder: None }
    }

    /// Inserts rows into a table, which is created if it is missing. The rows get new ids. No record
    /// is counted for them: do so before the contents are written anywhere.
    ///
    /// # Errors
    ///
    /// The stored table has other columns, or a value is invalid.
    pub fn insert(&mut self, table: &Schema, rows: &[&[Value<'_>]]) -> Result<(), String> {
        let known = self.stored.iter().position(|stored| stored.name == table.name);
        let stored = known.map(|known| &self.stored[known]);
        let (stored, layout) = table.merge(stored, UnknownColumns::Keep)?;
        let mut encoded = Vec::with_capacity(rows.len());
        for values in rows {
            if let Some(invalid) = table.check(values).first() {
                return Err(format!("`{}.{}`: a value is invalid", table.name, invalid.column));
            }
            let row = layout.write(values);
            if row.len() > MAX_ROW_LENGTH {
                return Err(format!("a row of `{}` is longer than 8 MB", table.name));
            }
            encoded.push(row);
        }
        let ids = self.rows.iter().filter_map(|rows| rows.iter().next_back());
        let last = ids.map(|(id, _)| id).max().unwrap_or_default();
        let position = known.unwrap_or(self.stored.len());
        match known {
            Some(known) => self.stored[known] = stored,
            None => {
                self.stored.push(stored);
                self.rows.push(Rows::default());
            }
        }
        let mut ids = Ids::after(last, disk::random);
        for row in encoded {
            self.rows[position].insert(ids.next(now()), &row);
        }
        Ok(())
    }

    /// The texts in a column, the oldest row first. Empty without such a table or column.
    pub fn texts(&self, table: &str, column: &str) -> Vec<String> {
        let Some(position) = self.stored.iter().position(|stored| stored.name == table) else {
            return Vec::new();
        };
        let stored = &self.stored[position];
        let Some(place) = stored.live_columns().position(|live| live.name == column) else {
            return Vec::new();
        };
        let layout = stored.layout();
        let mut values = vec![Value::Null; stored.live_columns().count()];
        let mut texts = Vec::new();
        for (_, row) in self.rows[position].iter() {
            let read = layout.read(row, &mut values);
            if let (Some(()), Value::Text(text)) = (read, values[place]) {
                texts.push(text.to_owned());
            }
        }
        texts
    }

    pub(crate) fn shared_snapshot(&self, position: u64) -> SharedSnapshot {
        let extension = self.extension.snapshot();
        SharedSnapshot::first(position, Arc::new(self.state()), extension)
    }

    /// Writes the contents into a new folder, in such a way that two files independently lead to them.
    /// Returns the sequence of the last record. The folder is durable afterwards, and unlocked.
    /// `progress` receives the bytes written so far.
    ///
    /// # Errors
    ///
    /// The folder has a journal already, the disk fails or is full. The folder is then useless.
    pub fn write(
        &self,
        folder: Arc<dyn Folder>,
        options: journal::Options,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, journal::Error> {
        let mut journal = FileJournal::create_after(folder, options, self.sequence)?;
        let state = self.state();
        let mut bytes = 0;
        let mut count = |block: usize| {
            bytes += block as u64;
            progress(bytes);
        };
        if self.sequence > 0 {
            self.checkpoint(&state, journal.snapshot(self.sequence)?, &mut count)?;
        }
        // A record, so that the second snapshot has a sequence of its own.
        journal.append(&record::tables(&self.stored))?;
        let last = journal.write(true)?;
        self.checkpoint(&state, journal.snapshot(last)?, &mut count)?;
        journal.close()?;
        Ok(last)
    }

    fn checkpoint(
        &self,
        state: &State,
        writer: Box<dyn SnapshotWriter>,
        count: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(), journal::Error> {
        let checkpointer = Checkpointer::new(0, self.extension.clone(), u64::MAX);
        let mut writer = CountedWriter { writer, count };
        checkpointer.write(state, checkpointer.extension_snapshot(), &mut writer)?;
        writer.writer.finish()
    }

    /// The sequence of the last record, which numbers commits and messages.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Warnings for the operator, from the read of a folder.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Counts tables and rows. Reads all rows.
    pub fn size(&self) -> ContentsSize {
        let rows = self.rows.iter().flat_map(Rows::iter).map(|(_, row)| row.len() as u64);
        ContentsSize {
            tables: self.stored.len(),
            rows: self.rows.iter().map(Rows::len).sum(),
            bytes: rows.sum(),
        }
    }

    /// Compares all tables with their columns, each row with its id and all columns, and the data of
    /// the extension. Returns the first difference.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        // Bytes, because a default may be a number that does not equal itself.
        if record::tables(&self.stored) != record::tables(&other.stored) {
            return Some(Difference::Definitions);
        }
        for (table, (own, other)) in self.stored.iter().zip(self.rows.iter().zip(&other.rows)) {
            if let Some(id) = row_difference(own, other) {
                return Some(Difference::Row { table: table.name.to_string(), id });
            }
        }
        let blocks = |contents: &Self| contents.extension.snapshot().into_iter().flatten();
        (!blocks(self).eq(blocks(other))).then_some(Difference::Extension)
    }

    fn state(&self) -> State {
        State::undeclared(self.sequence, self.stored.clone(), self.rows.clone())
    }
}

/// Counts the bytes of a snapshot's blocks.
struct CountedWriter<'c> {
    writer: Box<dyn SnapshotWriter>,
    count: &'c mut (dyn FnMut(usize) + Send),
}

impl SnapshotWriter for CountedWriter<'_> {
    fn block(&mut self, bytes: &[u8]) -> Result<(), journal::Error> {
        self.writer.block(bytes)?;
        (self.count)(bytes.len());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), journal::Error> {
        self.writer.finish()
    }
}

/// The first row that is not equal in both.
fn row_difference(own: &Rows, other: &Rows) -> Option<RowId> {
    let (mut own, mut other) = (own.iter(), other.iter());
    loop {
        match (own.next(), other.next()) {
            (None, None) => return None,
            (Some((id, _)), None) | (None, Some((id, _))) => return Some(id),
            (Some(own), Some(other)) => match own.0.cmp(&other.0) {
                Ordering::Equal if own.1 == other.1 => {}
                _ => return Some(own.0.min(other.0)),
            },
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definitions => to.write_str("the tables or their columns differ"),
            Self::Row { table, id } => write!(to, "the row {id} of `{table}` differs"),
            Self::Extension => to.write_str("the channels differ"),
        }
    }
}

impl fmt::Debug for StoreContents {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.stored.iter().map(|table| &table.name).zip(&self.rows);
        to.debug_map().entries(tables.map(|(name, rows)| (name, rows.len()))).finish()
    }
}

#[cfg(test)]
mod tests;
