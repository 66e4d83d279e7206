//! The pages of all cases, for any database.

use std::fmt::Write;

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};

use crate::board_data::ADDED;
use crate::board_random::{count_of, random_ids, random_number};

/// Rows of a list.
const LISTED: u32 = 20;

/// A database with the tables of the board.
pub(crate) trait Database: Clone + Send + Sync + 'static {
    /// The rows with these ids, each by a separate query.
    fn rows(&self, ids: Vec<u32>) -> impl Future<Output = Found<Vec<WorldRow>>> + Send;

    /// `count` rows from the id `first` on, by one query.
    fn list(&self, first: u32, count: u32) -> impl Future<Output = Found<Vec<WorldRow>>> + Send;

    /// All fortunes.
    fn fortunes(&self) -> impl Future<Output = Found<Vec<Fortune>>> + Send;

    /// Reads each row, then writes its new number, in one durable transaction. The pairs are an id
    /// and a number.
    fn update(&self, changes: Vec<(u32, u32)>)
    -> impl Future<Output = Found<Vec<WorldRow>>> + Send;
}

/// A row as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct WorldRow {
    pub(crate) id: u32,
    #[serde(rename = "randomNumber")]
    pub(crate) random: u32,
}

pub(crate) struct Fortune {
    pub(crate) id: u32,
    pub(crate) message: String,
}

#[derive(Serialize)]
struct Greeting {
    message: &'static str,
}

#[derive(Deserialize)]
struct Several {
    queries: Option<String>,
}

#[derive(Deserialize)]
struct Turn {
    page: u32,
}

/// The body of a change.
#[derive(Deserialize)]
struct NewNumber {
    #[serde(rename = "randomNumber")]
    random: u32,
}

/// An error of the database, which becomes a response with the status 500.
pub(crate) struct Failure(String);

pub(crate) type Found<T> = Result<T, Failure>;

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Failure {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The error for an id without a row.
    pub(crate) fn no_such_row() -> Self {
        Self("there is no such row".to_owned())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0).into_response()
    }
}

pub(crate) fn router<D: Database>(database: D) -> Router {
    Router::new()
        .route("/plaintext", get(async || "Hello, World!"))
        .route("/json", get(async || Json(Greeting { message: "Hello, World!" })))
        .route("/db", get(single::<D>))
        .route("/queries", get(several::<D>))
        .route("/fortunes", get(fortunes::<D>))
        .route("/updates", get(updates::<D>))
        .route("/world", get(list::<D>))
        .route("/world/{id}", get(record::<D>).patch(change::<D>))
        .with_state(database)
}

async fn single<D: Database>(database: State<D>) -> Found<Json<WorldRow>> {
    first(database.rows(vec![random_number()]).await?)
}

async fn several<D: Database>(
    database: State<D>,
    query: Query<Several>,
) -> Found<Json<Vec<WorldRow>>> {
    let ids = random_ids(count_of(query.queries.as_deref()));
    Ok(Json(database.rows(ids).await?))
}

async fn updates<D: Database>(
    database: State<D>,
    query: Query<Several>,
) -> Found<Json<Vec<WorldRow>>> {
    let ids = random_ids(count_of(query.queries.as_deref()));
    let changes = ids.into_iter().map(|id| (id, random_number())).collect();
    Ok(Json(database.update(changes).await?))
}

async fn list<D: Database>(database: State<D>, turn: Query<Turn>) -> Found<Json<Vec<WorldRow>>> {
    let first = turn.page.saturating_sub(1).saturating_mul(LISTED).saturating_add(1);
    Ok(Json(database.list(first, LISTED).await?))
}

async fn record<D: Database>(database: State<D>, id: Path<u32>) -> Found<Json<WorldRow>> {
    first(database.rows(vec![*id]).await?)
}

async fn change<D: Database>(
    database: State<D>,
    id: Path<u32>,
    body: Json<NewNumber>,
) -> Found<Json<WorldRow>> {
    first(database.update(vec![(*id, body.random)]).await?)
}

fn first(rows: Vec<WorldRow>) -> Found<Json<WorldRow>> {
    rows.into_iter().next().map(Json).ok_or_else(Failure::no_such_row)
}

async fn fortunes<D: Database>(database: State<D>) -> Found<Html<String>> {
    let mut fortunes = database.fortunes().await?;
    fortunes.push(Fortune { id: 0, message: ADDED.to_owned() });
    fortunes.sort_unstable_by(|one, other| one.message.cmp(&other.message));
    let mut page = String::with_capacity(2048);
    page.push_str(
        "<!DOCTYPE html><html lang=\"en\"><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>",
    );
    for fortune in &fortunes {
        write!(page, "<tr><td>{}</td><td>", fortune.id)?;
        html_escape::encode_text_to_string(&fortune.message, &mut page);
        page.push_str("</td></tr>");
    }
    page.push_str("</table></body></html>");
    Ok(Html(page))
}
