//! Rejected: misspelled units.

use bine::css;

css! {
    .card { width: 12xp; margin: 0 3rme; transition: all 200sm }
}

fn main() {}
