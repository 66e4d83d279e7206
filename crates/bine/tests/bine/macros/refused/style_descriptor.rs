//! Rejected: misspelled descriptors of at-rules.

use bine::css;

css! {
    @font-face { font-famly: Own; src: url("own.woff2") }
    @property --x { sintax: "*"; }
}

fn main() {}
