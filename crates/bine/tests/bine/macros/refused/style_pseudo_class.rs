//! Rejected: misspelled pseudo-classes.

use bine::css;

css! {
    a:hovr { top: 0 }
    a::hover { top: 0 }
    a:not { top: 0 }
    li:nth-child(2m) { top: 0 }
}

fn main() {}
