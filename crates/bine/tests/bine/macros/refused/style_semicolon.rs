//! Rejected: a missing semicolon.

use bine::css;

css! {
    .card {
        color: red
        margin: 0;
        padding: 0
        .title { top: 0 }
    }
}

fn main() {}
