//! Rejected: invalid limits, and limits of the wrong kind.

use bine::store::{Id, Table};

#[derive(Table)]
struct User {
    id: Id<User>,
    #[table(length = 80)]
    name: String,
    #[table(length = 1..80)]
    city: String,
    #[table(length = ..=80)]
    street: String,
    #[table(range = 1..=80)]
    country: String,
    #[table(length = 1..=3)]
    age: u8,
    #[table(range = 9..=1)]
    stars: u8,
}

fn main() {}
