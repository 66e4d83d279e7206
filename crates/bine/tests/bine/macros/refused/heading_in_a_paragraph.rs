//! Rejected: a heading in a paragraph.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><h1>"text"</h1></p>)
}

fn main() {
    drop(page());
}
