//! Rejected: an element name in capitals.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<P>"text"</P>)
}

fn main() {
    drop(page());
}
