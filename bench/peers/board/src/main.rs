//! The cases of TechEmpower's benchmark on axum, as an axum user would write them: one thread for
//! requests, TCP_NODELAY, and a database.

#[path = "../../board_data.rs"]
mod board_data;
#[path = "../../board_random.rs"]
mod board_random;
mod cases;
mod postgres;
mod sqlite;

use std::error::Error;
use std::path::Path;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use postgres::Postgres;
use sqlite::Sqlite;

const USAGE: &str = "usage: bine-bench-board HOST:PORT sqlite FILE GROUP
       bine-bench-board HOST:PORT postgres CONNECTION-STRING CONNECTIONS

GROUP: the most updates that one transaction commits; 1: a transaction for each request";

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, kind, place, count] = &words[..] else { return Err(USAGE.into()) };
    let count: usize = count.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let app = match &**kind {
            "sqlite" => cases::router(Sqlite::open(Path::new(place), count)?),
            "postgres" => cases::router(Postgres::connect(place, count).await?),
            _ => return Err(USAGE.into()),
        };
        let listener = TcpListener::bind(address).await?.tap_io(|stream| {
            // A connection without the option also works.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await?;
        Ok(())
    })
}
