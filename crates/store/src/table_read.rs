//! Reads of a table that can be repeated without a query, while its rows are the same.

use std::ptr;
use std::sync::{Arc, Weak};

use crate::reads::Read;
use crate::snapshot::Snapshot;
use crate::state::Catalog;

/// A query's read of a table, and the version of its rows.
#[derive(Clone, Debug)]
pub struct TableRead {
    table: usize,
    version: u64,
    /// Tables that are declared again may read the same rows differently.
    definitions: Weak<Catalog>,
    read: Option<Read>,
}

impl TableRead {
    /// A read that has just been recorded; `None`: the query has read nothing.
    pub(crate) fn new(snapshot: &Snapshot, table: usize, read: Option<Read>) -> Self {
        let definitions = Arc::downgrade(&snapshot.definitions);
        let version = snapshot.state.tables[table].rows.version();
        Self { table, version, definitions, read }
    }

    /// Records the read in another snapshot of the same store, if its table has the same rows.
    pub(crate) fn repeat(&self, snapshot: &Snapshot, table: usize) -> bool {
        let is_same = self.table == table
            && self.version == snapshot.state.tables[table].rows.version()
            && ptr::eq(Arc::as_ptr(&snapshot.definitions), self.definitions.as_ptr());
        if is_same && let Some(read) = &self.read {
            snapshot.note(read.clone());
        }
        is_same
    }
}
