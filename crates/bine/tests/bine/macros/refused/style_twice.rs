//! Rejected: a duplicate declaration.

use bine::css;

css! {
    .card { color: red; color: blue; color: red }
}

fn main() {}
