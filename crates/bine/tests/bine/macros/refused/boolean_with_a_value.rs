//! Rejected: a boolean attribute with a value.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input disabled="true">)
}

fn main() {
    drop(page());
}
