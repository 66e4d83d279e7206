//! Rejected: an image without a text alternative.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<img src="a.png">)
}

fn main() {
    drop(page());
}
