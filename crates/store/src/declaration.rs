//! Declared tables and their merge with the stored ones.

use std::any::TypeId;

use crate::id::RowId;
use crate::schema::{Column, Index, OnRemove, Schema, StoredTable};
use crate::state::{Definition, Definitions, Referrer};
use crate::value::{Kind, Value};

/// A table as the program declares it, with its row type if it has one.
#[derive(Debug)]
pub(crate) struct DeclaredTable {
    pub(crate) schema: Schema,
    pub(crate) row_type: Option<TypeId>,
    /// Whether the row type can hold these values.
    pub(crate) accepts: fn(RowId, &[Value<'_>]) -> bool,
}

/// The program's tables merged with the stored ones.
pub(crate) struct MergedTables {
    pub(crate) definitions: Definitions,
    pub(crate) positions: Vec<usize>,
    pub(crate) stored: Vec<StoredTable>,
}

impl MergedTables {
    /// Merges the program's tables with the stored ones.
    pub(crate) fn merge(
        declared: Vec<DeclaredTable>,
        stored: &[StoredTable],
    ) -> Result<Self, String> {
        let mut all = stored.to_vec();
        let (mut definitions, mut positions) = (Vec::new(), Vec::new());
        for DeclaredTable { schema, row_type, accepts } in declared {
            let known = all.iter().position(|stored| stored.name == schema.name);
            if known.is_some_and(|known| positions.contains(&known)) {
                return Err(format!(
                    "two tables have the name `{}`; sessions use `session` and `frame`, so give yours another name by `#[table(name = \"..\")]`",
                    schema.name
                ));
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
        Ok(Self { definitions: definitions.into(), positions, stored: all })
    }
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
