//! Misuse: rule that begins with @.

use bine::css;

css! {
    @medai print { p { top: 0 } }
    @import "other.css";
    @keyframes { }
}

fn main() {}
