//! Rejected: a malformed color.

use bine::css;

css! {
    .card { color: #12345; background: #ggg }
}

fn main() {}
