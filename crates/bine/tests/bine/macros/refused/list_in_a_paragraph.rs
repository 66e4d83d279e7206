//! Rejected: a list in a paragraph.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><ul><li>"text"</li></ul></p>)
}

fn main() {
    drop(page());
}
