//! Rejected: a missing colon.

use bine::css;

css! {
    .card { color red; margin }
}

fn main() {}
