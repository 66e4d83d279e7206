//! A channel that any client may subscribe and publish to, and a page that shows its messages as
//! they arrive.
//!
//! Run `cargo run --release --example channels`, then open <http://127.0.0.1:8080/> in two windows,
//! or publish with `curl --data '{"channels":"news","data":"Hello"}'
//! http://127.0.0.1:8080/channels`. Each channel is also a resource, and clients can create further
//! ones:
//!
//! ```sh
//! curl -X PUT -H 'Content-Type: text/plain' http://127.0.0.1:8080/channels/weather
//! curl -H 'Content-Type: text/plain' --data 'Rain' http://127.0.0.1:8080/channels/weather
//! curl -N 'http://127.0.0.1:8080/channels/weather?offset=-1&live=sse'
//! ```

use bine::channels::{Access, Retention, Settings};
use bine::prelude::*;

#[page("/")]
async fn news() -> impl Page {
    html!(
        <!doctype html>
        <html lang="en">
            <head><title>News</title></head>
            <body>
                <h1>News</h1>
                <ul id="news"></ul>
                <script src="/news.js"></script>
            </body>
        </html>
    )
}

const SCRIPT: &str = r#"
const news = new EventSource("/channels?c=news&after=earliest");
news.onmessage = ({ data }) => {
  const item = document.createElement("li");
  item.textContent = data;
  document.getElementById("news").append(item);
};
"#;

#[page("/hello")]
async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

fn main() -> Exit {
    let retention = Retention { messages: 1000, ..Retention::default() };
    App::new()
        .in_memory()
        .channels(Access::allow_all())
        .channel("news", Settings { retention, ..Settings::default() })
        .page(news)
        .page(hello)
        .asset("/news.js", "text/javascript", SCRIPT.as_bytes())
        .run()
}
