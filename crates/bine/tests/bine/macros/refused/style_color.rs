//! Misuse: color of five digits.

use bine::css;

css! {
    .card { color: #12345; background: #ggg }
}

fn main() {}
