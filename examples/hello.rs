//! The smallest program: a page that greets by name.
//!
//! `cargo run --release --example hello`, then open
//! <http://127.0.0.1:8080/hello?name=TLUG>.

use bine::prelude::*;

#[page("/hello")]
async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

fn main() -> Exit {
    App::new().page(hello).run()
}
