//! Misuse: word of a property.

use bine::css;

css! {
    .card { display: flx; position: abslute; color: darkgren }
}

fn main() {}
