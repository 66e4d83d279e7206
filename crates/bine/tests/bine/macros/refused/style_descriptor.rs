//! Misuse: descriptor of a font.

use bine::css;

css! {
    @font-face { font-famly: Own; src: url("own.woff2") }
    @property --x { sintax: "*"; }
}

fn main() {}
