//! Rejected: misspelled functions.

use bine::css;

css! {
    .card { width: clac(1px + 2px); color: var(accent) }
}

fn main() {}
