//! Rejected: a global class in a sheet without a module.

use bine::css;

css! {
    :global(.card) { top: 0 }
}

fn main() {}
