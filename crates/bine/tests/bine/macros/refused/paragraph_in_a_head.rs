//! Rejected: a paragraph in a head.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<html lang="en"><head><title>"t"</title><p>"text"</p></head><body></body></html>)
}

fn main() {
    drop(page());
}
