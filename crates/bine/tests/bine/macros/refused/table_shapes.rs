//! Rejected: rows that are not structs with named fields.

use bine::store::{Id, Table};

#[derive(Table)]
struct Generic<T> {
    id: Id<Generic<T>>,
    value: T,
}

#[derive(Table)]
struct Borrowed<'a> {
    id: Id<Borrowed<'a>>,
    name: &'a str,
}

#[derive(Table)]
struct Tuple(Id<Tuple>, String);

#[derive(Table)]
struct Unit;

#[derive(Table)]
enum State {
    Open,
    Shut,
}

fn main() {}
