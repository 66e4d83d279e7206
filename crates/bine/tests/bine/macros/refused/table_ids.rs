//! Rejected: rows without an id, with two, with another row's, and with a number as id.

use bine::store::{Id, Table};

#[derive(Table)]
struct Nobody {
    name: String,
}

#[derive(Table)]
struct Twice {
    id: Id<Twice>,
    id: Id<Twice>,
}

#[derive(Table)]
struct Other {
    id: Id<Nobody>,
}

#[derive(Table)]
struct Number {
    id: u64,
}

fn main() {}
