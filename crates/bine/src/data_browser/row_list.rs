//! The page with the rows of one table: in an order, or as the result of a search.

use bine_html::{Flow, Html, Parts, Phrasing};
use bine_http::Status;

use super::address::{Place, with_query};
use super::cell::{cut, label_of, parse, short_id, shown};
use super::page::{PageFrame, grouped};
use super::request::{BrowserRequest, busy, not_found};
use super::search::{BOUNDS, Comparison, TextCondition, search};
use super::table_list::facts;
use crate::respond::Response;
use crate::store::{
    Cursor, Kind, RowId, RowView, Schema, Snapshot, TableOrder, TableView, Time, Turn, Value,
};

/// The arguments of the page, as they were sent.
#[derive(Debug)]
pub(super) struct ListArguments<'r> {
    /// The column of the order; empty: the id.
    order: &'r str,
    /// `asc` or `desc`; empty: the newest row first, or the least value.
    direction: &'r str,
    /// The column of the search; empty: any.
    column: &'r str,
    comparison: &'r str,
    value: &'r str,
    /// The row from which a search continues.
    from: &'r str,
    after: &'r str,
    before: &'r str,
}

/// Rows to show, and links to further rows.
struct Listing<'s> {
    rows: Vec<RowView<'s>>,
    /// Addresses and labels.
    links: Vec<(String, &'static str)>,
    note: Option<String>,
}

/// The rows of one page.
const PAGE: usize = 50;
/// The bytes of a text from which its cell is wide.
const LONG: usize = 40;
/// The letters of a text that a cell shows.
const CELL: usize = 120;

impl<'r> ListArguments<'r> {
    pub(super) fn of(request: &'r BrowserRequest<'_>) -> Self {
        Self {
            order: request.argument("order"),
            direction: request.argument("direction"),
            column: request.argument("column"),
            comparison: request.argument("match"),
            value: request.argument("value"),
            from: request.argument("from"),
            after: request.argument("after"),
            before: request.argument("before"),
        }
    }

    fn is_search(&self) -> bool {
        !self.comparison.is_empty()
    }

    fn is_descending(&self) -> bool {
        match self.direction {
            "" => self.order.is_empty(),
            direction => direction == "desc",
        }
    }

    /// The arguments without the place of the page.
    fn kept(&self) -> [(&'r str, &'r str); 5] {
        [
            ("order", self.order),
            ("direction", self.direction),
            ("column", self.column),
            ("match", self.comparison),
            ("value", self.value),
        ]
    }

    fn turn(&self) -> Result<Turn, Response> {
        let cursor = |text: &str| -> Result<Option<Cursor>, Response> {
            let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
            parsed.map_err(|_| invalid("The place in the order is invalid."))
        };
        Ok(Turn::new(cursor(self.after)?, cursor(self.before)?))
    }
}

/// The page with rows.
pub(super) fn respond(
    request: &BrowserRequest<'_>,
    name: &str,
    arguments: &ListArguments<'_>,
) -> Result<Response, Response> {
    let snapshot = request.store.read().without_tracking();
    let table = snapshot.table_named(name).ok_or_else(not_found)?;
    let schema = table.schema();
    let listing = if arguments.is_search() {
        find(request, table, arguments)?
    } else {
        let index = match arguments.order {
            "" => None,
            column => Some(
                index_of(schema, place_of(schema, column)?)
                    .ok_or_else(|| invalid("No index has this order."))?,
            ),
        };
        let order = TableOrder { index, is_descending: arguments.is_descending() };
        page(table, order, &[], arguments)?
    };
    let frame = PageFrame {
        viewer: request.viewer,
        title: name.to_owned(),
        trail: vec![(Place::Tables.address(), "Tables".to_owned())],
        status: Status::OK,
    };
    let is_editable = request.state.is_editable(name);
    let (count, facts) = (grouped(table.count()), column_facts(schema));
    let head = head(table, arguments);
    let Listing { rows, links, note } = listing;
    let is_empty = rows.is_empty();
    let rows: Vec<_> = rows.iter().map(|row| table_row(&snapshot, table, row)).collect();
    let links = navigation(links);
    Ok(frame.response(crate::html! {
        <p class="bar">
            <span>{count}" rows"</span>
            {if is_editable { <a class="button" href={Place::NewRow(name).address()}>New row</a> }}
            <a class="button" href={Place::Csv(name).address()}>CSV</a>
            <a class="button" href={Place::Rows(name).address()}>Refresh</a>
        </p>
        {if !is_editable {
            <p class="note">"A table of the server: its rows can be read and not changed here."</p>
        }}
        {search_form(schema, name, arguments)}
        {if let Some(note) = note { <p class="note">{note}</p> }}
        {if is_empty {
            <p class="note">"No rows."</p>
        } else {
            <div class="scroll tall">
                <table>
                    <thead><tr>{head}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        }}
        {links}
        <details>
            <summary>"Columns"</summary>
            <dl>{for (name, facts) in facts { <dt>{name}</dt><dd>{facts}</dd> }}</dl>
        </details>
    }))
}

/// A page of rows in an order.
fn page<'s>(
    table: TableView<'s>,
    order: TableOrder,
    only: &[Value<'_>],
    arguments: &ListArguments<'_>,
) -> Result<Listing<'s>, Response> {
    let page = table
        .page(order, only, &arguments.turn()?, PAGE)
        .map_err(|error| invalid(&format!("There is no such page: {error}.")))?;
    let address = Place::Rows(&table.schema().name).address();
    let link = |name, cursor: Option<Cursor>, label| {
        let cursor = cursor?.to_string();
        let mut pairs: Vec<(&str, &str)> = arguments.kept().to_vec();
        pairs.push((name, &cursor));
        Some((with_query(&address, &pairs), label))
    };
    let links = [
        link("before", page.previous, "\u{2190} Previous"),
        link("after", page.next, "Next \u{2192}"),
    ];
    Ok(Listing { rows: page.rows, links: links.into_iter().flatten().collect(), note: None })
}

/// The rows that a search finds: by an index, or else among the newest rows.
fn find<'s>(
    request: &BrowserRequest<'_>,
    table: TableView<'s>,
    arguments: &ListArguments<'_>,
) -> Result<Listing<'s>, Response> {
    let (schema, value) = (table.schema(), arguments.value);
    let comparison = match arguments.comparison {
        "is" => Comparison::Is,
        "starts" => Comparison::Starts,
        "contains" => Comparison::Contains,
        _ => return Err(invalid("A search is one of is, starts, contains.")),
    };
    let is_exact = comparison == Comparison::Is;
    let none = |note: String| Listing { rows: Vec::new(), links: Vec::new(), note: Some(note) };
    let column = match arguments.column {
        "" => None,
        "id" => {
            let Ok(id) = value.trim().parse::<RowId>() else {
                return Ok(none(
                    "An id looks like 0193f9a0-4c5e-7b3a-9c1d-5e6f70819203.".to_owned(),
                ));
            };
            let rows = table.row(id).into_iter().collect();
            return Ok(Listing { rows, links: Vec::new(), note: Some("By the id.".to_owned()) });
        }
        column => Some(place_of(schema, column)?),
    };
    if is_exact
        && let Some(column) = column
        && let Some(index) = index_of(schema, column)
    {
        let kind = &schema.columns[column].kind;
        let is_null = value.is_empty() && !matches!(kind, Kind::Text | Kind::Bytes);
        let parsed = if is_null { None } else { parse(value, kind) };
        if parsed.is_none() && !is_null {
            return Ok(none(format!("The column holds {kind}.")));
        }
        let value = parsed.as_ref().map_or(Value::Null, |parsed| parsed.value());
        let order = TableOrder { index: Some(index), is_descending: false };
        let mut listing = page(table, order, &[value], arguments)?;
        listing.note = Some("All rows with this value, by its index.".to_owned());
        return Ok(listing);
    }
    let Some(_permit) = request.state.searches.begin() else {
        return Err(busy("Other searches are running; try again."));
    };
    let before = match arguments.from {
        "" => None,
        from => Some(from.parse().map_err(|_| invalid("The place of the search is invalid."))?),
    };
    let text = if is_exact { value.to_owned() } else { value.to_ascii_lowercase() };
    let condition = TextCondition { column, comparison, text };
    let found = search(table, &condition, before, BOUNDS);
    let which = if before.is_some() { "next" } else { "newest" };
    let examined = grouped(found.examined);
    let (note, links) = match found.stopped_at {
        None if before.is_none() => (format!("Searched all {examined} rows."), Vec::new()),
        None => (format!("Searched the last {examined} rows."), Vec::new()),
        Some(last) => {
            let last = last.to_string();
            let mut pairs = arguments.kept().to_vec();
            pairs.push(("from", &last));
            let address = with_query(&Place::Rows(&schema.name).address(), &pairs);
            let note = format!("Searched the {which} {examined} rows; older rows follow.");
            (note, vec![(address, "Search older rows \u{2192}")])
        }
    };
    Ok(Listing { rows: found.rows, links, note: Some(note) })
}

/// The position of a column that may be shown.
fn place_of(schema: &Schema, name: &str) -> Result<usize, Response> {
    let column = shown(schema).find(|(_, column)| column.name == name);
    column.map(|(place, _)| place).ok_or_else(|| invalid("The table has no such column."))
}

/// An index that begins with this column and has no private one: its order would reveal values.
fn index_of(schema: &Schema, column: usize) -> Option<usize> {
    let is_private = |place: &usize| schema.columns[*place].is_private;
    let mut all = schema.indexes.iter().enumerate().filter(|(_, index)| {
        index.columns.first() == Some(&column) && !index.columns.iter().any(is_private)
    });
    let first = all.next()?;
    // An index of this column alone keeps equal values in the order of age.
    let plain = [first].into_iter().chain(all).find(|(_, index)| index.columns.len() == 1);
    Some(plain.unwrap_or(first).0)
}

fn invalid(message: &str) -> Response {
    Response::error(Status::BAD_REQUEST, message.to_owned())
}

fn column_facts(schema: &Schema) -> Vec<(String, String)> {
    let columns = schema.columns.iter().enumerate();
    columns.map(|(place, column)| (column.name.to_string(), facts(schema, place, column))).collect()
}

/// A cell of the head: the name of a column, and the order that it leads to.
struct HeadCell<'h> {
    name: &'h str,
    /// The column in the argument of the order.
    order: &'h str,
    has_order: bool,
    is_number: bool,
    is_private: bool,
}

/// The names of the columns, each with a link to its order.
fn head(table: TableView<'_>, arguments: &ListArguments<'_>) -> Vec<impl Html<Parts> + use<>> {
    let schema = table.schema();
    let id =
        HeadCell { name: "id", order: "", has_order: true, is_number: false, is_private: false };
    let columns = schema.columns.iter().enumerate().map(|(place, column)| HeadCell {
        name: &column.name,
        order: &column.name,
        has_order: !column.is_private && index_of(schema, place).is_some(),
        is_number: matches!(column.kind, Kind::Integer { .. } | Kind::Float),
        is_private: column.is_private,
    });
    let address = Place::Rows(&schema.name).address();
    [id].into_iter().chain(columns).map(|cell| head_cell(&cell, &address, arguments)).collect()
}

fn head_cell(
    cell: &HeadCell<'_>,
    address: &str,
    arguments: &ListArguments<'_>,
) -> impl Html<Parts> + use<> {
    let HeadCell { name, order, has_order, is_number, is_private } = *cell;
    let is_own = arguments.order == order && !arguments.is_search();
    // The link reverses the order of the page; the order of another column begins as usual.
    let (mark, direction) = match (is_own, arguments.is_descending()) {
        (false, _) => ("", ""),
        (true, true) => (" \u{2193}", "asc"),
        (true, false) => (" \u{2191}", "desc"),
    };
    let link = with_query(address, &[("order", order), ("direction", direction)]);
    let link = has_order.then_some(link);
    let name = name.to_owned();
    crate::html! {
        <th scope="col" class={is_number.then_some("number")}>
            {match link {
                Some(link) => { <a href={link}>{name}{mark}</a> }
                None => { {name} }
            }}
            {if is_private { " " <small>private</small> }}
        </th>
    }
}

fn table_row<'s>(
    snapshot: &'s Snapshot,
    table: TableView<'s>,
    row: &RowView<'s>,
) -> impl Html<Parts> + use<'s> {
    let schema = table.schema();
    let address = Place::Row(&schema.name, row.id).address();
    let (id, created) = (short_id(row.id), created(row.id));
    let title = format!("{}, inserted {created}", row.id);
    let cells: Vec<_> = schema
        .columns
        .iter()
        .zip(row.values())
        .map(|(column, value)| {
            let class = match value {
                Value::Integer(_) | Value::Float(_) => Some("number"),
                Value::Text(text) if text.len() > LONG => Some("long"),
                _ => None,
            };
            let content = (!column.is_private).then(|| cell(snapshot, *value, &column.kind, CELL));
            crate::html! {
                <td class={class}>
                    {match content {
                        Some(content) => { {content} }
                        None => { <span class="null">hidden</span> }
                    }}
                </td>
            }
        })
        .collect();
    crate::html! {
        <tr><th scope="row"><a class="id" href={address} title={title}>{id}</a></th>{cells}</tr>
    }
}

/// A value: a reference as a link to its row, a long text cut to `most` letters.
pub(super) fn cell<'s>(
    snapshot: &'s Snapshot,
    value: Value<'s>,
    kind: &'s Kind,
    most: usize,
) -> Box<dyn Html<Phrasing> + 's> {
    match (value, kind) {
        (Value::Null, _) => Box::new(crate::html!(<span class="null">null</span>)),
        (Value::Text(""), _) => Box::new(crate::html!(<span class="null">empty</span>)),
        (Value::Bytes(bytes), _) => {
            let length = grouped(bytes.len());
            Box::new(crate::html!(<span class="null">{length}" bytes"</span>))
        }
        (Value::Id(id), Kind::Reference(target)) => {
            let table = snapshot.table_named(target);
            let row = table.and_then(|table| Some(label_of(&table.row(id)?, table.schema())));
            let (label, title) = (row.unwrap_or_else(|| short_id(id)), id.to_string());
            let address = Place::Row(target, id).address();
            Box::new(crate::html!(<a href={address} title={title}>{label}</a>))
        }
        _ => {
            let text = super::cell::text_of(value, kind);
            let text = cut(&text, most).into_owned();
            Box::new(crate::html!(<span>{text}</span>))
        }
    }
}

/// The time at which a row was inserted, to the millisecond.
pub(super) fn created(id: RowId) -> String {
    let milliseconds = i64::try_from(id.milliseconds()).unwrap_or(i64::MAX);
    let text = Time(milliseconds.saturating_mul(1000)).to_string();
    text.strip_suffix("000Z").map_or(text.clone(), |text| format!("{text}Z"))
}

fn search_form(
    schema: &Schema,
    name: &str,
    arguments: &ListArguments<'_>,
) -> impl Html<Flow> + use<> {
    let mut columns: Vec<(String, String, bool)> =
        vec![(String::new(), "any column".to_owned(), arguments.column.is_empty())];
    columns.push(("id".to_owned(), "id".to_owned(), arguments.column == "id"));
    columns.extend(shown(schema).map(|(_, column)| {
        let name = column.name.to_string();
        (name.clone(), name, arguments.column == column.name)
    }));
    let own = if arguments.is_search() { arguments.comparison } else { "contains" };
    let comparisons = [("contains", "contains"), ("starts", "starts with"), ("is", "is")]
        .map(|(word, label)| (word, label, word == own));
    let (address, value) = (Place::Rows(name).address(), arguments.value.to_owned());
    let is_search = arguments.is_search();
    crate::html! {
        <form class="search" action={address.clone()} method="get" role="search">
            <select name="column" aria-label="Column">
                {for (value, label, is_own) in columns {
                    <option value={value} selected={is_own}>{label}</option>
                }}
            </select>
            <select name="match" aria-label="Comparison">
                {for (value, label, is_own) in comparisons {
                    <option value={value} selected={is_own}>{label}</option>
                }}
            </select>
            <input type="search" name="value" value={value} aria-label="Text">
            <button>Search</button>
            {if is_search { <a href={address}>All rows</a> }}
        </form>
    }
}

/// Links to other pages.
pub(super) fn navigation(links: Vec<(String, &'static str)>) -> impl Html<Flow> {
    crate::html! {
        {if !links.is_empty() {
            <nav class="pages" aria-label="Pages">
                {for (address, label) in links { <a class="button" href={address}>{label}</a>" " }}
            </nav>
        }}
    }
}
