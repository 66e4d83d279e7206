//! Rejected: enums with data or numbers.

use bine::store::Enum;

#[derive(Enum)]
enum State {
    Open,
    Sold(u64),
}

#[derive(Enum)]
enum Number {
    One = 1,
}

#[derive(Enum)]
enum Generic<T> {
    Some(T),
}

#[derive(Enum)]
enum Nothing {}

#[derive(Enum)]
struct Shut;

#[derive(Enum)]
#[table(name = "state")]
enum Named {
    Open,
}

#[derive(Enum)]
enum Alike {
    ShutNow,
    Shut_now,
}

fn main() {}
