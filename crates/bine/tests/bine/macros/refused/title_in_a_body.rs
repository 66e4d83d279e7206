//! Rejected: a title in a body.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<html lang="en"><head><title>"t"</title></head><body><title>"t"</title></body></html>)
}

fn main() {
    drop(page());
}
