//! Rejected: an id with a space.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p id="a b">"text"</p>)
}

fn main() {
    drop(page());
}
