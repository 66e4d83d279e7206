//! Rejected: a misspelled element.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<secton><p>"text"</p></secton>)
}

fn main() {
    drop(page());
}
