//! Rejected: text in a list.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<ol>"text"<li>"text"</li></ol>)
}

fn main() {
    drop(page());
}
