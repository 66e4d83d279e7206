//! Misuse: class that is called global.

use bine::css;

css! {
    :global(.card) { top: 0 }
}

fn main() {}
