//! Misuse: attribute of another element.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p href="/">"text"</p>)
}

fn main() {
    drop(page());
}
