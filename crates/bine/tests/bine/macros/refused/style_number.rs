//! Rejected: a number without a unit.

use bine::css;

css! {
    .card { margin: 10; line-height: 2; gap: 1 2px }
}

fn main() {}
