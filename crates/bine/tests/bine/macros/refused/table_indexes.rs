//! Rejected: indexes of unknown columns, without columns, with too many, and duplicate indexes.

use bine::store::{Id, Table};

#[derive(Table)]
#[table(index(forun, posted), unique(id), index, unique(), index(forum))]
struct Message {
    id: Id<Message>,
    #[table(index)]
    forum: String,
    posted: i64,
}

#[derive(Table)]
#[table(index(a, b, c, d, e))]
struct Long {
    id: Id<Long>,
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
}

fn main() {}
