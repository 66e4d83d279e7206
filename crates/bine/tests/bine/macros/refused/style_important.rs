//! Rejected: a misused `!`.

use bine::css;

css! {
    .card { top: 0 !importnat }
}

fn main() {}
