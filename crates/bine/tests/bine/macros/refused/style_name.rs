//! Rejected: classes without a valid or unique Rust name.

use bine::css;

css! {
    mod style;
    .card-title { top: 0 }
    .card_title { top: 0 }
    .self { top: 0 }
}

fn main() {}
