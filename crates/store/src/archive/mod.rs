//! Archives: dump, load and compact a store's folder without the program that declares its tables.
//!
//! The folder contains the definitions of its tables, so tools can write the rows as lines of JSON,
//! read them again, and reduce the folder's size. docs/formats/lines.md describes the lines.

mod json;
mod load;
mod table;
mod value;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::checkpoint::Checkpointer;
use crate::disk::Folder;
use crate::extension::{Extension, Extensions, SnapshotBlocks};
use crate::id::RowId;
use crate::journal::{self, FileJournal, Journal, Sequence};
use crate::load::{Loader, Progress, Warning};
use crate::record;
use crate::schema::StoredTable;
use crate::state::{Rows, State};
use crate::value::Value;

pub use load::{LoadError, LoadSummary, MAX_LINE_LENGTH};

/// The tables of a folder, opened without the program that declares them. The folder stays locked
/// until the archive is closed or dropped.
pub struct Archive {
    folder: Arc<dyn Folder>,
    journal: FileJournal,
    /// The last record in the newest snapshot.
    newest_snapshot: Sequence,
    last: Sequence,
    stored: Vec<StoredTable>,
    rows: Vec<Rows>,
    /// The extension whose records the folder has, if given.
    extension: Extensions,
    warnings: Vec<Warning>,
}

/// The size of a folder before and after it was compacted, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactSummary {
    /// The size before.
    pub before: u64,
    /// The size after; equal to `before` if compacting would gain too little.
    pub after: u64,
}

/// The reason why a dump failed.
#[derive(Debug)]
pub enum DumpError {
    /// The table does not exist.
    NoSuchTable {
        /// The requested name.
        name: String,
        /// The names of the existing tables.
        known: Vec<String>,
    },
    /// A row does not match the table's stored definition.
    Unreadable {
        /// The table.
        table: String,
        /// The row; `None` if the definition itself is invalid.
        id: Option<RowId>,
    },
    /// The output could not be written.
    Write(io::Error),
}

/// Forwards an extension's data to the given extension, if any, and notes that the folder has such
/// data.
struct ExtensionProbe {
    has_records: AtomicBool,
    extension: Extensions,
}

impl Extension for ExtensionProbe {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        self.has_records.store(true, Ordering::Relaxed);
        self.forward(None, block)
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.has_records.store(true, Ordering::Relaxed);
        self.forward(Some(sequence), record)
    }

    fn finish_load(&self) -> Result<(), String> {
        self.extension.finish_load()
    }

    fn snapshot(&self) -> SnapshotBlocks {
        self.extension.snapshot().unwrap_or_else(|| Box::new(std::iter::empty()))
    }
}

impl ExtensionProbe {
    fn forward(&self, record: Option<u64>, bytes: &[u8]) -> Result<(), String> {
        if self.extension.is_empty() { Ok(()) } else { self.extension.receive(record, bytes) }
    }
}

/// The first line of a dump.
const HEADER_LINE: &str = "{\"bine\":\"tables\",\"version\":1}\n";
/// The last line of a dump, which proves that the dump is complete.
const END_LINE: &str = "{\"end\":true}\n";
const VERSION: i128 = 1;
/// The bytes of one write.
const PIECE: usize = 64 << 10;
/// The least reduction for which compacting is worth its work, in bytes.
const MIN_GAIN: u64 = 4 << 10;

impl Archive {
    /// Opens a folder. `extension` is the extension whose data the folder has, channels for
    /// example; without it the archive keeps that data unchanged. `progress` is called while the
    /// folder is read.
    ///
    /// # Errors
    ///
    /// Another program has locked the folder, or it is damaged. Nothing is changed then.
    pub fn open(
        folder: Arc<dyn Folder>,
        extension: Option<Arc<dyn Extension>>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        Self::open_with(folder, journal::Options::default(), extension, progress)
    }

    /// Opens a folder with other journal options, for tests.
    ///
    /// # Errors
    ///
    /// As [`Archive::open`].
    pub fn open_with(
        folder: Arc<dyn Folder>,
        options: journal::Options,
        extension: Option<Arc<dyn Extension>>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, String> {
        let extension: Extensions = extension.into_iter().collect();
        let probe = Arc::new(ExtensionProbe {
            has_records: AtomicBool::new(false),
            extension: extension.clone(),
        });
        let probed = [Arc::<ExtensionProbe>::clone(&probe) as Arc<dyn Extension>];
        let mut loader = Loader::for_extension(probed.into_iter().collect());
        let mut receive = |loaded: journal::RecoveryEvent<'_>| loader.receive(loaded, progress);
        let opened = FileJournal::open(Arc::clone(&folder), options, &mut receive);
        let opened = opened.map_err(|error| error.to_string())?;
        extension.finish_load()?;
        let (stored, rows, mut warnings) = loader.into_parts();
        warnings.extend(opened.warnings.into_iter().map(Warning::Journal));
        if extension.is_empty() && probe.has_records.load(Ordering::Relaxed) {
            warnings.push(Warning::Extension);
        }
        Ok(Self {
            folder,
            journal: opened.journal,
            newest_snapshot: opened.snapshot,
            last: opened.last,
            stored,
            rows,
            extension,
            warnings,
        })
    }

    /// Dumps the named tables, or all tables if `names` is empty, as lines of JSON. Returns the
    /// number of rows.
    ///
    /// # Errors
    ///
    /// The table does not exist, or cannot be read or written; the output then lacks the last line.
    pub fn dump(&self, names: &[String], to: &mut dyn io::Write) -> Result<usize, DumpError> {
        let known = || self.stored.iter().map(|table| table.name.to_string());
        if let Some(name) = names.iter().find(|name| !known().any(|own| own == **name)) {
            return Err(DumpError::NoSuchTable { name: name.clone(), known: known().collect() });
        }
        let is_wanted =
            |table: &StoredTable| names.is_empty() || names.iter().any(|name| *name == table.name);
        let tables = || self.stored.iter().zip(&self.rows).filter(|(table, _)| is_wanted(table));
        let mut bytes = HEADER_LINE.as_bytes().to_vec();
        for (table, _) in tables() {
            let put = table::put(&mut bytes, table);
            put.ok_or_else(|| DumpError::unreadable(table, None))?;
        }
        let mut count = 0;
        for (table, rows) in tables() {
            let (layout, kinds) = (table.layout(), table.live_columns().collect::<Vec<_>>());
            let mut values = vec![Value::Null; kinds.len()];
            let mut begin = b"{\"table\":".to_vec();
            json::put_text(&mut begin, &table.name);
            for (id, row) in rows.iter() {
                let unreadable = || DumpError::unreadable(table, Some(id));
                layout.read(row, &mut values).ok_or_else(unreadable)?;
                bytes.extend_from_slice(&begin);
                bytes.extend_from_slice(format!(",\"id\":\"{id}\",\"row\":{{").as_bytes());
                for (position, (column, value)) in kinds.iter().zip(&values).enumerate() {
                    if position > 0 {
                        bytes.push(b',');
                    }
                    json::put_text(&mut bytes, &column.name);
                    bytes.push(b':');
                    value::put(&mut bytes, *value, &column.kind).ok_or_else(unreadable)?;
                }
                bytes.extend_from_slice(b"}}\n");
                if bytes.len() >= PIECE {
                    to.write_all(&bytes).map_err(DumpError::Write)?;
                    bytes.clear();
                }
            }
            count += rows.len();
        }
        bytes.extend_from_slice(END_LINE.as_bytes());
        to.write_all(&bytes).and_then(|()| to.flush()).map_err(DumpError::Write)?;
        Ok(count)
    }

    /// Compacts the folder if this reduces its size: writes two snapshots of all data, so that two
    /// independent ways lead to the current state, and removes the journal before them.
    ///
    /// # Errors
    ///
    /// The disk fails or is full, or the folder has data of an extension that was not given. No
    /// data is lost.
    pub fn compact(mut self) -> Result<CompactSummary, journal::Error> {
        if self.warnings.contains(&Warning::Extension) {
            let why = "only the program that wrote the channels in this folder can write a snapshot of them, and it does so by itself";
            return Err(journal::Error::Refused(why.to_owned()));
        }
        let before = journal::bytes(&*self.folder)?;
        // A smaller gain is not worth the work, and a compacted folder is not compacted again.
        let gain = (before / 8).max(MIN_GAIN);
        if 2 * self.snapshot_bytes() + gain > before {
            self.journal.close()?;
            return Ok(CompactSummary { before, after: before });
        }
        if self.newest_snapshot < self.last {
            self.write_snapshot(self.last)?;
        }
        // Repeats the table definitions, so that the second snapshot has its own sequence.
        self.journal.append(&record::tables(&self.stored))?;
        let last = self.journal.write(true)?;
        self.write_snapshot(last)?;
        self.journal.compact(last)?;
        self.journal.close()?;
        Ok(CompactSummary { before, after: journal::bytes(&*self.folder)? })
    }

    /// Closes the archive and unlocks the folder. Dropping it unlocks the folder too, but without
    /// the record of a clean shutdown.
    ///
    /// # Errors
    ///
    /// The disk fails or is full.
    pub fn close(mut self) -> Result<(), journal::Error> {
        self.journal.close()
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.rows.iter().map(Rows::len).sum()
    }

    /// Warnings for the operator.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn write_snapshot(&mut self, last: Sequence) -> Result<(), journal::Error> {
        let state = State::undeclared(last, self.stored.clone(), self.rows.clone());
        let checkpointer = Checkpointer::new(0, self.extension.clone(), 0);
        let mut writer = self.journal.snapshot(last)?;
        checkpointer.write(&state, checkpointer.extension_snapshot(), &mut *writer)?;
        writer.finish()
    }

    /// The approximate size of a snapshot.
    fn snapshot_bytes(&self) -> u64 {
        let rows = self.rows.iter().flat_map(Rows::iter).map(|(_, row)| row.len() + 20);
        let blocks = self.extension.snapshot().into_iter().flatten();
        let extension = blocks.map(|block| block.len() + 20);
        let blocks = rows.sum::<usize>() + extension.sum::<usize>();
        (blocks + record::tables(&self.stored).len() + 80) as u64
    }
}

impl DumpError {
    fn unreadable(table: &StoredTable, id: Option<RowId>) -> Self {
        Self::Unreadable { table: table.name.to_string(), id }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchTable { name, known } if known.is_empty() => {
                write!(to, "there is no table `{name}`; the folder has no tables")
            }
            Self::NoSuchTable { name, known } => {
                write!(to, "there is no table `{name}`; there are `{}`", known.join("`, `"))
            }
            Self::Unreadable { table, id: Some(id) } => {
                write!(to, "the row {id} of `{table}` cannot be decoded")
            }
            Self::Unreadable { table, id: None } => {
                write!(to, "the definition of `{table}` cannot be decoded")
            }
            Self::Write(error) => write!(to, "cannot write: {error}"),
        }
    }
}

impl std::error::Error for DumpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            Self::NoSuchTable { .. } | Self::Unreadable { .. } => None,
        }
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.stored.iter().map(|table| &table.name)).finish()
    }
}

#[cfg(test)]
mod tests;
