//! Reading tables: the queries of a script as queries of the store.

use std::ops::Bound;
use std::str::FromStr;

use bine_script::{HostCall, HostError, Value as ScriptValue};

use super::{ScriptTable, ScriptTables, shortened, suggestion, values};
use crate::scripts::call_state::CallState;
use crate::scripts::table_failure::TableFailure;
use crate::store::{
    Cursor, CursorError, InvalidValue, Kind, RowId, RowView, Select, TableView, Turn, Value,
};

/// The most rows that a query returns without a limit.
pub(super) const MAX_UNLIMITED: usize = 10_000;
/// The greatest limit of a query.
const MAX_LIMIT: usize = 50_000;
/// The most conditions of a query. Each may be checked for each row, and the host is not
/// interrupted meanwhile.
const MAX_CONDITIONS: usize = 64;
/// The keys of a range.
const BOUNDS: [&str; 4] = ["from", "to", "after", "before"];
/// The options of a page.
const PAGE_OPTIONS: [&str; 3] = ["size", "after", "before"];

/// A query of the store without a row type.
pub(super) type RowSelect<'s> = Select<'s, RowView<'s>>;

/// `find(table, id)`: the row with this id, or null.
pub(super) fn find(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let id = row_id(call, 1)?;
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        // A text that is no id is the id of no row.
        let row = id.and_then(|id| view.row(id));
        Ok(table.keys.first(&view, row.as_ref()))
    })
}

/// `select(table, conditions, order, isDescending, limit, method)`: the rows that the method returns.
pub(super) fn select(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    let limit = Limit::read(call)?;
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        let select = query.select(&table, &view)?;
        found(&table, &view, select, &limit)
    })
}

/// The rows of a query as objects.
pub(super) fn found(
    table: &ScriptTable,
    view: &TableView<'_>,
    select: RowSelect<'_>,
    limit: &Limit,
) -> Result<ScriptValue, HostError> {
    match *limit {
        Limit::One => Ok(table.keys.first(view, select.first().as_ref())),
        Limit::Most(limit) => Ok(table.keys.list(view, &select.limit(limit).rows())),
        Limit::All => {
            let found = select.limit(MAX_UNLIMITED + 1).rows();
            if found.len() <= MAX_UNLIMITED {
                return Ok(table.keys.list(view, &found));
            }
            Err(too_many(table))
        }
    }
}

/// The error of a query without a limit that finds too many rows.
pub(super) fn too_many(table: &ScriptTable) -> HostError {
    HostError::Range(format!(
        "the query finds more than {MAX_UNLIMITED} rows of `{}`: write list(n), newest(n) or page({{ size }}) to read a part",
        table.name
    ))
}

/// `count(table, conditions, order)`: the number of rows.
pub(super) fn count(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        Ok(ScriptValue::Number(query.select(&table, &view)?.count() as f64))
    })
}

/// `page(table, conditions, order, isDescending, { size, after, before })`: some rows, and the places
/// of the pages before and after them.
pub(super) fn page(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    let state = CallState::of(call)?;
    let options = call.value(4)?;
    let size = page_size(&options)?;
    let turn = match read_turn(&options)? {
        Ok(turn) => turn,
        Err(error) => return Ok(state.fail(TableFailure::Cursor(error))),
    };
    state.read(|snapshot| {
        let view = table.view(snapshot)?;
        let page = match query.select(&table, &view)?.page(&turn, size) {
            Ok(page) => page,
            Err(error) => return Ok(state.fail(TableFailure::Cursor(error))),
        };
        let cursor = |cursor: Option<Cursor>| {
            cursor.map_or(ScriptValue::Null, |cursor| ScriptValue::Text(cursor.to_string()))
        };
        Ok(ScriptValue::Object(vec![
            ("rows".to_owned(), table.keys.list(&view, &page.rows)),
            ("previous".to_owned(), cursor(page.previous)),
            ("next".to_owned(), cursor(page.next)),
        ]))
    })
}

/// `explain(table, conditions, order, isDescending)`: how the query finds its rows.
pub(super) fn explain(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        let explanation = query.select(&table, &view)?.explain();
        let index = explanation.index.map_or(ScriptValue::Null, |columns| {
            ScriptValue::Array(columns.into_iter().map(ScriptValue::Text).collect())
        });
        Ok(ScriptValue::Object(vec![
            ("index".to_owned(), index),
            ("isSorted".to_owned(), ScriptValue::Bool(explanation.is_sorted)),
            ("examined".to_owned(), ScriptValue::Number(explanation.examined as f64)),
            ("returned".to_owned(), ScriptValue::Number(explanation.returned as f64)),
        ]))
    })
}

/// How many rows a query returns.
pub(super) enum Limit {
    /// The first row, or null.
    One,
    /// At most this number.
    Most(usize),
    /// All rows, at most [`MAX_UNLIMITED`].
    All,
}

impl Limit {
    pub(super) fn read(call: &HostCall<'_, '_>) -> Result<Self, HostError> {
        let method = call.text(5)?;
        match method.as_str() {
            "first" => return Ok(Self::One),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let limit = count_of(&call.value(4)?, 0).ok_or_else(|| {
            HostError::Range(format!(
                "{}(n) takes the number of rows, a whole number from 0 to {MAX_LIMIT}; read more with page({{ size, after }})",
                shortened(&method)
            ))
        })?;
        Ok(Self::Most(limit))
    }
}

/// The conditions and the order of a query, as the script passes them.
#[derive(Debug, PartialEq)]
pub(super) struct ScriptQuery {
    /// A column and the value or range that it must have, in turns.
    conditions: Vec<ScriptValue>,
    order: Option<String>,
    is_descending: bool,
}

impl ScriptQuery {
    /// All rows, the oldest first.
    #[cfg(test)]
    pub(super) const fn of_all() -> Self {
        Self { conditions: Vec::new(), order: None, is_descending: false }
    }

    /// The bytes of the values.
    pub(super) fn size(&self) -> usize {
        let order = self.order.as_ref().map_or(0, String::len);
        self.conditions.iter().map(size).sum::<usize>() + order
    }

    /// Reads the arguments from the second one on.
    pub(super) fn read(call: &HostCall<'_, '_>) -> Result<Self, HostError> {
        let ScriptValue::Array(conditions) = call.value(1)? else {
            return Err(HostError::Type("the conditions of a query are no list".to_owned()));
        };
        if conditions.len() > 2 * MAX_CONDITIONS {
            return Err(HostError::Range(format!(
                "a query may have at most {MAX_CONDITIONS} conditions"
            )));
        }
        let order = match call.value(2)? {
            ScriptValue::Null | ScriptValue::Undefined => None,
            ScriptValue::Text(order) => Some(order),
            other => {
                return Err(HostError::Type(format!(
                    "orderBy takes the name of a column, not {}",
                    other.kind()
                )));
            }
        };
        let is_descending = matches!(call.value(3)?, ScriptValue::Bool(true));
        Ok(Self { conditions, order, is_descending })
    }

    /// The query of the store.
    pub(super) fn select<'s>(
        &self,
        table: &ScriptTable,
        view: &TableView<'s>,
    ) -> Result<RowSelect<'s>, HostError> {
        let mut select = view.select();
        for condition in self.conditions.chunks_exact(2) {
            let [name, wanted] = condition else { continue };
            let ScriptValue::Text(name) = name else {
                return Err(HostError::Type(format!(
                    "a condition names its column by a string, not {}",
                    name.kind()
                )));
            };
            select = add_condition(select, table, view, name, wanted)?;
        }
        match self.order.as_deref() {
            // The order by the id is that by age.
            None | Some("id") => {}
            Some(order) => {
                let column = table.column(view, order)?;
                return Ok(select.order_by_column(column, self.is_descending));
            }
        }
        Ok(if self.is_descending { select.rev() } else { select })
    }
}

/// About the bytes of a value.
fn size(value: &ScriptValue) -> usize {
    size_of::<ScriptValue>()
        + match value {
            ScriptValue::Text(text) => text.len(),
            ScriptValue::Bytes(bytes) => bytes.len(),
            ScriptValue::Array(items) => items.iter().map(size).sum(),
            ScriptValue::Object(entries) => {
                entries.iter().map(|(key, value)| key.len() + size(value)).sum()
            }
            _ => 0,
        }
}

fn add_condition<'s>(
    select: RowSelect<'s>,
    table: &ScriptTable,
    view: &TableView<'s>,
    name: &str,
    wanted: &ScriptValue,
) -> Result<RowSelect<'s>, HostError> {
    if name == "id" {
        return Err(HostError::Type(format!("the row of `{}` with an id is get(id)", table.name)));
    }
    let column = table.column(view, name)?;
    let kind = &view.schema().columns[column].kind;
    let wrong = |invalid: InvalidValue| {
        let example = if *kind == Kind::Time { ": a Date, or 2026-11-21T09:30:00Z" } else { "" };
        let (table, fault) = (&table.name, invalid.fault);
        HostError::Type(format!("the condition on `{table}.{name}` {fault}{example}"))
    };
    let ScriptValue::Object(range) = wanted else {
        let value = values::to_store(kind, wanted);
        // A text that is no id is the id of no row: no row refers to it.
        if is_no_id(kind, wanted) {
            return select.within_values(column, NONE).map_err(wrong);
        }
        return select.equals_value(column, value).map_err(wrong);
    };
    // As in SQL, null is in no range.
    let mut bounds = [Bound::Excluded(Value::Null), Bound::Unbounded];
    let mut is_given = [false; 2];
    for (key, bound) in range {
        let own = &table.name;
        let (end, is_included) = match key.as_str() {
            "from" => (0, true),
            "after" => (0, false),
            "to" => (1, true),
            "before" => (1, false),
            other => {
                let near = suggestion(BOUNDS.into_iter(), other);
                let other = shortened(other);
                return Err(HostError::Type(format!(
                    "the range of `{own}.{name}` has no `{other}`{near}"
                )));
            }
        };
        if is_given[end] {
            return Err(HostError::Type(format!(
                "the range of `{own}.{name}` has two bounds at the same end: remove one"
            )));
        }
        is_given[end] = true;
        let value = values::to_store(kind, bound);
        if value == Value::Null {
            return Err(HostError::Type(format!(
                "the range of `{own}.{name}` has null as a bound: omit it"
            )));
        }
        bounds[end] = if is_included { Bound::Included(value) } else { Bound::Excluded(value) };
    }
    if is_given == [false; 2] {
        return Err(HostError::Type(format!(
            "the range of `{}.{name}` has no bound: write {{ from, to, after, before }} with one or two of them",
            table.name
        )));
    }
    let [from, until] = bounds;
    select.within_values(column, (from, until)).map_err(wrong)
}

/// A range without values.
const NONE: (Bound<Value<'static>>, Bound<Value<'static>>) =
    (Bound::Excluded(Value::Null), Bound::Excluded(Value::Null));

/// Whether a value for a reference is a text that no row has as its id.
fn is_no_id(kind: &Kind, value: &ScriptValue) -> bool {
    matches!((kind, value), (Kind::Reference(_), ScriptValue::Text(id)) if RowId::from_str(id).is_err())
}

/// An argument that is the id of a row; `None` if the text is no id.
pub(super) fn row_id(call: &HostCall<'_, '_>, index: usize) -> Result<Option<RowId>, HostError> {
    match call.value(index)? {
        ScriptValue::Text(id) => Ok(RowId::from_str(&id).ok()),
        other => Err(HostError::Type(format!(
            "the id of a row is a string, as in `row.id`, not {}",
            other.kind()
        ))),
    }
}

/// A number of rows.
fn count_of(value: &ScriptValue, least: usize) -> Option<usize> {
    let ScriptValue::Number(number) = *value else { return None };
    values::to_count(number).filter(|count| (least..=MAX_LIMIT).contains(count))
}

fn page_size(options: &ScriptValue) -> Result<usize, HostError> {
    let ScriptValue::Object(entries) = options else {
        return Err(HostError::Type("page takes an object, like { size: 20 }".to_owned()));
    };
    let is_known = |key: &str| PAGE_OPTIONS.contains(&key);
    if let Some((key, _)) = entries.iter().find(|(key, _)| !is_known(key)) {
        let near = suggestion(PAGE_OPTIONS.into_iter(), key);
        return Err(HostError::Type(format!("page has no option `{}`{near}", shortened(key))));
    }
    let size = options.property("size").and_then(|size| count_of(size, 1));
    size.ok_or_else(|| {
        HostError::Range(format!("page needs its size, a whole number from 1 to {MAX_LIMIT}"))
    })
}

/// The page that the options name. The inner error is that of a client.
fn read_turn(options: &ScriptValue) -> Result<Result<Turn, CursorError>, HostError> {
    let cursor = |key: &str| match options.property(key) {
        None | Some(ScriptValue::Null) => Ok(Ok(None)),
        Some(ScriptValue::Text(text)) => Ok(Cursor::from_str(text).map(Some)),
        Some(other) => Err(HostError::Type(format!(
            "the option `{key}` of page is a string, not {}",
            other.kind()
        ))),
    };
    let (after, before) = (cursor("after")?, cursor("before")?);
    Ok(after.and_then(|after| Ok(Turn::new(after, before?))))
}
