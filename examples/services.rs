//! Functions that clients call by name: a form, curl, or a second program.
//!
//! Run `cargo run --release --example services`, then open <http://127.0.0.1:8080/>, or use `curl
//! -d name=Anna -d words=Hello -d stars=5 http://127.0.0.1:8080/services/sign` and `curl
//! 'http://127.0.0.1:8080/services/add?one=1&other=2'`. With `--routes` the program lists its
//! services.

use bine::prelude::*;

#[derive(Table)]
struct Entry {
    id: Id<Entry>,
    #[table(length = 1..=40)]
    name: Text,
    #[table(length = 1..=500)]
    words: Text,
    #[table(range = 1..=5, default = 5)]
    stars: u8,
}

#[service]
fn sign(call: &mut Call, name: Text, words: Text, stars: u8) -> Result<Id<Entry>, Error> {
    Ok(call.insert(Entry { id: Id::unassigned(), name, words, stars })?)
}

#[service(safe)]
fn add(one: i64, other: i64) -> Result<i64, Error> {
    one.checked_add(other).ok_or_else(|| Error::invalid_argument("other", "is too much"))
}

#[page("/")]
async fn book(store: Store) -> impl Page {
    let entries = store.read().newest::<Entry>(20);
    html! {
        <h1>Guests</h1>
        <form method="post" action={sign}>
            <input name="name" aria-label="Your name">
            <input name="words" aria-label="Your words">
            <input type="number" name="stars" aria-label="Stars, from 1 to 5" value="5">
            <button>Sign</button>
        </form>
        <ul>{for entry in entries { <li>{entry.name}: {entry.words} ({entry.stars})</li> }}</ul>
    }
}

fn main() -> Exit {
    App::new().table::<Entry>().page(book).service(sign).service(add).run()
}
