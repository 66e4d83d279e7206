//! Changes of rows: a form that was sent becomes a transaction with its entry in the audit log.

use std::borrow::Cow;
use std::fmt::Write as _;

use bine_http::Status;

use super::address::{Place, with_query};
use super::cell::{CellValue, cut, parse, shown, text_of};
use super::request::BrowserRequest;
use super::row_form::{
    FormField, NULL_FIELD, RowForm, VALUE_FIELD, VERSION_FIELD, editable, fields_of, removal_page,
    version_of,
};
use crate::audit;
use crate::respond::Response;
use crate::store::{
    Column, Error, Kind, RowId, RowView, Schema, Snapshot, Transaction, Value, ValueFault,
};
use crate::tables::map_store_error;

/// The fields of a form that was sent.
struct SubmittedRow {
    /// The field of each column, in the order of the schema; `None`: not in the form.
    fields: Vec<Option<SubmittedField>>,
    version: String,
}

#[derive(Clone)]
struct SubmittedField {
    text: String,
    /// Whether an empty text means null.
    is_null: bool,
    /// The value; `None` if the text is not of the column's type.
    value: Option<CellValue>,
}

/// The position of a column and its new value; `None` is null.
type ChangedValue<'v> = (usize, Option<&'v CellValue>);

/// Why a change was not made.
enum Refusal {
    Store(Error),
    /// Texts that are not of the type of their columns, by position.
    Fields(Vec<(usize, String)>),
    /// The row has changed since the form was loaded.
    Stale,
    /// The row does not exist any more.
    Gone,
}

/// The letters of a value in the audit log.
const LOGGED: usize = 200;

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Inserts the row of a form.
pub(super) fn insert(request: &BrowserRequest<'_>, name: &str) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let schema = table.schema();
    let sent = SubmittedRow::of(request, schema, true)?;
    let actor = request.viewer.actor();
    let change = request.store.change(|change: &mut Transaction| {
        let values = sent.values(schema)?;
        let values: Vec<Value<'_>> = values.into_iter().map(plain).collect();
        let id = change.insert_values(name, &values)?;
        let detail = details(schema, |place, column| text_for_log(values[place], column));
        audit::record(change, actor, "row insert", &object(name, id), &detail)?;
        Ok(id)
    });
    match change.wait() {
        Ok(id) => Ok(saved(name, id)),
        Err(refusal) => {
            let mut fields = fields_of(&snapshot, table, None);
            sent.show_in(&mut fields);
            let (problem, status) = explain(refusal, schema, &sent, &mut fields)?;
            let form = RowForm { request, table, row: None, fields, problem, status };
            Ok(form.response())
        }
    }
}

/// Changes a row to the values of a form.
pub(super) fn update(
    request: &BrowserRequest<'_>,
    name: &str,
    id: RowId,
) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let schema = table.schema();
    let sent = SubmittedRow::of(request, schema, false)?;
    let actor = request.viewer.actor();
    let change = request.store.change(|change: &mut Transaction| {
        let (changed, detail) = sent.compare(change, schema, name, id)?;
        if changed.is_empty() {
            return Ok(());
        }
        let values = changed.iter().map(|(place, value)| (*place, plain(*value)));
        change.update_values(name, id, &values.collect::<Vec<_>>())?;
        audit::record(change, actor, "row update", &object(name, id), &detail)?;
        Ok(())
    });
    let refusal = match change.wait() {
        Ok(()) => return Ok(saved(name, id)),
        Err(refusal) => refusal,
    };
    // The row as it is now, not as it was before the attempt.
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let row = table.row(id).ok_or_else(gone)?;
    let mut fields = fields_of(&snapshot, table, Some(&row));
    let stored: Vec<String> = fields.iter().map(|field| field.text.clone()).collect();
    sent.show_in(&mut fields);
    if matches!(refusal, Refusal::Stale) {
        for (field, stored) in fields.iter_mut().zip(stored) {
            if normalized(&field.text) != normalized(&stored) {
                field.stored = Some(if stored.is_empty() { "(empty)".to_owned() } else { stored });
            }
        }
    }
    let (problem, status) = explain(refusal, schema, &sent, &mut fields)?;
    Ok(RowForm { request, table, row: Some(row), fields, problem, status }.response())
}

/// Removes a row.
pub(super) fn remove(
    request: &BrowserRequest<'_>,
    name: &str,
    id: RowId,
) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let schema = editable(request, &snapshot, name)?.schema();
    let version = request.field(VERSION_FIELD).unwrap_or_default();
    let actor = request.viewer.actor();
    let change = request.store.change(|change: &mut Transaction| {
        let mut detail = {
            let row = current(change, schema, name, id, version)?;
            details(schema, |place, column| text_for_log(row.values()[place], column))
        };
        change.remove_row(name, id)?;
        for (table, [written, removed]) in change.written_rows() {
            // The row itself is in the object of the entry.
            let removed = removed - usize::from(table == name);
            for (count, what) in [(removed, "also removed"), (written, "references set to null")] {
                if count > 0 {
                    let _never_fails = write!(detail, "; {what}: {count} of {table}");
                }
            }
        }
        audit::record(change, actor, "row remove", &object(name, id), &detail)?;
        Ok(())
    });
    let refusal = match change.wait() {
        Ok(()) => return Ok(Response::see_other(Place::Rows(name).address())),
        Err(refusal) => refusal,
    };
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let row = table.row(id).ok_or_else(gone)?;
    let (problem, status) = match refusal {
        Refusal::Gone => return Err(gone()),
        Refusal::Stale => {
            ("The row has changed since this page was loaded.".to_owned(), Status::CONFLICT)
        }
        Refusal::Store(error) => message_of(&error),
        Refusal::Fields(_) => (String::new(), Status::BAD_REQUEST),
    };
    Ok(removal_page(request, &snapshot, table, &row, Some(problem), status))
}

impl SubmittedRow {
    /// Reads a form. `is_new`: private columns have fields too.
    fn of(request: &BrowserRequest<'_>, schema: &Schema, is_new: bool) -> Result<Self, Response> {
        let fields = request.form.as_deref().unwrap_or_default();
        let names = fields.iter().map(|(name, _)| name.as_str());
        for name in names.filter(|name| *name != VERSION_FIELD) {
            let column = [VALUE_FIELD, NULL_FIELD].iter().find_map(|own| name.strip_prefix(own));
            let is_known = |name: &str| {
                let column = schema.columns.iter().find(|column| column.name == name);
                column.is_some_and(|column| is_new || !column.is_private)
            };
            if !column.is_some_and(is_known) {
                let message = format!("The field `{name}` is no column that can be changed here.");
                return Err(Response::error(Status::BAD_REQUEST, message));
            }
        }
        let field = |column: &Column| {
            let text = request.field(&format!("{VALUE_FIELD}{}", column.name))?.to_owned();
            let is_null = request.field(&format!("{NULL_FIELD}{}", column.name)).is_some();
            Some(SubmittedField::new(column, text, is_null))
        };
        let version = request.field(VERSION_FIELD).unwrap_or_default().to_owned();
        Ok(Self { fields: schema.columns.iter().map(field).collect(), version })
    }

    /// The values of a new row; `None` is null.
    fn values(&self, schema: &Schema) -> Result<Vec<Option<&CellValue>>, Refusal> {
        let (mut values, mut wrong) = (Vec::new(), Vec::new());
        for (place, (field, column)) in self.fields.iter().zip(&schema.columns).enumerate() {
            match field {
                None => values.push(None),
                Some(field) if field.is_null => values.push(None),
                Some(SubmittedField { value: Some(value), .. }) => values.push(Some(value)),
                Some(_) => wrong.push((place, of_kind(column))),
            }
        }
        if wrong.is_empty() { Ok(values) } else { Err(Refusal::Fields(wrong)) }
    }

    /// The values to change, and their description for the audit log.
    fn compare(
        &self,
        snapshot: &Snapshot,
        schema: &Schema,
        name: &str,
        id: RowId,
    ) -> Result<(Vec<ChangedValue<'_>>, String), Refusal> {
        let row = current(snapshot, schema, name, id, &self.version)?;
        let changed = self.changed(schema, &row)?;
        let line = |(place, new): &ChangedValue<'_>| {
            let column = &schema.columns[*place];
            let values = [row.values()[*place], plain(*new)];
            let [old, new] = values.map(|value| text_for_log(value, column));
            format!("{}: {old} -> {new}", column.name)
        };
        let detail = changed.iter().map(line).collect::<Vec<_>>().join("; ");
        Ok((changed, detail))
    }

    /// The values that differ from those of the row, by position; `None` is null.
    fn changed(
        &self,
        schema: &Schema,
        row: &RowView<'_>,
    ) -> Result<Vec<ChangedValue<'_>>, Refusal> {
        let (mut changed, mut wrong) = (Vec::new(), Vec::new());
        for (place, (field, column)) in self.fields.iter().zip(&schema.columns).enumerate() {
            let Some(field) = field else { continue };
            let old = row.values()[place];
            let is_same = normalized(&field.text) == normalized(&text_of(old, &column.kind));
            if is_same && field.is_null == (old == Value::Null) {
                continue;
            }
            match &field.value {
                _ if field.is_null => changed.push((place, None)),
                Some(value) => changed.push((place, Some(value))),
                None => wrong.push((place, of_kind(column))),
            }
        }
        if wrong.is_empty() { Ok(changed) } else { Err(Refusal::Fields(wrong)) }
    }

    /// Shows the texts that were sent in the fields of a form.
    fn show_in(&self, fields: &mut [FormField]) {
        for (field, sent) in fields.iter_mut().zip(&self.fields) {
            if let Some(sent) = sent {
                field.text.clone_from(&sent.text);
                field.is_null = field.is_null.map(|_| sent.is_null);
            }
        }
    }
}

impl SubmittedField {
    fn new(column: &Column, text: String, is_null_if_empty: bool) -> Self {
        let may_be_empty = matches!(column.kind, Kind::Text | Kind::Bytes);
        let is_null = text.is_empty() && (is_null_if_empty || !may_be_empty);
        let value = parse(&text.replace("\r\n", "\n"), &column.kind);
        Self { text, is_null, value }
    }
}

impl BrowserRequest<'_> {
    /// The value of a field of the form.
    fn field(&self, name: &str) -> Option<&str> {
        let field = self.form.as_ref()?.iter().find(|(own, _)| own == name);
        field.map(|(_, value)| value.as_str())
    }
}

/// The row, if it has not changed since a form was loaded.
fn current<'s>(
    snapshot: &'s Snapshot,
    schema: &Schema,
    name: &str,
    id: RowId,
    version: &str,
) -> Result<RowView<'s>, Refusal> {
    let table = snapshot.table_named(name).ok_or(Refusal::Gone)?;
    let row = table.row(id).ok_or(Refusal::Gone)?;
    if version_of(schema, &row) == version { Ok(row) } else { Err(Refusal::Stale) }
}

/// A value that may be null.
fn plain(value: Option<&CellValue>) -> Value<'_> {
    value.map_or(Value::Null, |value| value.value())
}

/// A text as a browser sends it back from a form, apart from the kind of its line breaks. Parsers
/// of HTML replace the letter U+0000.
fn normalized(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\0']) {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn of_kind(column: &Column) -> String {
    match &column.kind {
        Kind::Bytes => "must be bytes in base64, like aG9wcw==".to_owned(),
        Kind::Time => "must be a time in UTC, like 2026-11-21T09:30:00Z".to_owned(),
        kind => ValueFault::Type(kind.clone()).to_string(),
    }
}

/// Adds the reasons of a refusal to the fields. Returns the reason that concerns no field, and the
/// status.
fn explain(
    refusal: Refusal,
    schema: &Schema,
    sent: &SubmittedRow,
    fields: &mut [FormField],
) -> Result<(Option<String>, Status), Response> {
    let unprocessable = Status::UNPROCESSABLE_CONTENT;
    match refusal {
        Refusal::Gone => Err(gone()),
        Refusal::Stale => {
            let problem = "The row has changed since this form was loaded. The form has your values; the stored ones are beside them. Save again to replace those.";
            Ok((Some(problem.to_owned()), Status::CONFLICT))
        }
        Refusal::Fields(wrong) => {
            for (place, reason) in wrong {
                fields[place].errors.push(reason);
            }
            Ok((None, unprocessable))
        }
        Refusal::Store(Error::InvalidValues(wrong)) => {
            let is_duplicate = wrong.iter().all(|invalid| invalid.fault.is_duplicate());
            for invalid in wrong {
                let field = fields.iter_mut().find(|field| field.name == invalid.column);
                if let Some(field) = field {
                    field.errors.push(invalid.fault.to_string());
                }
            }
            Ok((None, if is_duplicate { Status::CONFLICT } else { unprocessable }))
        }
        Refusal::Store(Error::NoSuchRow { table, id }) => {
            let reason = format!("there is no row {id} in {table}");
            let columns = schema.columns.iter().zip(&sent.fields).enumerate();
            for (place, (column, field)) in columns {
                let is_target = matches!(&column.kind, Kind::Reference(own) if *own == table);
                let value = field.as_ref().and_then(|field| field.value.as_ref());
                if is_target && value.is_some_and(|value| value.value() == Value::Id(id)) {
                    fields[place].errors.push(reason.clone());
                }
            }
            Ok((Some(reason), unprocessable))
        }
        Refusal::Store(error) => {
            let (problem, status) = message_of(&error);
            Ok((Some(problem), status))
        }
    }
}

fn message_of(error: &Error) -> (String, Status) {
    let mapped = map_store_error(error);
    (mapped.message.map_or_else(|| error.to_string(), |text| text.to_string()), mapped.status)
}

fn gone() -> Response {
    Response::error(Status::NOT_FOUND, "The row does not exist any more.")
}

fn saved(name: &str, id: RowId) -> Response {
    Response::see_other(with_query(&Place::Row(name, id).address(), &[("saved", "1")]))
}

/// The object of an entry in the audit log.
fn object(name: &str, id: RowId) -> String {
    format!("{name} {id}")
}

/// The values of a row for the audit log.
fn details(schema: &Schema, text: impl Fn(usize, &Column) -> String) -> String {
    let columns = shown(schema);
    let values = columns.map(|(place, column)| format!("{}: {}", column.name, text(place, column)));
    values.collect::<Vec<_>>().join("; ")
}

fn text_for_log(value: Value<'_>, column: &Column) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::Text(text) => format!("{:?}", cut(text, LOGGED)),
        value => text_of(value, &column.kind).into_owned(),
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn compares_texts_as_browsers_send_them_back() {
        assert_eq!(normalized("a\r\nb\rc\0"), "a\nb\nc\u{fffd}");
        assert_eq!(normalized("a\nb"), "a\nb");
    }

    #[test]
    fn distinguishes_null_from_an_empty_text() {
        let mut column = Column::new("text", Kind::Text);
        column.is_optional = true;
        let field = |text: &str, is_null| SubmittedField::new(&column, text.to_owned(), is_null);
        assert!(field("", true).is_null && !field("", false).is_null && !field("a", true).is_null);
        let number = Column::new("number", Kind::Float);
        assert!(SubmittedField::new(&number, String::new(), false).is_null);
    }
}
