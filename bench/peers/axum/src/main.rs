//! The hello page and a folder of files as an axum user would write them: one thread, TCP_NODELAY.

#[path = "../../values_page.rs"]
mod values_page;

use std::io;

use axum::extract::Query;
use axum::response::Html;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::Router;
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_http::services::ServeDir;

use values_page::values_page;

#[derive(Deserialize)]
struct Parameters {
    name: String,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: bine-bench-axum HOST:PORT FOLDER"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let app = Router::new()
            .route("/hello", get(hello))
            .route("/values", get(values))
            .fallback_service(ServeDir::new(folder));
        let listener = TcpListener::bind(address).await?.tap_io(|stream| {
            // A connection without the option also works.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await
    })
}

async fn hello(parameters: Query<Parameters>) -> Html<String> {
    Html(format!("<h1>Hello {}</h1>", html_escape::encode_text(&parameters.name)))
}

async fn values() -> Html<String> {
    Html(values_page())
}
