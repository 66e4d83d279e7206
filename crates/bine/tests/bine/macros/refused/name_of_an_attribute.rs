//! Rejected: a misspelled attribute.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a herf="/">"text"</a>)
}

fn main() {
    drop(page());
}
