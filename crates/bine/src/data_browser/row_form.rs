//! The pages of one row: its values as a form or as a list, the rows that refer to it, and its
//! removal.

use std::hash::{DefaultHasher, Hash, Hasher};

use bine_html::{Flow, Html, Parts};
use bine_http::Status;

use super::address::{Place, with_query};
use super::cell::{label_of, shown, text_of, text_of_constant};
use super::page::{PageFrame, grouped};
use super::request::{BrowserRequest, not_found};
use super::row_list::{cell, created};
use super::table_list::facts;
use crate::respond::Response;
use crate::store::{Column, Kind, OnRemove, RowId, RowView, Schema, Snapshot, TableView, Value};

/// A form for the values of a row.
pub(super) struct RowForm<'f> {
    pub(super) request: &'f BrowserRequest<'f>,
    pub(super) table: TableView<'f>,
    /// The row as it is stored; `None` for a new one.
    pub(super) row: Option<RowView<'f>>,
    pub(super) fields: Vec<FormField>,
    /// The errors that do not belong to a single field.
    pub(super) problem: Option<String>,
    pub(super) status: Status,
}

/// One field of a form.
#[derive(Clone, Debug, Default)]
pub(super) struct FormField {
    /// The name of the column.
    pub(super) name: String,
    facts: String,
    input: FieldInput,
    pub(super) text: String,
    /// Whether the value is null; `None` if an empty text means null, or the column is required.
    pub(super) is_null: Option<bool>,
    pub(super) errors: Vec<String>,
    /// The stored value, where it differs from the text in a conflict.
    pub(super) stored: Option<String>,
    /// The row that the field refers to: its address and label.
    target: Option<(String, String)>,
}

/// How a field is edited.
#[derive(Clone, Debug, Default)]
enum FieldInput {
    #[default]
    Line,
    Lines,
    Choice(Vec<String>),
    /// A private value of a new row.
    Secret,
    /// The value cannot be changed here, for this reason.
    Fixed(&'static str),
}

/// The longest text that a form shows, in bytes.
const MAX_EDITED: usize = 16 << 10;
/// A text with more letters is edited in several lines.
const LINE: usize = 80;
/// Referring rows that are counted.
const MAX_COUNTED: usize = 1000;
/// The letters of a value that a list of values shows.
const VALUE: usize = 4000;

/// The prefix of the name of a field with a value, before the name of its column.
pub(super) const VALUE_FIELD: &str = "value.";
/// The prefix of the name of a checkbox for null.
pub(super) const NULL_FIELD: &str = "null.";
/// The name of the field with the [version](version_of) of the row.
pub(super) const VERSION_FIELD: &str = "version";

/// The form for a new row.
pub(super) fn new_row(request: &BrowserRequest<'_>, name: &str) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let fields = fields_of(&snapshot, table, None);
    let form = RowForm { request, table, row: None, fields, problem: None, status: Status::OK };
    Ok(form.response())
}

/// The page of a row.
pub(super) fn row(
    request: &BrowserRequest<'_>,
    name: &str,
    id: RowId,
) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = snapshot.table_named(name).ok_or_else(not_found)?;
    let row = table.row(id).ok_or_else(not_found)?;
    if request.state.is_editable(name) {
        let fields = fields_of(&snapshot, table, Some(&row));
        let status = Status::OK;
        let form = RowForm { request, table, row: Some(row), fields, problem: None, status };
        return Ok(form.response());
    }
    let references = references(table, &row);
    let values = values_of(&snapshot, table, &row);
    Ok(frame(request, name, title_of(table, &row)).response(crate::html! {
        <p class="note">{id.to_string()}", inserted "{created(id)}". A row of the server: it can be read and not changed here."</p>
        {values}
        {references}
    }))
}

/// The page that asks whether to remove a row.
pub(super) fn removal(
    request: &BrowserRequest<'_>,
    name: &str,
    id: RowId,
) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = editable(request, &snapshot, name)?;
    let row = table.row(id).ok_or_else(not_found)?;
    Ok(removal_page(request, &snapshot, table, &row, None, Status::OK))
}

/// The page that asks whether to remove a row, and explains why an attempt has failed.
pub(super) fn removal_page<'s>(
    request: &BrowserRequest<'_>,
    snapshot: &'s Snapshot,
    table: TableView<'s>,
    row: &RowView<'s>,
    problem: Option<String>,
    status: Status,
) -> Response {
    let name = &*table.schema().name;
    let effects: Vec<String> = table
        .referring_columns()
        .filter_map(|referring| {
            let count =
                referring.table.count_with(referring.index, &[Value::Id(row.id)], MAX_COUNTED);
            let schema = referring.table.schema();
            let rows = format!(
                "{} of {} refer to it by {}",
                counted(count),
                schema.name,
                schema.columns[referring.column].name
            );
            (count > 0).then(|| match referring.on_remove {
                OnRemove::Reject => format!("{rows}: the removal is rejected while they exist."),
                OnRemove::Cascade => format!("{rows}: they are removed too."),
                OnRemove::SetNone => format!("{rows}: the reference becomes null."),
            })
        })
        .collect();
    let values = values_of(snapshot, table, row);
    let (version, action) =
        (version_of(table.schema(), row), Place::Removal(name, row.id).address());
    let back = Place::Row(name, row.id).address();
    let has_problem = problem.is_some();
    let frame =
        PageFrame { status, ..frame(request, name, format!("Remove {}?", title_of(table, row))) };
    frame.response(crate::html! {
        {if let Some(problem) = problem { <p class="problem" role="alert">{problem}</p> }}
        {if effects.is_empty() {
            <p>"No other row refers to it."</p>
        } else {
            <ul>{for effect in effects { <li>{effect}</li> }}</ul>
        }}
        <form method="post" action={action}>
            <input type="hidden" name="version" value={version}>
            <button class="danger">{if has_problem { "Try again" } else { "Remove" }}</button>
            " "<a class="button" href={back}>Cancel</a>
        </form>
        {values}
    })
}

impl RowForm<'_> {
    /// Renders the page of the form.
    pub(super) fn response(self) -> Response {
        let Self { request, table, row, fields, problem, status } = self;
        let name = &*table.schema().name;
        let title = row.as_ref().map_or("New row".to_owned(), |row| title_of(table, row));
        let action =
            row.as_ref().map_or(Place::NewRow(name), |row| Place::Row(name, row.id)).address();
        let version = row.as_ref().map(|row| version_of(table.schema(), row));
        let about = row.as_ref().map(|row| format!("{}, inserted {}", row.id, created(row.id)));
        let removal = row.as_ref().map(|row| Place::Removal(name, row.id).address());
        let references = row.as_ref().map(|row| references(table, row));
        let is_saved = !request.argument("saved").is_empty() && problem.is_none();
        let fields: Vec<_> = fields.into_iter().map(FormField::markup).collect();
        let frame = PageFrame { status, ..frame(request, name, title) };
        frame.response(crate::html! {
            {if let Some(about) = about { <p class="note">{about}</p> }}
            {if is_saved { <p class="saved" role="status">"Saved."</p> }}
            {if let Some(problem) = problem { <p class="problem" role="alert">{problem}</p> }}
            <form class="row" method="post" action={action}>
                {if let Some(version) = version {
                    <input type="hidden" name="version" value={version}>
                }}
                {fields}
                <p class="bar">
                    <button>Save</button>
                    {if let Some(address) = removal { <a class="button danger" href={address}>"Remove\u{2026}"</a> }}
                </p>
            </form>
            {references}
        })
    }
}

/// The page of a row of this table.
fn frame<'p>(request: &BrowserRequest<'p>, name: &str, title: String) -> PageFrame<'p> {
    let trail = vec![
        (Place::Tables.address(), "Tables".to_owned()),
        (Place::Rows(name).address(), name.to_owned()),
    ];
    PageFrame { viewer: request.viewer, title, trail, status: Status::OK }
}

impl FormField {
    /// The field of a column. Without a row it has the default of the column.
    fn new(
        snapshot: &Snapshot,
        schema: &Schema,
        (place, column): (usize, &Column),
        row: Option<&RowView<'_>>,
    ) -> Self {
        let name = column.name.to_string();
        let facts = facts(schema, place, column);
        if column.is_private {
            let input = match row {
                Some(_) => FieldInput::Fixed("private: hidden"),
                None => FieldInput::Secret,
            };
            return Self { name, facts, input, ..Self::default() };
        }
        let value = row.map(|row| row.values()[place]);
        let text = match (value, &column.default) {
            (Some(value), _) => text_of(value, &column.kind).into_owned(),
            (None, Some(default)) => text_of_constant(default, &column.kind),
            (None, None) => String::new(),
        };
        if text.len() > MAX_EDITED {
            let input = FieldInput::Fixed("too long to edit here");
            return Self { name, facts, input, ..Self::default() };
        }
        let may_be_empty = matches!(column.kind, Kind::Text | Kind::Bytes);
        let is_null = value == Some(Value::Null) || value.is_none() && text.is_empty();
        let target = match (value, &column.kind) {
            (Some(Value::Id(id)), Kind::Reference(target)) => {
                let row = snapshot.table_named(target);
                let label = row.and_then(|own| Some(label_of(&own.row(id)?, own.schema())));
                Some((Place::Row(target, id).address(), label.unwrap_or_default()))
            }
            _ => None,
        };
        Self {
            input: FieldInput::of(column, &text),
            is_null: (column.is_optional && may_be_empty).then_some(is_null),
            name,
            facts,
            text,
            target,
            ..Self::default()
        }
    }

    fn markup(self) -> impl Html<Flow> {
        let Self { name, facts, input, text, is_null, errors, stored, target } = self;
        let (field, null) = (format!("{VALUE_FIELD}{name}"), format!("{NULL_FIELD}{name}"));
        let is_fixed = matches!(input, FieldInput::Fixed(_));
        let is_invalid = !errors.is_empty();
        let id = field.clone();
        let content: Box<dyn Html<Flow>> = match input {
            FieldInput::Fixed(reason) => Box::new(crate::html!(<p class="null">{reason}</p>)),
            FieldInput::Secret => Box::new(crate::html! {
                <input type="password" id={id} name={field} autocomplete="new-password" "aria-invalid"={is_invalid.then_some("true")}>
            }),
            FieldInput::Line => Box::new(crate::html! {
                <input id={id} name={field} value={text} autocomplete="off" "aria-invalid"={is_invalid.then_some("true")}>
            }),
            FieldInput::Lines => Box::new(crate::html! {
                <textarea id={id} name={field} rows="6" "aria-invalid"={is_invalid.then_some("true")}>{text}</textarea>
            }),
            FieldInput::Choice(words) => {
                let words: Vec<_> = words.into_iter().map(|word| (word == text, word)).collect();
                Box::new(crate::html! {
                    <select id={id} name={field} "aria-invalid"={is_invalid.then_some("true")}>
                        {for (is_own, word) in words {
                            {let label = if word.is_empty() { "null".to_owned() } else { word.clone() };}
                            <option value={word} selected={is_own}>{label}</option>
                        }}
                    </select>
                })
            }
        };
        let label: Box<dyn Html<Flow>> = if is_fixed {
            Box::new(crate::html!(<p class="label">{name}</p>))
        } else {
            let id = format!("{VALUE_FIELD}{name}");
            Box::new(crate::html!(<label for={id}>{name}</label>))
        };
        crate::html! {
            <div class="field">
                {label}
                {content}
                {if let Some(is_null) = is_null {
                    <label class="check">
                        <input type="checkbox" name={null} value="1" checked={is_null}>
                        " null if empty"
                    </label>
                }}
                {if let Some((address, label)) = target {
                    <p class="hint">"refers to "<a href={address}>{label}</a></p>
                }}
                {if let Some(stored) = stored { <p class="problem">"Stored now: "{stored}</p> }}
                {for error in errors { <p class="problem">{error}</p> }}
                <p class="hint">{facts}</p>
            </div>
        }
    }
}

impl FieldInput {
    fn of(column: &Column, text: &str) -> Self {
        let choice = |words: &mut dyn Iterator<Item = String>| {
            let null = column.is_optional.then(String::new);
            Self::Choice(null.into_iter().chain(words).collect())
        };
        match &column.kind {
            Kind::Bool => choice(&mut ["true", "false"].into_iter().map(str::to_owned)),
            Kind::Enum(words) => choice(&mut words.iter().map(ToString::to_string)),
            Kind::Text => {
                let is_long = column.length.is_none_or(|(_, most)| most > 4 * LINE);
                let has_lines = text.contains(['\n', '\r']) || text.chars().count() > LINE;
                if has_lines || is_long { Self::Lines } else { Self::Line }
            }
            Kind::Bytes if text.len() > LINE => Self::Lines,
            _ => Self::Line,
        }
    }
}

/// The fields of a row, or of a new one.
pub(super) fn fields_of(
    snapshot: &Snapshot,
    table: TableView<'_>,
    row: Option<&RowView<'_>>,
) -> Vec<FormField> {
    let schema = table.schema();
    let columns = schema.columns.iter().enumerate();
    columns.map(|column| FormField::new(snapshot, schema, column, row)).collect()
}

/// The table, if its rows can be changed here.
pub(super) fn editable<'s>(
    request: &BrowserRequest<'_>,
    snapshot: &'s Snapshot,
    name: &str,
) -> Result<TableView<'s>, Response> {
    let table = snapshot.table_named(name).ok_or_else(not_found)?;
    if request.state.is_editable(name) {
        return Ok(table);
    }
    let message = "Rows of this table belong to the server and cannot be changed here.";
    Err(Response::error(Status::FORBIDDEN, message))
}

/// A checksum of the values that may be shown, to notice a change between a form and its
/// submission. It excludes private values: a client could find them by guessing.
pub(super) fn version_of(schema: &Schema, row: &RowView<'_>) -> String {
    let mut hasher = DefaultHasher::new();
    for (place, column) in shown(schema) {
        let value = row.values()[place];
        (column.name.as_ref(), value == Value::Null, text_of(value, &column.kind))
            .hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn title_of(table: TableView<'_>, row: &RowView<'_>) -> String {
    label_of(row, table.schema())
}

/// The values of a row as a list.
fn values_of<'s>(
    snapshot: &'s Snapshot,
    table: TableView<'s>,
    row: &RowView<'s>,
) -> impl Html<Flow> + use<'s> {
    let columns = table.schema().columns.iter().zip(row.values());
    let values: Vec<_> = columns
        .map(|(column, value)| {
            let value = (!column.is_private).then(|| cell(snapshot, *value, &column.kind, VALUE));
            crate::html! {
                <dt>{&*column.name}</dt>
                <dd>
                    {match value {
                        Some(value) => { {value} }
                        None => { <span class="null">"private: hidden"</span> }
                    }}
                </dd>
            }
        })
        .collect();
    crate::html!(<dl class="values">{values}</dl>)
}

/// Links to the rows that refer to this one.
fn references(table: TableView<'_>, row: &RowView<'_>) -> impl Html<Flow> + use<> {
    let id = row.id.to_string();
    let lines: Vec<_> = table
        .referring_columns()
        .filter_map(|referring| {
            reference_line(&id, row.id, referring.table, referring.column, referring.index)
        })
        .collect();
    let has_none = lines.is_empty();
    crate::html! {
        {if !has_none {
            <h2>"Rows that refer to this"</h2>
            <ul>{lines}</ul>
        }}
    }
}

fn reference_line(
    text: &str,
    id: RowId,
    table: TableView<'_>,
    column: usize,
    index: usize,
) -> Option<impl Html<Parts> + use<>> {
    let schema = table.schema();
    let column = &schema.columns[column];
    if column.is_private {
        return None;
    }
    let count = table.count_with(index, &[Value::Id(id)], MAX_COUNTED);
    let pairs = [("column", &*column.name), ("match", "is"), ("value", text)];
    let address = with_query(&Place::Rows(&schema.name).address(), &pairs);
    let (label, count) = (format!("{}.{}", schema.name, column.name), counted(count));
    Some(crate::html!(<li><a href={address}>{label}</a>": "{count}</li>))
}

/// A number of rows, which is exact below the limit of counting.
fn counted(count: usize) -> String {
    match count {
        1 => "1 row".to_owned(),
        MAX_COUNTED => format!("{} rows or more", grouped(count)),
        count => format!("{} rows", grouped(count)),
    }
}
