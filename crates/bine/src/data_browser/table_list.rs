//! The page with all tables.

use bine_html::{Html, Parts};
use bine_http::Status;

use super::address::Place;
use super::page::{PageFrame, grouped};
use super::request::BrowserRequest;
use crate::respond::Response;
use crate::store::{Column, Kind, Schema, TableView};

/// The list of the tables.
pub(super) fn respond(request: &BrowserRequest<'_>) -> Response {
    let snapshot = request.store.read().without_tracking();
    let (own, others): (Vec<_>, Vec<_>) =
        snapshot.tables().partition(|table| request.state.is_editable(&table.schema().name));
    let frame = PageFrame {
        viewer: request.viewer,
        title: "Tables".to_owned(),
        trail: Vec::new(),
        status: Status::OK,
    };
    frame.response(crate::html! {
        {table_of(&own)}
        {if !others.is_empty() {
            <h2>"Tables of the server"</h2>
            <p class="note">"Sessions, users, rights and the audit log. Rows can be read here and not changed: the server keeps copies of them in memory and changes them by its own rules."</p>
            {table_of(&others)}
        }}
    })
}

fn table_of(tables: &[TableView<'_>]) -> impl bine_html::Html<bine_html::Flow> {
    let rows: Vec<_> = tables.iter().map(table_row).collect();
    crate::html! {
        <div class="scroll">
            <table>
                <thead><tr>
                    <th scope="col">Table</th><th scope="col" class="number">Rows</th>
                    <th scope="col" class="number" title="Estimated from the oldest and newest rows">Memory</th>
                    <th scope="col">Columns</th>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn table_row(table: &TableView<'_>) -> impl Html<Parts> + use<> {
    let schema = table.schema();
    let address = Place::Rows(&schema.name).address();
    let (name, count) = (schema.name.to_string(), grouped(table.count()));
    let memory = size(table.estimated_bytes());
    let columns: Vec<(String, String)> = schema
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| (column.name.to_string(), facts(schema, place, column)))
        .collect();
    crate::html! {
        <tr>
            <th scope="row"><a href={address}>{name}</a></th>
            <td class="number">{count}</td>
            <td class="number">{memory}</td>
            <td>
                <details>
                    <summary>{columns.len()}{if columns.len() == 1 { " column" } else { " columns" }}</summary>
                    <dl>{for (name, facts) in columns { <dt>{name}</dt><dd>{facts}</dd> }}</dl>
                </details>
            </td>
        </tr>
    }
}

/// Describes a column: its type, its limits, its indexes.
pub(super) fn facts(schema: &Schema, place: usize, column: &Column) -> String {
    let mut facts = vec![match &column.kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Integer { .. } if column.range.is_some() => "whole number".to_owned(),
        Kind::Integer { min, max } => format!("whole number from {min} to {max}"),
        Kind::Float => "number".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
        Kind::Time => "time".to_owned(),
        Kind::Enum(words) => format!("one of {}", words.join(", ")),
        Kind::Reference(table) => format!("row of {table}"),
    }];
    if column.is_optional {
        facts.push("optional".to_owned());
    }
    if let Some((least, most)) = column.length {
        facts.push(format!("length {least} to {most}"));
    }
    if let Some((least, most)) = column.range {
        facts.push(format!("from {least} to {most}"));
    }
    for index in schema.indexes.iter().filter(|index| index.columns.contains(&place)) {
        let kind = if index.is_unique { "unique" } else { "index" };
        let others: Vec<&str> = index
            .columns
            .iter()
            .filter(|other| **other != place)
            .map(|other| &*schema.columns[*other].name)
            .collect();
        let fact = if others.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind} with {}", others.join(", "))
        };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    if column.is_private {
        facts.push("private".to_owned());
    }
    facts.join("; ")
}

/// A number of bytes for readers.
fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("\u{2248} {} KiB", bytes.div_ceil(1024)),
        _ => format!("\u{2248} {:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
