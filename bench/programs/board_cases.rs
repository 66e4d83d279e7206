//! The program of `board`: the cases of `TechEmpower`'s benchmark as pages of tables, the requests that
//! `PocketBase` has too, and a live page of one row.

#[path = "../peers/board_data.rs"]
mod board_data;
#[path = "../peers/board_random.rs"]
mod board_random;

use bine::prelude::*;
use bine::store::{Error as StoreError, Snapshot};
use serde::{Deserialize, Serialize};

use board_data::{ADDED, FORTUNES, ROWS};
use board_random::{count_of, random_ids, random_number};

/// Rows per transaction of the start.
const AT_ONCE: usize = 500;
/// Rows of a list.
const LISTED: u32 = 20;

#[derive(Table)]
struct World {
    id: Id<Self>,
    #[table(unique)]
    number: u32,
    random: u32,
}

#[derive(Table)]
struct Fortune {
    id: Id<Self>,
    number: u32,
    message: Text,
}

#[derive(Serialize)]
struct Greeting {
    message: &'static str,
}

/// A row as JSON.
#[derive(Serialize)]
struct WorldRow {
    id: u32,
    #[serde(rename = "randomNumber")]
    random: u32,
}

/// The body of a change.
#[derive(Deserialize)]
struct NewNumber {
    #[serde(rename = "randomNumber")]
    random: u32,
}

impl From<World> for WorldRow {
    fn from(row: World) -> Self {
        Self { id: row.number, random: row.random }
    }
}

fn find(now: &Snapshot, number: u32) -> Result<WorldRow, Error> {
    let row = now.one(World::BY_NUMBER, number);
    row.map(WorldRow::from).ok_or_else(|| Error::not_found("There is no such row."))
}

#[page("/plaintext")]
async fn plaintext() -> Response {
    Response::text("Hello, World!")
}

#[page("/json")]
async fn greeting() -> Json<Greeting> {
    Json(Greeting { message: "Hello, World!" })
}

#[page("/db")]
async fn single(store: Store) -> Result<Json<WorldRow>, Error> {
    Ok(Json(find(&store.read(), random_number())?))
}

#[page("/queries")]
async fn several(store: Store, queries: Query<Option<Text>>) -> Result<Json<Vec<WorldRow>>, Error> {
    let now = store.read();
    let ids = random_ids(count_of(queries.as_deref()));
    Ok(Json(ids.into_iter().map(|id| find(&now, id)).collect::<Result<_, _>>()?))
}

#[page("/fortunes")]
async fn fortunes(store: Store) -> impl Page {
    let mut fortunes: Vec<Fortune> = store.read().all::<Fortune>().collect();
    fortunes.push(Fortune { id: Id::unassigned(), number: 0, message: ADDED.into() });
    fortunes.sort_unstable_by(|one, other| one.message.cmp(&other.message));
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>"Fortunes"</title></head>
            <body><table>
                <tr><th>"id"</th><th>"message"</th></tr>
                {for fortune in &fortunes {
                    <tr><td>{fortune.number}</td><td>{fortune.message}</td></tr>
                }}
            </table></body>
        </html>
    }
}

#[page("/updates")]
async fn updates(store: Store, queries: Query<Option<Text>>) -> Result<Json<Vec<WorldRow>>, Error> {
    let ids = random_ids(count_of(queries.as_deref()));
    let changes: Vec<(u32, u32)> = ids.into_iter().map(|id| (id, random_number())).collect();
    let rows = store.change(|change| {
        changes.iter().map(|&(id, random)| set(change, id, random)).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(rows.await?))
}

#[page("/world")]
async fn list(store: Store, page: Query<u32>) -> Json<Vec<WorldRow>> {
    let first = page.saturating_sub(1).saturating_mul(LISTED).saturating_add(1);
    let now = store.read();
    let rows = now.range(World::BY_NUMBER, first..first.saturating_add(LISTED));
    Json(rows.map(WorldRow::from).collect())
}

#[page("/world/{number}")]
async fn record(store: Store, number: Path<u32>) -> Result<Json<WorldRow>, Error> {
    Ok(Json(find(&store.read(), *number)?))
}

#[page(PATCH "/world/{number}")]
async fn change(
    store: Store,
    number: Path<u32>,
    body: Json<NewNumber>,
) -> Result<Json<WorldRow>, Error> {
    Ok(Json(store.change(|change| set(change, *number, body.random)).await?))
}

/// The page that shows a row to its viewers.
#[page("/live/{number}")]
async fn live(store: Store, number: Path<u32>) -> Result<impl Page, Error> {
    let row = find(&store.read(), *number)?;
    Ok(html!(<h1>"A row"</h1> <Live><p>{row.random}</p></Live>))
}

/// Reads a row, then replaces it.
fn set(change: &mut bine::store::Transaction, number: u32, random: u32) -> Result<WorldRow, Error> {
    let row = change.one(World::BY_NUMBER, number);
    let row = row.ok_or_else(|| Error::not_found("There is no such row."))?;
    let row = World { random, ..row };
    change.replace(&row)?;
    Ok(row.into())
}

/// Inserts the rows at the first start.
fn fill(store: &Store) -> Result<(), Error> {
    if store.read().count::<World>() > 0 {
        return Ok(());
    }
    let numbers: Vec<u32> = (1..=ROWS).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        let insert = store.change(|change| {
            for &number in numbers {
                let random = random_number();
                change.insert(World { id: Id::unassigned(), number, random })?;
            }
            Ok::<_, StoreError>(())
        });
        insert.wait()?;
    }
    for (message, number) in FORTUNES.into_iter().zip(1..) {
        store.insert(Fortune { id: Id::unassigned(), number, message: message.into() }).wait()?;
    }
    Ok(())
}

fn main() -> Exit {
    App::new()
        .table::<World>()
        .table::<Fortune>()
        .on_store_open(fill)
        .page(plaintext)
        .page(greeting)
        .page(single)
        .page(several)
        .page(fortunes)
        .page(updates)
        .page(list)
        .page(record)
        .page(change)
        .page(live)
        .run()
}
