//! Rejected: rules for the removal of rows that do not fit the column.

use bine::store::{Id, Table};

#[derive(Table)]
struct Message {
    id: Id<Message>,
    #[table(on_remove = "delete")]
    first: Option<Id<Message>>,
    #[table(on_remove)]
    second: Option<Id<Message>>,
    #[table(on_remove = "set_none")]
    third: Id<Message>,
    #[table(on_remove = "cascade")]
    body: String,
}

fn main() {}
