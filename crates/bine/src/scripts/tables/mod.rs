//! The tables of scripts: declarations, queries and changes.
//!
//! The words that a script imports are JavaScript ([`WORDS`]) over the functions of
//! [`ScriptTables::host_module`]. A query of a script is one call of the host: its conditions, order
//! and limit become a query of the store, which records the same reads as a typed one.

mod aggregate;
mod changes;
mod declaration;
mod kept_rows;
mod queries;
mod row_markup;
mod rows;
mod values;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bine_script::{HostCall, HostError, HostModule, Value};

use self::kept_rows::KeptRows;
use self::rows::RowKeys;
pub(super) use self::values::{time_text, to_count};
use super::call_state::CallState;
use crate::nearest::nearest;
use crate::store::{Constant, Kind, Schema, Snapshot, TableView};

/// The module `bine:internal/tables`: the words for tables, which the module `bine` exports.
pub(super) const WORDS: &str = include_str!("../words/tables.js");

/// The module `bine:internal/rows`: lists of rows in markup.
pub(super) const ROWS: &str = include_str!("../words/rows.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/tables-host";
/// The most tables of one application.
const MAX_TABLES: usize = 1000;

/// The tables that the script of one instance declares.
#[derive(Debug)]
pub(super) struct ScriptTables {
    /// Precedes the names of tables in the store.
    prefix: String,
    declared: RefCell<Vec<Rc<ScriptTable>>>,
    /// Whether all modules are loaded, so that no table may be added.
    is_complete: Cell<bool>,
    /// Lists of rows as markup.
    kept_rows: KeptRows,
}

/// A table of a script.
#[derive(Debug)]
struct ScriptTable {
    /// The name in the script.
    name: String,
    /// The table in the store. Its references have the names of the store too.
    schema: Schema,
    /// The position of the table in the store when it was last found.
    position: Cell<usize>,
    keys: RowKeys,
}

impl ScriptTables {
    /// The tables of an application, whose names in the store begin with `prefix`.
    ///
    /// The names in scripts consist of letters, digits, `_` and `-`. So a prefix that ends with a
    /// `.` keeps the tables of different applications apart, and those of Rust, whose derived names
    /// have no `.`; the store rejects a table that the program declares in Rust.
    pub(super) fn new(prefix: impl Into<String>) -> Rc<Self> {
        Rc::new(Self {
            prefix: prefix.into(),
            declared: RefCell::default(),
            is_complete: Cell::default(),
            kept_rows: KeptRows::default(),
        })
    }

    /// The functions of the host on which [`WORDS`] is built.
    pub(super) fn host_module(self: &Rc<Self>) -> HostModule {
        let module = HostModule::new(HOST_MODULE);
        let module = self.function(module, "declare", Self::declare);
        let module = self.function(module, "find", queries::find);
        let module = self.function(module, "select", queries::select);
        let module = self.function(module, "selectMarkup", row_markup::select_markup);
        let module = self.function(module, "count", queries::count);
        let module = self.function(module, "page", queries::page);
        let module = self.function(module, "explain", queries::explain);
        let module = self.function(module, "aggregate", aggregate::aggregate);
        let module = self.function(module, "group", aggregate::group);
        let module = self.function(module, "insert", changes::insert);
        let module = self.function(module, "insertAll", changes::insert_all);
        let module = self.function(module, "change", changes::update);
        self.function(module, "remove", changes::remove)
    }

    /// Ends the declaration and returns the tables for [`Store::declare`](crate::store::Store).
    ///
    /// # Errors
    ///
    /// A column refers to a table that no module declares.
    pub(super) fn schemas(&self) -> Result<Vec<Schema>, String> {
        self.is_complete.set(true);
        let declared = self.declared.borrow();
        for table in declared.iter() {
            for column in &table.schema.columns {
                let Kind::Reference(target) = &column.kind else { continue };
                if declared.iter().any(|other| other.schema.name == *target) {
                    continue;
                }
                let own = target.strip_prefix(&*self.prefix).unwrap_or(target);
                let known = declared.iter().map(|other| &*other.name);
                return Err(format!(
                    "`{}.{}` refers to the table `{own}`, which no module of the application declares{}",
                    table.name,
                    column.name,
                    suggestion(known, own)
                ));
            }
        }
        Ok(declared.iter().map(|table| table.schema.clone()).collect())
    }

    /// Adds a function of the host.
    fn function(
        self: &Rc<Self>,
        module: HostModule,
        name: &str,
        function: fn(&Self, &HostCall<'_, '_>) -> Result<Value, HostError>,
    ) -> HostModule {
        let own = Rc::clone(self);
        module.function(name, move |call| function(&own, call))
    }

    /// `declare(name, columns, options)`: adds a table and returns its slot.
    fn declare(&self, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
        if self.is_complete.get() || CallState::of(call).is_ok() {
            return Err(HostError::Other(
                "a table is declared while the application loads: move `table(..)` to the top of a module"
                    .to_owned(),
            ));
        }
        let values = [call.value(0)?, call.value(1)?, call.value(2)?];
        let table = declaration::read(&self.prefix, &values).map_err(HostError::Type)?;
        let mut declared = self.declared.borrow_mut();
        if declared.iter().any(|other| other.name == table.name) {
            return Err(HostError::Other(format!(
                "the table `{}` is declared twice: export it from one module, and import it in the others",
                table.name
            )));
        }
        if declared.len() >= MAX_TABLES {
            return Err(HostError::Range(format!(
                "an application may have at most {MAX_TABLES} tables: use columns to tell rows apart"
            )));
        }
        declared.push(Rc::new(table));
        Ok(Value::Number((declared.len() - 1) as f64))
    }

    /// The table whose slot is the first argument.
    fn table(&self, call: &HostCall<'_, '_>) -> Result<Rc<ScriptTable>, HostError> {
        let slot = values::to_count(call.number(0)?);
        let declared = self.declared.borrow();
        let found = slot.and_then(|slot| declared.get(slot));
        found.cloned().ok_or_else(|| HostError::Type("this is no table of the script".to_owned()))
    }
}

impl ScriptTable {
    /// The table as the store has it at the moment of a snapshot.
    fn view<'s>(&self, snapshot: &'s Snapshot) -> Result<TableView<'s>, HostError> {
        let is_own = |view: &TableView<'s>| view.schema().name == self.schema.name;
        if let Some(view) = snapshot.tables().nth(self.position.get()).filter(is_own) {
            return Ok(view);
        }
        let found = snapshot.tables().enumerate().find(|(_, view)| is_own(view));
        let (position, view) = found.ok_or_else(|| {
            HostError::Other(format!(
                "the table `{}` is not declared: declare it in a module that the application imports when it loads",
                self.name
            ))
        })?;
        self.position.set(position);
        Ok(view)
    }

    /// The position of a column in the store.
    fn column(&self, view: &TableView<'_>, name: &str) -> Result<usize, HostError> {
        view.column(name).ok_or_else(|| {
            let known = view.schema().columns.iter().map(|column| &*column.name);
            let own = &self.name;
            let near = suggestion(known, name);
            HostError::Type(format!("the table `{own}` has no column `{}`{near}", shortened(name)))
        })
    }

    /// The columns whose default is the time of the insert.
    fn now_columns(&self) -> impl Iterator<Item = &str> {
        let columns = self.schema.columns.iter();
        let is_now = |column: &&crate::store::Column| column.default == Some(Constant::Now);
        columns.filter(is_now).map(|column| &*column.name)
    }
}

/// The end of an error about an unknown name: the nearest known one, or all if they are few.
fn suggestion<'k>(known: impl Iterator<Item = &'k str> + Clone, name: &str) -> String {
    /// Names that are listed.
    const LISTED: usize = 8;
    /// The length of names that are near to any other.
    const SHORT: usize = 3;
    let near = nearest(known.clone(), name);
    if let Some(near) = near.filter(|near| near.len().max(name.len()) > SHORT) {
        return format!("; did you mean `{near}`?");
    }
    let names: Vec<String> =
        known.take(LISTED + 1).map(|known| format!("`{}`", shortened(known))).collect();
    match names.len() {
        0 => String::new(),
        1..=LISTED => format!("; it has {}", names.join(", ")),
        _ => format!("; it has {} and more", names[..LISTED].join(", ")),
    }
}

/// The beginning of a text from a script, for a message.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

#[cfg(test)]
mod tests;
