//! Rejected: a misspelled SVG element.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<svg><rekt width="1" height="1" /></svg>)
}

fn main() {
    drop(page());
}
