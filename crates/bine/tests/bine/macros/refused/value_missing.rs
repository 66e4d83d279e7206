//! Rejected: a missing attribute value.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type>)
}

fn main() {
    drop(page());
}
