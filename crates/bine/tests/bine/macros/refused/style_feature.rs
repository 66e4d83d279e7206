//! Rejected: unknown media features.

use bine::css;

css! {
    @media (min-widht: 40rem) and prnt { p { top: 0 } }
    @container (inlin-size > 1px) { p { top: 0 } }
}

fn main() {}
