//! Rejected: enums with data or numbers.

use bine::store::Word;

#[derive(Word)]
enum State {
    Open,
    Sold(u64),
}

#[derive(Word)]
enum Number {
    One = 1,
}

#[derive(Word)]
enum Generic<T> {
    Some(T),
}

#[derive(Word)]
enum Nothing {}

#[derive(Word)]
struct Shut;

#[derive(Word)]
#[table(name = "state")]
enum Named {
    Open,
}

#[derive(Word)]
enum Alike {
    ShutNow,
    Shut_now,
}

fn main() {}
