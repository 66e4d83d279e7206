//! Rejected: unknown elements in selectors.

use bine::css;

css! {
    secton > h1 { top: 0 }
    card { top: 0 }
    . card { top: 0 }
}

fn main() {}
