//! Rejected: defaults of a type that differs from their column's.

use bine::store::{Id, Table};

#[derive(Table)]
struct User {
    id: Id<User>,
    #[table(default = 7)]
    name: String,
    #[table(default = "7")]
    age: u8,
    #[table(default = 0)]
    is_known: bool,
    #[table(default = true)]
    stars: Option<u8>,
}

fn main() {}
