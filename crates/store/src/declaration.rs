//! Declared tables and their merge with the stored ones.

mod check;

use std::any::TypeId;

use crate::id::RowId;
use crate::schema::{Column, Index, OnRemove, Schema, StoredTable, UnknownColumns};
use crate::state::{Catalog, Definition, Referrer};
use crate::value::{Kind, Value};

/// A table as the program declares it, with its row type if it has one.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTable {
    pub(crate) schema: Schema,
    pub(crate) row_type: Option<TypeId>,
    /// Whether the row type can hold these values.
    pub(crate) accepts: fn(RowId, &[Value<'_>]) -> bool,
}

/// Tables that a program declares.
#[derive(Clone, Debug)]
pub(crate) enum Declaration {
    /// All tables with row types, at the start.
    Program(Vec<DeclaredTable>),
    /// Tables without row types, at any time.
    Schemas(Vec<Schema>),
}

/// The program's tables merged with the stored ones.
pub(crate) struct MergedTables {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) positions: Vec<usize>,
    pub(crate) stored: Vec<StoredTable>,
}

impl Declaration {
    /// The program's tables with these, merged with the stored ones.
    pub(crate) fn merged(&self, catalog: &Catalog) -> Result<MergedTables, String> {
        match self {
            Self::Program(tables) => {
                MergedTables::merge(tables.clone(), &catalog.stored, UnknownColumns::Keep)
            }
            Self::Schemas(tables) => MergedTables::redeclare(catalog, tables, UnknownColumns::Keep),
        }
    }
}

impl MergedTables {
    /// Merges the program's tables with the stored ones.
    pub(crate) fn merge(
        declared: Vec<DeclaredTable>,
        stored: &[StoredTable],
        unknown: UnknownColumns,
    ) -> Result<Self, String> {
        let mut merged =
            Self { definitions: Vec::new(), positions: Vec::new(), stored: stored.to_vec() };
        for table in declared {
            if merged.declared(&table.schema.name).is_some() {
                return Err(format!(
                    "two tables have the name `{}`; sessions use `session` and `frame`, so give yours another name by `#[table(name = \"..\")]`",
                    table.schema.name
                ));
            }
            merged.add(table, unknown)?;
        }
        resolve_references(&mut merged.definitions)?;
        Ok(merged)
    }

    /// Adds tables without row types to a catalog, or replaces those that it has. All other tables
    /// keep their positions.
    pub(crate) fn redeclare(
        catalog: &Catalog,
        tables: &[Schema],
        unknown: UnknownColumns,
    ) -> Result<Self, String> {
        let mut merged = Self {
            definitions: catalog.to_vec(),
            positions: catalog.positions.clone(),
            stored: catalog.stored.clone(),
        };
        for (place, schema) in tables.iter().enumerate() {
            let name = &schema.name;
            check::check(schema)?;
            if tables[..place].iter().any(|other| other.name == *name) {
                return Err(format!("two tables have the name `{name}`: rename one of them"));
            }
            let known = merged.declared(name).map(|known| &merged.definitions[known]);
            if known.is_some_and(|known| known.row_type.is_some()) {
                return Err(format!(
                    "the program has a table `{name}` with a row type: give this one another name"
                ));
            }
            merged.add(
                DeclaredTable { schema: schema.clone(), row_type: None, accepts: |_, _| true },
                unknown,
            )?;
        }
        for definition in &mut merged.definitions {
            definition.references.clear();
            definition.referrers.clear();
        }
        resolve_references(&mut merged.definitions)?;
        Ok(merged)
    }

    /// Adopts stored tables that another node has changed. The declared ones keep their positions.
    ///
    /// # Errors
    ///
    /// The tables have changes that this program cannot follow, such as a renamed column.
    pub(crate) fn follow(catalog: &Catalog, stored: Vec<StoredTable>) -> Result<Self, String> {
        let positions = catalog.positions.clone();
        let mut definitions = catalog.to_vec();
        for (definition, position) in definitions.iter_mut().zip(&positions) {
            if stored[*position] != catalog.stored[*position] {
                let (_, layout) = definition
                    .schema
                    .merge(Some(&stored[*position]), UnknownColumns::Keep)
                    .map_err(|why| {
                        format!(
                            "another node runs a newer program: restart this node with it ({why})"
                        )
                    })?;
                definition.layout = layout;
            }
        }
        Ok(Self { definitions, positions, stored })
    }

    /// The position of the declared table with this name.
    fn declared(&self, name: &str) -> Option<usize> {
        self.definitions.iter().position(|own| own.schema.name == name)
    }

    /// Adds a table, or replaces the declared one with its name.
    fn add(&mut self, table: DeclaredTable, unknown: UnknownColumns) -> Result<(), String> {
        let DeclaredTable { schema, row_type, accepts } = table;
        let known = self.stored.iter().position(|stored| stored.name == schema.name);
        let (stored, layout) = schema.merge(known.map(|known| &self.stored[known]), unknown)?;
        let position = known.unwrap_or(self.stored.len());
        match known {
            Some(known) => self.stored[known] = stored,
            None => self.stored.push(stored),
        }
        let declared = self.declared(&schema.name);
        let (referrers, references) = (Vec::new(), Vec::new());
        let definition = Definition { schema, layout, row_type, accepts, referrers, references };
        match declared {
            Some(declared) => self.definitions[declared] = definition,
            None => {
                self.definitions.push(definition);
                self.positions.push(position);
            }
        }
        Ok(())
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
