//! Options of a store: the tables that the program declares, and how the store persists them.

use std::any::TypeId;
use std::sync::Arc;

use crate::commit::Sync;
use crate::declaration::DeclaredTable;
use crate::extension::{Extension, Extensions};
use crate::journal;
use crate::schema::Table;

/// The tables of a store, and how it persists them.
#[derive(Debug, Default)]
pub struct Options {
    pub(crate) tables: Vec<DeclaredTable>,
    pub(crate) sync: Sync,
    pub(crate) extension: Extensions,
    pub(crate) journal: journal::Options,
}

impl Options {
    /// No tables; a commit is acknowledged once it survives a power failure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the table of `T`.
    #[must_use]
    pub fn table<T: Table>(mut self) -> Self {
        self.tables.push(DeclaredTable {
            schema: T::schema(),
            row_type: Some(TypeId::of::<T>()),
            accepts: |id, values| T::from_values(id, values).is_some(),
        });
        self
    }

    /// Whether the table with this row type was added.
    pub fn has_table(&self, row_type: TypeId) -> bool {
        self.tables.iter().any(|table| table.row_type == Some(row_type))
    }

    /// The names of the tables that were added.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| &*table.schema.name)
    }

    /// Sets when a commit is acknowledged.
    #[must_use]
    pub const fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// Adds an extension, which keeps records in the same journal. A folder with an extension's
    /// records does not open without it. Each record goes to the first extension that
    /// [owns](Extension::owns) its first byte.
    #[must_use]
    pub fn extension(mut self, extension: Arc<dyn Extension>) -> Self {
        self.extension.add(extension);
        self
    }

    /// Sets the size of a journal segment in bytes. The store writes a checkpoint when the journal
    /// has grown by four segments and by at least the size of the last checkpoint.
    #[must_use]
    pub const fn segment(mut self, bytes: u64) -> Self {
        self.journal.segment = bytes;
        self
    }
}
