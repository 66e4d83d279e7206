//! Misuse: declaration that is there twice.

use bine::css;

css! {
    .card { color: red; color: blue; color: red }
}

fn main() {}
