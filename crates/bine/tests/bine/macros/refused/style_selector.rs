//! Rejected: malformed selectors.

use bine::css;

css! {
    .card, { top: 0 }
    > p { top: 0 }
    a[href=] { top: 0 }
}

fn main() {}
