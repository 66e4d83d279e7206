//! Cases of HttpArena on axum, as an axum user would write them: one thread, TCP_NODELAY,
//! compression and files by tower-http.

#[path = "../../arena_data.rs"]
mod arena_data;

use std::error::Error;
use std::sync::LazyLock;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_http::compression::CompressionLayer;
use tower_http::services::ServeDir;

use arena_data::{Item, ItemList, items, priced};

static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(items);

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Multiplier {
    m: u32,
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder] = &words[..] else {
        return Err("usage: bine-bench-arena HOST:PORT FOLDER".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let files = ServeDir::new(folder).precompressed_br().precompressed_gzip();
        let app = Router::new()
            .route("/json/{count}", get(json))
            .layer(CompressionLayer::new())
            .route("/baseline11", get(sum).post(sum_with_body))
            .fallback_service(files);
        let listener = TcpListener::bind(address).await?.tap_io(|stream| {
            // A connection without the option also works.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await?;
        Ok(())
    })
}

async fn sum(numbers: Query<Numbers>) -> String {
    (numbers.a + numbers.b).to_string()
}

async fn sum_with_body(numbers: Query<Numbers>, body: String) -> Result<String, StatusCode> {
    let third = body.trim().parse::<i64>().map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok((numbers.a + numbers.b + third).to_string())
}

async fn json(Path(count): Path<usize>, multiplier: Query<Multiplier>) -> Json<ItemList> {
    Json(priced(&ITEMS, count, multiplier.m))
}
