//! Rejected: mistakes in a style sheet given as a string.

use bine::css;

css! {
    ".card { color: #12e5 ; colr: red }"
    "
    .title { widht: 2em }
    "
}

fn main() {}
