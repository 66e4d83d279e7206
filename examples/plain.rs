//! The same page twice. An `async fn` runs on an event loop and must not block; a plain `fn` may
//! block, and occupies a thread while it runs: a worker, under the scheduler `hybrid`.

use bine::prelude::*;

#[page("/hello")]
async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

#[page("/plain")]
fn plain(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

fn main() -> Exit {
    App::new().page(hello).page(plain).run()
}
