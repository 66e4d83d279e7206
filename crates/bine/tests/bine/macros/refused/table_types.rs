//! Rejected: columns of unsupported types.

use bine::store::{Id, Table};

#[derive(Table)]
struct User {
    id: Id<User>,
    count: usize,
    name: &'static str,
    tags: Vec<String>,
}

#[derive(Table)]
struct Message {
    id: Id<Message>,
    author: User,
    parent: Option<Thread>,
}

struct Thread;

#[derive(Table)]
struct Answer {
    id: Id<Answer>,
    thread: Id<Thread>,
}

fn main() {}
