//! Misuse: colon that is missing.

use bine::css;

css! {
    .card { color red; margin }
}

fn main() {}
