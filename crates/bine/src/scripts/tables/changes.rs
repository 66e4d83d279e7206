//! Changing tables in the transaction of a call.

use bine_script::{HostCall, HostError, Value as ScriptValue};

use super::queries::row_id;
use super::{ScriptTable, ScriptTables, values};
use crate::scripts::call_state::CallState;
use crate::scripts::table_failure::TableFailure;
use crate::store::{Error, RowId, Transaction, Value};

/// The values of columns by their names.
type Entries = [(String, ScriptValue)];

/// `insert(table, values)`: inserts a row and returns its id.
pub(super) fn insert(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let values = call.value(1)?;
    let values = entries(&values, "insert")?;
    let state = CallState::of(call)?;
    let inserted = state.change(|transaction| insert_row(transaction, &table, values))??;
    Ok(match inserted {
        Ok(id) => ScriptValue::Text(id.to_string()),
        Err(error) => state.fail(TableFailure::Store(error)),
    })
}

/// `insertAll(table, list)`: inserts all rows of a list or no row, and returns their ids.
pub(super) fn insert_all(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let ScriptValue::Array(list) = call.value(1)? else {
        return Err(HostError::Type("insertAll takes a list of objects".to_owned()));
    };
    let rows = list.iter().map(|values| entries(values, "insertAll"));
    let rows: Vec<&Entries> = rows.collect::<Result<_, _>>()?;
    let state = CallState::of(call)?;
    let inserted = state.change(|transaction| {
        // The script may catch the exception and continue: then no row of the list remains.
        transaction.attempt(|transaction| {
            let insert = |values: &&Entries| match insert_row(transaction, &table, values) {
                Ok(Ok(id)) => Ok(ScriptValue::Text(id.to_string())),
                Ok(Err(error)) => Err(Ok(error)),
                Err(error) => Err(Err(error)),
            };
            rows.iter().map(insert).collect()
        })
    })?;
    match inserted {
        Ok(ids) => Ok(ScriptValue::Array(ids)),
        Err(Ok(error)) => Ok(state.fail(TableFailure::Store(error))),
        Err(Err(error)) => Err(error),
    }
}

/// `update(table, id, values)`: replaces the values of these columns.
pub(super) fn update(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let id = row_id(call, 1)?;
    let values = call.value(2)?;
    let values = entries(&values, "update")?;
    let state = CallState::of(call)?;
    let updated = state.change(|transaction| -> Result<_, HostError> {
        // A row that was read may be passed again, with its id.
        let named = named(transaction, &table, values, id)?;
        // A text that is no id is the id of no row.
        let Some(id) = id else {
            let table = table.schema.name.clone();
            return Ok(Err(Error::NoSuchRow { table, id: RowId::default() }));
        };
        Ok(transaction.update_named(&table.schema.name, id, &named))
    })??;
    Ok(match updated {
        Ok(()) => ScriptValue::Null,
        Err(error) => state.fail(TableFailure::Store(error)),
    })
}

/// `remove(table, id)`: removes a row, and returns whether there was one.
pub(super) fn remove(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let id = row_id(call, 1)?;
    let state = CallState::of(call)?;
    let removed = state.change(|transaction| -> Result<_, HostError> {
        table.view(transaction)?;
        let Some(id) = id else { return Ok(Ok(false)) };
        Ok(transaction.remove_row(&table.schema.name, id))
    })??;
    Ok(match removed {
        Ok(is_removed) => ScriptValue::Bool(is_removed),
        Err(error) => state.fail(TableFailure::Store(error)),
    })
}

fn insert_row(
    transaction: &mut Transaction,
    table: &ScriptTable,
    values: &Entries,
) -> Result<Result<RowId, Error>, HostError> {
    let mut named = named(transaction, table, values, None)?;
    // The store would use a time that a script cannot write, with microseconds.
    for column in table.now_columns() {
        if named.iter().all(|(name, _)| *name != column) {
            named.push((column, Value::Time(values::now())));
        }
    }
    Ok(transaction.insert_named(&table.schema.name, &named))
}

/// The values for the store. The id of the row itself may be among them.
fn named<'v>(
    transaction: &Transaction,
    table: &ScriptTable,
    values: &'v Entries,
    id: Option<RowId>,
) -> Result<Vec<(&'v str, Value<'v>)>, HostError> {
    let view = table.view(transaction)?;
    let columns = &view.schema().columns;
    let mut named = Vec::with_capacity(values.len() + 1);
    for (name, value) in values {
        if name == "id" {
            let is_own = id.is_some() && value.as_text().and_then(|text| text.parse().ok()) == id;
            if is_own {
                continue;
            }
            return Err(HostError::Type(format!(
                "the id of a row of `{}` cannot be set: insert returns a new one, and no row changes its own",
                table.name
            )));
        }
        let column = table.column(&view, name)?;
        named.push((name.as_str(), values::to_store(&columns[column].kind, value)));
    }
    Ok(named)
}

/// The values of an argument that must be a plain object.
fn entries<'v>(values: &'v ScriptValue, function: &str) -> Result<&'v Entries, HostError> {
    match values {
        ScriptValue::Object(entries) => Ok(entries),
        other => Err(HostError::Type(format!(
            "{function} takes an object with the values of columns, like {{ body: \"Hello\" }}, not {}",
            other.kind()
        ))),
    }
}
