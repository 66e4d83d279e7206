//! Misuse: property of a style sheet.

use bine::css;

css! {
    .card { colr: red; text-aling: center; paddding-left: 1px }
}

fn main() {}
