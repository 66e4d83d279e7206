//! Rejected: a declaration outside a rule.

use bine::css;

css! {
    color: red;
    .card { top: 0 }
}

fn main() {}
