//! Rejected: queries with types that differ from the index's columns.

use bine::store::{Id, Store, Table};

#[derive(Table)]
#[table(index(forum, stars))]
struct Message {
    id: Id<Message>,
    forum: String,
    stars: u8,
    #[table(index)]
    author: Option<Id<User>>,
}

#[derive(Table)]
struct User {
    id: Id<User>,
    #[table(unique)]
    name: String,
}

fn ask(store: &Store, user: Id<User>) {
    let now = store.read();
    let _ = now.one(User::BY_NAME, 7);
    let _ = now.find(Message::BY_FORUM_STARS, "garden");
    let _ = now.find(Message::BY_FORUM_STARS, (7, "garden"));
    let _ = now.find(Message::BY_AUTHOR, user);
    let _: Option<Message> = now.get(user);
    let _ = now.one(User::BY_EMAIL, "a@b");
}

fn main() {}
