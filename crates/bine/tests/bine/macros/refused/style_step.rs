//! Rejected: mistakes in the steps of an animation.

use bine::css;

css! {
    @keyframes blink { start { opacity: 0 } 50% { opcity: 1 } top: 0; }
}

fn main() {}
