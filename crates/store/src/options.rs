//! Options of a store: the tables that the program declares, their merge with the stored ones, and
//! how the store persists them.

use std::any::TypeId;
use std::sync::Arc;

use crate::commit::Sync;
use crate::extension::{Extension, ExtensionSlot};
use crate::id::RowId;
use crate::journal;
use crate::schema::{Column, Index, OnRemove, Schema, StoredTable, Table};
use crate::state::{Definition, Definitions, Referrer};
use crate::value::{Kind, Value};

/// The tables of a store, and how it persists them.
#[derive(Debug, Default)]
pub struct Options {
    pub(crate) tables: Vec<DeclaredTable>,
    pub(crate) sync: Sync,
    pub(crate) extension: ExtensionSlot,
    pub(crate) journal: journal::Options,
}

/// A table as the program declares it, with its row type if it has one.
#[derive(Debug)]
pub(crate) struct DeclaredTable {
    pub(crate) schema: Schema,
    pub(crate) row_type: Option<TypeId>,
    /// Whether the row type can hold these values.
    pub(crate) accepts: fn(RowId, &[Value<'_>]) -> bool,
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
    /// records does not open without it.
    #[must_use]
    pub fn extension(mut self, extension: Arc<dyn Extension>) -> Self {
        self.extension = ExtensionSlot(Some(extension));
        self
    }

    /// Sets the size of a journal segment in bytes. The store writes a checkpoint when the journal
    /// has grown by four segments and by at least the size of the last checkpoint.
    #[must_use]
    pub const fn segment(mut self, bytes: u64) -> Self {
        self.journal.segment = bytes;
        self
    }

    /// Merges the program's tables with the stored ones.
    pub(crate) fn merge(self, stored: &[StoredTable]) -> Result<MergedTables, String> {
        let mut all = stored.to_vec();
        let (mut definitions, mut positions) = (Vec::new(), Vec::new());
        for DeclaredTable { schema, row_type, accepts } in self.tables {
            let known = all.iter().position(|stored| stored.name == schema.name);
            if known.is_some_and(|known| positions.contains(&known)) {
                return Err(format!("the table `{}` is declared twice", schema.name));
            }
            let (stored_table, layout) = schema.merge(known.map(|known| &all[known]))?;
            positions.push(known.unwrap_or(all.len()));
            match known {
                Some(known) => all[known] = stored_table,
                None => all.push(stored_table),
            }
            let (referrers, references) = (Vec::new(), Vec::new());
            definitions.push(Definition {
                schema,
                layout,
                row_type,
                accepts,
                referrers,
                references,
            });
        }
        resolve_references(&mut definitions)?;
        Ok(MergedTables { definitions: definitions.into(), positions, stored: all })
    }
}

/// The program's tables merged with the stored ones.
pub(crate) struct MergedTables {
    pub(crate) definitions: Definitions,
    pub(crate) positions: Vec<usize>,
    pub(crate) stored: Vec<StoredTable>,
}

/// Resolves references between tables. A column that refers to rows has an index, so that removing
/// a row finds its referrers; the function adds one unless an index begins with that column.
fn resolve_references(definitions: &mut [Definition]) -> Result<(), String> {
    for table in 0..definitions.len() {
        for column in 0..definitions[table].schema.columns.len() {
            let schema = &definitions[table].schema;
            let Column { kind, is_optional, on_remove, .. } = &schema.columns[column];
            let (on_remove, is_optional) = (*on_remove, *is_optional);
            let Kind::Reference(target) = kind else {
                if on_remove != OnRemove::Reject {
                    let (table, column) = (&schema.name, &schema.columns[column].name);
                    return Err(format!(
                        "`{table}.{column}` refers to no row, so it has no `on_remove`"
                    ));
                }
                continue;
            };
            if on_remove == OnRemove::SetNone && !is_optional {
                let (table, column) = (&schema.name, &schema.columns[column].name);
                return Err(format!(
                    "`{table}.{column}` cannot become null when its row is removed: make it optional"
                ));
            }
            let found = definitions.iter().position(|other| other.schema.name == *target);
            let Some(target) = found else {
                let column = &schema.columns[column].name;
                return Err(format!(
                    "`{}.{column}` refers to the table `{target}`, which does not exist: add it to the options",
                    schema.name
                ));
            };
            let index =
                schema.indexes.iter().position(|index| index.columns.first() == Some(&column));
            let index = index.unwrap_or_else(|| {
                let indexes = &mut definitions[table].schema.indexes;
                indexes.push(Index { columns: vec![column], is_unique: false });
                indexes.len() - 1
            });
            definitions[table].references.push((column, target));
            definitions[target].referrers.push(Referrer { table, column, index, on_remove });
        }
    }
    Ok(())
}
