//! Rows of a query as markup: a row template of the script writes them from the store, without an
//! object for each row. Rows that it cannot write are returned to the callback of the script.

use std::fmt::Write as _;

use bine_script::{
    HostCall, HostError, Markup, RowCell, RowSource, RowWriter, Unwritten, Value as ScriptValue,
};

use super::ScriptTables;
use super::kept_rows::RowList;
use super::queries::{self, Limit, MAX_UNLIMITED, RowSelect, ScriptQuery};
use super::values::TimeWriter;
use crate::scripts::call_state::CallState;
use crate::store::{Kind, RowId, Schema, TableRead, TableView, Value};

/// The argument with the row template.
const ROW: usize = 6;

/// `selectMarkup(table, conditions, order, isDescending, limit, method, row, ...captured)`: the rows as
/// markup, or as [`select`](queries::select) returns them.
pub(super) fn select_markup(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    let limit = Limit::read(call)?;
    let writer = call.row_writer(ROW);
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        let rows = match limit {
            Limit::Most(limit) => Some(limit),
            Limit::All => Some(MAX_UNLIMITED + 1),
            Limit::One => None,
        };
        let (Some(writer), Some(rows)) = (writer, rows) else {
            return queries::found(&table, &view, query.select(&table, &view)?, &limit);
        };
        let template = writer.number();
        let list = RowList {
            table: table.position.get(),
            template: template.unwrap_or_default(),
            limit: rows,
            query,
        };
        if template.is_some()
            && let Some(markup) = tables.kept_rows.find(&list, &view)
        {
            return Ok(ScriptValue::Html(markup));
        }
        let select = list.query.select(&table, &view)?.limit(rows);
        match write(writer, &view, &select) {
            Ok((_, count, _)) if matches!(limit, Limit::All) && count > MAX_UNLIMITED => {
                Err(queries::too_many(&table))
            }
            Ok((markup, _, read)) => {
                if let (Some(read), Some(_)) = (read, template) {
                    tables.kept_rows.keep(list, read, &markup);
                }
                Ok(ScriptValue::Html(markup))
            }
            Err(Unwritten) => {
                queries::found(&table, &view, list.query.select(&table, &view)?, &limit)
            }
        }
    })
}

/// The rows of a query as markup, their number, and what was read if it can be read again.
fn write(
    mut writer: RowWriter<'_, '_>,
    view: &TableView<'_>,
    select: &RowSelect<'_>,
) -> Result<(Markup, usize, Option<TableRead>), Unwritten> {
    let positions = writer.columns().iter().map(|name| match name.as_str() {
        "id" => Ok(None),
        // The callback finds what an object without this property has.
        name => view.column(name).map(Some).ok_or(Unwritten),
    });
    let positions = positions.collect::<Result<Vec<_>, _>>()?;
    let (mut text, mut times) = (String::new(), TimeWriter::default());
    let (mut count, mut written) = (0, Ok(()));
    // All rows are visited even if one cannot be written, so that the query for the callback, which
    // follows, reads nothing else.
    let read = select.visit(|id, values| {
        count += 1;
        if written.is_ok() {
            let (positions, schema) = (positions.as_slice(), view.schema());
            let (text, times) = (&mut text, &mut times);
            written = writer.write(&mut StoredRow { positions, schema, id, values, text, times });
        }
    });
    written.map(|()| (writer.finish(), count, read))
}

/// A row of the store for a row template.
struct StoredRow<'w, 's> {
    /// The columns that the template shows; `None` is the id.
    positions: &'w [Option<usize>],
    schema: &'w Schema,
    id: RowId,
    values: &'w [Value<'s>],
    /// The text of a cell.
    text: &'w mut String,
    times: &'w mut TimeWriter,
}

impl RowSource for StoredRow<'_, '_> {
    fn cell(&mut self, column: usize) -> Result<RowCell<'_>, Unwritten> {
        let Some(column) = *self.positions.get(column).ok_or(Unwritten)? else {
            return Ok(self.id_cell(self.id));
        };
        Ok(match *self.values.get(column).ok_or(Unwritten)? {
            Value::Null => RowCell::Null,
            Value::Bool(value) => RowCell::Bool(value),
            Value::Integer(number) => RowCell::Number(number as f64),
            // As an object has it: only a tool can have stored a number that is not finite.
            Value::Float(number) if !number.is_finite() => RowCell::Null,
            Value::Float(number) => RowCell::Number(number),
            Value::Text(text) => RowCell::Text(text),
            Value::Time(time) => {
                self.text.clear();
                self.times.write(time, self.text);
                RowCell::Text(self.text)
            }
            Value::Enum(position) => match &self.schema.columns[column].kind {
                Kind::Enum(words) => words
                    .get(usize::from(position))
                    .map_or(RowCell::Null, |word| RowCell::Text(word)),
                _ => RowCell::Null,
            },
            Value::Id(id) => self.id_cell(id),
            Value::Bytes(_) => return Err(Unwritten),
        })
    }
}

impl StoredRow<'_, '_> {
    fn id_cell(&mut self, id: RowId) -> RowCell<'_> {
        self.text.clear();
        // A `String` takes any text.
        let _ = write!(self.text, "{id}");
        RowCell::Text(self.text)
    }
}
