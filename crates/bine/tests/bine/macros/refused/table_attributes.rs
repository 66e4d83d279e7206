//! Rejected: unknown options of tables, columns and ids.

use bine::store::{Id, Table};

#[derive(Table)]
#[table(indx(forum), name = board, private)]
struct Message {
    #[table(unique)]
    id: Id<Message>,
    #[table(uniqe, lenght = 1..=80)]
    forum: String,
    #[table(default, was = forum)]
    body: String,
    #[table(name = "marks")]
    stars: u8,
}

fn main() {}
