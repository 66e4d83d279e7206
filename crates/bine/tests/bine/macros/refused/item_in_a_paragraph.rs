//! Rejected: a list item in a paragraph.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><li>"text"</li></p>)
}

fn main() {
    drop(page());
}
