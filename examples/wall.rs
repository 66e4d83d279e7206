//! A live wall with many viewers, and services that do little work: the program that `bine-bench
//! live` measures.
//!
//! Run `cargo run --release --example wall`, then open <http://127.0.0.1:8080/wall/200>.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bine::prelude::*;

#[derive(Table)]
struct Line {
    id: Id<Line>,
    words: Text,
}

/// The number of renders of the wall.
static MADE: AtomicU64 = AtomicU64::new(0);

#[service]
fn write(call: &mut Call, words: Text) -> Result<Id<Line>, Error> {
    Ok(call.insert(Line { id: Id::unassigned(), words })?)
}

#[service]
async fn hear(words: Text) -> Result<usize, Error> {
    Ok(words.len())
}

/// Each new line changes the page but not its length.
#[page("/wall/{length}")]
async fn wall(store: Store, length: Path<usize>) -> impl Page {
    MADE.fetch_add(1, Ordering::Relaxed);
    let rest = "x".repeat((*length).min(60_000));
    html! {
        <h1>A wall</h1>
        <Live><p>{format_args!("{:010}", store.read().count::<Line>())} lines. {rest}</p></Live>
    }
}

/// A live page that computes for a number of milliseconds and never changes.
#[page("/compute/{milliseconds}")]
async fn compute(milliseconds: Path<u64>) -> impl Page {
    let end = Instant::now() + Duration::from_millis((*milliseconds).min(1000));
    let mut number = 1_u64;
    while Instant::now() < end {
        number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005));
    }
    html!(<h1>Computed</h1> <Live><p>{number % 2}</p></Live>)
}

#[page("/made")]
async fn made() -> Response {
    Response::text(MADE.load(Ordering::Relaxed).to_string())
}

#[page("/lines")]
async fn lines(store: Store) -> impl Page {
    let lines = store.read().newest::<Line>(50);
    html!(<h1>Lines</h1> <ul>{for line in &lines { <li>{line.words}</li> }}</ul>)
}

/// The same list as a live page.
#[page("/live-lines")]
async fn live_lines(store: Store) -> impl Page {
    let lines = store.read().newest::<Line>(50);
    html! {
        <h1>Lines</h1>
        <Live><ul>{for line in &lines { <li>{line.words}</li> }}</ul></Live>
    }
}

fn main() -> Exit {
    let app = App::new().table::<Line>().page(wall).page(made).page(lines).page(live_lines);
    let app = app.page(compute);
    app.service(write).service(hear).run()
}
