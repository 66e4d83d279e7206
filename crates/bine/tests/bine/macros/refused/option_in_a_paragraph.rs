//! Rejected: an option in a paragraph.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><option>"text"</option></p>)
}

fn main() {
    drop(page());
}
