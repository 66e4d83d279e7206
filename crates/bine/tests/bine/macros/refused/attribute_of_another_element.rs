//! Rejected: an attribute that the element does not have.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p href="/">"text"</p>)
}

fn main() {
    drop(page());
}
