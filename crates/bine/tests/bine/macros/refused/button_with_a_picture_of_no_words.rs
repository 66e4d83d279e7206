//! Rejected: an image button without a text alternative.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type="image" src="/go.png">)
}

fn main() {
    drop(page());
}
