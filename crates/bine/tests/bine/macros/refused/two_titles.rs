//! Rejected: two titles.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<html lang="en"><head><title>"a"</title><title>"b"</title></head><body></body></html>)
}

fn main() {
    drop(page());
}
