//! Misuse: style sheet in a string.

use bine::css;

css! {
    ".card { color: #12e5 ; colr: red }"
    "
    .title { widht: 2em }
    "
}

fn main() {}
