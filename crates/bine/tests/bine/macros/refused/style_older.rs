//! Misuse: older spelling of a property.

use bine::css;

css! {
    .card { word-wrap: break-word; grid-gap: 1px }
}

fn main() {}
