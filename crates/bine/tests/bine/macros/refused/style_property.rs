//! Rejected: misspelled properties.

use bine::css;

css! {
    .card { colr: red; text-aling: center; paddding-left: 1px }
}

fn main() {}
