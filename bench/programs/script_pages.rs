//! The pages of `scripts` in Rust: the same bytes as the application in `pages/` writes.

use bine::prelude::*;

#[derive(Table)]
struct Entry {
    id: Id<Self>,
    number: u32,
    body: Text,
    author: Text,
}

#[derive(Table)]
struct Message {
    id: Id<Self>,
    /// The time as the page shows it.
    at: Text,
    body: Text,
    author: Text,
}

#[service("/pages/addEntry")]
fn add_entry(call: &mut Call, number: u32, body: Text, author: Text) -> Result<Id<Entry>, Error> {
    Ok(call.insert(Entry { id: Id::unassigned(), number, body, author })?)
}

#[service("/pages/addMessage")]
fn add_message(call: &mut Call, at: Text, body: Text, author: Text) -> Result<Id<Message>, Error> {
    Ok(call.insert(Message { id: Id::unassigned(), at, body, author })?)
}

#[page("/pages/")]
async fn hello(name: Query<Text>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en"><head><title>"Hello"</title></head><body><h1>Hello {name}</h1></body></html>
    }
}

#[page("/pages/rows20")]
async fn rows20(store: Store) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en"><head><title>"Visits"</title></head><body><h1>"Visits"</h1><ul>
            {for entry in store.read().all::<Entry>().rev().take(20) {
                <li id={entry.number}>{entry.body} <i>{entry.author}</i></li>
            }}
        </ul></body></html>
    }
}

#[page("/pages/rows50")]
async fn rows50(store: Store) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en"><head><title>"Messages"</title></head><body><h1>"Messages"</h1><ol>
            {for message in store.read().all::<Message>().rev().take(50) {
                <li><b>{message.author}</b> <time>{message.at}</time><p>{message.body}</p></li>
            }}
        </ol></body></html>
    }
}

fn main() -> Exit {
    App::new()
        .table::<Entry>()
        .table::<Message>()
        .page(hello)
        .page(rows20)
        .page(rows50)
        .service(add_entry)
        .service(add_message)
        .run()
}
