//! Rejected: a paragraph in a paragraph.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><p>"text"</p></p>)
}

fn main() {
    drop(page());
}
