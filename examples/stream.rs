//! A reply that is written while it is sent: one line per second for as long as the client reads.
//!
//! Run `cargo run --release --example stream`, then `curl -N http://127.0.0.1:8080/clock?times=5`.

use std::time::Duration;

use bine::prelude::*;

#[page("/clock")]
async fn clock(times: Query<Option<u32>>, every: Query<Option<u64>>) -> Response {
    let (times, pause) = (times.unwrap_or(60), Duration::from_millis(every.unwrap_or(1000)));
    Response::stream("text/plain; charset=utf-8", async move |mut out| {
        for time in 1..=times {
            out.send(format!("tick {time}\n")).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    })
}

fn main() -> Exit {
    App::new().page(clock).run()
}
