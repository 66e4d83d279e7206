//! The program of `arena`: cases of `HttpArena` as pages. The files are those of `--root`.

#[path = "../peers/arena_data.rs"]
mod arena_data;

use std::sync::LazyLock;

use bine::Body;
use bine::prelude::*;

use arena_data::{Item, ItemList, items, priced};

static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(items);

#[page("/baseline11")]
async fn sum(a: Query<i64>, b: Query<i64>) -> Response {
    Response::text((*a + *b).to_string())
}

#[page(POST "/baseline11")]
async fn sum_with_body(a: Query<i64>, b: Query<i64>, body: Body) -> Result<Response, Error> {
    let third = std::str::from_utf8(&body).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let third = third.ok_or_else(|| Error::bad_request("The body is not a number."))?;
    Ok(Response::text((*a + *b + third).to_string()))
}

#[page("/json/{count}")]
async fn json(count: Path<usize>, m: Query<u32>) -> Json<ItemList> {
    Json(priced(&ITEMS, *count, *m))
}

fn main() -> Exit {
    App::new().page(sum).page(sum_with_body).page(json).run()
}
