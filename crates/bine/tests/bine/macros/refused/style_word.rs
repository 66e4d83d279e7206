//! Rejected: misspelled keywords.

use bine::css;

css! {
    .card { display: flx; position: abslute; color: darkgren }
}

fn main() {}
