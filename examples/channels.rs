//! Channels that everybody may create, write and follow: each is a resource of its own below `/channels/`.
//!
//! `cargo run --release --example channels`, then
//!
//! ```sh
//! curl -X PUT -H 'Content-Type: text/plain' http://127.0.0.1:8080/channels/news
//! curl -H 'Content-Type: text/plain' --data 'Hello' http://127.0.0.1:8080/channels/news
//! curl -N 'http://127.0.0.1:8080/channels/news?offset=-1&live=sse'
//! ```

use bine::channels::Access;
use bine::prelude::*;

#[page("/")]
async fn home() -> impl Page {
    html!(<p>"What is written at " <code>/channels/news</code> " is followed there."</p>)
}

fn main() -> Exit {
    App::new().channels(Access::Everything).page(home).run()
}
