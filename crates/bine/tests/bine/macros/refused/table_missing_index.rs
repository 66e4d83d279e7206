//! Rejected: queries of columns without an index.

use bine::store::{Id, Store, Table};

#[derive(Table)]
#[table(index(forum, stars))]
struct Message {
    id: Id<Message>,
    forum: String,
    stars: u8,
    author: String,
}

/// A constant of the program is not hidden.
impl Message {
    const BY_STARS: u8 = 5;
}

fn ask(store: &Store, id: Id<Message>) {
    let now = store.read();
    let _ = now.find(Message::BY_AUTHOR, "Ann");
    let _ = now.range(Message::BY_FORUM, "a".."b");
    let _ = now.one(Message::BY_ID, id);
    let _ = now.one(Message::BY_AUTOR, "Ann");
    let _: u8 = Message::BY_STARS;
}

fn main() {}
