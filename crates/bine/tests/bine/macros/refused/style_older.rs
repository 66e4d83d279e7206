//! Rejected: obsolete spellings of properties.

use bine::css;

css! {
    .card { word-wrap: break-word; grid-gap: 1px }
}

fn main() {}
