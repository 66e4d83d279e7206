//! Rejected: mistakes in at-rules.

use bine::css;

css! {
    @medai print { p { top: 0 } }
    @import "other.css";
    @keyframes { }
}

fn main() {}
